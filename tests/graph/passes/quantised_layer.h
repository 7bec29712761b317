#pragma once

#include <cstdint>
#include <vector>

#include "tests/graph/passes/test_graph.h"

// What importers make of QuantizeLinear and DequantizeLinear.
namespace hone::graph::testing {

/// first + k · step mod 101, for element k.
ValueId Known(TestGraph& t, ir::DType dtype, const std::vector<int64_t>& shape, int64_t first,
              int64_t step);

ValueId Cast(TestGraph& t, ValueId x, const char* to);

/// (bytes - zero) · scale, as DequantizeLinear is imported.
ValueId Dequantise(TestGraph& t, ValueId bytes, ValueId zero, ValueId scale);
ValueId FromBytes(TestGraph& t, ValueId bytes, double scale, int64_t zero);

/// round(x / scale) + zero as u8, as QuantizeLinear is imported.
ValueId Quantise(TestGraph& t, ValueId x, double scale, int64_t zero);

/// Runs the pass on the graph and removes what is dead: results stay, and a second time changes
/// nothing. Gives the number of changes.
int ChangesKeepingResults(TestGraph& t, PassFunction pass);

}  // namespace hone::graph::testing

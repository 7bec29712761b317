#pragma once

#include <cstdint>
#include <vector>

#include "ir/stmt.h"
#include "ir/tensor_buffer.h"

namespace hone::codegen {

/// Runs one phase of a loop nest with ordinary loops, whatever their kind, one statement after the other: the oracle of
/// the code tests. `arguments[k]` is the memory of HoneCall.buffers[k]. A load or store outside a buffer fails the test.
void RunReference(const ir::LoopNest& nest, const ir::Phase& phase, const std::vector<uint8_t*>& arguments,
                  int64_t begin, int64_t end, int64_t step = 0);

}  // namespace hone::codegen

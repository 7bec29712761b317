#pragma once

#include <functional>
#include <string>

#include "tests/graph/passes/test_graph.h"

namespace hone::graph::testing {

using Formula = std::function<ValueId(TestGraph&, ValueId)>;

/// The graph of f(x / c) with a seeded input x and small seeded constants c: both tails of an
/// activation occur.
TestGraph GraphOf(const Formula& formula);

/// After the pass and RemoveDeadCode there is one Activation with this function in the place of the
/// formula, of the formula's argument, and the results are the same.
void ExpectFormula(PassFunction pass, const std::string& fn, const Formula& formula);

/// The pass changes nothing.
void ExpectNoFormula(PassFunction pass, const Formula& formula);

}  // namespace hone::graph::testing

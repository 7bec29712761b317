#include <algorithm>
#include <string>

#include "gtest/gtest.h"

#include "tests/graph/passes/quantised_layer.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::ChangesKeepingResults;
using testing::FromBytes;
using testing::Quantise;
using testing::TestGraph;

int64_t Lookups(const Graph& graph) {
  return std::ranges::count_if(graph.nodes, [](const Node& node) { return node.op == "Lookup"; });
}

// GELU as ONNX Runtime's quantiser writes it: a table from its first byte to its last, none for
// those between.
TEST(TabulateBytesTest, AChainOfQuantisedStepsIsOneTable) {
  TestGraph t;
  const ValueId x = FromBytes(t, t.Input({3, 256}, DType::kU8), 0.05, 120);
  const ValueId e =
      FromBytes(t, Quantise(t, t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135))), 0.008, 127),
                0.008, 127);
  const ValueId product = t.Binary("mul", x, t.Binary("add", e, t.Scalar(1)));
  t.Output(Quantise(t, t.Binary("mul", product, t.Scalar(0.5)), 0.03, 9), "y");
  EXPECT_EQ(ChangesKeepingResults(t, TabulateBytes), 1);
  EXPECT_EQ(Lookups(t.graph), 1);
}

TEST(TabulateBytesTest, BytesReadElsewhereTooHaveATableOfTheirOwn) {
  TestGraph t;
  const ValueId x = FromBytes(t, t.Input({256}, DType::kU8), 0.05, 120);
  const ValueId inner = Quantise(t, t.Unary("tanh", x), 0.008, 127);
  t.Output(t.Binary("mul", FromBytes(t, inner, 0.008, 127), t.Constant({256})), "scaled");
  t.Output(Quantise(t, t.Unary("exp", FromBytes(t, inner, 0.008, 127)), 0.02, 0), "y");
  EXPECT_EQ(ChangesKeepingResults(t, TabulateBytes), 2);
}

// A few instructions are quicker than a table; tensors and second bytes are no part of one.
TEST(TabulateBytesTest, OtherFunctionsAreComputed) {
  TestGraph t;
  const ValueId x = FromBytes(t, t.Input({4, 6}, DType::kU8), 0.05, 120);
  const ValueId z = FromBytes(t, t.Input({4, 6}, DType::kU8), 0.05, 120);
  t.Output(Quantise(t, t.Binary("max", x, t.Scalar(0)), 0.04, 3), "cheap");
  t.Output(Quantise(t, t.Unary("exp", t.Binary("add", x, t.Constant({6}))), 0.04, 3), "columns");
  t.Output(Quantise(t, t.Unary("tanh", t.Binary("mul", x, z)), 0.04, 3), "two");
  EXPECT_EQ(ChangesKeepingResults(t, TabulateBytes), 0);
}

}  // namespace
}  // namespace hone::graph

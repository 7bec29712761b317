#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "graph/pipeline.h"
#include "ir/text.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::ExpectSame;
using testing::RandomInputs;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLowest = std::numeric_limits<float>::lowest();

/// [times, rows, keys] (or without the first): `seen` up to column i + offset of row i.
ConstantPtr Mask(std::vector<int64_t> shape, int64_t offset, double seen, double hidden,
                 ir::DType dtype = ir::DType::kF32) {
  std::vector<double> values;
  const int64_t rows = shape.end()[-2], keys = shape.back();
  const int64_t times = shape.size() > 2 ? shape[0] : 1;
  for (int64_t k = 0; k < times * rows; ++k) {
    for (int64_t j = 0; j < keys; ++j) values.push_back(j <= k % rows + offset ? seen : hidden);
  }
  return MakeConstant(dtype, std::move(shape), values);
}

ConstantPtr With(const ConstantPtr& mask, int64_t at, double value) {
  std::vector<double> values = mask->AsDoubles();
  values[static_cast<size_t>(at)] = value;
  return MakeConstant(mask->type.dtype, mask->type.shape, values);
}

/// softmax(scores + mask), or of them where the mask is true (or false: `inverted`).
TestGraph Added(const ConstantPtr& mask, std::vector<int64_t> scores = {2, 4, 6}) {
  TestGraph t;
  const ValueId x = t.Input(std::move(scores));
  const ValueId sum = t.Binary("add", x, t.graph.AddConstant(mask));
  t.Output(t.Op("Softmax", {sum}, {{"axis", int64_t{-1}}}), "y");
  return t;
}
TestGraph Selected(const ConstantPtr& mask, double hidden, bool inverted = false) {
  TestGraph t;
  const ValueId x = t.Input({2, 4, 6}), other = t.Scalar(hidden);
  const ValueId condition = t.graph.AddConstant(mask);
  const ValueId kept =
      t.Op("Select", {condition, inverted ? other : x, inverted ? x : other});
  t.Output(t.Op("Softmax", {kept}, {{"axis", int64_t{-1}}}), "y");
  return t;
}

int Recognised(Graph& graph) {
  InterpreterEvaluator evaluator;
  const auto changes = RecogniseCausal(graph, {evaluator, TestTarget()});
  EXPECT_TRUE(changes.ok()) << StatusMessage(changes.status());
  return changes.ok() ? *changes : -1;
}

/// Recognised with this offset, and nothing of the result changes.
void ExpectCausal(TestGraph t, int64_t offset) {
  const Graph before = t.graph;
  ASSERT_EQ(Recognised(t.graph), 1) << ToText(before);
  EXPECT_NE(ToText(t.graph).find("{offset=" + std::to_string(offset) + "}"), std::string::npos)
      << ToText(t.graph);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto inputs = RandomInputs(before, seed);
    ExpectSame(RunNodes(before, inputs), RunNodes(t.graph, inputs));
  }
  EXPECT_EQ(Recognised(t.graph), 0);
}

TEST(RecogniseCausalTest, AComparisonOfIndicesStandsForTheMask) {
  ExpectRewrite(Added(Mask({4, 6}, 2, 0, -kInfinity)).graph, RecogniseCausal, R"(
graph test
%0:f32[2,4,6] = input input0
%1:f32[4,6] = constant
%2:f32[2,4,6] = Binary(%0, %1) {fn=add}
%3:f32[2,4,6] = Softmax(%2) {axis=-1}
output %3 y
)",
                R"(
graph test
%0:f32[2,4,6] = input input0
%1:f32[] = constant {-inf}
%2:f32[2,4,6] = Causal(%0, %1) {offset=2}
%3:f32[2,4,6] = Softmax(%2) {axis=-1}
output %3 y
)");
}

TEST(RecogniseCausalTest, TakesEveryForm) {
  using ir::DType;
  for (const int64_t offset : {0, 1, 2, 4}) {
    SCOPED_TRACE(offset);
    ExpectCausal(Added(Mask({4, 6}, offset, 0, -kInfinity)), offset);
    ExpectCausal(Added(Mask({1, 4, 6}, offset, -0.0, kLowest)), offset);
    ExpectCausal(Added(Mask({2, 4, 6}, offset, 0, kLowest)), offset);
    ExpectCausal(Selected(Mask({4, 6}, offset, 1, 0, DType::kBool), kLowest), offset);
    ExpectCausal(Selected(Mask({2, 4, 6}, offset, 1, 0, DType::kBool), -kInfinity), offset);
    ExpectCausal(Selected(Mask({1, 4, 6}, offset, 0, 1, DType::kBool), -kInfinity, true), offset);
  }
  // More rows than keys: the last rows see all.
  ExpectCausal(Added(Mask({9, 3}, 0, 0, -kInfinity), {2, 9, 3}), 0);
}

TEST(RecogniseCausalTest, ARelabellingMayStandBeforeTheSoftmax) {
  TestGraph t;
  const ValueId mask = t.graph.AddConstant(Mask({4, 6}, 0, 0, -kInfinity));
  const ValueId sum = t.Binary("add", t.Input({1, 2, 4, 6}), mask);
  t.Output(t.Op("Softmax", {t.Reshape(sum, {2, 4, 6})}, {{"axis", int64_t{2}}}), "y");
  ExpectCausal(std::move(t), 0);
}

TEST(RecogniseCausalTest, MasksThatAreComputedAreKnownToo) {
  TestGraph t;
  const ValueId all = t.Op("Expand", {t.Scalar(kLowest)}, {{"shape", std::vector<int64_t>{4, 6}}});
  const ValueId mask = t.Op("Trilu", {all}, {{"upper", int64_t{1}}, {"k", int64_t{2}}});
  const ValueId sum = t.Binary("add", t.Input({2, 4, 6}), mask);
  t.Output(t.Op("Softmax", {sum}, {{"axis", int64_t{-1}}}), "y");
  ExpectCausal(std::move(t), 1);

  TestGraph c;
  const ValueId rows = c.graph.AddConstant(MakeInt64s({4, 1}, {2, 3, 4, 5}));
  const ValueId keys = c.graph.AddConstant(MakeInt64s({1, 6}, {0, 1, 2, 3, 4, 5}));
  const ValueId kept =
      c.Op("Select", {c.Binary("le", keys, rows), c.Input({2, 4, 6}), c.Scalar(-kInfinity)});
  c.Output(c.Op("Softmax", {kept}, {{"axis", int64_t{-1}}}), "y");
  ExpectCausal(std::move(c), 2);
}

TEST(RecogniseCausalTest, LeavesOtherMasks) {
  using ir::DType;
  const ConstantPtr mask = Mask({4, 6}, 1, 0, -kInfinity);
  const ConstantPtr two = Mask({2, 4, 6}, 1, 0, -kInfinity);
  const ConstantPtr allowed = Mask({4, 6}, 1, 1, 0, DType::kBool);
  TestGraph graphs[] = {
      Added(With(mask, 2, 0)),                         // one place of the first row more is seen
      Added(With(mask, 13, -kInfinity)),               // one in the middle less
      Added(With(mask, 23, 0)),                        // the last row sees more
      Added(With(two, 24 + 5, 0)),                     // one of the second matrix
      Added(With(mask, 5, kLowest)),                   // hidden by two values
      Added(With(mask, 0, 1e-3)),                      // seen places are not all 0
      Added(With(mask, 0, std::nan(""))),              // no number
      Added(Mask({4, 6}, 1, 0, -1e4)),                 // too little is hidden
      Added(Mask({4, 6}, 1, 0, -1e9)),
      Added(Mask({4, 6}, 1, 1, -kInfinity)),           // what is seen is moved
      Added(Mask({4, 6}, 1, 0, kInfinity)),
      Added(Mask({4, 6}, -1, 0, -kInfinity)),          // the first row sees nothing
      Added(Mask({4, 6}, -3, 0, kLowest)),
      Added(Mask({4, 6}, 9, 0, -kInfinity)),           // nothing is hidden
      Added(Mask({1, 6}, 1, 0, -kInfinity)),           // of all rows alike
      Added(mask, {1, 6}),                             // rows that the scores do not have
      Selected(With(allowed, 2, 1), -kInfinity),
      Selected(With(allowed, 0, 0), -kInfinity),
      Selected(Mask({4, 6}, -1, 1, 0, DType::kBool), -kInfinity),
      Selected(allowed, -1e9),
      Selected(allowed, -kInfinity, true),             // what lies behind the row is seen
  };
  for (TestGraph& t : graphs) {
    SCOPED_TRACE(ToText(t.graph));
    EXPECT_EQ(Recognised(t.graph), 0);
  }
}

TEST(RecogniseCausalTest, LeavesMasksThatAreNotKnown) {
  TestGraph added;
  const ValueId sum = added.Binary("add", added.Input({2, 4, 6}), added.Input({4, 6}));
  added.Output(added.Op("Softmax", {sum}, {{"axis", int64_t{-1}}}), "y");
  EXPECT_EQ(Recognised(added.graph), 0);
  TestGraph selected;
  const ValueId kept =
      selected.Op("Select", {selected.Input({4, 6}, ir::DType::kBool), selected.Input({2, 4, 6}),
                             selected.Scalar(-kInfinity)});
  selected.Output(selected.Op("Softmax", {kept}, {{"axis", int64_t{-1}}}), "y");
  EXPECT_EQ(Recognised(selected.graph), 0);
}

// What is added shows where no softmax along the rows takes it away.
TEST(RecogniseCausalTest, LeavesSumsThatOthersRead) {
  for (const bool other_axis : {true, false}) {
    TestGraph t;
    const ValueId mask = t.graph.AddConstant(Mask({4, 6}, 0, 0, kLowest));
    const ValueId sum = t.Binary("add", t.Input({2, 4, 6}), mask);
    t.Output(t.Op("Softmax", {sum}, {{"axis", int64_t{other_axis ? 1 : 2}}}), "y");
    if (!other_axis) t.Output(t.Unary("abs", sum), "z");
    EXPECT_EQ(Recognised(t.graph), 0);
  }
}

TEST(RecogniseCausalTest, NoKernelReadsTheMask) {
  TestGraph t;
  const ValueId q = t.Input({2, 64, 2}), k = t.Input({2, 256, 2}), v = t.Input({2, 256, 3});
  const ValueId scores = t.Op("MatMul", {q, k}, {{"transpose_b", int64_t{1}}});
  const ValueId mask = t.graph.AddConstant(Mask({64, 256}, 192, 0, kLowest));
  const ValueId weights =
      t.Op("Softmax", {t.Binary("add", scores, mask)}, {{"axis", int64_t{-1}}});
  t.Output(t.Op("MatMul", {weights, v}), "y");
  const Graph before = t.graph;
  InterpreterEvaluator evaluator;
  ASSERT_TRUE(RunPipeline(t.graph, evaluator, TestTarget()).ok());
  const auto groups = GroupNodes(t.graph, TestTarget());
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 1U);
  const auto made = BuildWorkload(t.graph, (*groups)[0]);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->constants.empty()) << ir::ToText(made->workload);
  const auto inputs = RandomInputs(before, 1);
  ExpectSame(RunNodes(before, inputs), testing::RunGroups(t.graph, *groups, inputs));
}

}  // namespace
}  // namespace hone::graph

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/grouping.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "graph/pipeline.h"
#include "ir/text.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::RandomInputs;
using testing::Renumbered;
using testing::RunGroups;
using testing::TestGraph;
using testing::Wrapped;

int64_t One(bool flag) { return flag ? 1 : 0; }

ValueId Product(TestGraph& t, ValueId a, ValueId b, bool transpose_b = false) {
  return t.Op("MatMul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", One(transpose_b)}});
}

ir::Target TargetOf(const char* text) {
  ir::Target target;
  std::string why;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &why)) << why;
  return target;
}

constexpr char kMultipliesBf16[] = "cpu:avx512+bf16,threads=1";

int Narrowed(Graph* graph, ir::DType precision = ir::DType::kBF16,
             const char* text = kMultipliesBf16) {
  InterpreterEvaluator evaluator;
  const ir::Target target = TargetOf(text);
  graph->precision = precision;
  return NarrowProducts(*graph, {evaluator, target}).value_or(-1);
}

/// Largest difference as a share of the largest value.
double WorstShare(const std::vector<ConstantPtr>& a, const std::vector<ConstantPtr>& b) {
  double worst = 0, largest = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const std::vector<double> x = a[k]->AsDoubles(), y = b[k]->AsDoubles();
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(x[i] - y[i]));
      largest = std::max(largest, std::abs(x[i]));
    }
  }
  return worst / largest;
}

// What only moves numbers then moves rounded ones.
TEST(NarrowProductsTest, OperandsAreRoundedWhereTheyAreComputed) {
  TestGraph t;
  const ValueId h = t.Unary("exp", t.Input({16, 4}));
  const ValueId y = Product(t, t.Transpose(h, {1, 0}), t.Constant({16, 16}));
  t.Output(t.Unary("neg", y), "y");
  Graph graph = t.graph;
  EXPECT_EQ(Narrowed(&graph), 1);
  EXPECT_EQ("\n" + Wrapped(Renumbered(ToText(graph))), R"(
graph test
%0:f32[16,4] = input input0
%1:f32[16,4] = Unary(%0) {fn=exp}
%2:f32[4,16] = Transpose(%1) {perm=[1,0]}
%3:bf16[16,4] = Cast(%1) {to=bf16}
%4:bf16[4,16] = Transpose(%3) {perm=[1,0]}
%5:f32[16,16] = constant
%6:bf16[16,16] = Cast(%5) {to=bf16}
%7:f32[4,16] = MatMul(%4, %6) {to=f32 transpose_a=0 transpose_b=0}
%8:f32[4,16] = Unary(%7) {fn=neg}
output %8 y
)");
  EXPECT_EQ(Narrowed(&graph), 0) << "a second run changes the graph again";
}

TEST(NarrowProductsTest, OtherProductsAndFullPrecisionStay) {
  const auto product = [](int64_t terms, int64_t columns) {
    TestGraph t;
    t.Output(Product(t, t.Input({8, terms}), t.Constant({terms, columns})), "y");
    return t.graph;
  };
  TestGraph live;
  live.Output(Product(live, live.Input({7, 6}), live.Input({32, 6}), /*transpose_b=*/true), "y");
  EXPECT_EQ(Narrowed(&live.graph), 0);
  Graph odd = product(5, 32), few = product(6, 15), wide = product(6, 16);
  EXPECT_EQ(Narrowed(&odd), 0);
  EXPECT_EQ(Narrowed(&few), 0);
  EXPECT_EQ(Narrowed(&wide, ir::DType::kF32), 0);
  EXPECT_EQ(Narrowed(&wide), 1);
  TestGraph depthwise;
  depthwise.Output(depthwise.Conv(depthwise.Input({1, 32, 6, 6}), 32, 3, 1, 1, 32), "y");
  EXPECT_EQ(Narrowed(&depthwise.graph), 0);
}

// Attention's: an odd number of terms gets one of zeros more.
TEST(NarrowProductsTest, BothOperandsMayBeComputed) {
  for (const int64_t terms : {6, 9}) {
    for (const bool turned : {true, false}) {
      TestGraph t;
      const std::vector<int64_t> shape = {2, turned ? 32 : terms, turned ? terms : 32};
      t.Output(Product(t, t.Input({2, 8, terms}), t.Input(shape), turned), "y");
      const auto inputs = RandomInputs(t.graph, 5);
      const auto before = testing::RunNodes(t.graph, inputs);
      EXPECT_EQ(Narrowed(&t.graph), 1);
      EXPECT_LT(WorstShare(before, testing::RunNodes(t.graph, inputs)), 0x1p-6);
      EXPECT_EQ(Narrowed(&t.graph), 0);
    }
  }
}

// Kernels read stored numbers of bf16, whoever makes them: an input of the graph, another kernel,
// the constants.
TEST(NarrowProductsTest, ProductsReadStoredNumbers) {
  TestGraph t;
  const ValueId x = t.Input({12, 8});
  const ValueId h = t.LayerNorm(t.Relu(t.Linear(x, 32)));
  const ValueId y = t.Binary("add", t.Linear(h, 32), h);
  t.Output(t.Linear(y, 16), "y");
  const auto run = [&](ir::DType precision, std::string* texts) {
    Graph graph = t.graph;
    graph.precision = precision;
    InterpreterEvaluator evaluator;
    const ir::Target target = TargetOf(kMultipliesBf16);
    EXPECT_TRUE(RunPipeline(graph, evaluator, target).ok());
    const auto groups = GroupNodes(graph, target);
    EXPECT_TRUE(groups.ok());
    for (const Group& group : *groups) {
      const auto workload = BuildWorkload(graph, group);
      EXPECT_TRUE(workload.ok());
      *texts += ir::ToText(workload->workload);
    }
    return RunGroups(graph, *groups, RandomInputs(t.graph, 3));
  };
  std::string wide, narrow;
  const auto exact = run(ir::DType::kF32, &wide);
  const auto rounded = run(ir::DType::kBF16, &narrow);
  EXPECT_EQ(wide.find("bf16"), std::string::npos);
  // Factors are loaded as bf16 and widened.
  std::istringstream lines(narrow);
  int products = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("] * ") == std::string::npos && line.find("]) * ") == std::string::npos) continue;
    if (line.find("sum[r0") == std::string::npos) continue;
    ++products;
    EXPECT_NE(line.find("(f32(x"), std::string::npos) << line;
    EXPECT_NE(line.find(" * f32(x"), std::string::npos) << line;
  }
  EXPECT_EQ(products, 3) << narrow;
  EXPECT_GT(WorstShare(exact, rounded), 1e-5);
  EXPECT_LT(WorstShare(exact, rounded), 0x1p-6);
}

// Weights of 11 bits; the data stay as they are.
TEST(NarrowProductsTest, InF16OnlyLargeWeightsAreRounded) {
  TestGraph t;
  const ValueId h = Product(t, t.Input({3, 64}), t.Constant({64, 80}));
  const ValueId y = Product(t, h, t.Constant({48, 80}), /*transpose_b=*/true);
  t.Output(Product(t, y, t.Constant({48, 5})), "y");
  const auto inputs = RandomInputs(t.graph, 5);
  const auto before = testing::RunNodes(t.graph, inputs);
  EXPECT_EQ(Narrowed(&t.graph, ir::DType::kF16), 1);
  const double worst = WorstShare(before, testing::RunNodes(t.graph, inputs));
  EXPECT_GT(worst, 0);
  EXPECT_LT(worst, 1e-3);
  EXPECT_EQ(Narrowed(&t.graph, ir::DType::kF16), 0);
}

// Rounding what is multiplied gains nothing there; half the bytes of weights do, where the product
// waits for them.
TEST(NarrowProductsTest, WithoutProductsOfBf16OnlyWeightsOfFewRowsAreRounded) {
  const auto product = [](int64_t rows, int64_t terms, int64_t columns) {
    TestGraph t;
    t.Output(Product(t, t.Input({1, rows, terms}), t.Constant({terms, columns})), "y");
    return t.graph;
  };
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512+vnni,threads=2"}) {
    Graph few = product(8, 64, 80), many = product(9, 64, 80), small = product(1, 16, 80);
    Graph odd = product(1, 65, 80);
    const auto inputs = RandomInputs(few, 5);
    const auto before = testing::RunNodes(few, inputs);
    EXPECT_EQ(Narrowed(&few, ir::DType::kBF16, target), 1);
    const std::string text = ToText(few);
    EXPECT_NE(text.find("bf16[64,80] = Cast"), std::string::npos) << text;
    EXPECT_EQ(text.find("bf16[1,8,64]"), std::string::npos) << "data stay as they are: " << text;
    const double worst = WorstShare(before, testing::RunNodes(few, inputs));
    EXPECT_GT(worst, 1e-5);
    EXPECT_LT(worst, 0x1p-6);
    EXPECT_EQ(Narrowed(&few, ir::DType::kBF16, target), 0) << "a second run";
    EXPECT_EQ(Narrowed(&many, ir::DType::kBF16, target), 0);
    EXPECT_EQ(Narrowed(&small, ir::DType::kBF16, target), 0);
    EXPECT_EQ(Narrowed(&odd, ir::DType::kBF16, target), 0) << "where bf16 is fast it stays too";
    EXPECT_EQ(Narrowed(&many), 1);
  }
  TestGraph image;
  image.Output(image.Conv(image.Input({1, 16, 6, 6}), 32, 3, 1, 1, 1), "y");
  EXPECT_EQ(Narrowed(&image.graph, ir::DType::kBF16, "cpu:avx2,threads=1"), 0);
}

}  // namespace
}  // namespace hone::graph

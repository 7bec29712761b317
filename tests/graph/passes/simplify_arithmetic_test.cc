#include <cmath>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(SimplifyArithmeticTest, DropsNeutralOperands) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId y =
      t.Binary("mul", t.Scalar(1), t.Binary("sub", t.Binary("add", x, t.Scalar(0)), t.Scalar(0)));
  t.Output(t.Unary("neg", t.Unary("neg", t.Unary("neg", y))), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[4] = input input0
%1:f32[] = constant {0}
%2:f32[4] = Binary(%0, %1) {fn=add}
%3:f32[] = constant {0}
%4:f32[4] = Binary(%2, %3) {fn=sub}
%5:f32[] = constant {1}
%6:f32[4] = Binary(%5, %4) {fn=mul}
%7:f32[4] = Unary(%6) {fn=neg}
%8:f32[4] = Unary(%7) {fn=neg}
%9:f32[4] = Unary(%8) {fn=neg}
output %9 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=neg}
%2:f32[4] = Unary(%0) {fn=neg}
output %2 y
)");
}

TEST(SimplifyArithmeticTest, WritesPowersAndExactQuotientsAsProducts) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId y = t.Binary("div", t.Binary("pow", x, t.Scalar(2)), t.Scalar(8));
  t.Output(t.Binary("div", y, t.Scalar(3)), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[4] = input input0
%1:f32[] = constant {2}
%2:f32[4] = Binary(%0, %1) {fn=pow}
%3:f32[] = constant {8}
%4:f32[4] = Binary(%2, %3) {fn=div}
%5:f32[] = constant {3}
%6:f32[4] = Binary(%4, %5) {fn=div}
output %6 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Binary(%0, %0) {fn=mul}
%2:f32[] = constant {0.125}
%3:f32[4] = Binary(%1, %2) {fn=mul}
%4:f32[] = constant {3}
%5:f32[4] = Binary(%3, %4) {fn=div}
output %5 y
)");
}

// In f16 the factor of 2^-17 would be infinite and that of 2^15 no normal number.
TEST(SimplifyArithmeticTest, DividesByPowersWhoseReciprocalTheTypeLacks) {
  for (const int exponent : {-24, -17, -15, 15}) {
    TestGraph t;
    const ValueId x = t.Input({4}, ir::DType::kF16);
    const double divisor = std::ldexp(1.0, exponent);
    const ValueId by = t.graph.AddConstant(MakeConstant(ir::DType::kF16, {}, {divisor}));
    ASSERT_EQ(t.graph.values[by].constant->DoubleAt(0), divisor);
    t.Output(t.Binary("div", x, by), "y");
    InterpreterEvaluator evaluator;
    const ir::Target target = testing::TestTarget();
    Graph after = t.graph;
    const auto changes = SimplifyArithmetic(after, {evaluator, target});
    ASSERT_TRUE(changes.ok());
    EXPECT_EQ(*changes, 0) << "x / 2^" << exponent << " became\n" << ToText(after);
  }
}

TEST(SimplifyArithmeticTest, MultipliesHalvesByReciprocalsThatTheTypeHas) {
  for (const double divisor : {0x1p-14, 0x1p14}) {
    TestGraph t;
    const ValueId x = t.Input({4}, ir::DType::kF16);
    const ValueId by = t.graph.AddConstant(MakeConstant(ir::DType::kF16, {}, {divisor}));
    t.Output(t.Binary("div", x, by), "y");
    InterpreterEvaluator evaluator;
    const ir::Target target = testing::TestTarget();
    Graph after = t.graph;
    ASSERT_EQ(*SimplifyArithmetic(after, {evaluator, target}), 1);
    const auto inputs = testing::RandomInputs(t.graph, 7);
    testing::ExpectSame(testing::RunNodes(t.graph, inputs), testing::RunNodes(after, inputs));
  }
}

TEST(SimplifyArithmeticTest, ScalesOneFactorOfAProduct) {
  TestGraph t;
  const ValueId queries = t.Binary("mul", t.Input({2, 3, 4}), t.Scalar(0.5));
  const ValueId keys = t.Binary("mul", t.Scalar(0.25), t.Input({2, 5, 4}));
  t.Output(t.Op("MatMul", {queries, keys}, {{"transpose_b", int64_t{1}}}), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[2,3,4] = input input0
%1:f32[2,5,4] = input input1
%2:f32[] = constant {0.5}
%3:f32[2,3,4] = Binary(%0, %2) {fn=mul}
%4:f32[] = constant {0.25}
%5:f32[2,5,4] = Binary(%4, %1) {fn=mul}
%6:f32[2,3,5] = MatMul(%3, %5) {transpose_b=1}
output %6 y
)",
                R"(
graph test
%0:f32[2,3,4] = input input0
%1:f32[2,5,4] = input input1
%2:f32[] = constant {0.5}
%3:f32[2,3,4] = Binary(%0, %2) {fn=mul}
%4:f32[] = constant {0.25}
%5:f32[2,5,4] = Binary(%4, %1) {fn=mul}
%6:f32[] = constant {0.125}
%7:f32[2,5,4] = Binary(%1, %6) {fn=mul}
%8:f32[2,3,5] = MatMul(%0, %7) {transpose_b=1}
output %8 y
)");
}

// A factor that f32 does not have, infinities and vectors of factors stay where they are.
TEST(SimplifyArithmeticTest, LeavesScalesThatAreNoOneNumber) {
  const auto changes_of = [](const auto& left, const auto& right) {
    TestGraph t;
    const ValueId a = t.Binary("mul", t.Input({3, 4}), left(t));
    const ValueId b = t.Binary("mul", t.Input({4, 2}), right(t));
    t.Output(t.Op("MatMul", {a, b}), "y");
    InterpreterEvaluator evaluator;
    const ir::Target target = testing::TestTarget();
    return *SimplifyArithmetic(t.graph, {evaluator, target});
  };
  const auto scalar = [](double value) { return [=](TestGraph& t) { return t.Scalar(value); }; };
  EXPECT_EQ(changes_of(scalar(0.5), scalar(0.5)), 1);
  EXPECT_EQ(changes_of(scalar(1e-30), scalar(1e-30)), 0);
  EXPECT_EQ(changes_of(scalar(1e30), scalar(1e30)), 0);
  EXPECT_EQ(changes_of(scalar(INFINITY), scalar(0.5)), 0);
  EXPECT_EQ(changes_of([](TestGraph& t) { return t.Constant({4}); }, scalar(0.5)), 0);
}

TEST(SimplifyArithmeticTest, FindsSigmoidAndReciprocalRoot) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId sigmoid =
      t.Binary("div", t.Scalar(1), t.Binary("add", t.Unary("exp", t.Unary("neg", x)), t.Scalar(1)));
  t.Output(t.Binary("div", t.Scalar(1), t.Unary("sqrt", sigmoid)), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=neg}
%2:f32[4] = Unary(%1) {fn=exp}
%3:f32[] = constant {1}
%4:f32[4] = Binary(%2, %3) {fn=add}
%5:f32[] = constant {1}
%6:f32[4] = Binary(%5, %4) {fn=div}
%7:f32[4] = Unary(%6) {fn=sqrt}
%8:f32[] = constant {1}
%9:f32[4] = Binary(%8, %7) {fn=div}
output %9 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=neg}
%2:f32[4] = Unary(%1) {fn=exp}
%3:f32[] = constant {1}
%4:f32[4] = Binary(%2, %3) {fn=add}
%5:f32[4] = Unary(%0) {fn=sigmoid}
%6:f32[4] = Unary(%5) {fn=sqrt}
%7:f32[4] = Unary(%5) {fn=rsqrt}
output %7 y
)");
}

TEST(SimplifyArithmeticTest, JoinsBounds) {
  TestGraph t;
  t.Output(t.Binary("max", t.Binary("max", t.Input({4}), t.Scalar(-2)), t.Scalar(0)), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[4] = input input0
%1:f32[] = constant {-2}
%2:f32[4] = Binary(%0, %1) {fn=max}
%3:f32[] = constant {0}
%4:f32[4] = Binary(%2, %3) {fn=max}
output %4 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[] = constant {-2}
%2:f32[4] = Binary(%0, %1) {fn=max}
%3:f32[] = constant {0}
%4:f32[4] = Binary(%0, %3) {fn=max}
output %4 y
)");
}

TEST(SimplifyArithmeticTest, KeepsWhatBroadcasts) {
  TestGraph t;
  const ValueId x = t.Input({1});
  const ValueId zeros = t.graph.AddConstant(MakeConstant(ir::DType::kF32, {3}, {0, 0, 0}));
  t.Output(t.Unary("neg", t.Unary("neg", t.Binary("add", x, zeros))), "y");
  ExpectRewrite(t.graph, SimplifyArithmetic, R"(
graph test
%0:f32[1] = input input0
%1:f32[3] = constant {0,0,0}
%2:f32[3] = Binary(%0, %1) {fn=add}
%3:f32[3] = Unary(%2) {fn=neg}
%4:f32[3] = Unary(%3) {fn=neg}
output %4 y
)",
                R"(
graph test
%0:f32[1] = input input0
%1:f32[3] = constant {0,0,0}
%2:f32[3] = Binary(%0, %1) {fn=add}
%3:f32[3] = Unary(%2) {fn=neg}
output %2 y
)");
}

}  // namespace
}  // namespace hone::graph

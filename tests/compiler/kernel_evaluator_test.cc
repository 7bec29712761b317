#include "compiler/kernel_evaluator.h"

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "graph/interpreter_evaluator.h"
#include "ir/workload_builder.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

measure::BuilderOptions RealBuilder() {
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  return options;
}

// [m,k] x [k,n] with a constant right side, plus one.
ir::Workload MatMulPlusOne(int64_t m, int64_t k, int64_t n) {
  ir::WorkloadBuilder builder;
  const int b = builder.AddConstant(ir::DType::kF32, {k, n});
  const int a = builder.AddInput(ir::DType::kF32, {m, k});
  const int product = builder.AddReduce(
      {m, n}, {k}, ir::Combiner::kSum,
      builder.At(a, {ir::Var(0), ir::Var(2)}) * builder.At(b, {ir::Var(2), ir::Var(1)}));
  builder.MarkOutput(builder.AddMap(
      {m, n}, builder.At(product, {ir::Var(0), ir::Var(1)}) + ir::Const(ir::DType::kF32, 1)));
  return builder.Finish().workload;
}

graph::ConstantPtr RandomTensor(std::vector<int64_t> shape, Random& random) {
  graph::TensorType type{ir::DType::kF32, shape};
  std::vector<double> values;
  for (int64_t i = 0; i < type.NumElements(); ++i) values.push_back(random.Uniform() * 2 - 1);
  return graph::MakeConstant(ir::DType::kF32, std::move(shape), values);
}

TEST(KernelEvaluatorTest, OperationsAreThePointsOfAllStages) {
  EXPECT_EQ(CountOperations(MatMulPlusOne(3, 5, 7)), 3 * 5 * 7 + 3 * 7);
}

TEST(KernelEvaluatorTest, CodeAgreesWithTheInterpreter) {
  const uint64_t seed = 11;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Random random(seed);
  SystemMonotonicClock clock;
  measure::BuilderClient builder(RealBuilder(), clock);
  KernelEvaluator evaluator(builder);
  const ir::Workload workload = MatMulPlusOne(9, 33, 17);
  const std::vector<graph::ConstantPtr> tensors = {RandomTensor({9, 33}, random),
                                                   RandomTensor({33, 17}, random)};
  graph::InterpreterEvaluator interpreter;
  const auto expected = interpreter.Evaluate(workload, tensors);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int run = 0; run < 2; ++run) {
    const auto actual = evaluator.RunCompiled(workload, tensors);
    ASSERT_TRUE(actual.ok()) << actual.status();
    ASSERT_EQ(actual->size(), 1u);
    EXPECT_EQ((*actual)[0]->type, (*expected)[0]->type);
    const std::vector<double> want = (*expected)[0]->AsDoubles();
    const std::vector<double> got = (*actual)[0]->AsDoubles();
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6) << i;
  }
}

TEST(KernelEvaluatorTest, SmallWorkNeedsNoBuilder) {
  SystemMonotonicClock clock;
  measure::BuilderOptions nowhere;
  nowhere.program = "/nowhere/hone-builder";
  measure::BuilderClient builder(nowhere, clock);
  KernelEvaluator evaluator(builder);
  Random random(3);
  const ir::Workload small = MatMulPlusOne(2, 3, 4);
  EXPECT_TRUE(
      evaluator.Evaluate(small, {RandomTensor({2, 3}, random), RandomTensor({3, 4}, random)}).ok());
  const ir::Workload large = MatMulPlusOne(64, 64, 64);
  EXPECT_EQ(
      evaluator.Evaluate(large, {RandomTensor({64, 64}, random), RandomTensor({64, 64}, random)})
          .status()
          .code(),
      absl::StatusCode::kNotFound);
}

TEST(KernelEvaluatorTest, ArgumentsThatDoNotFitAreRefused) {
  SystemMonotonicClock clock;
  measure::BuilderClient builder(RealBuilder(), clock);
  KernelEvaluator evaluator(builder);
  Random random(3);
  const ir::Workload workload = MatMulPlusOne(2, 3, 4);
  EXPECT_FALSE(evaluator.Evaluate(workload, {RandomTensor({2, 3}, random)}).ok());
  EXPECT_FALSE(
      evaluator.Evaluate(workload, {RandomTensor({3, 2}, random), RandomTensor({3, 4}, random)})
          .ok());
}

}  // namespace
}  // namespace hone::compiler

#include "runtime/externs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/half.h"
#include "runtime/extern_element.h"

namespace hone::runtime {
namespace {

using ir::ArtifactBuffer;
using ir::DType;
using ::testing::ElementsAre;

ArtifactBuffer Tensor(DType dtype, std::vector<int64_t> shape) {
  int64_t bytes = ir::SizeOf(dtype);
  for (const int64_t dim : shape) bytes *= dim;
  return {.dtype = dtype, .shape = std::move(shape), .bytes = bytes};
}

ir::PlanStep Step(const std::string& name, std::vector<int64_t> attributes,
                  std::vector<ArtifactBuffer> inputs, std::vector<ArtifactBuffer> outputs) {
  ir::PlanStep step;
  step.kind = ir::PlanStepKind::kExtern;
  step.extern_name = name;
  step.extern_attributes = std::move(attributes);
  step.extern_inputs = std::move(inputs);
  step.extern_outputs = std::move(outputs);
  return step;
}

/// Checks and runs; the status of whichever fails first.
Status CheckAndRun(const ir::PlanStep& step, std::vector<void*> buffers) {
  const ExternRoutine* routine = FindExtern(step.extern_name);
  if (routine == nullptr) return {StatusCode::kNotFound, step.extern_name};
  const Status status = routine->check(step);
  return status.ok() ? routine->run(step, buffers.data()) : status;
}

TEST(Externs, RegistryKnowsTheClosedList) {
  EXPECT_EQ(ExternNames(), "TopK, ScatterElements, ScatterND");
  EXPECT_EQ(FindExtern("NonZero"), nullptr);
}

// The example of the ONNX specification (TopK, "top_k").
TEST(TopK, LargestOfEachRow) {
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<float> values(9);
  std::vector<int64_t> indices(9);
  const auto step = Step("TopK", {1, 1, 1}, {Tensor(DType::kF32, {3, 4})},
                         {Tensor(DType::kF32, {3, 3}), Tensor(DType::kI64, {3, 3})});
  ASSERT_TRUE(CheckAndRun(step, {x.data(), values.data(), indices.data()}).ok());
  EXPECT_THAT(values, ElementsAre(3, 2, 1, 7, 6, 5, 11, 10, 9));
  EXPECT_THAT(indices, ElementsAre(3, 2, 1, 3, 2, 1, 3, 2, 1));
}

TEST(TopK, SmallestAlongAnOuterAxisAndLowerIndexFirst) {
  std::vector<int32_t> x = {5, 1, 2, 1, 2, 1};  // [3, 2]
  std::vector<int32_t> values(4);
  std::vector<int64_t> indices(4);
  const auto step = Step("TopK", {0, 0, 1}, {Tensor(DType::kI32, {3, 2})},
                         {Tensor(DType::kI32, {2, 2}), Tensor(DType::kI64, {2, 2})});
  ASSERT_TRUE(CheckAndRun(step, {x.data(), values.data(), indices.data()}).ok());
  EXPECT_THAT(values, ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(indices, ElementsAre(1, 0, 2, 1));
}

TEST(TopK, NanIsTheGreatestAndZerosAreEqual) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {0.0F, -0.0F, nan, 1, -nan};
  std::vector<float> values(5);
  std::vector<int64_t> indices(5);
  const auto step = Step("TopK", {0, 1, 1}, {Tensor(DType::kF32, {5})},
                         {Tensor(DType::kF32, {5}), Tensor(DType::kI64, {5})});
  ASSERT_TRUE(CheckAndRun(step, {x.data(), values.data(), indices.data()}).ok());
  EXPECT_THAT(indices, ElementsAre(2, 4, 3, 0, 1));
}

TEST(TopK, HalfPrecision) {
  std::vector<uint16_t> x = {ir::F16FromDouble(-1), ir::F16FromDouble(3), ir::F16FromDouble(2)};
  std::vector<uint16_t> values(1);
  std::vector<int64_t> indices(1);
  const auto step = Step("TopK", {0, 1, 1}, {Tensor(DType::kF16, {3})},
                         {Tensor(DType::kF16, {1}), Tensor(DType::kI64, {1})});
  ASSERT_TRUE(CheckAndRun(step, {x.data(), values.data(), indices.data()}).ok());
  EXPECT_THAT(indices, ElementsAre(1));
  EXPECT_EQ(values[0], ir::F16FromDouble(3));
}

TEST(TopK, CheckRefusesWhatDoesNotFit) {
  const auto in = Tensor(DType::kF32, {3, 4});
  const auto check = [&](std::vector<int64_t> attributes, std::vector<int64_t> out, DType index) {
    return CheckTopK(Step("TopK", std::move(attributes), {in},
                          {Tensor(DType::kF32, out), Tensor(index, out)}))
        .ok();
  };
  EXPECT_TRUE(check({1, 1, 1}, {3, 2}, DType::kI64));
  EXPECT_FALSE(check({2, 1, 1}, {3, 2}, DType::kI64));
  EXPECT_FALSE(check({-1, 1, 1}, {3, 2}, DType::kI64));
  EXPECT_FALSE(check({1, 2, 1}, {3, 2}, DType::kI64));
  EXPECT_FALSE(check({1, 1}, {3, 2}, DType::kI64));
  EXPECT_FALSE(check({1, 1, 1}, {3, 5}, DType::kI64));
  EXPECT_FALSE(check({1, 1, 1}, {2, 2}, DType::kI64));
  EXPECT_FALSE(check({1, 1, 1}, {3}, DType::kI64));
  EXPECT_FALSE(check({1, 1, 1}, {3, 2}, DType::kI32));
}

// "scatter_elements_with_axis" and "..._with_negative_indices" of the ONNX specification.
TEST(ScatterElements, AlongAnAxisWithNegativeIndices) {
  std::vector<float> data = {1, 2, 3, 4, 5};
  std::vector<int64_t> indices = {1, -2};
  std::vector<float> updates = {1.5, 2.5};
  std::vector<float> y(5);
  const auto step =
      Step("ScatterElements", {1, 0},
           {Tensor(DType::kF32, {1, 5}), Tensor(DType::kI64, {1, 2}), Tensor(DType::kF32, {1, 2})},
           {Tensor(DType::kF32, {1, 5})});
  ASSERT_TRUE(CheckAndRun(step, {data.data(), indices.data(), updates.data(), y.data()}).ok());
  EXPECT_THAT(y, ElementsAre(1, 1.5, 3, 2.5, 5));
}

TEST(ScatterElements, ReductionsApplyInOrder) {
  const auto run = [](int64_t reduction) {
    std::vector<int8_t> data = {100, 2, 3};
    std::vector<int32_t> indices = {0, 0, 2};
    std::vector<int8_t> updates = {100, 3, -7};
    std::vector<int8_t> y(3);
    const auto step =
        Step("ScatterElements", {0, reduction},
             {Tensor(DType::kI8, {3}), Tensor(DType::kI32, {3}), Tensor(DType::kI8, {3})},
             {Tensor(DType::kI8, {3})});
    EXPECT_TRUE(CheckAndRun(step, {data.data(), indices.data(), updates.data(), y.data()}).ok());
    return y;
  };
  EXPECT_THAT(run(0), ElementsAre(3, 2, -7));
  EXPECT_THAT(run(1), ElementsAre(static_cast<int8_t>(203), 2, -4));  // wraps
  EXPECT_THAT(run(2), ElementsAre(static_cast<int8_t>(30000), 2, -21));
  EXPECT_THAT(run(3), ElementsAre(100, 2, 3));
  EXPECT_THAT(run(4), ElementsAre(3, 2, -7));
}

TEST(ScatterElements, SmallerIndicesThanDataOnOuterAxis) {
  std::vector<int64_t> data = {0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<int64_t> indices = {1, 0, 2, 0, 2, 1};  // [2, 3]
  std::vector<int64_t> updates = {10, 11, 12, 20, 21, 22};
  std::vector<int64_t> y(9);
  const auto step =
      Step("ScatterElements", {0, 0},
           {Tensor(DType::kI64, {3, 3}), Tensor(DType::kI64, {2, 3}), Tensor(DType::kI64, {2, 3})},
           {Tensor(DType::kI64, {3, 3})});
  ASSERT_TRUE(CheckAndRun(step, {data.data(), indices.data(), updates.data(), y.data()}).ok());
  // "scatter_elements_without_axis" with rows written out: y[indices[i][j]][j] = updates[i][j]
  EXPECT_THAT(y, ElementsAre(20, 11, 0, 10, 0, 22, 0, 21, 12));
}

TEST(ScatterElements, IndexOutsideIsNamed) {
  std::vector<float> data(4), updates(1), y(4);
  for (const int64_t bad : {int64_t{4}, int64_t{-5}}) {
    std::vector<int64_t> indices = {bad};
    const auto step =
        Step("ScatterElements", {0, 0},
             {Tensor(DType::kF32, {4}), Tensor(DType::kI64, {1}), Tensor(DType::kF32, {1})},
             {Tensor(DType::kF32, {4})});
    const Status status =
        CheckAndRun(step, {data.data(), indices.data(), updates.data(), y.data()});
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_EQ(status.message(), "index " + std::to_string(bad) + " is outside [-4, 3]");
  }
}

// "scatternd" of the ONNX specification.
TEST(ScatterNd, SlicesAndPoints) {
  std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int64_t> points = {4, 3, 1, 7};
  std::vector<float> updates = {9, 10, 11, 12};
  std::vector<float> y(8);
  const auto step =
      Step("ScatterND", {0},
           {Tensor(DType::kF32, {8}), Tensor(DType::kI64, {4, 1}), Tensor(DType::kF32, {4})},
           {Tensor(DType::kF32, {8})});
  ASSERT_TRUE(CheckAndRun(step, {data.data(), points.data(), updates.data(), y.data()}).ok());
  EXPECT_THAT(y, ElementsAre(1, 11, 3, 10, 9, 6, 7, 12));

  std::vector<int64_t> rows = {-1, 0};
  std::vector<float> row_updates = {10, 20, 30, 40};
  const auto slices =
      Step("ScatterND", {1},
           {Tensor(DType::kF32, {4, 2}), Tensor(DType::kI64, {2, 1}), Tensor(DType::kF32, {2, 2})},
           {Tensor(DType::kF32, {4, 2})});
  ASSERT_TRUE(CheckAndRun(slices, {data.data(), rows.data(), row_updates.data(), y.data()}).ok());
  EXPECT_THAT(y, ElementsAre(31, 42, 3, 4, 5, 6, 17, 28));
}

// Rows are combined in blocks; what is left over too, and rows named twice in order.
TEST(ScatterNd, LongRowsInEveryReduction) {
  constexpr int64_t kLength = 37;
  for (int64_t reduction = 0; reduction <= 4; ++reduction) {
    std::vector<float> data, updates, y(2 * kLength), expected;
    for (int i = 0; i < 2 * kLength; ++i) data.push_back(static_cast<float>(i % 11) - 5);
    for (int i = 0; i < 2 * kLength; ++i) updates.push_back(static_cast<float>(i % 7) - 3);
    std::vector<int64_t> indices = {1, 1};
    expected = data;
    for (int64_t i = 0; i < 2 * kLength; ++i) {
      float& at = expected[static_cast<size_t>(kLength + i % kLength)];
      const float update = updates[static_cast<size_t>(i)];
      const float results[] = {update, at + update, at * update, std::max(at, update),
                               std::min(at, update)};
      at = results[reduction];
    }
    const auto step = Step("ScatterND", {reduction},
                           {Tensor(DType::kF32, {2, kLength}), Tensor(DType::kI64, {2, 1}),
                            Tensor(DType::kF32, {2, kLength})},
                           {Tensor(DType::kF32, {2, kLength})});
    ASSERT_TRUE(CheckAndRun(step, {data.data(), indices.data(), updates.data(), y.data()}).ok());
    EXPECT_EQ(y, expected) << "reduction " << reduction;
  }
}

TEST(ScatterNd, InPlaceAndHalfAdd) {
  std::vector<uint16_t> y = {ir::BF16FromDouble(1), ir::BF16FromDouble(2)};
  std::vector<int64_t> indices = {1, 1};
  std::vector<uint16_t> updates = {ir::BF16FromDouble(0.5), ir::BF16FromDouble(4)};
  const auto step =
      Step("ScatterND", {1},
           {Tensor(DType::kBF16, {2}), Tensor(DType::kI64, {2, 1}), Tensor(DType::kBF16, {2})},
           {Tensor(DType::kBF16, {2})});
  ASSERT_TRUE(CheckAndRun(step, {y.data(), indices.data(), updates.data(), y.data()}).ok());
  EXPECT_EQ(ir::BF16ToDouble(y[0]), 1);
  EXPECT_EQ(ir::BF16ToDouble(y[1]), 6.5);
}

TEST(Scatter, MaxAndMinKeepNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t reduction : {3, 4}) {
    std::vector<float> y = {nan, 1, 1};
    std::vector<int64_t> indices = {0, 1, 2};
    std::vector<float> updates = {5, nan, 0};
    const auto step =
        Step("ScatterND", {reduction},
             {Tensor(DType::kF32, {3}), Tensor(DType::kI64, {3, 1}), Tensor(DType::kF32, {3})},
             {Tensor(DType::kF32, {3})});
    ASSERT_TRUE(CheckAndRun(step, {y.data(), indices.data(), updates.data(), y.data()}).ok());
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[2], reduction == 3 ? 1 : 0);
  }
}

TEST(Scatter, CheckRefusesWhatDoesNotFit) {
  const auto f32 = [](std::vector<int64_t> shape) { return Tensor(DType::kF32, std::move(shape)); };
  const auto i64 = [](std::vector<int64_t> shape) { return Tensor(DType::kI64, std::move(shape)); };
  const auto elements = [&](std::vector<int64_t> attributes, std::vector<int64_t> indices) {
    return CheckScatterElements(Step("ScatterElements", std::move(attributes),
                                     {f32({3, 3}), i64(indices), f32(indices)}, {f32({3, 3})}))
        .ok();
  };
  EXPECT_TRUE(elements({0, 0}, {2, 3}));
  EXPECT_FALSE(elements({2, 0}, {2, 3}));
  EXPECT_FALSE(elements({0, 5}, {2, 3}));
  EXPECT_FALSE(elements({0}, {2, 3}));
  EXPECT_FALSE(elements({0, 0}, {2, 4}));
  EXPECT_FALSE(elements({0, 0}, {2}));
  EXPECT_FALSE(
      CheckScatterNd(Step("ScatterND", {0}, {f32({3, 3}), i64({2, 3}), f32({2})}, {f32({3, 3})}))
          .ok());
  EXPECT_FALSE(
      CheckScatterNd(Step("ScatterND", {0}, {f32({3, 3}), i64({2, 1}), f32({2})}, {f32({3, 3})}))
          .ok());
  EXPECT_FALSE(
      CheckScatterNd(Step("ScatterND", {0}, {f32({3, 3}), f32({2, 2}), f32({2})}, {f32({3, 3})}))
          .ok());
  EXPECT_FALSE(
      CheckScatterNd(Step("ScatterND", {0}, {f32({3, 3}), i64({2, 2}), f32({2})}, {f32({3, 2})}))
          .ok());
}

}  // namespace
}  // namespace hone::runtime

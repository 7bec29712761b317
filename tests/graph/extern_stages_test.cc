#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/op.h"
#include "ir/interpreter.h"
#include "ir/verify.h"
#include "ir/workload_builder.h"

// TopK and Scatter as Stages, on the examples of ONNX's specification and on what they leave out.
namespace hone::graph {
namespace {

using ir::DType;
using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

struct Argument {
  DType dtype;
  Ints shape;
  Numbers values;
};

/// The outputs of one call, by the interpreter.
std::vector<Numbers> ResultsOf(const std::string& op, const Attributes& attributes,
                               const std::vector<Argument>& arguments, int num_outputs = 1) {
  OpCall call{.op = op, .origin = "n", .attributes = &attributes, .num_outputs = num_outputs};
  ir::WorkloadBuilder builder;
  std::vector<int> tensors;
  for (const Argument& a : arguments) {
    call.inputs.push_back({.present = true, .type = {a.dtype, a.shape}});
    tensors.push_back(builder.AddInput(a.dtype, a.shape));
  }
  EXPECT_TRUE(InferTypes(call).ok()) << InferTypes(call).status();
  const auto outputs = FindOp(op)->express(call, builder, tensors);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  for (const int output : *outputs) builder.MarkOutput(output);
  const ir::WorkloadBuilder::Result made = builder.Finish();
  EXPECT_TRUE(ir::Verify(made.workload).ok()) << ir::Verify(made.workload);
  std::vector<ir::TensorBuffer> given;
  for (const int input : made.workload.Inputs()) {
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (made.canonical[static_cast<size_t>(tensors[k])] != input) continue;
      const Argument& a = arguments[k];
      given.push_back(ir::TensorBuffer::Of(a.dtype, a.shape, a.values));
    }
  }
  const auto results = ir::RunWorkload(made.workload, given);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<Numbers> all;
  // In the order of the call, whatever that of the Workload's outputs is.
  for (const int output : *outputs) {
    const std::vector<int> of = made.workload.Outputs();
    for (size_t k = 0; results.ok() && k < of.size(); ++k) {
      if (of[k] == made.canonical[static_cast<size_t>(output)]) all.push_back((*results)[k].values);
    }
  }
  return all;
}

TEST(ExternStages, TopKOrdersByValueThenIndex) {
  const Attributes largest = {{"axis", int64_t{1}}, {"k", int64_t{3}}, {"largest", int64_t{1}}};
  const auto rows =
      ResultsOf("TopKStages", largest, {{DType::kF32, {2, 4}, {0, 1, 2, 3, 5, 7, 7, 5}}}, 2);
  EXPECT_THAT(rows[0], ElementsAre(3, 2, 1, 7, 7, 5));
  EXPECT_THAT(rows[1], ElementsAre(3, 2, 1, 1, 2, 0));
  const Attributes least = {{"axis", int64_t{0}}, {"k", int64_t{1}}, {"largest", int64_t{0}}};
  const auto columns =
      ResultsOf("TopKStages", least, {{DType::kI32, {3, 2}, {4, 9, 2, 9, 2, 8}}}, 2);
  EXPECT_THAT(columns[0], ElementsAre(2, 8));
  EXPECT_THAT(columns[1], ElementsAre(1, 2));
}

TEST(ExternStages, ANotANumberIsTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const Attributes attributes = {{"axis", int64_t{0}}, {"k", int64_t{3}}, {"largest", int64_t{1}}};
  const auto all =
      ResultsOf("TopKStages", attributes, {{DType::kF32, {4}, {-infinite, infinite, nan, nan}}}, 2);
  EXPECT_TRUE(std::isnan(all[0][0]) && std::isnan(all[0][1]));
  EXPECT_EQ(all[0][2], infinite);
  EXPECT_THAT(all[1], ElementsAre(2, 3, 1));
}

TEST(ExternStages, ScatterElementsWritesWhereIndicesSay) {
  const Argument data = {DType::kF32, {1, 5}, {1, 2, 3, 4, 5}};
  const Attributes none = {{"axis", int64_t{1}}};
  EXPECT_THAT(
      ResultsOf("ScatterElementsStages", none,
                {data, {DType::kI64, {1, 2}, {1, -2}}, {DType::kF32, {1, 2}, {1.5, 2.5}}})[0],
      ElementsAre(1, 1.5, 3, 2.5, 5));
  // The last of two stays; one outside changes nothing.
  EXPECT_THAT(
      ResultsOf("ScatterElementsStages", none,
                {data, {DType::kI32, {1, 3}, {1, 1, 7}}, {DType::kF32, {1, 3}, {8, 9, 7}}})[0],
      ElementsAre(1, 9, 3, 4, 5));
  const Attributes add = {{"axis", int64_t{1}}, {"reduction", std::string("add")}};
  EXPECT_THAT(
      ResultsOf("ScatterElementsStages", add,
                {data, {DType::kI64, {1, 2}, {1, 1}}, {DType::kF32, {1, 2}, {0.5, 0.25}}})[0],
      ElementsAre(1, 2.75, 3, 4, 5));
  // Fewer rows of updates than of data.
  EXPECT_THAT(ResultsOf("ScatterElementsStages", none,
                        {{DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}},
                         {DType::kI64, {1, 1}, {2}},
                         {DType::kF32, {1, 1}, {9}}})[0],
              ElementsAre(1, 2, 9, 4, 5, 6));
}

TEST(ExternStages, ScatterNdWritesElementsAndSlices) {
  EXPECT_THAT(ResultsOf("ScatterNDStages", {},
                        {{DType::kF32, {8}, {1, 2, 3, 4, 5, 6, 7, 8}},
                         {DType::kI64, {4, 1}, {4, 3, 1, 7}},
                         {DType::kF32, {4}, {9, 10, 11, 12}}})[0],
              ElementsAre(1, 11, 3, 10, 9, 6, 7, 12));
  const Argument data = {DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(
      ResultsOf("ScatterNDStages", {},
                {data, {DType::kI64, {2, 1}, {0, -1}}, {DType::kF32, {2, 2}, {7, 8, 9, 10}}})[0],
      ElementsAre(7, 8, 3, 4, 9, 10));
  EXPECT_THAT(ResultsOf("ScatterNDStages", {},
                        {data, {DType::kI64, {2}, {1, 1}}, {DType::kF32, {}, {7}}})[0],
              ElementsAre(1, 2, 3, 7, 5, 6));
  EXPECT_THAT(
      ResultsOf("ScatterNDStages", {{"reduction", std::string("max")}},
                {data, {DType::kI64, {2, 1}, {1, 1}}, {DType::kF32, {2, 2}, {1, 8, 9, 2}}})[0],
      ElementsAre(1, 2, 9, 8, 5, 6));
}

}  // namespace
}  // namespace hone::graph

#include "ir/workload_builder.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace hone::ir {

int WorkloadBuilder::AddInput(DType dtype, std::vector<int64_t> shape, ValueRange range) {
  Tensor tensor{.kind = TensorKind::kInput, .dtype = dtype, .shape = std::move(shape)};
  tensor.range = range;
  tensors_.push_back(std::move(tensor));
  return num_tensors() - 1;
}

int WorkloadBuilder::AddConstant(DType dtype, std::vector<int64_t> shape) {
  tensors_.push_back({.kind = TensorKind::kConstant, .dtype = dtype, .shape = std::move(shape)});
  return num_tensors() - 1;
}

int WorkloadBuilder::AddImmediate(DType dtype, std::vector<int64_t> shape,
                                  std::vector<double> values) {
  Tensor tensor{.kind = TensorKind::kImmediate, .dtype = dtype, .shape = std::move(shape)};
  tensor.immediate = std::move(values);
  HONE_CHECK(static_cast<int64_t>(tensor.immediate.size()) == tensor.NumElements())
      << "an immediate of " << tensor.NumElements() << " elements got " << tensor.immediate.size()
      << " values";
  HONE_CHECK(tensor.NumElements() <= kMaxImmediate)
      << "an immediate has at most " << kMaxImmediate << " elements";
  tensors_.push_back(std::move(tensor));
  return num_tensors() - 1;
}

int WorkloadBuilder::AddMap(std::vector<int64_t> spatial, Expr body) {
  Stage stage;
  stage.spatial = std::move(spatial);
  stage.body = {std::move(body)};
  return AddStage(std::move(stage))[0];
}

int WorkloadBuilder::AddReduce(std::vector<int64_t> spatial, std::vector<int64_t> reduce,
                               Combiner combiner, Expr body) {
  Stage stage;
  stage.spatial = std::move(spatial);
  stage.reduce = std::move(reduce);
  stage.combiner = combiner;
  stage.body = {std::move(body)};
  return AddStage(std::move(stage))[0];
}

std::vector<int> WorkloadBuilder::AddStage(Stage stage, std::vector<int64_t> result_shape) {
  HONE_CHECK(!stage.body.empty()) << "a Stage needs a body";
  if (result_shape.empty() && stage.store.empty()) result_shape = stage.spatial;
  for (size_t k = 0; k < stage.body.size(); ++k) {
    const DType dtype = stage.body[k]->dtype;
    if (k >= stage.results.size()) stage.results.push_back(ReserveResult(dtype, result_shape));
    const Tensor& result = tensors_[static_cast<size_t>(stage.results[k])];
    HONE_CHECK(result.dtype == dtype) << "a result reserved as " << ToString(result.dtype)
                                      << " gets a body of " << ToString(dtype);
  }
  std::vector<int> results = stage.results;
  stages_.push_back(std::move(stage));
  return results;
}

int WorkloadBuilder::ReserveResult(DType dtype, std::vector<int64_t> shape) {
  tensors_.push_back({.kind = TensorKind::kStage, .dtype = dtype, .shape = std::move(shape)});
  return num_tensors() - 1;
}

void WorkloadBuilder::MarkOutput(int tensor) {
  HONE_CHECK(tensors_[static_cast<size_t>(tensor)].kind == TensorKind::kStage)
      << "only the result of a Stage can be an output";
  if (std::ranges::find(outputs_, tensor) == outputs_.end()) outputs_.push_back(tensor);
}

Expr WorkloadBuilder::At(int tensor, std::vector<Expr> indices) const {
  const Tensor& read = tensors_[static_cast<size_t>(tensor)];
  HONE_CHECK(indices.size() == read.shape.size())
      << "a tensor of rank " << read.shape.size() << " is loaded with " << indices.size()
      << " indices";
  return Load(tensor, read.dtype, std::move(indices));
}

WorkloadBuilder::Result WorkloadBuilder::Finish() const {
  Workload workload;
  workload.tensors = tensors_;
  for (Tensor& tensor : workload.tensors) tensor.output = false;
  workload.stages = stages_;
  return CanonicaliseFor(workload, outputs_);
}

}  // namespace hone::ir

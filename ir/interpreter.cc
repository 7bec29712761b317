#include "ir/interpreter.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/core/check.h"
#include "ir/evaluate.h"
#include "ir/value.h"
#include "ir/verify.h"

namespace hone::ir {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

int64_t Product(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return count;
}

/// Row-major position `flat` in a box as one index per axis.
void Unflatten(int64_t flat, std::span<const int64_t> extents, std::span<int64_t> indices) {
  for (size_t axis = extents.size(); axis-- > 0;) {
    indices[axis] = flat % extents[axis];
    flat /= extents[axis];
  }
}

/// The elements of one Stage's results that are known, by point of its spatial axes.
class StageMemory {
 public:
  /// Dense memory costs 24 bytes a point at once; sparse memory pays for the points that are made.
  enum class Kind { kSparse, kDense };

  void Init(size_t results, int64_t points, Kind kind) {
    results_ = results;
    dense_ = kind == Kind::kDense;
    if (!dense_) return;
    values_.resize(Index(points) * results);
    known_.resize(Index(points));
  }

  const Value* Find(int64_t point) const {
    if (dense_) return known_[Index(point)] ? &values_[Index(point) * results_] : nullptr;
    const auto found = sparse_.find(point);
    return found == sparse_.end() ? nullptr : found->second.data();
  }

  const Value* Put(int64_t point, std::vector<Value> values) {
    if (!dense_) return sparse_.insert_or_assign(point, std::move(values)).first->second.data();
    std::copy(values.begin(), values.end(),
              values_.begin() + static_cast<ptrdiff_t>(Index(point) * results_));
    known_[Index(point)] = true;
    return &values_[Index(point) * results_];
  }

 private:
  size_t results_ = 1;
  bool dense_ = false;
  std::vector<Value> values_;
  std::vector<bool> known_;
  std::unordered_map<int64_t, std::vector<Value>> sparse_;
};

class WorkloadEvaluator : public ExprEvaluator {
 public:
  WorkloadEvaluator(const Workload& workload, std::span<const TensorBuffer> arguments,
                    StageMemory::Kind kind)
      : workload_(workload), memory_(workload.stages.size()) {
    sources_.resize(workload.tensors.size());
    size_t next = 0;
    for (const std::vector<int>& ids : {workload.Inputs(), workload.Constants()}) {
      for (int id : ids) sources_[Index(id)].given = &arguments[next++];
    }
    for (size_t s = 0; s < workload.stages.size(); ++s) {
      const Stage& stage = workload.stages[s];
      for (size_t k = 0; k < stage.results.size(); ++k) {
        sources_[Index(stage.results[k])] = {nullptr, static_cast<int>(s), k};
      }
      // A scan's region is computed whole.
      memory_[s].Init(stage.results.size(), Product(stage.spatial),
                      stage.scan >= 0 ? StageMemory::Kind::kDense : kind);
    }
  }

  /// The results of a Stage at a point, computed when needed. Null after a failure.
  const Value* At(int stage, int64_t point) {
    const StageMemory& memory = memory_[Index(stage)];
    if (const Value* known = memory.Find(point)) return known;
    const Stage& made = workload_.stages[Index(stage)];
    if (made.scan < 0 || running_scan_ == made.scan) return Compute(stage, point);
    RunScan(made.scan, point / (Product(made.spatial) / made.spatial[0]));
    return failed() ? nullptr : memory.Find(point);
  }

  /// Where a point of a Stage is stored in its results.
  int64_t StoreIndex(const Stage& stage, int64_t point) {
    if (stage.store.empty()) return point;
    std::vector<int64_t> vars(Index(stage.num_axes()));
    Unflatten(point, stage.spatial, vars);
    const std::vector<int64_t>& shape = workload_.tensors[Index(stage.results[0])].shape;
    int64_t flat = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      flat = flat * shape[d] + EvaluateIndex(*stage.store[d], vars);
    }
    return flat;
  }

 protected:
  Value LoadFrom(const ExprNode& load, std::span<const int64_t> indices,
                 std::span<const int64_t> /*vars*/) override {
    const Tensor& tensor = workload_.tensors[Index(load.id)];
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d] < 0 || indices[d] >= tensor.shape[d]) {
        FailWith(absl::OutOfRangeError("index " + std::to_string(indices[d]) + " of dimension " +
                                       std::to_string(d) + " of " + tensor.name +
                                       " is outside [0, " + std::to_string(tensor.shape[d]) + ")"));
        return {};
      }
      flat = flat * tensor.shape[d] + indices[d];
    }
    const Source& source = sources_[Index(load.id)];
    if (source.given != nullptr) return ValueOf(source.given->At(flat));
    if (source.stage < 0) return ValueOf(ElementOf(tensor.dtype, tensor.immediate[Index(flat)]));
    const Value* values = At(source.stage, flat);
    return values == nullptr ? Value{} : values[source.result];
  }

 private:
  struct Source {
    const TensorBuffer* given = nullptr;
    int stage = -1;
    size_t result = 0;
  };

  const Value* Compute(int stage, int64_t point) {
    const Stage& made = workload_.stages[Index(stage)];
    std::vector<int64_t> vars(Index(made.num_axes()));
    Unflatten(point, made.spatial, std::span(vars).first(made.spatial.size()));
    std::vector<Value> values = made.combiner == Combiner::kNone
                                    ? std::vector<Value>{Evaluate(*made.body[0], vars)}
                                    : Reduce(made, &vars);
    if (failed()) return nullptr;
    for (size_t k = 0; k < values.size(); ++k) values[k] = Stored(made.body[k]->dtype, values[k]);
    return memory_[Index(stage)].Put(point, std::move(values));
  }

  /// Calls `visit` at every point of the reduce axes, last axis fastest.
  template <typename F>
  void ForEachReduced(const Stage& stage, std::vector<int64_t>* vars, F visit) {
    const std::span<int64_t> reduced = std::span(*vars).subspan(stage.spatial.size());
    const int64_t count = Product(stage.reduce);
    std::ranges::fill(reduced, 0);
    for (int64_t point = 0; point < count && !failed(); ++point) {
      visit();
      for (size_t axis = reduced.size(); axis-- > 0 && ++reduced[axis] == stage.reduce[axis];) {
        reduced[axis] = 0;
      }
    }
  }

  std::vector<Value> Reduce(const Stage& stage, std::vector<int64_t>* vars) {
    if (IsArg(stage.combiner)) return ReduceArg(stage, vars);
    const DType dtype = stage.body[0]->dtype;
    if (stage.combiner == Combiner::kSum || stage.combiner == Combiner::kSumSumSq) {
      std::vector<SumOf> sums(stage.body.size(), SumOf(dtype));
      ForEachReduced(stage, vars, [&] {
        for (size_t k = 0; k < sums.size(); ++k) sums[k].Add(Evaluate(*stage.body[k], *vars));
      });
      std::vector<Value> values;
      for (const SumOf& sum : sums) values.push_back(sum.Result());
      return values;
    }
    const BinaryOp op = stage.combiner == Combiner::kProduct ? BinaryOp::kMul
                        : stage.combiner == Combiner::kMin   ? BinaryOp::kMin
                                                             : BinaryOp::kMax;
    bool first = true;
    Value result;
    ForEachReduced(stage, vars, [&] {
      const Value term = Evaluate(*stage.body[0], *vars);
      result = first ? term : Apply(op, dtype, result, term);
      first = false;
    });
    return {result};
  }

  std::vector<Value> ReduceArg(const Stage& stage, std::vector<int64_t>* vars) {
    const DType dtype = stage.body[0]->dtype;
    std::vector<ValueAndIndex> all;
    ForEachReduced(stage, vars, [&] {
      const Value value = Evaluate(*stage.body[0], *vars);
      all.push_back({value, Evaluate(*stage.body[1], *vars)});
    });
    if (all.empty()) return {Value{}, Value{}};
    auto best = all[0];
    for (const auto& [value, index] : all) {
      if (ArgReplaces(stage.combiner, dtype, {value, index}, best)) best = {value, index};
    }
    // Others that are too close to call may be chosen instead.
    auto& [best_value, best_index] = best;
    double value_bound = best_value.bound;
    for (const auto& [value, index] : all) {
      const double room = value.bound + best_value.bound;
      if (room == 0 || std::fabs(value.f - best_value.f) > room) continue;
      value_bound = std::max(value_bound, value.bound);
      best_index.bound =
          std::max(best_index.bound, static_cast<double>(std::abs(index.i - best_index.i)));
    }
    best_value.bound = value_bound;
    return {best_value, best_index};
  }

  /// Makes iterations 0..last of every Stage of a region, in order.
  void RunScan(int scan, int64_t last) {
    const int outer = std::exchange(running_scan_, scan);
    for (int64_t t = scans_done_[scan]; t <= last && !failed(); ++t) {
      for (size_t s = 0; s < workload_.stages.size(); ++s) {
        const Stage& stage = workload_.stages[s];
        if (stage.scan != scan || t >= stage.spatial[0]) continue;
        const int64_t slice = Product(stage.spatial) / stage.spatial[0];
        for (int64_t p = t * slice; p < (t + 1) * slice && !failed(); ++p) {
          Compute(static_cast<int>(s), p);
        }
      }
      scans_done_[scan] = t + 1;
    }
    running_scan_ = outer;
  }

  const Workload& workload_;
  std::vector<Source> sources_;
  std::vector<StageMemory> memory_;
  std::unordered_map<int, int64_t> scans_done_;
  int running_scan_ = -1;
};

absl::Status CheckArguments(const Workload& workload, std::span<const TensorBuffer> arguments) {
  std::vector<int> ids = workload.Inputs();
  for (int id : workload.Constants()) ids.push_back(id);
  if (ids.size() != arguments.size()) {
    return absl::InvalidArgumentError("the Workload has " + std::to_string(ids.size()) +
                                      " inputs and constants, but " +
                                      std::to_string(arguments.size()) + " tensors are given");
  }
  for (size_t k = 0; k < ids.size(); ++k) {
    const Tensor& tensor = workload.tensors[Index(ids[k])];
    const TensorBuffer& given = arguments[k];
    if (given.dtype != tensor.dtype || given.shape != tensor.shape ||
        static_cast<int64_t>(given.bytes.size()) != tensor.Bytes()) {
      return absl::InvalidArgumentError("the tensor given for " + tensor.name +
                                        " has another type, shape or size");
    }
  }
  return absl::OkStatus();
}

/// Fills one output from all points of its Stage.
absl::StatusOr<InterpretedTensor> WholeOutput(const Workload& workload, int tensor,
                                              WorkloadEvaluator* evaluator) {
  const Tensor& declared = workload.tensors[Index(tensor)];
  const int producer = workload.Producer(tensor);
  const Stage& stage = workload.stages[Index(producer)];
  const auto result =
      static_cast<size_t>(std::ranges::find(stage.results, tensor) - stage.results.begin());
  InterpretedTensor output;
  output.tensor = TensorBuffer::Zeros(declared.dtype, declared.shape);
  output.values.resize(Index(declared.NumElements()));
  output.bounds.resize(Index(declared.NumElements()));
  std::vector<bool> written(Index(declared.NumElements()));
  const int64_t points = Product(stage.spatial);
  for (int64_t point = 0; point < points; ++point) {
    const Value* values = evaluator->At(producer, point);
    const int64_t at = evaluator->StoreIndex(stage, point);
    if (!evaluator->status().ok()) return evaluator->status();
    if (written[Index(at)]) {
      return absl::InternalError("element " + std::to_string(at) + " of " + declared.name +
                                 " is stored twice: the store map is not injective");
    }
    written[Index(at)] = true;
    output.tensor.Set(at, ElementOf(values[result]));
    output.values[Index(at)] = ToDouble(declared.dtype, ElementOf(values[result]));
    output.bounds[Index(at)] = values[result].bound;
  }
  if (points != declared.NumElements()) {
    return absl::InternalError(std::to_string(declared.NumElements() - points) + " elements of " +
                               declared.name + " are never stored");
  }
  return output;
}

/// The points of a Stage's axes that are stored at `wanted`, -1 where there is none.
std::vector<int64_t> StagePoints(const Stage& stage, std::span<const int64_t> wanted,
                                 WorkloadEvaluator* evaluator) {
  std::vector<int64_t> points(wanted.begin(), wanted.end());
  if (stage.store.empty()) return points;
  std::unordered_map<int64_t, int64_t> point_of;
  for (int64_t at : wanted) point_of.emplace(at, -1);
  const int64_t count = Product(stage.spatial);
  for (int64_t point = 0; point < count; ++point) {
    const auto found = point_of.find(evaluator->StoreIndex(stage, point));
    if (found != point_of.end()) found->second = point;
  }
  for (int64_t& point : points) point = point_of[point];
  return points;
}

}  // namespace

absl::StatusOr<std::vector<InterpretedTensor>> RunWorkload(
    const Workload& workload, std::span<const TensorBuffer> arguments) {
  HONE_RETURN_IF_ERROR(Verify(workload));
  HONE_RETURN_IF_ERROR(CheckArguments(workload, arguments));
  WorkloadEvaluator evaluator(workload, arguments, StageMemory::Kind::kDense);
  std::vector<InterpretedTensor> outputs;
  for (int tensor : workload.Outputs()) {
    HONE_ASSIGN_OR_RETURN(InterpretedTensor output, WholeOutput(workload, tensor, &evaluator));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

absl::StatusOr<std::vector<PointValue>> EvaluatePoints(const Workload& workload,
                                                       std::span<const TensorBuffer> arguments,
                                                       int output,
                                                       std::span<const int64_t> points) {
  HONE_RETURN_IF_ERROR(Verify(workload));
  HONE_RETURN_IF_ERROR(CheckArguments(workload, arguments));
  const std::vector<int> outputs = workload.Outputs();
  HONE_CHECK(output >= 0 && Index(output) < outputs.size()) << "there is no output " << output;
  const int tensor = outputs[Index(output)];
  const Tensor& declared = workload.tensors[Index(tensor)];
  for (int64_t point : points) {
    HONE_CHECK(point >= 0 && point < declared.NumElements())
        << "point " << point << " is outside " << declared.name;
  }
  const int producer = workload.Producer(tensor);
  const Stage& stage = workload.stages[Index(producer)];
  const auto result =
      static_cast<size_t>(std::ranges::find(stage.results, tensor) - stage.results.begin());
  WorkloadEvaluator evaluator(workload, arguments, StageMemory::Kind::kSparse);
  std::vector<PointValue> values;
  for (int64_t point : StagePoints(stage, points, &evaluator)) {
    if (point < 0)
      return absl::InternalError("an element of " + declared.name + " is never stored");
    const Value* made = evaluator.At(producer, point);
    if (!evaluator.status().ok()) return evaluator.status();
    const Element element = ElementOf(made[result]);
    values.push_back({ToDouble(declared.dtype, element), made[result].bound, element});
  }
  return values;
}

}  // namespace hone::ir

#pragma once

#include <vector>

#include "ir/workload.h"

namespace hone::ir {

/// Collects tensors and Stages in any convenient order and gives the canonical Workload: Stages in
/// post-order from the outputs (dead ones dropped), tensors by first use, names x0…, s0…. Not
/// thread-safe.
class WorkloadBuilder {
 public:
  int AddInput(DType dtype, std::vector<int64_t> shape, ValueRange range = {});
  int AddConstant(DType dtype, std::vector<int64_t> shape);
  int AddImmediate(DType dtype, std::vector<int64_t> shape, std::vector<double> values);

  /// An element-wise Stage; gives its result's tensor id. The dtype is the body's.
  int AddMap(std::vector<int64_t> spatial, Expr body);
  /// A reduction; body over Var(0..S-1) and Var(S..S+R-1).
  int AddReduce(std::vector<int64_t> spatial, std::vector<int64_t> reduce, Combiner combiner,
                Expr body);
  /// A general Stage (tuple combiners, scans, store maps). For every body a result tensor is made;
  /// with a store map `result_shape` is the tensor's shape (else it is `stage.spatial`). Gives the
  /// tensor ids. A scan Stage that reads its own region at t - c may use the ids of ReserveStage.
  std::vector<int> AddStage(Stage stage, std::vector<int64_t> result_shape = {});
  /// A result tensor whose Stage comes later (carried values of a scan): pass it in Stage::results
  /// to AddStage.
  int ReserveResult(DType dtype, std::vector<int64_t> shape);
  /// A new scan region number.
  int AddScan() { return num_scans_++; }

  void MarkOutput(int tensor);
  const Tensor& tensor(int id) const { return tensors_[id]; }
  int num_tensors() const { return static_cast<int>(tensors_.size()); }
  const std::vector<Stage>& stages() const { return stages_; }
  /// Load(tensor, indices) with the tensor's dtype.
  Expr At(int tensor, std::vector<Expr> indices) const;

  struct Result {
    Workload workload;
    /// canonical[k]: id in the Workload of builder tensor k, or -1 when it was dropped.
    std::vector<int> canonical;
  };
  /// Canonicalises. The outputs' order is the order of MarkOutput calls (kept through post-order).
  Result Finish() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Stage> stages_;
  std::vector<int> outputs_;
  int num_scans_ = 0;
};

/// Canonical form of an existing Workload (idempotent): order, names, dead parts. canonical[k] as
/// in WorkloadBuilder::Result.
WorkloadBuilder::Result Canonicalise(const Workload& workload);
/// The same for other outputs than the marked ones, in this order; what they do not need is
/// dropped.
WorkloadBuilder::Result CanonicaliseFor(const Workload& workload, const std::vector<int>& outputs);

}  // namespace hone::ir

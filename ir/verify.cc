#include "ir/verify.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/half.h"
#include "ir/index/range_analysis.h"
#include "ir/integer.h"
#include "ir/kept_panels.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

absl::Status Invalid(const std::string& where, const std::string& what) {
  return absl::InvalidArgumentError(where + ": " + what);
}

/// Extents of a tensor or of axes: at least 1, and not too many elements.
absl::Status CheckExtents(const std::string& where, const std::vector<int64_t>& extents) {
  if (static_cast<int>(extents.size()) > kMaxRank) {
    return Invalid(where, "has " + std::to_string(extents.size()) + " dimensions; at most " +
                              std::to_string(kMaxRank) + " are possible");
  }
  int64_t count = 1;
  for (int64_t extent : extents) {
    if (extent < 1) return Invalid(where, "has an extent of " + std::to_string(extent));
    if (__builtin_mul_overflow(count, extent, &count) || count >= kMaxElements) {
      return Invalid(where, "has 2^40 or more elements");
    }
  }
  return absl::OkStatus();
}

bool IsValueOf(DType dtype, double value) {
  if (IsFloat(dtype)) return std::isnan(value) || RoundTo(dtype, value) == value;
  if (value != std::trunc(value) || std::fabs(value) > 0x1p53) return false;
  const auto whole = static_cast<int64_t>(value);
  return WrapTo(dtype, whole) == whole && (whole >= 0 || !IsUnsigned(dtype));
}

absl::Status CheckTensor(const Tensor& tensor) {
  HONE_RETURN_IF_ERROR(CheckExtents("tensor " + tensor.name, tensor.shape));
  if (tensor.output && tensor.kind != TensorKind::kStage) {
    return Invalid("tensor " + tensor.name, "is an output, but no Stage makes it");
  }
  if (tensor.kind == TensorKind::kInput && !(tensor.range.low <= tensor.range.high)) {
    return Invalid("tensor " + tensor.name, "has an empty range of values");
  }
  if (const std::string fault = FaultOfPanels(tensor); !fault.empty())
    return Invalid("tensor " + tensor.name, fault);
  if (tensor.kind != TensorKind::kImmediate) return absl::OkStatus();
  if (tensor.NumElements() > kMaxImmediate) {
    return Invalid("tensor " + tensor.name,
                   "is immediate and has more than " + std::to_string(kMaxImmediate) + " elements");
  }
  if (static_cast<int64_t>(tensor.immediate.size()) != tensor.NumElements()) {
    return Invalid("tensor " + tensor.name, "has " + std::to_string(tensor.immediate.size()) +
                                                " values for " +
                                                std::to_string(tensor.NumElements()) + " elements");
  }
  for (double value : tensor.immediate) {
    if (!IsValueOf(tensor.dtype, value)) {
      return Invalid("tensor " + tensor.name, "has the value " + NumberText(DType::kF64, value) +
                                                  ", which " + std::string(ToString(tensor.dtype)) +
                                                  " cannot hold");
    }
  }
  return absl::OkStatus();
}

class Verifier {
 public:
  explicit Verifier(const Workload& workload)
      : workload_(workload),
        producer_(workload.tensors.size(), -1),
        range_(workload.tensors.size()) {}

  absl::Status Run() {
    for (const Tensor& tensor : workload_.tensors) HONE_RETURN_IF_ERROR(CheckTensor(tensor));
    HONE_RETURN_IF_ERROR(CheckProducers());
    HONE_RETURN_IF_ERROR(CheckRegions());
    for (size_t t = 0; t < workload_.tensors.size(); ++t) {
      if (producer_[t] < 0) range_[t] = GivenRange(workload_.tensors[t]);
    }
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      HONE_RETURN_IF_ERROR(CheckStage(static_cast<int>(s)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckProducers() {
    bool has_output = false;
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      for (int id : workload_.stages[s].results) {
        const std::string where = "Stage " + workload_.stages[s].name;
        if (id < 0 || static_cast<size_t>(id) >= workload_.tensors.size()) {
          return Invalid(where,
                         "makes tensor number " + std::to_string(id) + ", which does not exist");
        }
        const Tensor& tensor = workload_.tensors[static_cast<size_t>(id)];
        if (tensor.kind != TensorKind::kStage)
          return Invalid(where, "makes " + tensor.name + ", which is given");
        int& producer = producer_[static_cast<size_t>(id)];
        if (producer >= 0)
          return Invalid(where, "makes " + tensor.name + ", which another Stage makes");
        producer = static_cast<int>(s);
        has_output |= tensor.output;
      }
    }
    for (size_t t = 0; t < workload_.tensors.size(); ++t) {
      if (workload_.tensors[t].kind == TensorKind::kStage && producer_[t] < 0) {
        return Invalid("tensor " + workload_.tensors[t].name, "is made by no Stage");
      }
    }
    return has_output ? absl::OkStatus() : Invalid("the Workload", "has no output");
  }

  absl::Status CheckRegions() {
    std::set<int> seen;
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      const Stage& stage = workload_.stages[s];
      if (stage.scan < 0) continue;
      const std::string where = "Stage " + stage.name;
      if (stage.spatial.empty()) return Invalid(where, "is in a scan, but has no axis t");
      const bool continues = s > 0 && workload_.stages[s - 1].scan == stage.scan;
      if (!continues && !seen.insert(stage.scan).second) {
        return Invalid(where, "is apart from the other Stages of its scan");
      }
      if (continues && workload_.stages[s - 1].spatial[0] != stage.spatial[0]) {
        return Invalid(where, "has another number of iterations than its scan");
      }
    }
    return absl::OkStatus();
  }

  static Interval GivenRange(const Tensor& tensor) {
    const Interval all = IntervalOf(tensor.dtype);
    if (IsFloat(tensor.dtype)) return all;
    double low = 0;
    double high = 0;
    if (tensor.kind == TensorKind::kInput) {
      low = std::ceil(tensor.range.low), high = std::ceil(tensor.range.high) - 1;
    } else if (tensor.kind == TensorKind::kImmediate) {
      low = *std::ranges::min_element(tensor.immediate);
      high = *std::ranges::max_element(tensor.immediate);
    } else {
      return all;
    }
    const auto bound = [](double v) {
      return static_cast<int64_t>(std::clamp(v, -0x1p62, 0x1p62));
    };
    const Interval range = {bound(low), std::max(bound(low), bound(high))};
    return all.Contains(range) ? range : all;
  }

  absl::Status CheckStage(int s) {
    const Stage& stage = workload_.stages[static_cast<size_t>(s)];
    const std::string where = "Stage " + stage.name;
    HONE_RETURN_IF_ERROR(CheckExtents(where, stage.spatial));
    HONE_RETURN_IF_ERROR(CheckExtents(where, stage.reduce));
    HONE_RETURN_IF_ERROR(CheckShape(where, stage));
    HONE_RETURN_IF_ERROR(CheckCombiner(where, stage));
    std::vector<Interval> axes;
    for (int a = 0; a < stage.num_axes(); ++a) axes.push_back({0, stage.Extent(a) - 1});
    RangeAnalysis ranges(
        axes, [this](const ExprNode& load) { return range_[static_cast<size_t>(load.id)]; });
    for (size_t k = 0; k < stage.body.size(); ++k) {
      HONE_RETURN_IF_ERROR(CheckExpr(s, stage.body[k], &ranges));
      range_[static_cast<size_t>(stage.results[k])] = ResultRange(stage, k, &ranges);
    }
    return CheckStore(where, stage, &ranges);
  }

  absl::Status CheckShape(const std::string& where, const Stage& stage) const {
    if (stage.body.size() != (IsTuple(stage.combiner) ? 2U : 1U) ||
        stage.results.size() != stage.body.size()) {
      return Invalid(where, std::string(ToString(stage.combiner)) + " with " +
                                std::to_string(stage.body.size()) + " bodies and " +
                                std::to_string(stage.results.size()) + " results");
    }
    for (size_t k = 0; k < stage.results.size(); ++k) {
      const Tensor& result = workload_.tensors[static_cast<size_t>(stage.results[k])];
      if (stage.body[k] == nullptr || stage.body[k]->dtype != result.dtype) {
        return Invalid(where, "the body has another type than " + result.name);
      }
      const Tensor& first = workload_.tensors[static_cast<size_t>(stage.results[0])];
      if (result.shape != (stage.store.empty() ? stage.spatial : first.shape)) {
        return Invalid(where, result.name + " has another shape than the Stage's axes");
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckCombiner(const std::string& where, const Stage& stage) {
    const DType dtype = stage.body[0]->dtype;
    const std::string name(ToString(stage.combiner));
    if (stage.reduce.empty() != (stage.combiner == Combiner::kNone)) {
      return Invalid(where, "combiner " + name + " with " + std::to_string(stage.reduce.size()) +
                                " reduce axes");
    }
    const bool orders = stage.combiner == Combiner::kMin || stage.combiner == Combiner::kMax ||
                        IsArg(stage.combiner) || stage.combiner == Combiner::kNone;
    if (IsBool(dtype) && !orders) return Invalid(where, name + " of bool");
    if (IsArg(stage.combiner) && stage.body[1]->dtype != DType::kI64) {
      return Invalid(where, name + " needs an i64 index as its second body");
    }
    if (stage.combiner == Combiner::kSumSumSq &&
        !Equal(stage.body[1], Binary(BinaryOp::kMul, stage.body[0], stage.body[0]))) {
      return Invalid(where, name + " needs the square of its first body as the second");
    }
    return absl::OkStatus();
  }

  /// What integer results may be, for Stages that use them as indices.
  static Interval ResultRange(const Stage& stage, size_t k, RangeAnalysis* ranges) {
    const DType dtype = stage.body[k]->dtype;
    const bool sums = stage.combiner == Combiner::kSum || stage.combiner == Combiner::kProduct ||
                      stage.combiner == Combiner::kSumSumSq;
    return sums || IsFloat(dtype) ? IntervalOf(dtype) : ranges->Of(stage.body[k]);
  }

  absl::Status CheckExpr(int s, const Expr& e, RangeAnalysis* ranges) {
    const Stage& stage = workload_.stages[static_cast<size_t>(s)];
    if (e->kind == ExprKind::kVar && (e->id < 0 || e->id >= stage.num_axes())) {
      return Invalid("Stage " + stage.name, "uses axis " + std::to_string(e->id) + " of " +
                                                std::to_string(stage.num_axes()));
    }
    if (e->kind == ExprKind::kSelect) {
      HONE_RETURN_IF_ERROR(CheckExpr(s, e->args[0], ranges));
      for (size_t branch : {1, 2}) {
        const size_t mark = ranges->Mark();
        ranges->Assume(e->args[0], branch == 1);
        const absl::Status status = CheckExpr(s, e->args[branch], ranges);
        ranges->Forget(mark);
        HONE_RETURN_IF_ERROR(status);
      }
      return absl::OkStatus();
    }
    if (e->kind == ExprKind::kLoad) HONE_RETURN_IF_ERROR(CheckLoad(s, e, ranges));
    for (const Expr& arg : e->args) HONE_RETURN_IF_ERROR(CheckExpr(s, arg, ranges));
    return absl::OkStatus();
  }

  absl::Status CheckLoad(int s, const Expr& load, RangeAnalysis* ranges) {
    const Stage& stage = workload_.stages[static_cast<size_t>(s)];
    const std::string where = "Stage " + stage.name;
    if (load->id < 0 || static_cast<size_t>(load->id) >= workload_.tensors.size()) {
      return Invalid(where,
                     "loads tensor number " + std::to_string(load->id) + ", which does not exist");
    }
    const Tensor& tensor = workload_.tensors[static_cast<size_t>(load->id)];
    if (load->dtype != tensor.dtype || load->args.size() != tensor.shape.size()) {
      return Invalid(where, "loads " + tensor.name + " with another type or number of indices");
    }
    HONE_RETURN_IF_ERROR(CheckOrder(s, *load, ranges));
    for (size_t d = 0; d < load->args.size(); ++d) {
      if (!IsInteger(load->args[d]->dtype))
        return Invalid(where, "an index of " + tensor.name + " is no integer");
      const Interval range = ranges->Of(load->args[d]);
      if (!Interval{0, tensor.shape[d] - 1}.Contains(range)) {
        return Invalid(where, OutOfRange(stage, load->args[d], d, tensor, range) +
                                  "; guard the load with a select, or clamp the index");
      }
    }
    return absl::OkStatus();
  }

  std::string OutOfRange(const Stage& stage, const Expr& index, size_t d, const Tensor& tensor,
                         const Interval& range) const {
    const auto bound = [](int64_t b) {
      return b >= Interval::kInfinite    ? "inf"
             : b <= -Interval::kInfinite ? "-inf"
                                         : std::to_string(b);
    };
    return "index " + std::to_string(d) + " of " + tensor.name + ", " +
           ToText(index, NamesOf(workload_, stage)) + ", is in [" + bound(range.low) + ", " +
           bound(range.high) + "], but must be in [0, " + std::to_string(tensor.shape[d] - 1) + "]";
  }

  /// Loads go to earlier Stages; inside a region also to earlier iterations.
  absl::Status CheckOrder(int s, const ExprNode& load, RangeAnalysis* ranges) const {
    const int producer = producer_[static_cast<size_t>(load.id)];
    if (producer < 0) return absl::OkStatus();
    const Stage& stage = workload_.stages[static_cast<size_t>(s)];
    const Stage& made = workload_.stages[static_cast<size_t>(producer)];
    const std::string where = "Stage " + stage.name;
    if (!made.store.empty())
      return Invalid(where, "loads " + made.name + ", which has a store map");
    if (stage.scan < 0 || stage.scan != made.scan) {
      return producer < s ? absl::OkStatus()
                          : Invalid(where, "loads " + made.name + ", which comes later");
    }
    const Linear t = ranges->LinearOf(load.args[0]);
    const bool along_t = t.terms.size() == 1 && t.terms[0].coefficient == 1 &&
                         t.terms[0].atom->kind == ExprKind::kVar && t.terms[0].atom->id == 0;
    if (!along_t || t.constant > 0) {
      return Invalid(where, "loads " + made.name + " of its own scan at " +
                                ToText(load.args[0], NamesOf(workload_, stage)) +
                                "; only t and t - c with c >= 1 are possible");
    }
    if (t.constant == 0 && producer >= s) {
      return Invalid(where, "loads " + made.name + " at t, which comes later in the scan");
    }
    return absl::OkStatus();
  }

  absl::Status CheckStore(const std::string& where, const Stage& stage, RangeAnalysis* ranges) {
    if (stage.store.empty()) return absl::OkStatus();
    const Tensor& result = workload_.tensors[static_cast<size_t>(stage.results[0])];
    for (int id : stage.results) {
      if (!workload_.tensors[static_cast<size_t>(id)].output) {
        return Invalid(where, "has a store map, but is no output");
      }
    }
    if (stage.store.size() != result.shape.size()) {
      return Invalid(where, "the store map has " + std::to_string(stage.store.size()) +
                                " indices for a result of rank " +
                                std::to_string(result.shape.size()));
    }
    for (size_t d = 0; d < stage.store.size(); ++d) {
      bool plain = IsInteger(stage.store[d]->dtype);
      Visit(stage.store[d], [&](const ExprNode& node) {
        plain &= node.kind != ExprKind::kLoad &&
                 (node.kind != ExprKind::kVar || (node.id >= 0 && node.id < stage.num_spatial()));
      });
      if (!plain) return Invalid(where, "the store map uses more than the spatial axes");
      const Interval range = ranges->Of(stage.store[d]);
      if (!Interval{0, result.shape[d] - 1}.Contains(range)) {
        return Invalid(where, OutOfRange(stage, stage.store[d], d, result, range));
      }
    }
    return CheckInjective(where, stage, result);
  }

  static absl::Status CheckInjective(const std::string& where, const Stage& stage,
                                     const Tensor& result) {
    constexpr int64_t kTriedPoints = 1 << 14;
    int64_t points = 1;
    for (int64_t extent : stage.spatial) points *= extent;
    if (points > result.NumElements()) return Invalid(where, "the store map is not injective");
    if (points > kTriedPoints) return absl::OkStatus();
    std::set<int64_t> stored;
    std::vector<Expr> values(stage.spatial.size());
    for (int64_t point = 0; point < points; ++point) {
      int64_t rest = point;
      for (size_t a = stage.spatial.size(); a-- > 0; rest /= stage.spatial[a]) {
        values[a] = Int(rest % stage.spatial[a]);
      }
      int64_t flat = 0;
      for (size_t d = 0; d < stage.store.size(); ++d) {
        const std::optional<int64_t> index = AsInt(SubstituteVars(stage.store[d], values));
        if (!index) return absl::OkStatus();  // an operator that does not fold
        flat = flat * result.shape[d] + *index;
      }
      if (!stored.insert(flat).second) {
        return Invalid(where, "the store map is not injective: two points are stored at element " +
                                  std::to_string(flat) + " of " + result.name);
      }
    }
    return absl::OkStatus();
  }

  const Workload& workload_;
  std::vector<int> producer_;
  std::vector<Interval> range_;  ///< per tensor
};

}  // namespace

absl::Status Verify(const Workload& workload) { return Verifier(workload).Run(); }

}  // namespace hone::ir

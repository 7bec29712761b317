#include "schedule/algorithms/attention_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/status.h"
#include "schedule/nest_builder.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

bool IsOp(const Expr& e, BinaryOp op) { return e->kind == ExprKind::kBinary && e->binary() == op; }
bool IsLoad(const Expr& e) { return e->kind == ExprKind::kLoad; }
bool IsOne(const Expr& e) {
  return e->kind == ExprKind::kConst && ir::IsFloat(e->dtype) && e->float_value == 1;
}

/// a / b, also written as a * (1 / b), or 0 where b is NaN.
struct Quotient {
  Expr dividend, divisor;
  bool zero_nan = false;
};
std::optional<Quotient> AsQuotient(const Expr& e) {
  if (e->kind == ExprKind::kSelect && ir::Equal(e->args[1], ir::Const(ir::DType::kF32, 0))) {
    std::optional<Quotient> other = AsQuotient(e->args[2]);
    if (!other || other->zero_nan ||
        !ir::Equal(e->args[0], ir::Unary(ir::UnaryOp::kIsNan, other->divisor)))
      return std::nullopt;
    other->zero_nan = true;
    return other;
  }
  if (IsOp(e, BinaryOp::kDiv) && ir::IsFloat(e->dtype)) return Quotient{e->args[0], e->args[1]};
  if (!IsOp(e, BinaryOp::kMul)) return std::nullopt;
  for (int k = 0; k < 2; ++k) {
    const Expr& inverse = e->args[k];
    if (IsOp(inverse, BinaryOp::kDiv) && IsOne(inverse->args[0]))
      return Quotient{e->args[1 - k], inverse->args[1]};
  }
  return std::nullopt;
}

class Matcher {
 public:
  Matcher(const Schedule& schedule, int product) : s_(schedule), live_(LiveStages(schedule)) {
    f_.product = product;
  }

  absl::StatusOr<AttentionForm> Run() {
    HONE_RETURN_IF_ERROR(MatchProduct());
    HONE_RETURN_IF_ERROR(MatchSoftmax());
    HONE_RETURN_IF_ERROR(MatchScores());
    HONE_RETURN_IF_ERROR(CheckReaders());
    std::vector<int> all = f_.chain;
    for (int id : {f_.product, f_.max, f_.exponential, f_.sum, f_.quotient}) {
      if (id >= 0) all.push_back(id);
    }
    for (int id : all) HONE_RETURN_IF_ERROR(CheckStage(id));
    return std::move(f_);
  }

 private:
  absl::Status No(const std::string& why) const {
    return Illegal(fmt::format("{} is no attention: {}", stage(f_.product).name, why));
  }
  const ir::Stage& stage(int id) const { return s_.workload.stages[static_cast<size_t>(id)]; }
  const std::string& Name(int id) const { return stage(id).name; }
  bool IsLive(int id) const { return std::find(live_.begin(), live_.end(), id) != live_.end(); }
  /// The Stage a load reads; -1 for inputs.
  int Made(const Expr& load) const {
    const int id = IsLoad(load) ? s_.workload.Producer(load->id) : -1;
    return id >= 0 && IsLive(id) ? id : -1;
  }
  /// An axis of one element may be written as 0.
  Expr Plain(const ir::Stage& of, const Expr& e) const {
    std::vector<Expr> values(static_cast<size_t>(of.num_axes()));
    for (int a = 0; a < of.num_axes(); ++a) {
      if (of.Extent(a) == 1) values[static_cast<size_t>(a)] = ir::Int(0);
    }
    return ir::SubstituteVars(e, values);
  }
  /// Whether the load's indices are the first axes of the Stage, in order.
  bool IsPoint(const ir::Stage& of, const Expr& load, size_t rank) const {
    if (!IsLoad(load) || load->args.size() != rank) return false;
    for (size_t d = 0; d < rank; ++d) {
      const Expr axis = ir::Var(static_cast<int>(d));
      if (!ir::Equal(Plain(of, load->args[d]), Plain(of, axis))) return false;
    }
    return true;
  }

  absl::Status MatchProduct() {
    const ir::Stage& p = stage(f_.product);
    if (p.combiner != ir::Combiner::kSum || p.num_reduce() != 1 || !IsOp(p.body[0], BinaryOp::kMul))
      return No("it is not a sum of products over one axis");
    for (int k = 0; k < 2; ++k) {
      if (!MatchWeights(p.body[0]->args[static_cast<size_t>(k)])) continue;
      f_.values = p.body[0]->args[static_cast<size_t>(1 - k)];
      return absl::OkStatus();
    }
    return No("neither factor is the exponential of scores, or that divided by its sum");
  }

  /// E, or E/L, in place or as a Stage, at a row and at the product's reduce axis.
  bool MatchWeights(const Expr& e) {
    const ir::Stage& p = stage(f_.product);
    Expr at = e;
    f_.quotient = f_.sum = -1;
    std::optional<Quotient> quotient = AsQuotient(e);
    if (quotient) {
      at = quotient->dividend;
      f_.sum = Made(quotient->divisor);
      f_.exponential = Made(at);
      if (f_.sum < 0 || f_.exponential < 0) return false;
    } else {
      f_.exponential = Made(e);
      if (f_.exponential < 0) return false;
      const ir::Stage& made = stage(f_.exponential);
      quotient = made.combiner == ir::Combiner::kNone ? AsQuotient(made.body[0]) : std::nullopt;
      if (quotient && !MatchQuotientStage(*quotient)) return false;
    }
    f_.divided = quotient.has_value();
    f_.zero_nan = quotient && quotient->zero_nan;
    if (at->args.empty()) return false;
    const Expr key = ir::Var(p.num_spatial());
    f_.row.assign(at->args.begin(), at->args.end() - 1);
    f_.keys = p.reduce[0];
    if (!ir::Equal(Plain(p, at->args.back()), Plain(p, key))) return false;
    for (const Expr& i : f_.row) {
      if (ir::DependsOnVar(i, p.num_spatial())) return false;
    }
    if (!quotient || f_.quotient >= 0) return true;
    const auto& divisor = quotient->divisor->args;
    return std::equal(divisor.begin(), divisor.end(), f_.row.begin(), f_.row.end(),
                      [](const Expr& a, const Expr& b) { return ir::Equal(a, b); });
  }

  bool MatchQuotientStage(const Quotient& quotient) {
    f_.quotient = f_.exponential;
    const ir::Stage& q = stage(f_.quotient);
    f_.exponential = Made(quotient.dividend);
    f_.sum = Made(quotient.divisor);
    const size_t rank = q.spatial.size();
    return f_.exponential >= 0 && f_.sum >= 0 && IsPoint(q, quotient.dividend, rank) &&
           IsPoint(q, quotient.divisor, rank - 1) && stage(f_.exponential).spatial == q.spatial;
  }

  absl::Status MatchSoftmax() {
    const ir::Stage& e = stage(f_.exponential);
    const size_t rank = e.spatial.size();
    const bool exp = e.combiner == ir::Combiner::kNone && e.body[0]->kind == ExprKind::kUnary &&
                     e.body[0]->unary() == ir::UnaryOp::kExp &&
                     IsOp(e.body[0]->args[0], BinaryOp::kSub);
    if (!exp || rank < 2 || e.spatial.back() != f_.keys)
      return No(fmt::format("{} is not exp(scores - maximum) of the keys", e.name));
    f_.scores = e.body[0]->args[0]->args[0];
    const Expr& maximum = e.body[0]->args[0]->args[1];
    f_.max = Made(maximum);
    if (f_.max < 0 || !IsPoint(e, maximum, rank - 1) ||
        !IsRowReduction(f_.max, ir::Combiner::kMax, e, f_.scores))
      return No(fmt::format("{} does not subtract the maximum of its row", e.name));
    std::vector<Expr> point;
    for (size_t d = 0; d < rank; ++d) point.push_back(ir::Var(static_cast<int>(d)));
    const Expr own = ir::Load(e.results[0], ir::DType::kF32, std::move(point));
    if (f_.sum < 0) {
      for (int id : live_) {
        if (IsRowReduction(id, ir::Combiner::kSum, e, own)) f_.sum = id;
      }
    }
    if (f_.sum < 0 || !IsRowReduction(f_.sum, ir::Combiner::kSum, e, own))
      return No(fmt::format("the sum of {} over the keys is missing", e.name));
    return absl::OkStatus();
  }

  /// Whether a Stage folds `value`, an expression over the axes of `e`, along the last axis: then
  /// its reduce axis has the number of that axis.
  bool IsRowReduction(int id, ir::Combiner combiner, const ir::Stage& e, const Expr& value) const {
    const ir::Stage& r = stage(id);
    return r.combiner == combiner && r.num_reduce() == 1 && r.reduce[0] == f_.keys &&
           std::equal(r.spatial.begin(), r.spatial.end(), e.spatial.begin(), e.spatial.end() - 1) &&
           ir::Equal(Plain(e, r.body[0]), Plain(e, value));
  }

  absl::Status MatchScores() {
    HONE_RETURN_IF_ERROR(Follow(f_.scores, nullptr));
    if (f_.contraction < 0) return No("the scores are not made by a sum of products");
    return absl::OkStatus();
  }

  /// Adds the Stages, with E's axes, between the contraction and this expression.
  absl::Status Follow(const Expr& e, bool* leads) {
    const ir::Stage& shape = stage(f_.exponential);
    if (IsLoad(e)) {
      const int id = Made(e);
      const bool same = id >= 0 && stage(id).spatial == shape.spatial && stage(id).body.size() == 1;
      if (same && IsPoint(shape, e, shape.spatial.size())) {
        HONE_ASSIGN_OR_RETURN(const bool inside, FollowStage(id));
        if (leads != nullptr) *leads |= inside;
      }
      return absl::OkStatus();
    }
    for (const Expr& a : e->args) HONE_RETURN_IF_ERROR(Follow(a, leads));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> FollowStage(int id) {
    if (const auto known = inside_.find(id); known != inside_.end()) return known->second;
    const ir::Stage& z = stage(id);
    bool leads = false;
    if (z.combiner == ir::Combiner::kSum) {
      if (f_.contraction >= 0) return No("the scores come from two sums");
      f_.contraction = id;
      leads = true;
    } else if (z.combiner == ir::Combiner::kNone) {
      HONE_RETURN_IF_ERROR(Follow(z.body[0], &leads));
    }
    if (leads) f_.chain.push_back(id);
    return inside_[id] = leads;
  }

  absl::Status CheckReaders() const {
    const auto only = [&](int id, const std::set<int>& readers) -> absl::Status {
      for (int r : live_) {
        if (r == id || readers.contains(r) || !Loads(stage(r), stage(id))) continue;
        return No(fmt::format("{} is read by {} too", Name(id), Name(r)));
      }
      return absl::OkStatus();
    };
    std::set<int> inside(f_.chain.begin(), f_.chain.end());
    inside.insert({f_.max, f_.exponential});
    for (int id : f_.chain) {
      HONE_RETURN_IF_ERROR(only(id, inside));
      HONE_RETURN_IF_ERROR(CheckPoints(id, inside));
    }
    HONE_RETURN_IF_ERROR(only(f_.max, {f_.exponential}));
    const int weights = f_.quotient >= 0 ? f_.quotient : f_.product;
    HONE_RETURN_IF_ERROR(only(f_.exponential, {f_.sum, weights}));
    if (f_.quotient >= 0) HONE_RETURN_IF_ERROR(only(f_.quotient, {f_.product}));
    bool alone = true;
    ir::Visit(f_.values, [&](const ir::ExprNode& e) {
      const int made = e.kind == ExprKind::kLoad ? s_.workload.Producer(e.id) : -1;
      alone &= made < 0 || (made != f_.exponential && made != f_.quotient && made != f_.sum);
    });
    if (!alone) return No("its values are made of its weights");
    if (f_.divided) return only(f_.sum, {weights});
    return CheckDivisions();
  }

  /// The chain is read at one point at a time.
  absl::Status CheckPoints(int id, const std::set<int>& readers) const {
    bool points = true;
    const ir::Stage& shape = stage(f_.exponential);
    const auto visit = [&](const auto& self, const Expr& e) -> void {
      if (IsLoad(e) && Made(e) == id) points &= IsPoint(shape, e, shape.spatial.size());
      for (const Expr& a : e->args) self(self, a);
    };
    // The maximum's reduce axis has the number of E's last one.
    for (int r : readers) visit(visit, stage(r).body[0]);
    if (!points) return No(fmt::format("{} is read at other points than its own", Name(id)));
    return absl::OkStatus();
  }

  /// Where the product is not divided yet: each of its readers divides it by its row's sum, and
  /// nothing else reads either. (A row that is masked whole is 0 there by blocks, but NaN as
  /// written; divided by its sum it is NaN both ways.)
  absl::Status CheckDivisions() const {
    for (int r : live_) {
      if (r == f_.product || r == f_.sum) continue;
      int loads = 0, divisions = 0;
      const auto visit = [&](const auto& self, const Expr& e) -> void {
        const auto q = AsQuotient(e);
        if (q && !q->zero_nan && Made(q->dividend) == f_.product && Made(q->divisor) == f_.sum) {
          std::vector<Expr> row;
          for (const Expr& i : f_.row) row.push_back(ir::SubstituteVars(i, q->dividend->args));
          divisions += std::equal(row.begin(), row.end(), q->divisor->args.begin(),
                                  q->divisor->args.end(), [&](const Expr& a, const Expr& b) {
                                    return ir::Equal(Plain(stage(r), a), Plain(stage(r), b));
                                  });
        }
        loads += IsLoad(e) && (Made(e) == f_.product || Made(e) == f_.sum);
        for (const Expr& a : e->args) self(self, a);
      };
      for (const Expr& body : stage(r).body) visit(visit, body);
      if (loads != 2 * divisions)
        return No(fmt::format("{} reads it without dividing by {}", Name(r), Name(f_.sum)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckStage(int id) const {
    const ir::Stage& z = stage(id);
    const ir::Tensor& t = s_.workload.tensors[static_cast<size_t>(z.results[0])];
    if (z.scan >= 0) return No(fmt::format("{} belongs to a scan", z.name));
    if (t.dtype != ir::DType::kF32)
      return No(fmt::format("{} is {}, not f32", z.name, ir::ToString(t.dtype)));
    if (t.output && (id != f_.product || !f_.divided))
      return No(fmt::format("{} is an output", z.name));
    if (z.num_spatial() + 1 > ir::kMaxRank) return No(fmt::format("{} has 8 axes", z.name));
    if (s_.stages[static_cast<size_t>(id)].place != Place::kRoot)
      return No(fmt::format("{} has a place already", z.name));
    return RequireUnscheduled(s_, id);
  }

  const Schedule& s_;
  std::vector<int> live_;
  AttentionForm f_;
  std::map<int, bool> inside_;
};

}  // namespace

absl::StatusOr<AttentionForm> MatchAttention(const Schedule& schedule, int product) {
  return Matcher(schedule, product).Run();
}

}  // namespace hone::schedule

#include "schedule/algorithms/online_softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/algorithms/causal_form.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::Int;
using ir::Var;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Expr F32(double value) { return ir::Const(DType::kF32, value); }
Expr Exp(Expr e) { return ir::Unary(ir::UnaryOp::kExp, std::move(e)); }

class Rewriter {
 public:
  Rewriter(Schedule& schedule, AttentionForm form, int64_t block, int first)
      : s_(schedule), f_(std::move(form)), block_(block), first_(first) {
    for (const auto& stage : s_.workload.stages) scan_ = std::max(scan_, stage.scan + 1);
    blocks_ = (f_.keys + block - 1) / block;
    causal_ = FindCausal(s_.workload, f_);
    rows_ = s_.workload.stages[static_cast<size_t>(f_.max)].spatial;
  }

  void Run() {
    AddScores();
    const Expr score = MaskedScore();
    const std::vector<int64_t> row = WithBlocks(rows_);
    std::vector<int64_t> row_keys = row;
    row_keys.push_back(block_);
    const std::vector<Expr> at = Axes(row.size());
    // A reduction along the keys: its axis has the number of the keys' axis.
    const int block_max = Add(row, ir::Combiner::kMax, score, kOutside);
    const int m = NextTensor();
    Add(row, ir::Combiner::kNone,
        ir::Max(Load(block_max, at), IfBefore(Load(m, Before(at)), -kInfinity)), kInScan);
    const Expr none = ir::Binary(BinaryOp::kEq, Load(m, at), F32(-kInfinity));
    const int shift = Add(row, ir::Combiner::kNone, ir::Select(none, F32(0), Load(m, at)), kInScan);
    const int p = Add(row_keys, ir::Combiner::kNone, Exp(score - Load(shift, at)), kInScan);
    const int block_sum = Add(row, ir::Combiner::kSum, Load(p, Axes(row_keys.size())), kInScan);
    const int l = NextTensor() + 1;
    const Expr grown = Exp(Load(m, Before(at)) - Load(shift, at)) * Load(l, Before(at));
    const int fade = Add(row, ir::Combiner::kNone, IfBefore(grown, 0), kInScan);
    Add(row, ir::Combiner::kNone, Load(block_sum, at) + Load(fade, at), kInScan);
    const Expr empty = ir::Binary(BinaryOp::kEq, Load(l, at), F32(0));
    const Expr inverse = ir::Select(empty, F32(0), ir::Binary(BinaryOp::kDiv, F32(1), Load(l, at)));
    const int scale = Add(row, ir::Combiner::kNone, inverse, kInScan);
    AddOutput(p, fade, scale);
    Finish(l);
  }

 private:
  enum Where : uint8_t { kOutside, kInScan };

  Expr Load(int tensor, std::vector<Expr> at) {
    return ir::Load(tensor, DType::kF32, std::move(at));
  }
  static std::vector<Expr> Axes(size_t n) {
    std::vector<Expr> out;
    for (size_t a = 0; a < n; ++a) out.push_back(Var(static_cast<int>(a)));
    return out;
  }
  static std::vector<Expr> Before(std::vector<Expr> at) {
    at[0] = Var(0) - Int(1);
    return at;
  }
  /// `value`, which is of the block before, or a constant in the first block.
  static Expr IfBefore(Expr value, double initial) {
    return ir::Select(ir::Ge(Var(0), Int(1)), std::move(value), F32(initial));
  }
  std::vector<int64_t> WithBlocks(const std::vector<int64_t>& axes) const {
    std::vector<int64_t> out = {blocks_};
    out.insert(out.end(), axes.begin(), axes.end());
    return out;
  }
  int NextTensor() const { return static_cast<int>(s_.workload.tensors.size()); }
  /// A Stage over these axes; one with a combiner reduces along the block's keys.
  int Add(const std::vector<int64_t>& spatial, ir::Combiner combiner, Expr body, Where where) {
    ir::Stage stage;
    stage.spatial = spatial;
    if (combiner != ir::Combiner::kNone) stage.reduce = {block_};
    stage.combiner = combiner;
    stage.body = {std::move(body)};
    return Append(std::move(stage), where);
  }
  int Append(ir::Stage stage, Where where) {
    stage.scan = where == kInScan ? scan_ : -1;
    const std::vector<int64_t> shape = stage.spatial;
    return AppendStage(s_, std::move(stage), fmt::format("s{}", first_++), DType::kF32, shape);
  }
  bool HasTail() const { return f_.keys % block_ != 0; }
  /// `value` where the key exists; `key` is the axis inside the block.
  Expr WhereKey(int key, Expr value, double otherwise) const {
    if (!HasTail()) return value;
    return ir::Select(ir::Lt(KeyOf(key), Int(f_.keys)), std::move(value), F32(otherwise));
  }
  Expr KeyOf(int key) const { return Var(0) * block_ + Var(key); }
  /// The last block of which a row sees a key; `row` has one index for each of the rows' axes.
  Expr LastBlock(const std::vector<Expr>& row) const {
    if (!causal_) return Int(blocks_ - 1);
    const auto axis = static_cast<size_t>(causal_->axis);
    const Expr last = ir::FloorDiv(row[axis] + causal_->offset, block_);
    const bool inside = rows_[axis] - 1 + causal_->offset < f_.keys;
    return inside ? last : ir::Min(last, Int(blocks_ - 1));
  }

  /// An expression over the axes (R, key, others) as one over (t, R, key in the block, others),
  /// reading the blocks of the scores.
  Expr ByBlocks(const Expr& e, int axes) {
    const int keys = static_cast<int>(rows_.size());
    std::vector<Expr> values;
    for (int a = 0; a < axes; ++a) values.push_back(a == keys ? KeyOf(keys + 1) : Var(a + 1));
    return ir::Rewrite(ir::SubstituteVars(e, values), [&](const Expr& node) -> Expr {
      if (node->kind != ir::ExprKind::kLoad) return nullptr;
      const auto made = blocked_.find(node->id);
      return made == blocked_.end() ? nullptr : Load(made->second, Axes(rows_.size() + 2));
    });
  }

  void AddScores() {
    const int keys = static_cast<int>(rows_.size()) + 1;
    for (int id : f_.chain) {
      const ir::Stage old = s_.workload.stages[static_cast<size_t>(id)];
      ir::Stage stage;
      stage.spatial = WithBlocks(rows_);
      stage.spatial.push_back(block_);
      stage.reduce = old.reduce;
      stage.combiner = old.combiner;
      // The last map gives the scores themselves: there a key that does not exist scores -inf.
      const bool last = id == f_.chain.back() && old.combiner == ir::Combiner::kNone &&
                        f_.scores->kind == ir::ExprKind::kLoad && f_.scores->id == old.results[0];
      const Expr body = ByBlocks(old.body[0], old.num_axes());
      const bool zeros = id == f_.contraction && IsZeroBeyond(old.body[0], old, keys - 1);
      stage.body = {zeros ? body : WhereKey(keys, body, last ? -kInfinity : 0)};
      masked_ |= last;
      const int made = Append(std::move(stage), kOutside);
      blocked_[old.results[0]] = made;
    }
  }
  /// The scores over (t, R, key in the block).
  Expr MaskedScore() {
    const int keys = static_cast<int>(rows_.size()) + 1;
    const Expr scores = ByBlocks(f_.scores, keys);
    return masked_ ? scores : WhereKey(keys, scores, -kInfinity);
  }

  /// Whether all that the expression loads along the axis of the keys, over the axes of `of`, is
  /// zero beyond the last key as far as whole blocks reach: copies are padded so. (The product with
  /// such a value is what it is elsewhere, a number: no block has to ask whether its keys exist.)
  bool IsZeroBeyond(const Expr& e, const ir::Stage& of, int key) const {
    ir::VarRanges ranges;
    for (int a = 0; a < of.num_axes(); ++a) ranges.extent.push_back(of.Extent(a));
    ranges.extent[static_cast<size_t>(key)] = std::max<int64_t>(1, blocks_ * block_ - f_.keys);
    std::vector<Expr> beyond(ranges.extent.size());
    beyond[static_cast<size_t>(key)] = Var(key) + Int(f_.keys);
    bool zero = true;
    ir::Visit(e, [&](const ir::ExprNode& load) {
      if (load.kind != ir::ExprKind::kLoad) return;
      const auto along = [&](const Expr& i) { return ir::DependsOnVar(i, key); };
      if (std::none_of(load.args.begin(), load.args.end(), along)) return;
      const ir::Tensor& tensor = s_.workload.tensors[static_cast<size_t>(load.id)];
      const int id = s_.workload.Producer(load.id);
      std::vector<Expr> at;
      for (size_t d = 0; d < load.args.size(); ++d) {
        at.push_back(ir::SubstituteVars(load.args[d], beyond));
        const ir::Interval bounds = ir::BoundsOf(at.back(), ranges);
        zero &= bounds.low >= 0 && bounds.high < tensor.shape[d];
      }
      if (id < 0) return static_cast<void>(zero = false);
      const ir::Stage& made = s_.workload.stages[static_cast<size_t>(id)];
      const Expr& body = made.body[0];
      zero &= made.combiner == ir::Combiner::kNone && made.store.empty() &&
              body->kind == ir::ExprKind::kSelect && ir::Equal(body->args[2], F32(0));
      if (!zero) return;
      std::vector<Expr> conditions;
      ir::SplitConjunction(ir::SubstituteVars(body->args[0], at), &conditions);
      zero = std::any_of(conditions.begin(), conditions.end(),
                         [&](const Expr& c) { return ir::Decide(c, ranges) == false; });
    });
    return zero;
  }

  void AddOutput(int p, int fade, int scale) {
    const ir::Stage old = s_.workload.stages[static_cast<size_t>(f_.product)];
    const int spatial = old.num_spatial();
    std::vector<Expr> values;
    for (int k = 0; k < spatial; ++k) values.push_back(Var(k + 1));
    values.push_back(KeyOf(spatial + 1));
    std::vector<Expr> row = {Var(0)};
    for (const Expr& i : f_.row) row.push_back(ir::SubstituteVars(i, values));
    std::vector<Expr> weight = row;
    weight.push_back(Var(spatial + 1));
    const std::vector<int64_t> shape = WithBlocks(old.spatial);
    const Expr product = Load(p, weight) * ir::SubstituteVars(f_.values, values);
    const bool zeros = IsZeroBeyond(f_.values, old, spatial);
    const int partial = Add(shape, ir::Combiner::kSum,
                            zeros ? product : WhereKey(spatial + 1, product, 0), kInScan);
    const int o = NextTensor();
    const std::vector<Expr> at = Axes(shape.size());
    const Expr before = IfBefore(Load(o, Before(at)) * Load(fade, row), 0);
    Expr result = (Load(partial, at) + before) * Load(scale, row);
    // Blocks that are hidden from a row leave it as it is.
    if (causal_) {
      const Expr last = LastBlock({row.begin() + 1, row.end()});
      result = ir::Select(ir::And(ir::Ge(Var(0), Int(1)), ir::Lt(last, Var(0))),
                          Load(o, Before(at)), std::move(result));
    }
    Add(shape, ir::Combiner::kNone, std::move(result), kInScan);
  }

  /// The Stages that others read take what the last block that a row sees leaves. So nothing needs
  /// those that it does not see (NestBuilder::IsStepNeeded).
  void Finish(int l) {
    const int o = NextTensor() - 1;
    const Expr last = LastBlock(f_.row);
    ir::Stage& product = s_.workload.stages[static_cast<size_t>(f_.product)];
    std::vector<Expr> at = Axes(product.spatial.size());
    at.insert(at.begin(), last);
    const Expr result = Load(o, std::move(at));
    std::vector<Expr> row = {last};
    row.insert(row.end(), f_.row.begin(), f_.row.end());
    const Expr sum = Load(l, std::move(row));
    const Expr empty = ir::Binary(BinaryOp::kEq, sum, F32(0));
    const Expr nothing =
        f_.zero_nan ? ir::Binary(BinaryOp::kOr, empty, ir::Unary(ir::UnaryOp::kIsNan, sum)) : empty;
    MakeMap(f_.product,
            f_.divided ? ir::Select(nothing, F32(f_.zero_nan ? 0 : kNan), result) : result * sum);
    if (f_.divided) return;
    std::vector<Expr> point = Axes(rows_.size());
    point.insert(point.begin(), LastBlock(point));
    MakeMap(f_.sum, Load(l, std::move(point)));
  }
  void MakeMap(int id, Expr body) {
    ir::Stage& stage = s_.workload.stages[static_cast<size_t>(id)];
    stage.reduce.clear();
    stage.combiner = ir::Combiner::kNone;
    stage.body = {std::move(body)};
    ResetLoops(s_, id);
  }

  Schedule& s_;
  AttentionForm f_;
  int64_t block_, blocks_ = 1;
  std::optional<CausalForm> causal_;
  int first_;
  int scan_ = 0;
  std::vector<int64_t> rows_;
  std::map<int, int> blocked_;  ///< tensors of the scores → their blocks
  bool masked_ = false;         ///< keys that do not exist score -inf already
};

}  // namespace

absl::Status RewriteAsOnlineSoftmax(Schedule& schedule, int product, int64_t block,
                                    const std::string& first_name) {
  HONE_ASSIGN_OR_RETURN(AttentionForm form, MatchAttention(schedule, product));
  if (block < 1 || block > form.keys) {
    return Illegal(
        fmt::format("online_softmax: blocks of {} keys; there are {} keys", block, form.keys));
  }
  HONE_ASSIGN_OR_RETURN(int64_t first, ParseInteger(std::string_view(first_name).substr(1)));
  const int made = static_cast<int>(form.chain.size()) + 10;
  Rewriter(schedule, std::move(form), block, static_cast<int>(first)).Run();
  schedule.next_name = static_cast<int>(first) + made;
  return absl::OkStatus();
}

}  // namespace hone::schedule

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "ir/wgmma.h"
#include "schedule/nest_builder.h"

// Which part of a Stage is needed at a loop, and where it is kept.
namespace hone::schedule {

using ir::Expr;

namespace {

constexpr int64_t kScratchAlignment = 64;
/// A masked vector sticks out of the domain by less than this; such a part is kept whole (its
/// points are free or guarded).
constexpr int64_t kLargestOvershoot = 64;
constexpr int64_t kMaxTileElements = int64_t{1} << 31;

/// The smallest known span with both; the whole domain when their distance is not constant.
Span Union(const Span& a, const Span& b, int64_t domain, const ir::VarRanges& ranges) {
  auto distance = ir::AsInt(ir::Simplify(b.low - a.low, ranges));
  if (!distance) return {ir::Int(0), domain};
  int64_t low = std::min<int64_t>(0, *distance);
  int64_t high = std::max(a.width, *distance + b.width);
  return {ir::Simplify(a.low + low, ranges), high - low};
}

Span Clip(Span s, int64_t domain) {
  auto low = ir::AsInt(s.low);
  if (low == 0 && s.width - domain < kLargestOvershoot) return s;
  if (s.width >= domain) return {ir::Int(0), domain};
  if (low) {
    int64_t first = std::clamp<int64_t>(*low, 0, domain - 1);
    int64_t last = std::clamp<int64_t>(*low + s.width, first + 1, domain);
    return {ir::Int(first), last - first};
  }
  return s;
}

/// Calls `visit` on every load with the conditions under which it is made.
void VisitLoads(const Expr& e, std::vector<Expr>& conditions,
                const std::function<void(const ir::ExprNode&, const std::vector<Expr>&)>& visit) {
  if (e->kind == ir::ExprKind::kLoad) visit(*e, conditions);
  if (e->kind != ir::ExprKind::kSelect) {
    for (const Expr& arg : e->args) VisitLoads(arg, conditions, visit);
    return;
  }
  const Expr& condition = e->args[0];
  VisitLoads(condition, conditions, visit);
  const size_t outside = conditions.size();
  ir::SplitConjunction(condition, &conditions);
  VisitLoads(e->args[1], conditions, visit);
  conditions.resize(outside);
  if (condition->kind == ir::ExprKind::kBinary && condition->binary() == ir::BinaryOp::kLt)
    conditions.push_back(ir::Ge(condition->args[0], condition->args[1]));
  VisitLoads(e->args[2], conditions, visit);
  conditions.resize(outside);
}

/// The part of the axes where conditions like `axis < 3` hold, as far as constants tell.
std::vector<Span> Narrowed(std::vector<Span> axes, const std::vector<Expr>& conditions) {
  for (const Expr& condition : conditions) {
    if (condition->kind != ir::ExprKind::kBinary ||
        condition->args[0]->kind != ir::ExprKind::kVar) {
      continue;
    }
    Span& axis = axes[static_cast<size_t>(condition->args[0]->id)];
    const std::optional<int64_t> low = ir::AsInt(axis.low), limit = ir::AsInt(condition->args[1]);
    if (!low || !limit) continue;
    int64_t first = *low, end = *low + axis.width;
    if (condition->binary() == ir::BinaryOp::kLt) end = std::min(end, *limit);
    if (condition->binary() == ir::BinaryOp::kGe) first = std::max(first, *limit);
    if (first < end) axis = {ir::Int(first), end - first};
  }
  return axes;
}

/// The part of an index's span where conditions on the index itself hold, like
/// `i * 2 + r < 7`: padding on one side of a window with a stride.
Span Narrowed(Span span, const Expr& index, const std::vector<Expr>& conditions) {
  const std::optional<int64_t> low = ir::AsInt(span.low);
  if (!low) return span;
  int64_t first = *low, end = *low + span.width;
  for (const Expr& condition : conditions) {
    if (condition->kind != ir::ExprKind::kBinary) continue;
    const ir::BinaryOp op = condition->binary();
    if (op != ir::BinaryOp::kLt && op != ir::BinaryOp::kGe) continue;
    const std::optional<int64_t> limit = ir::AsInt(condition->args[1]);
    if (!limit || ir::HasLoad(condition->args[0]) || condition->args[0]->dtype != ir::DType::kI64) {
      continue;
    }
    const ir::Linear apart = ir::ToLinear(index - condition->args[0], {});
    if (!apart.terms.empty()) continue;
    if (op == ir::BinaryOp::kLt) end = std::min(end, *limit + apart.constant);
    if (op == ir::BinaryOp::kGe) first = std::max(first, *limit + apart.constant);
  }
  if (first < end) return {ir::Int(first), end - first};
  return span;
}

/// The dimension of its result along which the Stage's full vectors run; -1: none, or not one
/// alone, or some lanes are masked and stick out of the tile.
int VectorDimension(const StageSchedule& schedule, int rank) {
  for (int l : schedule.order) {
    if (schedule.loops[l].kind != ir::LoopKind::kVector) continue;
    while (schedule.loops[l].parent >= 0) {
      if (schedule.loops[l].tail == Tail::kMask) return -1;
      l = schedule.loops[l].parent;
    }
    const LoopNode& n = schedule.loops[l];
    return n.origin == LoopNode::Origin::kAxis && n.axis < rank ? n.axis : -1;
  }
  return -1;
}

/// Whole multiples: the span grows to the front, where its points are as good as any.
Span Rounded(Span s, int64_t multiple, int64_t domain) {
  const int64_t width = (s.width + multiple - 1) / multiple * multiple;
  const auto low = ir::AsInt(s.low);
  if (width == s.width || width > domain || !low) return s;
  return {ir::Int(std::min(*low, domain - width)), width};
}

}  // namespace

absl::StatusOr<Instance> NestBuilder::RegionOf(int stage_id, const std::vector<Needed>& readers) {
  const ir::Stage& stage = s_.workload.stages[stage_id];
  Instance region(s_, stage_id);
  std::vector<std::optional<Span>> need(stage.spatial.size());
  bool read = false;
  for (const Needed& reader : readers) {
    const ir::Stage& r = s_.workload.stages[reader.region.stage];
    const auto add = [&](const ir::ExprNode& e, const std::vector<Expr>& conditions) {
      if (std::find(stage.results.begin(), stage.results.end(), e.id) == stage.results.end())
        return;
      // Earlier iterations of a scan stand in the whole buffer already.
      if (r.scan >= 0 && r.scan == stage.scan && IsCarriedLoad(s_.workload, r.scan, e)) return;
      read = true;
      const std::vector<Span> axes = Narrowed(reader.axes, conditions);
      for (size_t d = 0; d < need.size(); ++d) {
        const Span whole{ir::Int(0), stage.spatial[d]};
        Span span = SpanOfIndex(e.args[d], axes, ranges_).value_or(whole);
        if (!ir::HasLoad(e.args[d])) span = Narrowed(span, e.args[d], conditions);
        need[d] = need[d] ? Union(*need[d], span, stage.spatial[d], ranges_) : span;
      }
    };
    std::vector<Expr> conditions;
    for (const auto& body : r.body) VisitLoads(body, conditions, add);
  }
  if (!read)
    return absl::InvalidArgumentError(
        fmt::format("nothing inside the loop that {} is computed at reads it", stage.name));
  // Seen from a loop further out less may be needed, because spans are bounds; all that is made
  // there is that much (but vectors stay full, where what they add to a tile is read by nobody; of
  // a whole buffer it would be other iterations' results).
  const auto outer = needed_.find(stage_id);
  const bool whole = std::any_of(stage.results.begin(), stage.results.end(),
                                 [&](int r) { return NeedsWholeBuffer(s_, r); });
  const int64_t overshoot = whole ? 1 : kLargestOvershoot;
  for (size_t d = 0; d < need.size(); ++d) {
    Span s = Clip(*need[d], stage.spatial[d]);
    if (outer != needed_.end() && outer->second.extent[d] + overshoot <= s.width)
      s = {outer->second.low[d], outer->second.extent[d]};
    const std::vector<int64_t>& multiples = s_.stages[stage_id].multiples;
    if (!multiples.empty()) s = Rounded(s, multiples[d], stage.spatial[d]);
    region.low[d] = s.low;
    region.extent[d] = s.width;
  }
  return region;
}

bool NestBuilder::AttachedAt(int stage, int owner, int loop) const {
  const StageSchedule& s = s_.stages[stage];
  return s.place == Place::kAt && s.at_stage == owner && s.at_loop == loop;
}

absl::StatusOr<std::vector<NestBuilder::Needed>> NestBuilder::RegionsInside(
    const Instance& instance, size_t position) {
  std::vector<Needed> inside;
  inside.push_back({instance, {}});
  for (int a = 0; a < s_.workload.stages[instance.stage].num_axes(); ++a) {
    inside[0].axes.push_back(SpanOfAxis(s_, instance, a, ranges_));
  }
  for (auto it = stage_order_.rbegin(); it != stage_order_.rend(); ++it) {
    const StageSchedule& p = s_.stages[*it];
    if (p.place != Place::kAt) continue;
    bool here = p.at_stage == instance.stage &&
                s_.PositionOf({p.at_stage, p.at_loop}) >= static_cast<int>(position);
    for (size_t k = 1; k < inside.size(); ++k) here |= p.at_stage == inside[k].region.stage;
    if (!here) continue;
    HONE_ASSIGN_OR_RETURN(Instance region, RegionOf(*it, inside));
    HONE_RETURN_IF_ERROR(CheckReadsWhatIsMade(region, instance, position, inside));
    std::vector<Span> axes;
    for (size_t a = 0; a < region.low.size(); ++a)
      axes.push_back({region.low[a], region.extent[a]});
    inside.push_back({std::move(region), std::move(axes)});
  }
  return inside;
}

absl::Status NestBuilder::CheckReadsWhatIsMade(const Instance& region, const Instance& instance,
                                               size_t position,
                                               const std::vector<Needed>& inside) const {
  const auto outer = needed_.find(region.stage);
  if (outer == needed_.end()) return absl::OkStatus();
  const ir::Stage& stage = s_.workload.stages[region.stage];
  bool more = false;
  for (size_t d = 0; d < region.extent.size(); ++d) {
    const int64_t made = outer->second.extent[d];
    // A masked loop outside may move it past what is made; all of a domain is guarded elsewhere.
    const ir::Interval ahead = BoundsOf(region.low[d] - outer->second.low[d], ranges_);
    more |= region.extent[d] > made ||
            (made < stage.spatial[d] && ahead.high + region.extent[d] > made);
  }
  if (!more) return absl::OkStatus();
  for (int p : stage_order_) {
    const StageSchedule& producer = s_.stages[p];
    if (producer.place != Place::kAt || !needed_.contains(p) ||
        !NeedsWholeBuffer(s_, s_.workload.stages[p].results[0]) ||
        !Loads(stage, s_.workload.stages[p]))
      continue;
    // Computed in these loops too, it will be made for this very region.
    const bool here =
        (producer.at_stage == instance.stage &&
         s_.PositionOf({producer.at_stage, producer.at_loop}) >= static_cast<int>(position)) ||
        producer.at_stage == region.stage ||
        std::any_of(inside.begin() + 1, inside.end(),
                    [&](const Needed& n) { return n.region.stage == producer.at_stage; });
    if (here) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} would read more of {} than is computed there; split less or compute {} in "
                    "the same loop",
                    stage.name, s_.workload.stages[p].name, s_.workload.stages[p].name));
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::Attach(Instance& instance, size_t position, std::vector<ir::Stmt>* out,
                                 bool* shared) {
  const int here = s_.stages[instance.stage].order[position];
  HONE_RETURN_IF_ERROR(CheckAttachPlace(instance, position));
  HONE_ASSIGN_OR_RETURN(std::vector<Needed> inside, RegionsInside(instance, position));
  for (size_t k = 1; k < inside.size(); ++k)
    needed_.insert_or_assign(inside[k].region.stage, inside[k].region);
  // What all threads of the block need together.
  Instance block = instance;
  for (int loop : s_.stages[instance.stage].order) {
    const ir::LoopKind kind = s_.stages[instance.stage].loops[loop].kind;
    if (kind == ir::LoopKind::kThreadX || kind == ir::LoopKind::kThreadY) block.bound[loop] = {};
  }
  std::vector<Needed> together;
  // Shared results that some thread may not have written yet.
  std::vector<int> pending;
  auto reads_pending = [&](int stage) {
    return std::any_of(pending.begin(), pending.end(), [&](int p) {
      return Loads(s_.workload.stages[stage], s_.workload.stages[p]);
    });
  };
  // Producers first.
  for (size_t k = inside.size(); k-- > 1;) {
    const int q = inside[k].region.stage;
    if (!AttachedAt(q, instance.stage, here)) continue;
    HONE_RETURN_IF_ERROR(CheckReadersInside(q, instance.stage, here, inside));
    Instance region = inside[k].region;
    const Storage storage = s_.stages[q].storage;
    if (storage == Storage::kShared) {
      const bool box = pipeline_ != nullptr && pipeline_->boxes();
      HONE_RETURN_IF_ERROR(box ? CheckBoxes(q) : CheckSharedTile(q));
      if (together.empty()) {
        const auto own = std::exchange(needed_, {});
        HONE_ASSIGN_OR_RETURN(together, RegionsInside(block, position));
        needed_ = own;
      }
      region = together[k].region;
      *shared = true;
    }
    for (int r : s_.workload.stages[q].results) {
      if (!NeedsWholeBuffer(s_, r)) HONE_RETURN_IF_ERROR(AddTile(region, r, storage));
    }
    if (std::any_of(inside.begin() + 1, inside.end(), [&](const Needed& n) {
          return (n.region.stage == q || s_.stages[n.region.stage].at_stage == q) &&
                 reads_pending(n.region.stage);
        })) {
      out->push_back(ir::Sync());
      pending.clear();
    }
    HONE_ASSIGN_OR_RETURN(Emitted e, Compute(region));
    PlaceGuards(e, -1);
    if (pipeline_ != nullptr && pipeline_->boxes()) {
      HONE_ASSIGN_OR_RETURN(e.stmt, CopyBox(region, std::move(e.stmt)));
    }
    out->push_back(e.stmt);
    if (storage == Storage::kShared) pending.push_back(q);
  }
  const bool swizzled = std::ranges::any_of(pending, [&](int q) { return s_.stages[q].swizzle; });
  if (swizzled && pipeline_ == nullptr) out->push_back(ir::ShowToProducts());
  if (!pending.empty()) out->push_back(ir::Sync());
  return absl::OkStatus();
}

/// Whether the body of the loop at this position runs more than once for the same threads.
bool NestBuilder::IsRepeated(const Instance& instance, size_t position) const {
  const StageSchedule& schedule = s_.stages[instance.stage];
  for (size_t p = 0; p <= position; ++p) {
    const ir::LoopKind kind = schedule.loops[schedule.order[p]].kind;
    const bool bound = kind >= ir::LoopKind::kBlockX;
    if (!bound && ExtentOf(s_, instance, schedule.order[p]) > 1) return true;
  }
  return false;
}

absl::Status NestBuilder::AddTile(const Instance& region, int result, Storage storage) {
  const ir::Tensor& t = s_.workload.tensors[result];
  const StageSchedule& schedule = s_.stages[region.stage];
  Location at;
  const auto rank = static_cast<std::ptrdiff_t>(t.shape.size());
  at.low.assign(region.low.begin(), region.low.begin() + rank);
  at.extent.assign(region.extent.begin(), region.extent.begin() + rank);
  at.strides.resize(t.shape.size());
  int64_t elements = 1;
  std::vector<size_t> order;  // innermost first
  for (size_t d = t.shape.size(); d-- > 0;) order.push_back(d);
  // A vector is one register where its lanes are neighbours, whichever dimension they run along.
  const int v = VectorDimension(schedule, static_cast<int>(rank));
  if (storage == Storage::kRegister && v >= 0)
    std::rotate(order.begin(), order.end() - 1 - v, order.end() - v);
  for (size_t d : order) {
    at.strides[d] = elements;
    if (at.extent[d] > kMaxTileElements / elements) {
      return absl::InvalidArgumentError(
          fmt::format("the tile of {} would have more than 2^31 elements", t.name));
    }
    elements *= at.extent[d];
    if (!schedule.align.empty() && storage != Storage::kRegister) elements += schedule.align[d];
  }
  if (schedule.swizzle) HONE_RETURN_IF_ERROR(SwizzleTile(t.name, t.dtype, &at));
  if (pipeline_ != nullptr && storage == Storage::kShared) {
    at.slot = pipeline_->slot * elements;
    const auto made = pipeline_->buffers.find(result);
    at.buffer = made != pipeline_->buffers.end()
                    ? made->second
                    : AddPrivateBuffer(t, elements * pipeline_->stages, storage);
    pipeline_->buffers[result] = at.buffer;
  } else {
    at.buffer = AddPrivateBuffer(t, elements, storage);
  }
  if (schedule.swizzle) nest_.buffers[static_cast<size_t>(at.buffer)].swizzle = ir::Swizzle::k128;
  location_[result] = std::move(at);
  return absl::OkStatus();
}

int NestBuilder::AddPrivateBuffer(const ir::Tensor& t, int64_t elements, Storage storage) {
  ir::Buffer b;
  b.name = fmt::format("{}#{}", t.name, nest_.buffers.size());
  b.dtype = t.dtype;
  b.elements = elements;
  b.alignment = kScratchAlignment;
  b.scope = storage == Storage::kRegister ? ir::Scope::kRegister
            : storage == Storage::kShared ? ir::Scope::kShared
                                          : ir::Scope::kScratch;
  if (storage == Storage::kMemory) {
    b.scratch_offset = scratch_top_;
    scratch_top_ += (elements * ir::SizeOf(t.dtype) + kScratchAlignment - 1) / kScratchAlignment *
                    kScratchAlignment;
    scratch_high_ = std::max(scratch_high_, scratch_top_);
  }
  return NewBuffer(std::move(b));
}

}  // namespace hone::schedule

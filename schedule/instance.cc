#include "schedule/instance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"

namespace hone::schedule {
namespace {

using ir::Expr;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Sizes of a two_sizes split of n with parts of at most h: `large` parts of `height`, then `small`
/// of height - 1.
struct TwoSizes {
  int64_t height, large, small;
};
TwoSizes SizesOf(int64_t n, int64_t h) {
  int64_t parts = CeilDiv(n, std::min(h, n));
  int64_t height = CeilDiv(n, parts);
  int64_t large = n - parts * (height - 1);
  return {height, large, parts - large};
}

bool IsTwoSizesOuter(const LoopNode& n) {
  return n.origin == LoopNode::Origin::kOuter && n.tail == Tail::kTwoSizes;
}

/// floor(span / c).
Span DivideSpan(const Span& a, int64_t c, const ir::VarRanges& ranges) {
  ir::Linear low = ir::ToLinear(a.low, ranges);
  int64_t factor = ir::KnownFactor(low);
  bool aligned = factor == 0 || factor % c == 0;
  int64_t width = aligned ? CeilDiv(a.width, c) : (a.width - 1 + c - 1) / c + 1;
  if (a.width == 1) width = 1;
  return {ir::Simplify(ir::FloorDiv(a.low, c), ranges), width};
}

/// span mod c.
Span ModuloSpan(const Span& a, int64_t c, const ir::VarRanges& ranges) {
  if (a.width == 1) return {ir::Simplify(ir::FloorMod(a.low, c), ranges), 1};
  int64_t factor = ir::KnownFactor(ir::ToLinear(a.low, ranges));
  // A block of w aligned elements never crosses a multiple of c when w divides c.
  bool aligned = factor == 0 || factor % a.width == 0;
  if (a.width <= c && c % a.width == 0 && aligned)
    return {ir::Simplify(ir::FloorMod(a.low, c), ranges), a.width};
  if (factor == 0 && a.width <= c) return {ir::Int(0), a.width};
  return {ir::Int(0), c};
}

bool UsesVarsFrom(const Expr& e, int first) {
  if (e->kind == ir::ExprKind::kVar) return e->id >= first;
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const Expr& a) { return UsesVarsFrom(a, first); });
}

/// Splits an expression over variables ≥ first (inner, from 0) into low + width.
std::optional<Span> SpanOfExpr(const Expr& e, int first, const ir::VarRanges& ranges);

std::optional<Span> SpanOfAtom(const Expr& atom, int first, const ir::VarRanges& ranges) {
  if (!UsesVarsFrom(atom, first)) return Span{atom, 1};
  if (atom->kind == ir::ExprKind::kVar) return Span{ir::Int(0), ranges.ExtentOf(atom->id)};
  if (atom->kind == ir::ExprKind::kBinary) {
    auto c = ir::AsInt(atom->args[1]);
    bool div = atom->binary() == ir::BinaryOp::kDiv, mod = atom->binary() == ir::BinaryOp::kMod;
    if ((div || mod) && c && *c > 0) {
      auto a = SpanOfExpr(atom->args[0], first, ranges);
      if (!a) return std::nullopt;
      return div ? DivideSpan(*a, *c, ranges) : ModuloSpan(*a, *c, ranges);
    }
  }
  ir::Interval b = ir::BoundsOf(atom, ranges);
  if (b.low <= -ir::Interval::kInfinite || b.high >= ir::Interval::kInfinite) return std::nullopt;
  return Span{ir::Int(b.low), b.high - b.low + 1};
}

std::optional<Span> SpanOfExpr(const Expr& e, int first, const ir::VarRanges& ranges) {
  ir::Linear l = ir::ToLinear(e, ranges);
  Expr low = ir::Int(l.constant);
  int64_t width = 1;
  for (const auto& t : l.terms) {
    auto a = SpanOfAtom(t.atom, first, ranges);
    if (!a) return std::nullopt;
    low = low + a->low * t.coefficient;
    int64_t reach = (a->width - 1) * std::abs(t.coefficient);
    if (t.coefficient < 0) low = low - reach;
    width += reach;
  }
  return Span{ir::Simplify(low, ranges), width};
}

}  // namespace

Instance::Instance(const Schedule& schedule, int stage_id) : stage(stage_id) {
  const ir::Stage& s = schedule.workload.stages[stage_id];
  for (int a = 0; a < s.num_axes(); ++a) {
    low.push_back(ir::Int(0));
    extent.push_back(s.Extent(a));
  }
  bound.resize(schedule.stages[stage_id].loops.size());
}

int64_t ExtentOf(const Schedule& schedule, const Instance& instance, int loop) {
  const LoopNode& n = schedule.stages[instance.stage].loops[loop];
  switch (n.origin) {
    case LoopNode::Origin::kAxis: return instance.extent[n.axis];
    case LoopNode::Origin::kFused:
      return ExtentOf(schedule, instance, n.fused_outer) *
             ExtentOf(schedule, instance, n.fused_inner);
    case LoopNode::Origin::kOuter: {
      int64_t parent = ExtentOf(schedule, instance, n.parent);
      return CeilDiv(parent, n.tail == Tail::kMask ? n.factor : std::min(n.factor, parent));
    }
    case LoopNode::Origin::kInner: {
      int64_t parent = ExtentOf(schedule, instance, n.parent);
      // A masked part keeps its size, so that vectors have full lanes; an exact one is the parent
      // when that is smaller.
      if (n.tail == Tail::kMask) return n.factor;
      if (n.tail == Tail::kExact) return std::min(n.factor, parent);
      int outer = schedule.stages[instance.stage].loops[n.parent].split_outer;
      if (instance.bound[outer].fixed) return instance.bound[outer].inner_extent;
      return SizesOf(parent, n.factor).height;
    }
  }
  return 1;
}

absl::StatusOr<std::vector<Segment>> SegmentsOf(const Schedule& schedule, const Instance& instance,
                                                int loop) {
  const LoopNode& n = schedule.stages[instance.stage].loops[loop];
  std::vector<Segment> parts;
  int64_t extent = ExtentOf(schedule, instance, loop);
  const StageSchedule& stage = schedule.stages[instance.stage];
  if (const int slowest = stage.SlowestOf(loop);
      slowest != loop && stage.HasSiblings(slowest)) {
    HONE_ASSIGN_OR_RETURN(parts, SegmentsOf(schedule, instance, slowest));
    const int64_t inside = extent / ExtentOf(schedule, instance, slowest);
    for (Segment& part : parts)
      part = {part.first * inside, part.count * inside, part.start, part.height, inside};
    return parts;
  }
  if (IsTwoSizesOuter(n)) {
    TwoSizes z = SizesOf(ExtentOf(schedule, instance, n.parent), n.factor);
    if (z.large > 0) parts.push_back({0, z.large, 0, z.height});
    if (z.small > 0) parts.push_back({z.large, z.small, z.large * z.height, z.height - 1});
  } else {
    parts.push_back({0, extent, 0, 0});
    if (n.origin == LoopNode::Origin::kOuter && n.tail == Tail::kExact) {
      int64_t parent = ExtentOf(schedule, instance, n.parent);
      if (parent % std::min(n.factor, parent) != 0) {
        return absl::InvalidArgumentError(fmt::format(
            "{}: {} does not divide {}; use mask or two_sizes", n.name, n.factor, parent));
      }
    }
  }
  for (int64_t cut : n.cuts) {
    int64_t at = cut < 0 ? extent + cut : cut;
    std::vector<Segment> refined;
    for (const Segment& p : parts) {
      if (at <= p.first || at >= p.first + p.count) {
        refined.push_back(p);
        continue;
      }
      int64_t head = at - p.first;
      refined.push_back({p.first, head, p.start, p.height});
      refined.push_back({at, p.count - head, p.start + head * p.height, p.height});
    }
    parts = std::move(refined);
  }
  return parts;
}

void EnterLoop(const Schedule& schedule, Instance& instance, int loop, const Segment& segment,
               const Expr& index) {
  instance.bound[loop] = {.fixed = true, .value = index};
  if (segment.height == 0) return;
  Expr part = index - segment.first;
  if (segment.inside > 1) part = ir::FloorDiv(part, segment.inside);
  instance.bound[schedule.stages[instance.stage].SlowestOf(loop)] = {
      true, part * segment.height + segment.start, segment.height};
}

void LeaveLoop(const Schedule& schedule, Instance& instance, int loop) {
  const StageSchedule& stage = schedule.stages[instance.stage];
  if (stage.HasTwoSizes(loop)) instance.bound[stage.SlowestOf(loop)] = {};
  instance.bound[loop] = {};
}

namespace {
/// Whether the loop, or what it was split or fused into, is entered.
bool IsEntered(const StageSchedule& s, const Instance& instance, int loop) {
  const LoopNode& n = s.loops[loop];
  if (n.split_outer >= 0) return IsEntered(s, instance, n.split_outer);
  if (n.fused_into >= 0) return IsEntered(s, instance, n.fused_into);
  return instance.bound[loop].fixed;
}
}  // namespace

Span SpanOfLoop(const Schedule& schedule, const Instance& instance, int loop,
                const ir::VarRanges& ranges) {
  const StageSchedule& s = schedule.stages[instance.stage];
  const LoopNode& n = s.loops[loop];
  if (n.split_outer >= 0) {
    const LoopNode& outer = s.loops[n.split_outer];
    const int64_t extent = ExtentOf(schedule, instance, loop);
    if (IsTwoSizesOuter(outer)) {
      if (!instance.bound[n.split_outer].fixed) return {ir::Int(0), extent};
      Span inner = SpanOfLoop(schedule, instance, n.split_inner, ranges);
      return {instance.bound[n.split_outer].value + inner.low, inner.width};
    }
    Span o = SpanOfLoop(schedule, instance, n.split_outer, ranges);
    Span i = SpanOfLoop(schedule, instance, n.split_inner, ranges);
    int64_t factor = outer.tail == Tail::kMask ? outer.factor : std::min(outer.factor, extent);
    int64_t width = (o.width - 1) * factor + i.width;
    Expr low = o.low * factor + i.low;
    if (ir::AsInt(low) == 0 && !IsEntered(s, instance, n.split_outer))
      width = std::min(width, extent);
    return {low, width};
  }
  if (n.fused_into >= 0) {
    const LoopNode& f = s.loops[n.fused_into];
    Span whole = SpanOfLoop(schedule, instance, n.fused_into, ranges);
    int64_t inner = ExtentOf(schedule, instance, f.fused_inner);
    return f.fused_outer == loop ? DivideSpan(whole, inner, ranges)
                                 : ModuloSpan(whole, inner, ranges);
  }
  if (instance.bound[loop].fixed) return {instance.bound[loop].value, 1};
  return {ir::Int(0), ExtentOf(schedule, instance, loop)};
}

Span SpanOfAxis(const Schedule& schedule, const Instance& instance, int axis,
                const ir::VarRanges& ranges) {
  Span s = SpanOfLoop(schedule, instance, axis, ranges);  // loop ids 0…n-1 are the axes
  s.low = ir::Simplify(instance.low[axis] + s.low, ranges);
  return s;
}

std::optional<Span> SpanOfIndex(const Expr& index, const std::vector<Span>& axes,
                                ir::VarRanges& ranges) {
  // A loaded index could be anything, and where it would be loaded from is not decided yet.
  if (ir::HasLoad(index)) return std::nullopt;
  const size_t keep = ranges.extent.size();
  std::vector<Expr> values;
  for (const Span& a : axes) {
    if (a.width == 1) {
      values.push_back(a.low);
    } else {
      values.push_back(a.low + ir::Var(static_cast<int>(ranges.extent.size())));
      ranges.extent.push_back(a.width);
    }
  }
  auto span = SpanOfExpr(ir::SubstituteVars(index, values), static_cast<int>(keep), ranges);
  ranges.extent.resize(keep);
  return span;
}

}  // namespace hone::schedule

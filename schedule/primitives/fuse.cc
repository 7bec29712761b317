#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// Whether a loop, or one of those that it fuses, was split off another one.
bool IsPartOf(const StageSchedule& s, int loop, int whole) {
  const LoopNode& n = s.loops[loop];
  if (n.origin == LoopNode::Origin::kAxis) return false;
  if (n.origin == LoopNode::Origin::kFused)
    return IsPartOf(s, n.fused_outer, whole) || IsPartOf(s, n.fused_inner, whole);
  return n.parent == whole || IsPartOf(s, n.parent, whole);
}

}  // namespace

// NAME = fuse(OUTER, INNER): one loop over both, OUTER slower; they must be neighbours in the
// order. NAME must begin with the stage's name, e.g. s1.f0. Where OUTER has siblings (parts of two
// sizes, a partition), so has NAME; INNER has none.
absl::Status ApplyFuse(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef outer, args.Loop(0));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef inner, args.Loop(1));
  if (outer.stage != inner.stage) return Illegal("the loops belong to different stages");
  if (schedule.PositionOf(inner) != schedule.PositionOf(outer) + 1) {
    return Illegal(fmt::format("{} is not just inside {}", args.Text(1), args.Text(0)));
  }
  if (schedule.IsReduce(outer) != schedule.IsReduce(inner))
    return Illegal("a spatial and a reduce loop cannot be fused");
  constexpr int64_t kMostIterations = int64_t{1} << 40;
  if (schedule.NominalExtent(outer) > kMostIterations / schedule.NominalExtent(inner))
    return Illegal("more than 2^40 iterations");
  for (const auto& ref : {outer, inner}) {
    HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
    HONE_RETURN_IF_ERROR(RequireFree(schedule, ref));
  }
  if (schedule.stages[inner.stage].HasSiblings(inner.loop))
    return Illegal(fmt::format("{} has siblings; only the outer loop may", args.Text(1)));
  for (const auto& ref : {outer, inner}) {
    const LoopNode& n = schedule.node(ref);
    if (n.origin == LoopNode::Origin::kInner && n.tail == Tail::kTwoSizes)
      return Illegal("the inner loop of a two_sizes split cannot be fused");
  }
  const StageSchedule& all = schedule.stages[outer.stage];
  if (all.HasTwoSizes(outer.loop) &&
      IsPartOf(all, inner.loop, all.loops[all.SlowestOf(outer.loop)].parent)) {
    return Illegal(fmt::format("{} is a part of the sizes that {} has siblings for", args.Text(1),
                               args.Text(0)));
  }
  if (schedule.IsReduce(outer) && schedule.stages[outer.stage].HasSiblings(outer.loop))
    return Illegal("a reduce loop with siblings cannot be fused");
  StageSchedule& s = schedule.stages[outer.stage];
  const std::string prefix = schedule.workload.stages[outer.stage].name + ".";
  if (instruction.result.rfind(prefix, 0) != 0 || s.FindLoop(instruction.result) >= 0) {
    return Illegal(fmt::format("needs a new loop name as result: {}f0 = …", prefix));
  }
  LoopNode fused;
  fused.origin = LoopNode::Origin::kFused;
  fused.name = instruction.result;
  fused.fused_outer = outer.loop;
  fused.fused_inner = inner.loop;
  int id = static_cast<int>(s.loops.size());
  int position = schedule.PositionOf(outer);
  s.loops[outer.loop].fused_into = s.loops[inner.loop].fused_into = id;
  s.loops.push_back(std::move(fused));
  s.order.erase(s.order.begin() + position + 1);
  s.order[position] = id;
  return absl::OkStatus();
}

}  // namespace hone::schedule

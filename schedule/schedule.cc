#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

int StageSchedule::FindLoop(std::string_view name) const {
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int StageSchedule::SlowestOf(int loop) const {
  while (loops[loop].origin == LoopNode::Origin::kFused) loop = loops[loop].fused_outer;
  return loop;
}

bool StageSchedule::HasTwoSizes(int loop) const {
  const LoopNode& slowest = loops[SlowestOf(loop)];
  return slowest.origin == LoopNode::Origin::kOuter && slowest.tail == Tail::kTwoSizes;
}

bool StageSchedule::HasSiblings(int loop) const {
  return HasTwoSizes(loop) || !loops[loop].cuts.empty() || !loops[SlowestOf(loop)].cuts.empty();
}

Schedule::Schedule(ir::Workload w) : workload(std::move(w)) {
  next_name = static_cast<int>(workload.stages.size());
  for (size_t i = 0; i < workload.stages.size(); ++i) AddStageSchedule();
}

void Schedule::AddStageSchedule() { stages.push_back(LoopsOf(workload.stages[stages.size()])); }

StageSchedule Schedule::LoopsOf(const ir::Stage& stage) {
  StageSchedule s;
  for (int a = 0; a < stage.num_axes(); ++a) {
    LoopNode n;
    bool spatial = a < stage.num_spatial();
    n.name = fmt::format("{}.{}{}", stage.name, spatial ? 'i' : 'r',
                         spatial ? a : a - stage.num_spatial());
    n.axis = a;
    s.loops.push_back(std::move(n));
    s.order.push_back(a);
  }
  return s;
}

absl::StatusOr<int> Schedule::Stage(std::string_view name) const {
  int id = workload.FindStage(name);
  if (id >= 0) return id;
  std::string known;
  for (const auto& s : workload.stages) known += (known.empty() ? "" : " ") + s.name;
  return absl::NotFoundError(fmt::format("no stage {} here; there are: {}", name, known));
}

absl::StatusOr<Schedule::LoopRef> Schedule::Loop(std::string_view name) const {
  size_t dot = name.find('.');
  HONE_ASSIGN_OR_RETURN(int stage, Stage(name.substr(0, dot)));
  int loop = stages[stage].FindLoop(name);
  if (loop >= 0 && stages[stage].loops[loop].is_leaf()) return LoopRef{stage, loop};
  std::string known;
  for (int l : stages[stage].order)
    known += (known.empty() ? "" : " ") + stages[stage].loops[l].name;
  return absl::NotFoundError(fmt::format("{} is not a loop of {} now; its loops are: {}", name,
                                         workload.stages[stage].name, known));
}

int Schedule::PositionOf(LoopRef ref) const {
  const auto& order = stages[ref.stage].order;
  return static_cast<int>(std::find(order.begin(), order.end(), ref.loop) - order.begin());
}

bool Schedule::IsReduce(LoopRef ref) const {
  const LoopNode& n = node(ref);
  switch (n.origin) {
    case LoopNode::Origin::kAxis: return n.axis >= workload.stages[ref.stage].num_spatial();
    case LoopNode::Origin::kFused: return IsReduce({ref.stage, n.fused_outer});
    default: return IsReduce({ref.stage, n.parent});
  }
}

int64_t Schedule::NominalExtent(LoopRef ref) const {
  const LoopNode& n = node(ref);
  switch (n.origin) {
    case LoopNode::Origin::kAxis: return workload.stages[ref.stage].Extent(n.axis);
    case LoopNode::Origin::kFused:
      return NominalExtent({ref.stage, n.fused_outer}) * NominalExtent({ref.stage, n.fused_inner});
    case LoopNode::Origin::kOuter:
      return (NominalExtent({ref.stage, n.parent}) + n.factor - 1) / n.factor;
    case LoopNode::Origin::kInner:
      return n.tail == Tail::kMask ? n.factor
                                   : std::min(n.factor, NominalExtent({ref.stage, n.parent}));
  }
  return 1;
}

absl::StatusOr<Schedule> Replay(const ir::Workload& workload, const Trace& trace) {
  Schedule schedule(workload);
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    const Instruction& instruction = trace.instructions[i];
    if (absl::Status s = Apply(schedule, instruction); !s.ok()) {
      return absl::InvalidArgumentError(fmt::format("instruction {} `{}`: {}", i + 1,
                                                    ToText(instruction), std::string(s.message())));
    }
  }
  return schedule;
}

}  // namespace hone::schedule

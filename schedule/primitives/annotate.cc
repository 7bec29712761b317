#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

absl::Status RequireLanes(const Schedule& schedule, Schedule::LoopRef ref,
                          const std::string& where) {
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  if (where != "thread.x") {
    return Illegal(fmt::format("{} is a reduce loop; those can be thread.x alone",
                               schedule.stages[ref.stage].loops[ref.loop].name));
  }
  if (ir::IsTuple(stage.combiner)) return Illegal("lanes cannot combine tuples");
  const ir::DType dtype = schedule.workload.tensors[stage.results[0]].dtype;
  if (ir::SizeOf(dtype) < 4) {
    return Illegal(
        fmt::format("lanes combine numbers of 4 or 8 bytes, not {}", ir::ToString(dtype)));
  }
  if (stage.scan >= 0) return Illegal("lanes do not share a stage of a scan");
  return absl::OkStatus();
}

}  // namespace

// vectorize(LOOP): its iterations are the lanes of vectors; 2 to 64 of them.
// unroll(LOOP): the body is emitted once per iteration with the index a constant.
// parallel(LOOP, threads): the outermost loop of a root Stage is split over at most so many
// threads; where it has siblings they share the iterations of all of these.
// bind(LOOP, block.x|block.y|block.z|thread.x|thread.y): the GPU's grid. A reduce loop may be
// thread.x: each lane of a row of threads reduces its part, then the lanes combine.
absl::Status ApplyAnnotate(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  bool parallel = instruction.primitive == "parallel", bind = instruction.primitive == "bind";
  int n = parallel || bind ? 2 : 1;
  HONE_RETURN_IF_ERROR(args.Expect(n, n));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  LoopNode& node = schedule.node(ref);
  if (!parallel && node.origin == LoopNode::Origin::kFused &&
      schedule.stages[ref.stage].HasSiblings(ref.loop) && node.cuts.empty())
    return Illegal(fmt::format("{} has siblings; such a fusion can only be parallel", node.name));
  if (instruction.primitive == "vectorize") {
    const auto combiner = schedule.workload.stages[ref.stage].combiner;
    if (schedule.IsReduce(ref) && ir::IsTuple(combiner))
      return Illegal("lanes of a tuple reduction cannot be combined");
    for (int l : schedule.stages[ref.stage].order) {
      if (schedule.stages[ref.stage].loops[l].kind == ir::LoopKind::kVector) {
        return Illegal(
            fmt::format("{} is a vector already", schedule.stages[ref.stage].loops[l].name));
      }
    }
    node.kind = ir::LoopKind::kVector;
  } else if (instruction.primitive == "unroll") {
    node.kind = ir::LoopKind::kUnrolled;
  } else if (parallel) {
    if (schedule.IsReduce(ref)) return Illegal(fmt::format("{} is a reduce loop", node.name));
    if (schedule.stages[ref.stage].place != Place::kRoot)
      return Illegal("only a root stage has a parallel loop");
    HONE_ASSIGN_OR_RETURN(int64_t threads, args.Integer(1));
    if (threads < 1 || threads > 4096) return Illegal("threads must lie in 1..4096");
    node.kind = ir::LoopKind::kParallel;
    node.threads = static_cast<int>(threads);
  } else {
    const std::string& where = args.Text(1);
    if (schedule.IsReduce(ref)) HONE_RETURN_IF_ERROR(RequireLanes(schedule, ref, where));
    if (where == "block.x")
      node.kind = ir::LoopKind::kBlockX;
    else if (where == "block.y")
      node.kind = ir::LoopKind::kBlockY;
    else if (where == "block.z")
      node.kind = ir::LoopKind::kBlockZ;
    else if (where == "thread.x")
      node.kind = ir::LoopKind::kThreadX;
    else if (where == "thread.y")
      node.kind = ir::LoopKind::kThreadY;
    else
      return Illegal(
          fmt::format("no {}; there are: block.x block.y block.z thread.x thread.y", where));
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// prefetch(LOOP, TENSOR, distance): each iteration of LOOP begins with a hint to fetch what LOOP's
// Stage reads of TENSOR `distance` iterations later. TENSOR is what the Stage itself reads, in
// memory; the lines of one iteration are at most 64, which lowering checks.
//
// prefetch(LOOP, TENSOR, distance, shared): what all points of the Stage that read the same of
// TENSOR read `distance` iterations later lies one behind the other; each fetches its share of it.
absl::Status ApplyPrefetch(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  constexpr int64_t kMostIterations = 4096, kMostShared = int64_t{1} << 20;
  HONE_RETURN_IF_ERROR(args.Expect(3, 4));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  HONE_ASSIGN_OR_RETURN(int tensor, args.Tensor(1));
  HONE_ASSIGN_OR_RETURN(int64_t distance, args.Integer(2));
  if (schedule.node(ref).origin == LoopNode::Origin::kFused &&
      schedule.stages[ref.stage].HasSiblings(ref.loop))
    return Illegal(fmt::format("{} is a fusion with siblings", args.Text(0)));
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  const bool shared = args.count() == 4;
  if (shared && args.Text(3) != "shared")
    return Illegal(fmt::format("'{}' is not 'shared'", args.Text(3)));
  if (const int64_t most = shared ? kMostShared : kMostIterations; distance < 1 || distance > most)
    return Illegal(fmt::format("the distance must lie in 1..{}", most));
  if (schedule.workload.tensors[tensor].kind == ir::TensorKind::kImmediate)
    return Illegal("an immediate tensor is in no memory");
  bool reads = false;
  for (const auto& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      reads |= e.kind == ir::ExprKind::kLoad && e.id == tensor;
    });
  }
  if (!reads) return Illegal(fmt::format("{} does not read {}", stage.name, args.Text(1)));
  auto& prefetches = schedule.node(ref).prefetches;
  if (std::any_of(prefetches.begin(), prefetches.end(),
                  [&](const LoopNode::Prefetch& p) { return p.tensor == tensor; }))
    return Illegal(fmt::format("{} is prefetched at {} already", args.Text(1), args.Text(0)));
  prefetches.push_back({tensor, distance, shared});
  return absl::OkStatus();
}

}  // namespace hone::schedule

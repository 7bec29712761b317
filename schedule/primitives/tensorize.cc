#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// tensorize(LOOP, dot): the 2 or 4 iterations of LOOP, the innermost of a sum of products, are one
// instruction where the Target has one for these types; the result is that of the serial loop.
absl::Status ApplyTensorize(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  if (args.Text(1) != "dot") return Illegal(fmt::format("no {}; there is: dot", args.Text(1)));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  HONE_RETURN_IF_ERROR(RequireFree(schedule, ref));
  const std::string& name = schedule.node(ref).name;
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  if (!schedule.IsReduce(ref)) return Illegal(fmt::format("{} is no reduce loop", name));
  const ir::Expr& body = stage.body[0];
  if (stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return Illegal(fmt::format("{} adds up no products", stage.name));
  if (schedule.stages[ref.stage].order.back() != ref.loop)
    return Illegal(fmt::format("{} is not the innermost loop", name));
  schedule.node(ref).kind = ir::LoopKind::kDot;
  return absl::OkStatus();
}

}  // namespace hone::schedule

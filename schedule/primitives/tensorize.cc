#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// Whether mma adds up such products: of two f16 or two bf16 in f32, of bytes in i32.
bool AreForMma(const ir::Expr& body) {
  const auto narrow = [&](size_t factor) {
    const ir::Expr& e = body->args[factor];
    return e->kind == ir::ExprKind::kCast ? e->args[0]->dtype : ir::DType::kF32;
  };
  const ir::DType first = narrow(0), second = narrow(1);
  const auto byte = [](ir::DType d) { return d == ir::DType::kI8 || d == ir::DType::kU8; };
  if (body->dtype == ir::DType::kI32) return byte(first) && byte(second);
  return body->dtype == ir::DType::kF32 && first == second &&
         (first == ir::DType::kF16 || first == ir::DType::kBF16);
}

absl::Status ApplyDot(Schedule& schedule, Schedule::LoopRef ref) {
  const std::string& name = schedule.node(ref).name;
  if (!schedule.IsReduce(ref)) return Illegal(fmt::format("{} is no reduce loop", name));
  if (schedule.stages[ref.stage].order.back() != ref.loop)
    return Illegal(fmt::format("{} is not the innermost loop", name));
  schedule.node(ref).kind = ir::LoopKind::kDot;
  return absl::OkStatus();
}

absl::Status ApplyMma(Schedule& schedule, Schedule::LoopRef ref) {
  const std::string& name = schedule.node(ref).name;
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  const std::vector<int>& order = schedule.stages[ref.stage].order;
  if (!AreForMma(stage.body[0])) {
    return Illegal(fmt::format(
        "{} adds up no products of two f16 or two bf16 in f32, or of bytes in i32", stage.name));
  }
  const bool three = order.size() >= 3 && order[order.size() - 3] == ref.loop &&
                     !schedule.IsReduce(ref) &&
                     !schedule.IsReduce({ref.stage, order[order.size() - 2]}) &&
                     schedule.IsReduce({ref.stage, order.back()});
  if (!three) {
    return Illegal(fmt::format(
        "{} is not the third loop from inside, of rows, around one of columns and one of terms",
        name));
  }
  schedule.node(ref).kind = ir::LoopKind::kMma;
  return absl::OkStatus();
}

}  // namespace

// tensorize(LOOP, dot): the 2 or 4 iterations of LOOP, the innermost of a sum of products, are one
// instruction where the Target has one for these types; the result is that of the serial loop.
// tensorize(LOOP, mma): LOOP of 2 rows, 8 apart, around a loop of 2 columns and one of 16 terms or
// a multiple, 32 of bytes: what the 32 threads of a warp do there is a product of matrices for each
// 16, or 32. Lowering
// says where rows and columns must stand (nest_mma.cc).
absl::Status ApplyTensorize(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  const bool mma = args.Text(1) == "mma";
  if (!mma && args.Text(1) != "dot")
    return Illegal(fmt::format("no {}; there are: dot mma", args.Text(1)));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  HONE_RETURN_IF_ERROR(RequireFree(schedule, ref));
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  const ir::Expr& body = stage.body[0];
  if (stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return Illegal(fmt::format("{} adds up no products", stage.name));
  return mma ? ApplyMma(schedule, ref) : ApplyDot(schedule, ref);
}

}  // namespace hone::schedule

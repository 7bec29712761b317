#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// Whether mma and tile add up such products: of two f16 or two bf16 in f32, of bytes in i32.
bool AreForMatrices(const ir::Expr& body, bool mma) {
  const auto narrow = [&](size_t factor) {
    const ir::Expr& e = body->args[factor];
    return e->kind == ir::ExprKind::kCast ? e->args[0]->dtype : ir::DType::kF32;
  };
  const ir::DType first = narrow(0), second = narrow(1);
  const auto byte = [](ir::DType d) { return d == ir::DType::kI8 || d == ir::DType::kU8; };
  if (body->dtype == ir::DType::kI32) return byte(first) && byte(second);
  return body->dtype == ir::DType::kF32 && first == second &&
         ((mma && first == ir::DType::kF16) || first == ir::DType::kBF16);
}

absl::Status ApplyDot(Schedule& schedule, Schedule::LoopRef ref) {
  const std::string& name = schedule.node(ref).name;
  if (!schedule.IsReduce(ref)) return Illegal(fmt::format("{} is no reduce loop", name));
  if (schedule.stages[ref.stage].order.back() != ref.loop)
    return Illegal(fmt::format("{} is not the innermost loop", name));
  schedule.node(ref).kind = ir::LoopKind::kDot;
  return absl::OkStatus();
}

/// The loop outside of `inner` loops that are the innermost ones, none of which reduces but for the
/// last `reduce` of them.
bool StandsAround(const Schedule& schedule, Schedule::LoopRef ref, size_t inner, size_t reduce) {
  const std::vector<int>& order = schedule.stages[ref.stage].order;
  if (order.size() <= inner || order[order.size() - 1 - inner] != ref.loop) return false;
  for (size_t k = 0; k <= inner; ++k) {
    const int loop = order[order.size() - 1 - k];
    if (schedule.IsReduce({ref.stage, loop}) != (k < reduce)) return false;
  }
  return true;
}

absl::Status ApplyWgmma(Schedule& schedule, Schedule::LoopRef ref) {
  const std::string& name = schedule.node(ref).name;
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  const ir::Expr& body = stage.body[0];
  if (body->dtype != ir::DType::kF32 || !AreForMatrices(body, /*mma=*/true))
    return Illegal(fmt::format("{} adds up no products of two f16 or two bf16 in f32", stage.name));
  if (!StandsAround(schedule, ref, 3, 1)) {
    return Illegal(fmt::format(
        "{} is not the fourth loop from inside, of rows, around two of columns and one of terms",
        name));
  }
  schedule.node(ref).kind = ir::LoopKind::kWgmma;
  return absl::OkStatus();
}

absl::Status ApplyMatrices(Schedule& schedule, Schedule::LoopRef ref, bool mma) {
  const std::string& name = schedule.node(ref).name;
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  if (!AreForMatrices(stage.body[0], mma)) {
    return Illegal(fmt::format("{} adds up no products of two {}bf16 in f32, or of bytes in i32",
                               stage.name, mma ? "f16 or two " : ""));
  }
  if (!(mma ? StandsAround(schedule, ref, 2, 1) : StandsAround(schedule, ref, 3, 2))) {
    return Illegal(fmt::format(
        "{} is not the {} loop from inside, of rows, around one of columns and {} of terms", name,
        mma ? "third" : "fourth", mma ? "one" : "two"));
  }
  schedule.node(ref).kind = mma ? ir::LoopKind::kMma : ir::LoopKind::kTile;
  return absl::OkStatus();
}

}  // namespace

// tensorize(LOOP, dot): the 2 or 4 iterations of LOOP, the innermost of a sum of products, are one
// instruction where the Target has one for these types; the result is that of the serial loop.
// tensorize(LOOP, mma): LOOP of 2 rows, 8 apart, around a loop of 2 columns and one of 16 terms or
// a multiple, 32 of bytes: what the 32 threads of a warp do there is a product of matrices for each
// 16, or 32. Lowering
// says where rows and columns must stand (nest_mma.cc).
// tensorize(LOOP, wgmma): LOOP of 2 rows, 8 apart, around one of eights of columns, one of 2
// columns and one of 16 terms or a multiple: what the 128 threads of four warps do there is begun
// together, of factors in swizzled shared memory (nest_wgmma.cc). tensorize(LOOP, tile): LOOP of at
// most 16 rows around a loop of at most 16 columns, one of at most 16 groups of terms and one of 4
// terms that are bytes, or of 2 that are bf16: a product of matrices in the tile registers of a
// core, on a Target that has them.
absl::Status ApplyTensorize(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  const std::string what = args.Text(1);
  if (what != "dot" && what != "mma" && what != "wgmma" && what != "tile")
    return Illegal(fmt::format("no {}; there are: dot mma wgmma tile", what));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  HONE_RETURN_IF_ERROR(RequireFree(schedule, ref));
  const ir::Stage& stage = schedule.workload.stages[ref.stage];
  const ir::Expr& body = stage.body[0];
  if (stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return Illegal(fmt::format("{} adds up no products", stage.name));
  if (what == "wgmma") return ApplyWgmma(schedule, ref);
  return what == "dot" ? ApplyDot(schedule, ref) : ApplyMatrices(schedule, ref, what == "mma");
}

}  // namespace hone::schedule

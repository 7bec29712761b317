#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// sN = cache_read(STAGE, TENSOR[, at=LOOP]): a copy of TENSOR that STAGE reads instead; at LOOP
// only the part that its inside needs, in scratch; without at, the whole tensor at root.
absl::Status ApplyCacheRead(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2, {"at", "storage"}));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(int tensor, args.Tensor(1));
  const ir::Tensor source = schedule.workload.tensors[tensor];
  if (source.kind == ir::TensorKind::kImmediate)
    return Illegal("an immediate tensor needs no copy");
  bool reads = false;
  for (const auto& body : schedule.workload.stages[id].body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      reads |= e.kind == ir::ExprKind::kLoad && e.id == tensor;
    });
  }
  if (!reads) return Illegal(fmt::format("{} does not read {}", args.Text(0), args.Text(1)));
  HONE_RETURN_IF_ERROR(RequireOutsideScan(schedule, id, tensor));
  HONE_ASSIGN_OR_RETURN(std::string name, TakeStageName(schedule, instruction));
  ir::Stage copy;
  copy.spatial = source.shape;
  std::vector<ir::Expr> indices;
  for (size_t i = 0; i < source.shape.size(); ++i) indices.push_back(ir::Var(static_cast<int>(i)));
  copy.body = {ir::Load(tensor, source.dtype, std::move(indices))};
  int result = AppendStage(schedule, std::move(copy), name, source.dtype, source.shape);
  ReplaceLoads(schedule.workload.stages[id], tensor,
               [&](const std::vector<ir::Expr>& at) { return ir::Load(result, source.dtype, at); });
  if (auto loop = args.Named("at")) {
    Instruction place;
    place.primitive = "compute_at";
    place.positional = {name, *loop};
    if (auto storage = args.Named("storage")) place.positional.push_back(*storage);
    return ApplyComputeAt(schedule, place);
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule

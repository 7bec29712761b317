#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

bool LoadsFrom(const ir::Expr& e, int tensor) {
  bool loads = false;
  ir::Visit(
      e, [&](const ir::ExprNode& n) { loads |= n.kind == ir::ExprKind::kLoad && n.id == tensor; });
  return loads;
}

/// The factor without the conversion to the type that is summed.
const ir::Expr& Unconverted(const ir::Expr& factor) {
  return factor->kind == ir::ExprKind::kCast ? factor->args[0] : factor;
}

}  // namespace

// sN = im2col(STAGE, TENSOR, [i0,r0], at=LOOP[, storage=…]): the factor of STAGE's products that
// reads TENSOR, paddings and all, with an element for each point of the axes that it depends on,
// stored in this order; STAGE reads that instead. At LOOP only what its inside needs.
absl::Status ApplyIm2col(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3, {"at", "storage"}));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(int tensor, args.Tensor(1));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> items, ListItems(args.Text(2)));
  const ir::Stage stage = schedule.workload.stages[id];
  if (stage.combiner != ir::Combiner::kSum || stage.body[0]->kind != ir::ExprKind::kBinary ||
      stage.body[0]->binary() != ir::BinaryOp::kMul)
    return Illegal(fmt::format("{} adds up no products", stage.name));
  const bool in_first = LoadsFrom(stage.body[0]->args[0], tensor);
  const bool in_second = LoadsFrom(stage.body[0]->args[1], tensor);
  if (in_first == in_second) {
    return Illegal(fmt::format("{} reads {} in {} of its factors", stage.name, args.Text(1),
                               in_first ? "both" : "none"));
  }
  const ir::Expr whole = stage.body[0]->args[in_first ? 0 : 1];
  const ir::Expr factor = Unconverted(whole);
  std::vector<ir::Expr> renamed(static_cast<size_t>(stage.num_axes()));
  ir::Stage made;
  std::vector<ir::Expr> indices;
  for (const std::string& item : items) {
    const auto ref = schedule.stages[id].FindLoop(fmt::format("{}.{}", stage.name, item));
    if (ref < 0 || ref >= stage.num_axes())
      return Illegal(fmt::format("{} has no {}", stage.name, item));
    if (renamed[ref] || !ir::DependsOnVar(factor, ref))
      return Illegal(fmt::format("the factor does not depend on {}, or it stands twice", item));
    renamed[ref] = ir::Var(made.num_spatial());
    made.spatial.push_back(stage.Extent(ref));
    indices.push_back(ir::Var(ref));
  }
  for (int a = 0; a < stage.num_axes(); ++a) {
    if (!renamed[a] && ir::DependsOnVar(factor, a))
      return Illegal(
          fmt::format("the factor depends on {} too", schedule.stages[id].loops[a].name));
  }
  if (made.num_spatial() == 0 || made.num_spatial() > ir::kMaxRank)
    return Illegal(fmt::format("the factor has {} axes", made.num_spatial()));
  std::vector<int> tensors;
  ir::Visit(factor, [&](const ir::ExprNode& n) {
    if (n.kind == ir::ExprKind::kLoad) tensors.push_back(n.id);
  });
  for (const int read : tensors) HONE_RETURN_IF_ERROR(RequireOutsideScan(schedule, id, read));
  HONE_ASSIGN_OR_RETURN(const std::string name, TakeStageName(schedule, instruction));
  made.body = {ir::SubstituteVars(factor, renamed)};
  const std::vector<int64_t> shape = made.spatial;
  const int result = AppendStage(schedule, std::move(made), name, factor->dtype, shape);
  const ir::Expr read = ir::Cast(whole->dtype, ir::Load(result, factor->dtype, std::move(indices)));
  const ir::Expr other = stage.body[0]->args[in_first ? 1 : 0];
  schedule.workload.stages[id].body = {in_first ? read * other : other * read};
  const auto loop = args.Named("at");
  if (!loop) return absl::OkStatus();
  Instruction place;
  place.primitive = "compute_at";
  place.positional = {name, *loop};
  if (auto storage = args.Named("storage")) place.positional.push_back(*storage);
  return ApplyComputeAt(schedule, place);
}

}  // namespace hone::schedule

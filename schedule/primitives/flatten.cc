#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "ir/combiner.h"
#include "ir/index/simplify.h"
#include "schedule/access.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr int64_t kMostPadding = 64;

/// "i2" or "r0" of a Stage.
absl::StatusOr<int> ParseAxis(const ir::Stage& stage, const std::string& text) {
  const bool reduce = text.starts_with('r');
  if (text.size() < 2 || (!reduce && text[0] != 'i'))
    return Illegal(fmt::format("{}: axes are i0, i1, … or r0, r1, …", text));
  HONE_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(std::string_view(text).substr(1)));
  const int count = reduce ? stage.num_reduce() : stage.num_spatial();
  if (number < 0 || number >= count) return Illegal(fmt::format("{} has no {}", stage.name, text));
  return static_cast<int>(number) + (reduce ? stage.num_spatial() : 0);
}

/// The axes of a Stage before and after some of them became one.
struct Flattening {
  std::vector<int> group;      ///< old axes, slowest first
  int64_t extent = 1;          ///< of all of them
  std::vector<ir::Expr> axes;  ///< old ones over the new ones
};

/// The new axis takes the place of the group's first one; of reduce axes it is the first.
Flattening Flatten(const ir::Stage& stage, std::vector<int> group) {
  Flattening f;
  f.group = std::move(group);
  for (const int a : f.group) f.extent *= stage.Extent(a);
  const bool reduce = f.group[0] >= stage.num_spatial();
  const int first = reduce ? stage.num_spatial() : f.group[0];
  int next = reduce ? first + 1 : 0;
  f.axes.resize(static_cast<size_t>(stage.num_axes()));
  int64_t inside = f.extent;
  for (const int a : f.group) {
    inside /= stage.Extent(a);
    const ir::Expr part = inside == 1 ? ir::Var(first) : ir::FloorDiv(ir::Var(first), inside);
    f.axes[a] = a == f.group[0] ? part : ir::FloorMod(part, stage.Extent(a));
  }
  for (int a = reduce ? stage.num_spatial() : 0; a < stage.num_axes(); ++a) {
    if (!reduce && a == first) ++next;
    if (!f.axes[a]) f.axes[a] = ir::Var(next++);
  }
  for (int a = 0; reduce && a < stage.num_spatial(); ++a) f.axes[a] = ir::Var(a);
  return f;
}

void SimplifyBodies(ir::Stage& stage) {
  const ir::VarRanges ranges = RangesOf(stage);
  for (ir::Expr& body : stage.body) body = ir::Simplify(body, ranges);
}

/// The result in memory stays; an output's points say where they lie, other Stages are told.
void FlattenResult(Schedule& schedule, int id, const Flattening& f,
                   const std::vector<int64_t>& old_spatial) {
  ir::Stage& stage = schedule.workload.stages[id];
  ir::Tensor& result = schedule.workload.tensors[stage.results[0]];
  const ir::VarRanges ranges = RangesOf(stage);
  if (result.output) {
    std::vector<ir::Expr> store = stage.store;
    for (size_t d = 0; stage.store.empty() && d < old_spatial.size(); ++d)
      store.push_back(ir::Var(static_cast<int>(d)));
    for (ir::Expr& e : store) e = ir::Simplify(ir::SubstituteVars(e, f.axes), ranges);
    stage.store = std::move(store);
    return;
  }
  result.shape = stage.spatial;
  const ir::DType dtype = result.dtype;
  const int tensor = stage.results[0];
  for (ir::Stage& reader : schedule.workload.stages) {
    if (reader.name == stage.name) continue;
    bool reads = false;
    ReplaceLoads(reader, tensor, [&](const std::vector<ir::Expr>& at) {
      reads = true;
      ir::Expr joined = at[f.group[0]];
      for (size_t k = 1; k < f.group.size(); ++k)
        joined = joined * old_spatial[f.group[k]] + at[f.group[k]];
      std::vector<ir::Expr> indices;
      for (int d = 0; d < static_cast<int>(at.size()); ++d) {
        if (d == f.group[0]) indices.push_back(joined);
        if (std::ranges::find(f.group, d) == f.group.end()) indices.push_back(at[d]);
      }
      return ir::Load(tensor, dtype, std::move(indices));
    });
    if (reads) SimplifyBodies(reader);
  }
}

/// Beyond the end of the axes there are zeros to add: in both factors of a product.
ir::Expr Padded(const ir::Expr& body, const ir::Expr& inside, ir::Combiner combiner) {
  const bool product = combiner == ir::Combiner::kSum && body->kind == ir::ExprKind::kBinary &&
                       body->binary() == ir::BinaryOp::kMul;
  if (!product) return ir::Select(inside, body, ir::Identity(combiner, body->dtype, 0));
  const auto factor = [&](const ir::Expr& e) {
    const ir::Expr& value = e->kind == ir::ExprKind::kCast ? e->args[0] : e;
    return ir::Cast(e->dtype, ir::Select(inside, value, ir::Const(value->dtype, 0)));
  };
  return factor(body->args[0]) * factor(body->args[1]);
}

}  // namespace

// flatten(STAGE, [i0,i1][, multiple]): axes of a Stage become one, the first of them slowest:
// spatial ones that follow each other, or reduce axes in any order. The axis of a reduction is
// rounded up to a multiple; what is added there is zero.
absl::Status ApplyFlatten(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 3));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> items, ListItems(args.Text(1)));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  ir::Stage& stage = schedule.workload.stages[id];
  if (stage.scan >= 0) return Illegal(fmt::format("{} belongs to a scan", stage.name));
  if (stage.results.size() != 1) return Illegal(fmt::format("{} has two results", stage.name));
  if (schedule.stages[id].place != Place::kRoot)
    return Illegal(fmt::format("{} has a place already", stage.name));
  if (!schedule.stages[id].align.empty())
    return Illegal(fmt::format("{} is aligned already", stage.name));
  std::vector<int> group;
  for (const std::string& item : items) {
    HONE_ASSIGN_OR_RETURN(const int axis, ParseAxis(stage, item));
    if (std::ranges::find(group, axis) != group.end())
      return Illegal(fmt::format("{} stands twice", item));
    group.push_back(axis);
  }
  if (group.empty()) return Illegal("needs an axis");
  const bool reduce = group[0] >= stage.num_spatial();
  int64_t elements = 1;
  for (size_t k = 0; k < group.size(); ++k) {
    if ((group[k] >= stage.num_spatial()) != reduce)
      return Illegal("a spatial and a reduce axis cannot become one");
    if (!reduce && k > 0 && group[k] != group[k - 1] + 1)
      return Illegal(fmt::format("{} does not follow {}", items[k], items[k - 1]));
    if (stage.Extent(group[k]) > kMostElements / elements)
      return Illegal("more than 2^40 iterations");
    elements *= stage.Extent(group[k]);
  }
  int64_t multiple = 1;
  if (args.count() == 3) {
    HONE_ASSIGN_OR_RETURN(multiple, args.Integer(2));
    if (!reduce) return Illegal("only reduce axes are rounded up");
    if (multiple < 1 || multiple > kMostPadding)
      return Illegal(fmt::format("the multiple must lie in 1..{}", kMostPadding));
    if (ir::IsTuple(stage.combiner)) return Illegal("a tuple reduction cannot be rounded up");
  }
  const Flattening f = Flatten(stage, group);
  const std::vector<int64_t> old_spatial = stage.spatial;
  for (ir::Expr& body : stage.body) body = ir::SubstituteVars(body, f.axes);
  if (reduce) {
    const int64_t rounded = (f.extent + multiple - 1) / multiple * multiple;
    if (rounded > f.extent) {
      const ir::Expr inside = ir::Lt(ir::Var(stage.num_spatial()), ir::Int(f.extent));
      stage.body[0] = Padded(stage.body[0], inside, stage.combiner);
    }
    std::vector<int64_t> extents = {rounded};
    for (int a = stage.num_spatial(); a < stage.num_axes(); ++a) {
      if (std::ranges::find(group, a) == group.end()) extents.push_back(stage.Extent(a));
    }
    stage.reduce = std::move(extents);
  } else {
    stage.spatial[group[0]] = f.extent;
    stage.spatial.erase(stage.spatial.begin() + group[0] + 1,
                        stage.spatial.begin() + group.back() + 1);
    FlattenResult(schedule, id, f, old_spatial);
  }
  SimplifyBodies(schedule.workload.stages[id]);
  ResetLoops(schedule, id);
  return absl::OkStatus();
}

}  // namespace hone::schedule

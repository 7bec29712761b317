#include "schedule/cpu/panels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/cpu/cpu_target.h"
#include "schedule/stage_cost.h"

namespace hone::schedule {

namespace {

/// c where the index is the axis + c; nothing where it is something else.
std::optional<int64_t> OffsetFrom(const ir::Expr& index, int axis) {
  if (index->kind == ir::ExprKind::kVar && index->id == axis) return 0;
  if (index->kind != ir::ExprKind::kBinary || index->binary() != ir::BinaryOp::kAdd) return {};
  for (const int side : {0, 1}) {
    const ir::Expr& a = index->args[side];
    if (a->kind == ir::ExprKind::kVar && a->id == axis) return ir::AsInt(index->args[1 - side]);
  }
  return {};
}

/// Whether the axis alone is an index of the load, and no index of it is anything else's.
bool HasPlainIndex(const Access& a, int axis) {
  return std::ranges::all_of(a.indices, [&](const ir::Expr& index) {
    return !ir::DependsOnVar(index, axis) || OffsetFrom(index, axis) == 0;
  });
}

/// [dims of other spatial axes, quotient, dims of reduce axes in loop order, remainder]; where a
/// dot product takes several iterations of the innermost of them, these are the last. Where the
/// vectors start inside the dimension, a panel is what starts there too; where that would cut a
/// vector, the dimension stays whole and is the last.
std::string PanelLayout(const TileForm& form, const Access& access, int64_t panel) {
  std::vector<std::string> front, middle;
  std::vector<std::pair<size_t, int>> reduce_dims;
  std::string quotient, remainder;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (ir::DependsOnVar(access.indices[d], form.vector_axis)) {
      const int64_t block =
          std::gcd(panel, OffsetFrom(access.indices[d], form.vector_axis).value_or(0));
      const bool whole = block % form.lanes != 0;
      if (!whole) quotient = fmt::format("i{}/{}", d, block);
      remainder = whole ? fmt::format("i{}", d) : fmt::format("i{}%{}", d, block);
      continue;
    }
    size_t place = form.reduce.size();
    for (size_t k = 0; k < form.reduce.size(); ++k) {
      if (ir::DependsOnVar(access.indices[d], form.reduce[k])) place = k;
    }
    if (place < form.reduce.size())
      reduce_dims.emplace_back(place, static_cast<int>(d));
    else
      front.push_back(fmt::format("i{}", d));
  }
  std::stable_sort(reduce_dims.begin(), reduce_dims.end());
  for (const auto& [place, d] : reduce_dims) middle.push_back(fmt::format("i{}", d));
  if (form.dot > 1) {
    remainder += fmt::format(", {}%{}", middle.back(), form.dot);
    middle.back() += fmt::format("/{}", form.dot);
  }
  std::vector<std::string> all = front;
  if (!quotient.empty()) all.push_back(quotient);
  all.insert(all.end(), middle.begin(), middle.end());
  all.push_back(remainder);
  return fmt::format("[{}]", fmt::join(all, ", "));
}

/// Whether the Stage is a map at root that nothing was done to, and that is quickly computed anew.
bool IsPreparation(const TraceWriter& w, int stage) {
  if (stage < 0) return false;
  const ir::Stage& s = w.stage(stage);
  const StageSchedule& schedule = w.schedule().stages[stage];
  return s.combiner == ir::Combiner::kNone && s.scan < 0 &&
         !w.workload().tensors[s.results[0]].output && schedule.place == Place::kRoot &&
         schedule.loops.size() == s.spatial.size() && CostOf(s) == 0;
}

/// Whether some condition in the Stage's body moves along the axis.
bool IsGuardedAlong(const ir::Stage& stage, int axis) {
  bool guarded = false;
  ir::Visit(stage.body[0], [&](const ir::ExprNode& e) {
    guarded |= e.kind == ir::ExprKind::kSelect && ir::DependsOnVar(e.args[0], axis);
  });
  return guarded;
}

void InlinePreparation(TraceWriter& w, int tensor) {
  const int producer = w.workload().Producer(tensor);
  if (IsPreparation(w, producer)) w.Emit(fmt::format("inline({})", w.name(producer)));
}

/// The copy of what is not constant into panels of a dot product: [others, n/panel, reduce axes,
/// k/dot, panel, dot]. A vector is whole words of the last two. The last panel, and the last terms,
/// stand apart where they are filled up, so that the others know that they are not.
void ScheduleDotPanels(TraceWriter& w, int copy, const ir::Target& target) {
  const ir::Stage stage = w.stage(copy);
  const int rank = stage.num_spatial();
  const int64_t words = stage.spatial[rank - 2] * stage.spatial[rank - 1];
  const int64_t width =
      std::gcd(words, target.As<ir::CpuTarget>().lanes * 4 /
                          ir::SizeOf(w.workload().tensors[stage.results[0]].dtype));
  const auto loop = [&](int axis) { return fmt::format("{}.i{}", stage.name, axis); };
  const std::string lanes = stage.name + ".words";
  w.Emit(fmt::format("{} = fuse({}, {})", lanes, loop(rank - 2), loop(rank - 1)));
  w.Emit(fmt::format("split({}, {})", lanes, width));
  std::vector<std::string> outer, guarded;
  std::vector<int64_t> extents;
  for (int a = 0; a + 2 < rank; ++a) {
    if (IsGuardedAlong(stage, a) && stage.spatial[a] > 1) {
      guarded.push_back(loop(a));
      continue;
    }
    outer.push_back(loop(a));
    extents.push_back(stage.spatial[a]);
  }
  std::vector<std::string> order = outer;
  order.insert(order.end(), guarded.begin(), guarded.end());
  order.insert(order.end(), {lanes + ".0", lanes + ".1"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  for (const std::string& name : guarded) w.Emit(fmt::format("partition({}, [-1])", name));
  // All that the conditions there read is to be a number.
  if (IsGuardedAlong(stage, rank - 2) || IsGuardedAlong(stage, rank - 1))
    w.Emit(fmt::format("unroll({}.0)", lanes));
  w.Emit(fmt::format("vectorize({}.1)", lanes));
  Parallelise(w, copy, outer, extents, target);
}

}  // namespace

std::vector<int> PreparedInPanels(const TraceWriter& w, const TileForm& f) {
  std::vector<int> all, copied = f.packed;
  if (f.widened >= 0) copied.push_back(f.widened);
  for (int t : copied) {
    const int producer = w.workload().Producer(t);
    if (f.dot > 1 && IsPreparation(w, producer)) all.push_back(producer);
  }
  return all;
}

bool IsSumOfNarrowProducts(const ir::Stage& stage, const ir::Target& target) {
  const ir::Expr& body = stage.body[0];
  if (stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return false;
  return std::ranges::all_of(body->args, [&](const ir::Expr& factor) {
    if (factor->kind != ir::ExprKind::kCast || factor->args[0]->kind != ir::ExprKind::kLoad)
      return false;
    const ir::DType narrow = factor->args[0]->dtype;
    if (factor->dtype == ir::DType::kF32)
      return narrow == ir::DType::kBF16 && target.As<ir::CpuTarget>().bf16;
    return factor->dtype == ir::DType::kI32 && ir::SizeOf(narrow) == 1 && ir::IsInteger(narrow);
  });
}

bool SuitsDots(const ir::Stage& stage, const std::vector<Access>& accesses, const TileForm& f) {
  if (f.reduce.empty() || f.vector_axis < 0) return false;
  const int r = f.reduce.back();
  int shared = 0, panels = 0;
  for (const Access& a : accesses) {
    if (a.guarded || !a.linear[r]) return false;
    if (a.SharedAlong(f.vector_axis))
      shared += a.stride[r] == 1;
    else
      panels += a.DependsOn(r) && HasPlainIndex(a, r) && HasPlainIndex(a, f.vector_axis);
  }
  return shared == 1 && panels == 1 && stage.Extent(r) % 2 == 0;
}

int64_t DotOf(const ir::Workload& w, const ir::Stage& stage, const std::vector<Access>& accesses,
              const TileForm& f, const ir::Target& target) {
  if (!IsSumOfNarrowProducts(stage, target) || !SuitsDots(stage, accesses, f)) return 1;
  const bool mixed = std::ranges::any_of(accesses, [&](const Access& a) {
    return ir::IsUnsigned(w.tensors[a.tensor].dtype) !=
           ir::IsUnsigned(w.tensors[accesses[0].tensor].dtype);
  });
  const int64_t most = target.As<ir::CpuTarget>().vnni && mixed ? 4 : 2;
  return stage.Extent(f.reduce.back()) % most == 0 ? most : 2;
}

bool NeedsPacking(const ir::Workload& w, const Access& a, int v, int64_t extent) {
  if ((a.guarded && a.guard_moves[v]) || w.tensors[a.tensor].kind == ir::TensorKind::kImmediate ||
      extent == 1)
    return false;
  if (!a.DependsOn(v) || !a.linear[v]) return false;
  const bool constant = w.tensors[a.tensor].kind == ir::TensorKind::kConstant;
  // Every dimension of the panel layout must be plain: one axis, or none. For
  // constants part of a dimension will do (some of a cell's gates): their copy costs nothing at run
  // time.
  int with_v = 0;
  for (const auto& i : a.indices) {
    if (ir::DependsOnVar(i, v)) {
      ++with_v;
      const std::optional<int64_t> offset = OffsetFrom(i, v);
      if (!offset || *offset < 0 || (*offset > 0 && !constant)) return false;
    }
  }
  if (with_v != 1) return false;
  return constant || a.stride[v] != 1;
}

void PackPanels(TraceWriter& w, const TileForm& f, int64_t panel, const ir::Target& target) {
  for (int t : f.packed) {
    for (const auto& a : AccessesOf(w.workload(), w.stage(f.anchor))) {
      if (a.tensor != t) continue;
      std::string layout = PanelLayout(f, a, panel);
      const int copy = static_cast<int>(w.workload().stages.size());
      w.Emit(fmt::format("{} = pack({}, {}, {}{})", w.NextStage(), w.name(f.anchor),
                         w.workload().tensors[t].name, layout, f.pairs ? ", i16" : ""));
      if (!w.status().ok() || w.workload().tensors[t].kind == ir::TensorKind::kConstant) break;
      if (f.dot == 1) {
        ScheduleMap(w, copy, 1, target);
        break;
      }
      InlinePreparation(w, t);
      ScheduleDotPanels(w, copy, target);
      break;
    }
  }
}

bool HasPanelsToFetch(const ir::Workload& w, const TileForm& f) {
  constexpr int64_t kLeastBytes = 1 << 17;
  if (f.packed.size() != 1 || f.row_axis < 0 || f.tile_groups > 0 || f.reduce.empty() ||
      std::ranges::count(f.unrolled, f.reduce.back()) > 0)
    return false;
  const ir::Tensor& packed = w.tensors[f.packed[0]];
  return packed.kind == ir::TensorKind::kConstant && packed.Bytes() >= kLeastBytes;
}

void FetchPanelsAhead(TraceWriter& w, const TileForm& f, const TileChoice& c,
                      const std::string& panels) {
  const ir::Stage& stage = w.stage(f.anchor);
  const int spatial = stage.num_spatial();
  int64_t steps = 1;  // of a panel
  for (int r : f.reduce) steps *= stage.Extent(r);
  const char* part = c.reduce_block > 0 ? ".1" : f.dot > 1 ? ".0" : "";
  w.Emit(fmt::format("prefetch({}.r{}{}, {}, {}, shared)", stage.name, f.reduce.back() - spatial,
                     part, panels, steps / f.dot));
}

void WidenShared(TraceWriter& w, const TileForm& f, const ir::Target& target) {
  if (f.widened < 0) return;
  const ir::Tensor& tensor = w.workload().tensors[f.widened];
  const bool constant = tensor.kind == ir::TensorKind::kConstant;
  std::vector<std::string> dims;
  for (size_t d = 0; d < tensor.shape.size(); ++d) dims.push_back(fmt::format("i{}", d));
  const int copy = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = pack({}, {}, [{}], i16)", w.NextStage(), w.name(f.anchor), tensor.name,
                     fmt::join(dims, ", ")));
  if (!w.status().ok() || constant) return;
  InlinePreparation(w, f.widened);
  ScheduleMap(w, copy, 1, target);
}

}  // namespace hone::schedule

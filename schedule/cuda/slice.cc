#include "schedule/cuda/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "ir/index/simplify.h"

namespace hone::schedule {

namespace {

bool Reads(const ir::Expr& e, int tensor) {
  bool found = false;
  ir::Visit(
      e, [&](const ir::ExprNode& n) { found |= n.kind == ir::ExprKind::kLoad && n.id == tensor; });
  return found;
}

}  // namespace

std::string LoopOfAxis(const std::string& stage, int spatial, int axis) {
  return axis < spatial ? fmt::format("{}.i{}", stage, axis)
                        : fmt::format("{}.r{}", stage, axis - spatial);
}

void CopySlice(TraceWriter& w, int stage, const std::string& at, const Slice& slice,
               int64_t threads_y, int64_t threads_x) {
  const ir::Stage of = w.stage(stage);
  const std::string copy = w.NextStage();
  const ir::Expr& body = of.body[0];
  const ir::Expr& factor = Reads(body->args[0], slice.tensor) ? body->args[0] : body->args[1];
  std::vector<std::string> axes;
  const auto add = [&](int a) { axes.push_back(LoopOfAxis("", of.num_spatial(), a).substr(1)); };
  for (int a = 0; a < of.num_axes(); ++a) {
    if (a != slice.outer && a != slice.inner && ir::DependsOnVar(factor, a)) add(a);
  }
  add(slice.outer);
  add(slice.inner);
  w.Emit(fmt::format("{} = im2col({}, {}, [{}], at={}, storage=shared)", copy, of.name,
                     w.workload().tensors[slice.tensor].name, fmt::join(axes, ","), at));
  if (slice.lanes == 0) return;
  const auto last = static_cast<int>(axes.size()) - 1;
  std::string row = fmt::format("{}.i{}", copy, last - 1),
              element = fmt::format("{}.i{}", copy, last);
  std::string lanes;
  if (slice.row_gap > 0) w.Emit(fmt::format("align({}, {}, {})", copy, last, slice.row_gap));
  if (slice.along_inner) {
    w.Emit(fmt::format("split({}, {}, mask)", element, slice.lanes));
    lanes = element + ".1";
    element += ".0";
  } else {
    w.Emit(fmt::format("reorder({}, {})", element, row));
    std::swap(row, element);
  }
  const std::string all = copy + ".f0";
  w.Emit(fmt::format("{} = fuse({}, {})", all, row, element));
  w.Emit(fmt::format("split({}, [{}, {}], mask)", all, threads_y, threads_x));
  w.Emit(fmt::format("bind({}.1, thread.y)", all));
  w.Emit(fmt::format("bind({}.2, thread.x)", all));
  // All loads are on their way before the first is stored.
  w.Emit(fmt::format("unroll({}.0)", all));
  if (!lanes.empty()) w.Emit(fmt::format("vectorize({})", lanes));
}

int BindBlocks(TraceWriter& w, int id, const ProductAxes& axes, bool along_z) {
  const ir::Stage stage = w.stage(id);
  const auto loop = [&](int axis) { return LoopOfAxis(stage.name, stage.num_spatial(), axis); };
  std::vector<std::string> outside;
  for (const int a : axes.batch) outside.push_back(loop(a));
  if (!along_z) outside.push_back(loop(axes.row) + ".0");
  std::string outer = outside[0];
  for (size_t b = 1; b < outside.size(); ++b) {
    const std::string fused = fmt::format("{}.f{}", stage.name, b - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", fused, outer, outside[b]));
    outer = fused;
  }
  w.Emit(fmt::format("bind({}, block.{})", outer, along_z ? "z" : "y"));
  if (along_z) w.Emit(fmt::format("bind({}.0, block.y)", loop(axes.row)));
  w.Emit(fmt::format("bind({}.0, block.x)", loop(axes.column)));
  return static_cast<int>(outside.size()) - 1;
}

}  // namespace hone::schedule

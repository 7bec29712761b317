#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "ir/combiner.h"
#include "ir/index/simplify.h"
#include "schedule/access.h"
#include "schedule/cuda/product.h"
#include "schedule/cuda/window_tile.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"

// Which Stages are windows, and how they are made ready for tiles.
namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

/// Groups of more channels are products of matrices.
constexpr int64_t kWidestGroup = 15;
constexpr int64_t kLeastFast = 4, kLeastResults = 1 << 10, kMostReduced = 1 << 12;
/// What a Workload is prepared for is not known yet.
constexpr int64_t kAnyCard = 64;

/// What moves along one dimension; nothing where it is no window's.
std::optional<WindowAxes::Dimension> DimensionOf(const ir::Stage& stage, const Expr& index) {
  WindowAxes::Dimension d;
  for (const ir::Linear::Term& term : ir::ToLinear(index, RangesOf(stage)).terms) {
    Expr atom = term.atom;
    int64_t group = 1;
    if (atom->kind == ExprKind::kBinary && atom->binary() == ir::BinaryOp::kDiv) {
      group = ir::AsInt(atom->args[1]).value_or(0);
      atom = atom->args[0];
    }
    if (atom->kind != ExprKind::kVar || term.coefficient < 0 || group < 1 || group > kWidestGroup)
      return std::nullopt;
    if (atom->id >= stage.num_spatial()) {
      if (group != 1) return std::nullopt;
      d.reach += term.coefficient * (stage.Extent(atom->id) - 1);
      continue;
    }
    if (stage.Extent(atom->id) == 1) continue;
    if (d.axis >= 0) return std::nullopt;
    d.axis = atom->id;
    d.step = term.coefficient;
    d.group = group;
  }
  return d;
}

/// How the Stage slides over what an access reads; nothing where it does not.
std::optional<WindowAxes> SlidesOver(const ir::Stage& stage, const Access& access) {
  WindowAxes axes;
  axes.tensor = access.tensor;
  bool overlaps = false;
  std::set<int> moved;
  for (const Expr& index : access.indices) {
    if (ir::HasLoad(index)) return std::nullopt;
    const auto d = DimensionOf(stage, index);
    if (!d || (d->axis >= 0 && !moved.insert(d->axis).second)) return std::nullopt;
    overlaps |= d->axis >= 0 && (d->group == 1 ? d->reach > d->step : d->reach > 1);
    axes.dimensions.push_back(*d);
  }
  for (int a = 0; a < stage.num_spatial(); ++a) {
    if (stage.spatial[a] > 1 && !moved.contains(a)) return std::nullopt;
  }
  return overlaps && axes.dimensions.size() > 1 ? std::optional(axes) : std::nullopt;
}

/// Which axes threads take.
void ChooseAxes(const ir::Workload& workload, const ir::Stage& stage, WindowAxes* axes) {
  axes->fast = VectorAxis(workload, stage);
  std::vector<int> sliding;
  for (int a = 0; a < stage.num_spatial(); ++a) {
    for (const WindowAxes::Dimension& d : axes->dimensions) {
      if (d.axis == a && a != axes->fast && d.group == 1 && d.reach > 1) sliding.push_back(a);
    }
  }
  if (!sliding.empty()) axes->near = sliding.back();
  if (sliding.size() > 1) axes->far = sliding[sliding.size() - 2];
  for (int a = 0; sliding.empty() && a < stage.num_spatial(); ++a) {
    if (a == axes->fast) continue;
    if (axes->near < 0 || stage.spatial[a] > stage.spatial[axes->near]) axes->near = a;
  }
}

}  // namespace

std::optional<WindowAxes> FindWindow(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.scan >= 0 || stage.results.size() != 1 || stage.combiner == ir::Combiner::kNone ||
      ir::IsTuple(stage.combiner) || stage.num_spatial() < 2)
    return std::nullopt;
  int64_t results = 1, reduced = 1;
  for (int a = 0; a < stage.num_axes(); ++a)
    (a < stage.num_spatial() ? results : reduced) *= stage.Extent(a);
  if (results < kLeastResults || reduced > kMostReduced || reduced < 2) return std::nullopt;
  const std::vector<Access> accesses = AccessesOf(workload, stage);
  std::optional<WindowAxes> found;
  for (const Access& access : accesses) {
    const ir::Tensor& tensor = workload.tensors[access.tensor];
    const auto loads =
        std::ranges::count_if(accesses, [&](const Access& a) { return a.tensor == access.tensor; });
    if (access.guarded || loads != 1 || tensor.kind == ir::TensorKind::kImmediate ||
        tensor.kind == ir::TensorKind::kConstant)
      continue;
    const auto axes = SlidesOver(stage, access);
    if (!axes) continue;
    if (found) return std::nullopt;
    found = axes;
  }
  if (!found) return std::nullopt;
  ChooseAxes(workload, stage, &*found);
  if (found->fast < 0 || found->near < 0 || stage.spatial[found->fast] < kLeastFast)
    return std::nullopt;
  found->number_bytes = ir::SizeOf(workload.tensors[found->tensor].dtype);
  found->fast_extent = stage.spatial[found->fast];
  found->near_extent = stage.spatial[found->near];
  if (found->far >= 0) found->far_extent = stage.spatial[found->far];
  for (int a = 0; a < stage.num_spatial(); ++a) {
    if (a == found->fast || a == found->near || a == found->far) continue;
    found->others.push_back(a);
    found->batches *= stage.spatial[a];
  }
  const WindowAxes::Dimension& last = found->dimensions.back();
  if (last.axis == found->fast && found->fast_extent % 4 == 0 &&
      (last.reach == 1 ? last.step == 1 : last.group > 1))
    found->lanes = 4;
  return NominalWindow(*found, kAnyCard) ? found : std::nullopt;
}

std::set<int> WindowInputs(const ir::Workload& workload) {
  std::set<int> inputs;
  for (const ir::Stage& stage : workload.stages) {
    const auto axes = FindWindow(workload, stage);
    const int made = axes ? workload.Producer(axes->tensor) : -1;
    if (made < 0) continue;
    const ir::Stage& input = workload.stages[made];
    if (input.combiner == ir::Combiner::kNone && input.scan < 0 && input.results.size() == 1 &&
        input.store.empty() && !workload.tensors[input.results[0]].output &&
        workload.Readers(made).size() == 1)
      inputs.insert(made);
  }
  return inputs;
}

namespace {

/// Lays the constants of a window out with neighbours of the fast axis side by side.
void PackConstants(TraceWriter& writer, int id, const WindowAxes& axes) {
  const ir::Stage stage = writer.stage(id);
  for (const Access& access : AccessesOf(writer.workload(), stage)) {
    const ir::Tensor& tensor = writer.workload().tensors[access.tensor];
    const auto rank = static_cast<int>(access.indices.size());
    if (tensor.kind != ir::TensorKind::kConstant || rank < 2) continue;
    std::vector<std::string> order;
    int fast = -1;
    bool plain = true;
    for (int d = 0; d < rank; ++d) {
      const Expr& index = access.indices[static_cast<size_t>(d)];
      plain = plain && (index->kind == ExprKind::kVar || ir::AsInt(index).has_value());
      if (index->kind == ExprKind::kVar && index->id == axes.fast) {
        plain = plain && fast < 0;
        fast = d;
        continue;
      }
      order.push_back(fmt::format("i{}", d));
    }
    if (!plain || fast < 0 || fast + 1 == rank) continue;
    order.push_back(fmt::format("i{}", fast));
    writer.Emit(fmt::format("{} = pack({}, {}, [{}])", writer.NextStage(), stage.name, tensor.name,
                            fmt::join(order, ",")));
  }
}

}  // namespace

std::vector<Window> PrepareWindows(TraceWriter& writer, const std::set<int>& taken,
                                   const std::set<int>& inputs) {
  std::vector<Window> windows;
  std::set<int> left = inputs;
  std::vector<int> free = LiveStages(writer.schedule());
  std::erase_if(free, [&](int id) { return taken.contains(id) || inputs.contains(id); });
  for (const int id : LiveStages(writer.schedule())) {
    if (taken.contains(id) || !writer.status().ok()) continue;
    const auto axes = FindWindow(writer.workload(), writer.stage(id));
    if (!axes) continue;
    Window window{.stage = id, .axes = *axes};
    const int made = writer.workload().Producer(axes->tensor);
    if (inputs.contains(made)) {
      window.input = made;
      left.erase(made);
    }
    PackConstants(writer, id, *axes);
    window.epilogue = EpilogueOf(writer, id, free);
    if (window.epilogue >= 0)
      writer.Emit(fmt::format("epilogue({}, {})", writer.name(id), writer.name(window.epilogue)));
    windows.push_back(std::move(window));
  }
  for (const int id : left) writer.Emit(fmt::format("inline({})", writer.name(id)));
  return windows;
}

}  // namespace hone::schedule

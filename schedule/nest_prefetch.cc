#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/nest_builder.h"

// Hints to fetch what later iterations of a loop read.
namespace hone::schedule {

using ir::Expr;

namespace {

constexpr int64_t kLineBytes = 64;
/// More lines an iteration are no hint but a copy.
constexpr int64_t kMostLines = 64;

absl::Status Refuse(std::string reason) { return absl::InvalidArgumentError(std::move(reason)); }

/// Element offsets, ascending, of a box of these widths: one for every line it covers, counted from
/// its first element.
absl::StatusOr<std::vector<int64_t>> LinesOf(const std::vector<int64_t>& widths,
                                             const std::vector<int64_t>& strides, int64_t bytes) {
  constexpr int64_t kMostElements = kMostLines * kLineBytes;
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < widths.size(); ++d) {
    if (widths[d] > kMostElements / static_cast<int64_t>(offsets.size()))
      return Refuse(fmt::format("covers more than {} lines", kMostLines));
    const size_t before = offsets.size();
    for (int64_t i = 1; i < widths[d]; ++i) {
      for (size_t k = 0; k < before; ++k) offsets.push_back(offsets[k] + i * strides[d]);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  std::vector<int64_t> lines;
  for (int64_t offset : offsets) {
    if (lines.empty() || (offset - lines.back()) * bytes >= kLineBytes) lines.push_back(offset);
  }
  if (static_cast<int64_t>(lines.size()) > kMostLines)
    return Refuse(fmt::format("covers more than {} lines", kMostLines));
  return lines;
}

/// The loads of a tensor in a Stage, each once.
std::vector<Expr> LoadsOf(const ir::Stage& stage, int tensor) {
  std::vector<Expr> loads;
  const auto visit = [&](const auto& self, const Expr& e) -> void {
    const bool known = std::any_of(loads.begin(), loads.end(),
                                   [&](const Expr& other) { return ir::Equal(other, e); });
    if (e->kind == ir::ExprKind::kLoad && e->id == tensor && !known) loads.push_back(e);
    for (const Expr& a : e->args) self(self, a);
  };
  for (const Expr& body : stage.body) visit(visit, body);
  return loads;
}

bool RunsTogether(ir::LoopKind kind) {
  return kind == ir::LoopKind::kParallel || kind >= ir::LoopKind::kBlockX;
}

}  // namespace

absl::Status NestBuilder::CheckPrefetchPlace(const Instance& instance, size_t position) const {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const std::string& name = schedule.loops[schedule.order[position]].name;
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (n.kind >= ir::LoopKind::kBlockX)
      return Refuse(fmt::format("prefetch at {}: {} is bound to a grid", name, n.name));
    if (p <= position && n.kind == ir::LoopKind::kVector)
      return Refuse(fmt::format("prefetch at {}: {} is a vector loop", name, n.name));
    if (p > position && RunsTogether(n.kind))
      return Refuse(fmt::format("prefetch at {}, outside of the parallel loop {}", name, n.name));
  }
  if (threads_[0].var >= 0 || threads_[1].var >= 0)
    return Refuse(fmt::format("prefetch at {}, inside of a grid", name));
  return absl::OkStatus();
}

absl::Status NestBuilder::AddPrefetches(const Instance& instance, size_t position,
                                        std::vector<ir::Stmt>* out) {
  HONE_RETURN_IF_ERROR(CheckPrefetchPlace(instance, position));
  const int loop = s_.stages[instance.stage].order[position];
  const LoopNode& node = s_.stages[instance.stage].loops[loop];
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  for (const LoopNode::Prefetch& prefetch : node.prefetches) {
    if (prefetch.shared) {
      HONE_RETURN_IF_ERROR(AddShares(instance, loop, prefetch, out));
      continue;
    }
    const std::string& name = s_.workload.tensors[prefetch.tensor].name;
    // A part of two sizes is counted in elements.
    const int64_t step = std::max<int64_t>(1, instance.bound[loop].inner_extent);
    Instance later = instance;
    later.bound[loop].value = later.bound[loop].value + prefetch.distance * step;
    std::vector<Span> axes;
    for (int a = 0; a < stage.num_axes(); ++a) axes.push_back(SpanOfAxis(s_, later, a, ranges_));
    const Location& at = ReadingFrom(prefetch.tensor);
    const std::vector<Expr> loads = LoadsOf(stage, prefetch.tensor);
    if (loads.empty())
      return Refuse(
          fmt::format("prefetch at {}: {} reads {} no more", node.name, stage.name, name));
    if (at.buffer < 0 || nest_.buffers[at.buffer].scope == ir::Scope::kRegister)
      return Refuse(fmt::format("prefetch at {}: {} is in no memory there", node.name, name));
    for (const Expr& load : loads) {
      std::vector<Expr> low;
      std::vector<int64_t> widths;
      for (const Expr& index : load->args) {
        const auto span = SpanOfIndex(index, axes, ranges_);
        if (!span)
          return Refuse(
              fmt::format("prefetch at {}: where {} is read depends on values", node.name, name));
        low.push_back(span->low);
        widths.push_back(span->width);
      }
      auto lines =
          LinesOf(widths, at.strides, ir::SizeOf(s_.workload.tensors[prefetch.tensor].dtype));
      if (!lines.ok()) {
        return Refuse(fmt::format("prefetch at {}: one iteration's part of {} {}", node.name, name,
                                  std::string(lines.status().message())));
      }
      const Expr first = FlatIndex(at, low);
      num_leaves_ += static_cast<int64_t>(lines->size());
      for (int64_t line : *lines)
        out->push_back(ir::Prefetch(at.buffer, ir::Simplify(first + line, ranges_)));
    }
  }
  return absl::OkStatus();
}

// What lies `distance` iterations further is as long as what all iterations of a point's reduction
// read. All M points that read the same fetch equal parts of it: the tile that begins at point q
// those from q/M on, as many as it has points. In the loop that is so much of the distance to the
// beginning of what is read now.
absl::Status NestBuilder::AddShares(const Instance& instance, int loop,
                                    const LoopNode::Prefetch& prefetch,
                                    std::vector<ir::Stmt>* out) {
  constexpr int64_t kUnit = 1 << 16;  // of the share: no division stands in the loop
  constexpr int64_t kMostShared = 8;
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const ir::Tensor& tensor = s_.workload.tensors[prefetch.tensor];
  const auto refuse = [&](std::string_view why) {
    return Refuse(fmt::format("prefetch at {}: {} {}", s_.stages[instance.stage].loops[loop].name,
                              tensor.name, why));
  };
  const Location& at = ReadingFrom(prefetch.tensor);
  const std::vector<Expr> loads = LoadsOf(stage, prefetch.tensor);
  if (loads.size() != 1) return refuse("is not read once");
  if (at.buffer < 0 || nest_.buffers[at.buffer].scope == ir::Scope::kRegister)
    return refuse("is in no memory there");
  Instance later = instance;
  later.bound[loop].value = later.bound[loop].value + 1;
  std::vector<Span> now, next, begin;
  Expr before = ir::Int(0);  // points of those that read the same
  int64_t points = 1, tile = 1;
  for (int a = 0; a < stage.num_axes(); ++a) {
    now.push_back(SpanOfAxis(s_, instance, a, ranges_));
    next.push_back(SpanOfAxis(s_, later, a, ranges_));
    const bool reduces = a >= stage.num_spatial();
    begin.push_back(reduces ? Span{ir::Int(0), stage.Extent(a)} : now.back());
    if (reduces || std::ranges::any_of(loads[0]->args, [&](const Expr& index) {
          return ir::DependsOnVar(index, a);
        }))
      continue;
    before = before * stage.Extent(a) + now.back().low;
    points *= stage.Extent(a);
    tile *= now.back().width;
  }
  const auto first = [&](const std::vector<Span>& axes) -> Expr {
    std::vector<Expr> low;
    for (const Expr& index : loads[0]->args) {
      const auto span = SpanOfIndex(index, axes, ranges_);
      if (!span) return nullptr;
      low.push_back(span->low);
    }
    return FlatIndex(at, low);
  };
  const Expr here = first(now), there = first(next), base = first(begin);
  if (!here || !there || !base) return refuse("is read where values say");
  const std::optional<int64_t> step = ir::AsInt(ir::Simplify(there - here, ranges_));
  if (!step || *step < 1) return refuse("is not read forwards");
  const int64_t whole = *step * prefetch.distance, bytes = ir::SizeOf(tensor.dtype);
  const int64_t part = (tile * kUnit + points - 1) / points;
  const int64_t lines = (*step * part * bytes + kUnit * kLineBytes - 1) / (kUnit * kLineBytes);
  if (lines > kMostShared) return refuse("is too much for so few points");
  const Expr share =
      ir::Simplify(base + whole + ir::FloorDiv(before * whole, points) +
                       ir::FloorDiv(ir::Simplify(here - base, ranges_) * part, kUnit),
                   ranges_);
  num_leaves_ += lines;
  for (int64_t line = 0; line < lines; ++line)
    out->push_back(
        ir::Prefetch(at.buffer, ir::Simplify(share + line * kLineBytes / bytes, ranges_)));
  return absl::OkStatus();
}

}  // namespace hone::schedule

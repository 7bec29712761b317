#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ir/box_copy.h"
#include "ir/wgmma.h"
#include "schedule/box.h"
#include "schedule/nest_builder.h"

// Slices that a pipeline brings as boxes of tensors (ir/box_copy.h): one thread says how many bytes
// will come, and asks for them; all wait at the slice's barrier, whose phases end once for each
// round through the tiles.
namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kMostBoxRows = 256, kLeastAlignment = 16;

}  // namespace

absl::Status NestBuilder::CheckBoxes(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const ir::Stage& made = s_.workload.stages[stage];
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("{} is no box: {}", made.name, why));
  };
  if (!schedule.swizzle) return refuse("it is not swizzled");
  const bool plain = std::ranges::all_of(
      schedule.order, [&](int loop) { return schedule.loops[loop].kind == ir::LoopKind::kSerial; });
  if (!plain) return refuse("its loops are not as they were");
  if (made.body[0]->kind != ir::ExprKind::kLoad || made.num_spatial() < 2)
    return refuse("it is no part of a matrix as it is");
  return absl::OkStatus();
}

absl::StatusOr<Stmt> NestBuilder::CopyBox(const Instance& region, Stmt copy) {
  const ir::Stage& made = s_.workload.stages[region.stage];
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("{} is no box: {}", made.name, why));
  };
  const ir::ExprNode& load = *made.body[0];
  const Location& from = ReadingFrom(load.id);
  const int rank = made.num_spatial(), outer = rank - 2, inner = rank - 1;
  const int var = NewVar(region.extent[outer]), along = NewVar(region.extent[inner]);
  std::vector<Expr> axes = region.low;
  axes.resize(static_cast<size_t>(rank));
  for (int a = 0; a < outer; ++a) {
    if (region.extent[a] != 1) return refuse("it has more than two dimensions");
  }
  axes[outer] = axes[outer] + ir::Var(var);
  axes[inner] = axes[inner] + ir::Var(along);
  std::vector<Expr> indices;
  for (const Expr& index : load.args) {
    HONE_ASSIGN_OR_RETURN(Expr lowered, LowerExpr(index, axes));
    indices.push_back(std::move(lowered));
  }
  const ir::Buffer source = nest_.buffers[static_cast<size_t>(from.buffer)];
  if (source.scope != ir::Scope::kArgument || source.alignment % kLeastAlignment != 0)
    return refuse("its tensor is no argument, or lies at no multiple of 16 bytes");
  const auto box = FindBox(FlatIndex(from, indices), var, along, region.low[inner],
                           made.spatial[inner], source.elements, ranges_);
  if (!box) return refuse("rows of its tensor lie at no multiples of 16 bytes, or not in line");
  const int64_t rows = region.extent[outer], bytes = ir::SizeOf(source.dtype);
  if (rows > kMostBoxRows) return refuse("more than 256 rows");
  ir::Descriptor map{.argument = source.argument,
                     .dtype = source.dtype,
                     .shape = {source.elements / box->pitch, box->pitch},
                     .strides = {box->pitch * bytes},
                     .box = {rows, ir::kSwizzledRow},
                     .swizzle = ir::Swizzle::k128};
  const auto known = std::ranges::find(nest_.maps, map);
  const auto number = static_cast<int>(known - nest_.maps.begin());
  if (known == nest_.maps.end()) nest_.maps.push_back(std::move(map));
  pipeline_->bytes += rows * region.extent[inner] * bytes;
  const Location& to = location_[made.results[0]];
  const std::vector<Expr> first(region.low.begin(), region.low.begin() + rank);
  return ir::CopyOfBox({.buffer = to.buffer,
                        .barriers = pipeline_->barriers,
                        .map = number,
                        .to = FlatIndex(to, first),
                        .row = box->row,
                        .column = box->column,
                        .slot = pipeline_->slot},
                       NewVar(1), std::move(copy));
}

/// What asks for the slices of an iteration, by the first thread of the block.
Stmt NestBuilder::ByFirstThread(std::vector<Stmt> body) const {
  Expr first;
  for (const ThreadLoop& threads : threads_) {
    if (threads.var < 0) continue;
    const Expr zero = ir::Binary(ir::BinaryOp::kEq, ir::Var(threads.var), ir::Int(0));
    first = first == nullptr ? zero : ir::And(first, zero);
  }
  return ir::If(first, ir::Block(std::move(body)));
}

int NestBuilder::AddBarriers(int64_t count) {
  ir::Buffer barriers;
  barriers.name = fmt::format("landed#{}", nest_.buffers.size());
  barriers.dtype = ir::DType::kU64;
  barriers.elements = count;
  barriers.scope = ir::Scope::kShared;
  return NewBuffer(std::move(barriers));
}

}  // namespace hone::schedule

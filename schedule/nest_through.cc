#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/loop_passes.h"
#include "schedule/nest_builder.h"

// Tiles of registers that are stored through shared memory. What the threads of a row have in a
// tile may lie scattered in the result, as sums of a matrix product do; for each iteration of the
// tile's outermost loop they lay it down in shared memory, as the box that it is of the result, and
// each of them stores neighbours of the last axis, 16 bytes of the result or as many as a row of
// the box has:
//
//   for step:
//     box[…] = tile[step, …]
//     sync
//     for each piece of 16 bytes, in turns: result[…] = what follows of box[…]
//     sync
namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kPieceBytes = 16;
/// Unused bytes after each row of the box: rows that threads write together begin in other banks.
constexpr int64_t kGapBytes = 32;

}  // namespace

/// What the threads of a row have of a tile in one step.
struct NestBuilder::Box {
  int buffer = -1;
  std::vector<Span> spans;       ///< per spatial axis
  std::vector<int64_t> strides;  ///< elements
  Expr base;                     ///< where that of this row begins
  int64_t piece = 1;             ///< neighbours that a thread stores

  int64_t elements() const {
    int64_t all = 1;
    for (const Span& span : spans) all *= span.width;
    return all;
  }
  int64_t pieces_of_row() const { return spans.back().width / piece; }
  /// Where a point of the result lies in the buffer.
  Expr At(const std::vector<Expr>& axes, const ir::VarRanges& ranges) const {
    Expr flat = base;
    for (size_t d = 0; d < spans.size(); ++d) flat = flat + (axes[d] - spans[d].low) * strides[d];
    return ir::Simplify(flat, ranges);
  }
};

absl::StatusOr<NestBuilder::Box> NestBuilder::MakeBox(const Instance& instance, size_t position) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const int own = schedule.cache_write->loop;
  Instance inside = instance;
  inside.bound[own] = {};
  Box box;
  for (int a = 0; a < stage.num_spatial(); ++a)
    box.spans.push_back(SpanOfAxis(s_, inside, a, ranges_));
  int64_t points = ExtentOf(s_, instance, own);
  for (size_t p = position; p < schedule.order.size(); ++p) {
    if (!s_.IsReduce({instance.stage, schedule.order[p]}))
      points *= ExtentOf(s_, instance, schedule.order[p]);
  }
  if (points != box.elements()) {
    return absl::InvalidArgumentError(
        fmt::format("{} is stored through shared memory, but what threads have together is no box "
                    "of the result",
                    schedule.cache_write->name));
  }
  const ir::Tensor& sums = s_.workload.tensors[stage.results[0]];
  const int map = schedule.epilogue;
  const int stored = map < 0 ? stage.results[0] : s_.workload.stages[map].results[0];
  const int64_t row = box.spans.back().width;
  box.piece = kPieceBytes / ir::SizeOf(s_.workload.tensors[stored].dtype);
  while (row % box.piece != 0) box.piece /= 2;
  int64_t elements = 1;
  for (size_t d = box.spans.size(); d-- > 0;) {
    box.strides.insert(box.strides.begin(), elements);
    elements *= box.spans[d].width;
    if (d + 1 == box.spans.size()) elements += kGapBytes / ir::SizeOf(sums.dtype);
  }
  const bool rows = threads_[1].var >= 0;
  box.buffer = AddPrivateBuffer(sums, elements * (rows ? threads_[1].count : 1), Storage::kShared);
  box.base = rows ? ir::Var(threads_[1].var) * elements : ir::Int(0);
  return box;
}

absl::StatusOr<Stmt> NestBuilder::StoreThroughShared(Instance& instance, size_t position) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("{} is stored through shared memory: {}", schedule.cache_write->name, why));
  };
  const int own = schedule.order[position - 1];
  if (schedule.place != Place::kRoot || schedule.loops[own].kind != ir::LoopKind::kThreadX)
    return refuse("it must stand at the loop of a root stage that is thread.x");
  for (size_t p = 0; p < position; ++p) {
    if (s_.IsReduce({instance.stage, schedule.order[p]}))
      return refuse("it must stand around its reduce loops");
  }
  if (s_.workload.stages[instance.stage].results.size() != 1) return refuse("it has two results");
  size_t outermost = position;
  while (outermost < schedule.order.size() &&
         s_.IsReduce({instance.stage, schedule.order[outermost]}))
    ++outermost;
  if (outermost == schedule.order.size()) return refuse("a thread has one number of it");
  const int step = schedule.order[outermost];
  HONE_ASSIGN_OR_RETURN(const std::vector<Segment> segments, SegmentsOf(s_, instance, step));
  if (segments.size() != 1 || schedule.loops[step].kind == ir::LoopKind::kVector)
    return refuse("its outermost loop is a vector or has siblings");
  const int result = s_.workload.stages[instance.stage].results[0];
  const ir::DType dtype = s_.workload.tensors[result].dtype;
  const int64_t steps = segments[0].count;
  const int var = steps > 1 ? NewVar(steps) : -1;
  EnterLoop(s_, instance, step, segments[0], var < 0 ? ir::Int(segments[0].first) : ir::Var(var));
  auto body = [&]() -> absl::StatusOr<Stmt> {
    HONE_ASSIGN_OR_RETURN(const Box box, MakeBox(instance, outermost + 1));
    const auto lay_down = [&](Instance& at) -> absl::StatusOr<Emitted> {
      const Location& tile = location_[result];
      const Expr sum = ir::Load(tile.buffer, dtype, {TileIndex(at, tile)});
      return Emitted{ir::Store(box.buffer, box.At(AxisValues(at), ranges_), sum), {}, {}};
    };
    HONE_ASSIGN_OR_RETURN(Stmt lay, SpatialNest(instance, outermost + 1, lay_down));
    HONE_ASSIGN_OR_RETURN(Stmt store, StorePieces(instance, box));
    return ir::Block({std::move(lay), ir::Sync(), std::move(store), ir::Sync()});
  }();
  LeaveLoop(s_, instance, step);
  if (!body.ok() || var < 0) return body;
  return ir::For(var, steps, ir::LoopKind::kUnrolled, *std::move(body));
}

absl::StatusOr<Stmt> NestBuilder::StorePieces(Instance& instance, const Box& box) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const int result = s_.workload.stages[instance.stage].results[0];
  Instance inside = instance;
  inside.bound[schedule.cache_write->loop] = {};
  const int64_t threads = threads_[0].count, pieces = box.elements() / box.piece;
  const int64_t turns = (pieces + threads - 1) / threads;
  const int turn = turns > 1 ? NewVar(turns) : -1, lane = box.piece > 1 ? NewVar(box.piece) : -1;
  Expr number = ir::Var(threads_[0].var);
  if (turn >= 0) number = ir::Var(turn) * threads + number;
  std::vector<Expr> axes = AxisValues(inside);
  const size_t last = box.spans.size() - 1;
  Expr element = ir::FloorMod(number, box.pieces_of_row()) * box.piece;
  if (lane >= 0) element = element + ir::Var(lane);
  axes[last] = ir::Simplify(box.spans[last].low + element, ranges_);
  Expr rest = ir::FloorDiv(number, box.pieces_of_row());
  for (size_t d = last; d-- > 0;) {
    const int64_t width = box.spans[d].width;
    axes[d] = ir::Simplify(box.spans[d].low + ir::FloorMod(rest, width), ranges_);
    rest = ir::FloorDiv(rest, width);
  }
  Emitted e;
  Location tile = std::exchange(location_[result], home_[result]);
  e.domain = DomainGuards(inside, axes, Inner::kMayGiveLess);
  for (Expr& guard : e.domain) guard = OfWholeVectors(guard, ranges_);
  const Expr value =
      ir::Load(box.buffer, s_.workload.tensors[result].dtype, {box.At(axes, ranges_)});
  const Expr at = schedule.epilogue < 0 ? ResultIndex(inside, 0, axes) : nullptr;
  home_[result] = std::exchange(location_[result], std::move(tile));
  if (schedule.epilogue >= 0) {
    HONE_ASSIGN_OR_RETURN(e.stmt, EpilogueStore(instance.stage, axes, value));
  } else {
    e.stmt = ir::Store(home_[result].buffer, at, value);
  }
  if (pieces % threads != 0) e.domain.push_back(ir::Lt(number, ir::Int(pieces)));
  if (lane >= 0) {
    PlaceGuards(e, lane);
    e.stmt = ir::For(lane, box.piece, ir::LoopKind::kVector, std::move(e.stmt));
  }
  PlaceGuards(e, -1);
  if (turn >= 0) e.stmt = ir::For(turn, turns, ir::LoopKind::kUnrolled, std::move(e.stmt));
  return e.stmt;
}

}  // namespace hone::schedule

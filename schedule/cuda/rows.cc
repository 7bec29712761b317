#include "schedule/cuda/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "ir/combiner.h"
#include "ir/cuda/cuda_target.h"
#include "schedule/access.h"
#include "schedule/cuda/parts.h"
#include "schedule/cuda/window_tile.h"
#include "schedule/nest_builder.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr size_t kThreads = 0, kRows = 1, kVectors = 2;  // columns
constexpr int64_t kLeastRow = kWarpThreads, kMostThreads = 512;
/// What a block takes by default, so that code for a chip runs on every later one.
constexpr int64_t kNominalSharedBytes = 48 << 10;
/// Partial results that one thread folds at the end; more are folded by as many threads first.
constexpr int64_t kFold = 16;

struct RowsForm : SketchForm {
  int64_t shared_bytes = 0;               ///< of one row, without partial results
  int64_t reductions = 0, exchanged = 0;  ///< of a cluster's Stages; those that lanes can share
  std::string row_loop, column_loop;      ///< of the first cluster's owner, before they are split
  int64_t rows = 1;                 ///< the fewest of a cluster, along the axis that blocks share
  int64_t columns = INT64_MAX;      ///< the fewest of a row that is written
  int64_t shortest = kMostThreads;  ///< row that is reduced, and no more
  bool vectors = true;              ///< rows are whole vectors
  ir::CudaTarget card;
};

bool IsReduction(const ir::Stage& stage) { return stage.combiner != ir::Combiner::kNone; }

bool IsRowReduction(const ir::Stage& stage, int row_axes) {
  return IsReduction(stage) && !ir::IsTuple(stage.combiner) && stage.num_reduce() == 1 &&
         stage.num_spatial() == row_axes && stage.reduce[0] >= kLeastRow;
}

/// Whether the Stages of a cluster are what ScheduleRows writes.
bool HasRows(const ir::Workload& workload, const Cluster& cluster) {
  const ir::Stage& owner = workload.stages[cluster.owner];
  if (owner.scan >= 0 || owner.results.size() != 1) return false;
  if (IsReduction(owner)) return false;  // a launch has as many threads as its owner has results
  const int rows = cluster.row_axes;
  if (cluster.anchor >= 0 || rows < 1 || owner.num_spatial() != rows + 1) return false;
  bool reduces = false;
  for (const int id : cluster.members) {
    const ir::Stage& member = workload.stages[id];
    if (member.scan >= 0 || member.results.size() != 1) return false;
    for (int a = 0; a < rows; ++a) {
      if (a >= member.num_spatial() || member.spatial[a] != owner.spatial[a]) return false;
    }
    if (!IsReduction(member)) {
      if (member.num_spatial() > rows + 1) return false;
    } else if (IsRowReduction(member, rows)) {
      reduces = true;
    } else {
      return false;
    }
  }
  return reduces;
}

/// Whether each reader's row is that of the Stage: the leading axes are its own.
bool ReadByRows(const ir::Workload& workload, const ir::Stage& reader, const ir::Stage& stage,
                int row_axes) {
  for (const Access& access : AccessesOf(workload, reader)) {
    if (access.tensor != stage.results[0]) continue;
    for (int a = 0; a < row_axes; ++a) {
      const ir::Expr& index = access.indices[a];
      const bool own = index->kind == ir::ExprKind::kVar && index->id == a;
      if (!own && stage.spatial[a] != 1) return false;
    }
  }
  return true;
}

/// Adds a reduction that is alone in `from` to the rows of `to`, whose Stages alone read it.
void TakeReduction(const ir::Workload& workload, const std::vector<int>& live, const Cluster& from,
                   Cluster& to) {
  const ir::Stage& stage = workload.stages[from.owner];
  const ir::Stage& owner = workload.stages[to.owner];
  const int rows = owner.num_spatial() - 1;
  const ir::Tensor& result = workload.tensors[stage.results[0]];
  if (rows < 1 || to.anchor >= 0 || IsReduction(owner) || !from.members.empty() || result.output ||
      !IsRowReduction(stage, rows) || (!to.members.empty() && to.row_axes != rows)) {
    return;
  }
  for (const int id : live) {
    if (!Loads(workload.stages[id], stage)) continue;
    const bool inside = id == to.owner || std::ranges::count(to.members, id) > 0;
    if (!inside || !ReadByRows(workload, workload.stages[id], stage, rows)) return;
  }
  to.row_axes = rows;
  to.members.insert(to.members.begin(), from.owner);
}

/// Whether the lanes of several warps find the numbers of a row, each warp's in registers, and what
/// the warps found meets in shared memory once.
bool SharedByWarps(const ir::Workload& workload, const Cluster& cluster, int64_t threads) {
  return threads > kWarpThreads && std::ranges::all_of(cluster.members, [&](int id) {
           const ir::Stage& stage = workload.stages[id];
           return !IsReduction(stage) || ReducedByLanes(workload, stage, kWarpThreads);
         });
}

/// Writes one cluster.
class RowWriter {
 public:
  RowWriter(TraceWriter& w, const Cluster& cluster, const Values& v)
      : w_(w),
        cluster_(cluster),
        threads_(v[kThreads]),
        rows_(v[kRows]),
        vectors_(v[kVectors]),
        row_axis_(cluster.row_axes - 1) {}

  void Write() {
    if (SharedByWarps(w_.workload(), cluster_, threads_)) return WriteWarps();
    const ir::Stage owner = w_.stage(cluster_.owner);
    std::vector<std::vector<std::string>> parts;  // of each member
    for (const int id : cluster_.members) {
      const ir::Stage member = w_.stage(id);
      const bool factored = IsReduction(member) && !ReducedByLanes(w_.workload(), member, threads_);
      parts.push_back(factored ? Factor(member) : std::vector<std::string>{member.name});
    }
    SplitRows(owner);
    const std::string column = Axis(owner.name, row_axis_ + 1);
    const char* const tail = Tail(owner.spatial[row_axis_ + 1], threads_ * vectors_);
    w_.Emit(vectors_ > 1 ? fmt::format("split({}, [{}, {}]{})", column, threads_, vectors_, tail)
                         : fmt::format("split({}, {}{})", column, threads_, tail));
    std::vector<std::string> inside = {column + ".1", column + ".0"};
    if (vectors_ > 1) inside.push_back(column + ".2");
    BindRows(owner, inside);
    const std::string at = column + ".1";
    w_.Emit(fmt::format("bind({}, thread.x)", at));
    if (vectors_ > 1) w_.Emit(fmt::format("vectorize({}.2)", column));
    for (size_t k = parts.size(); k-- > 0;) {
      // A map of one number a row is every thread's own.
      const char* const where = IsNumber(w_.stage(cluster_.members[k])) ? "register" : "shared";
      for (size_t p = parts[k].size(); p-- > 0;)
        w_.Emit(fmt::format("compute_at({}, {}, {})", parts[k][p], at, where));
    }
    for (size_t k = 0; k < parts.size(); ++k) {
      const ir::Stage member = w_.stage(cluster_.members[k]);
      for (size_t p = 0; p + 1 < parts[k].size(); ++p)
        BindLanes(parts[k][p], Axis(parts[k][p], row_axis_ + 1));
      if (member.num_spatial() <= row_axis_ + 1) {
        if (IsNumber(member)) continue;
        if (parts[k].size() == 1) {
          if (rows_ > 1) w_.Emit(fmt::format("bind({}, thread.y)", Axis(member.name, row_axis_)));
          ReduceByLanes(member);
        } else {
          BindScalar(member.name);
        }
        continue;
      }
      const std::string element = Axis(member.name, row_axis_ + 1);
      w_.Emit(fmt::format("split({}, {}{})", element, threads_,
                          Tail(member.spatial[row_axis_ + 1], threads_)));
      BindLanes(member.name, element + ".1");
    }
  }

 private:
  /// Rows and the warps of each are thread.y, lanes are thread.x. A warp reduces a stretch of its
  /// row; each thread folds what the warps found, which it and all maps of one number a row keep in
  /// registers.
  void WriteWarps() {
    const ir::Stage owner = w_.stage(cluster_.owner);
    std::vector<std::string> found(cluster_.members.size());
    for (size_t k = 0; k < found.size(); ++k) {
      const std::string& name = w_.name(cluster_.members[k]);
      if (!IsReduction(w_.stage(cluster_.members[k]))) continue;
      found[k] = w_.NextStage();
      w_.Emit(fmt::format("{0} = rfactor({1}, {1}.r0, {2}, outer)", found[k], name, warps()));
    }
    if (!w_.status().ok()) return;
    SplitRows(owner);
    const std::string column = Axis(owner.name, row_axis_ + 1);
    SplitOverWarps(owner.name, vectors_);
    std::vector<std::string> inside = {column + ".1", column + ".2", column + ".0"};
    if (vectors_ > 1) inside.push_back(column + ".3");
    BindRows(owner, inside);
    const std::string at = column + ".2";
    w_.Emit(fmt::format("bind({}, thread.x)", at));
    if (vectors_ > 1) w_.Emit(fmt::format("vectorize({}.3)", column));
    for (size_t k = found.size(); k-- > 0;) {
      const ir::Stage member = w_.stage(cluster_.members[k]);
      const bool of_row = member.num_spatial() > row_axis_ + 1;
      w_.Emit(
          fmt::format("compute_at({}, {}, {})", member.name, at, of_row ? "shared" : "register"));
      if (!found[k].empty()) w_.Emit(fmt::format("compute_at({}, {}, shared)", found[k], at));
    }
    for (size_t k = 0; k < found.size(); ++k) {
      const ir::Stage member = w_.stage(cluster_.members[k]);
      if (!found[k].empty()) {
        BindWarps(found[k], Axis(found[k], row_axis_ + 1));
        ReduceByLanes(w_.stage(w_.workload().FindStage(found[k])));
        w_.Emit(fmt::format("unroll({}.r0)", member.name));
      } else if (member.num_spatial() > row_axis_ + 1) {
        SplitOverWarps(member.name, 1);
        const std::string element = Axis(member.name, row_axis_ + 1);
        w_.Emit(fmt::format("reorder({0}.1, {0}.2, {0}.0)", element));
        BindWarps(member.name, element + ".1");
        w_.Emit(fmt::format("bind({}.2, thread.x)", element));
      }
    }
  }

  /// A map of one number a row.
  bool IsNumber(const ir::Stage& stage) const {
    return !IsReduction(stage) && stage.num_spatial() <= row_axis_ + 1;
  }

  int64_t warps() const { return threads_ / kWarpThreads; }

  /// The elements of a row.
  void SplitOverWarps(const std::string& stage, int64_t vectors) {
    const std::string element = Axis(stage, row_axis_ + 1);
    const int64_t extent = w_.stage(w_.workload().FindStage(stage)).spatial[row_axis_ + 1];
    const std::string inner = vectors > 1 ? fmt::format(", {}", vectors) : "";
    w_.Emit(fmt::format("split({}, [{}, {}{}]{})", element, warps(), kWarpThreads, inner,
                        Tail(extent, threads_ * vectors)));
  }

  /// The rows of a block and this loop over warps, just inside.
  void BindWarps(const std::string& stage, std::string warp) {
    if (rows_ > 1) {
      const std::string both = stage + ".f0";
      w_.Emit(fmt::format("{} = fuse({}, {})", both, Axis(stage, row_axis_), warp));
      warp = both;
    }
    w_.Emit(fmt::format("bind({}, thread.y)", warp));
  }

  static std::string Axis(const std::string& stage, int axis) {
    return fmt::format("{}.i{}", stage, axis);
  }
  static const char* Tail(int64_t extent, int64_t part) {
    return extent % part == 0 ? "" : ", mask";
  }

  /// Splits a reduction into what each thread finds, and what folds that. The Stages, first to
  /// last; the last one is the reduction.
  std::vector<std::string> Factor(const ir::Stage& stage) {
    std::vector<std::string> stages = {w_.NextStage()};
    const int64_t found = std::min(threads_, stage.reduce[0]);
    w_.Emit(fmt::format("{0} = rfactor({1}, {1}.r0, {2}, inner)", stages[0], stage.name, found));
    if (found > 2 * kFold) {
      stages.push_back(w_.NextStage());
      w_.Emit(fmt::format("{0} = rfactor({1}, {1}.r0, {2}, inner)", stages[1], stage.name, kFold));
    }
    stages.push_back(stage.name);
    return stages;
  }

  /// The owner's loops over rows: blocks, then the rows of a block. `inside`: its other loops.
  void BindRows(const ir::Stage& owner, const std::vector<std::string>& inside) {
    std::string last = Axis(owner.name, row_axis_);
    std::vector<std::string> order;
    for (int a = 0; a < row_axis_; ++a) order.push_back(Axis(owner.name, a));
    if (rows_ > 1) {
      order.push_back(last + ".0");
      order.push_back(last + ".1");
      last += ".0";
    } else {
      order.push_back(last);
    }
    order.insert(order.end(), inside.begin(), inside.end());
    w_.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    std::string block = row_axis_ == 0 ? last : Axis(owner.name, 0);
    for (int a = 1; a <= row_axis_; ++a) {
      const std::string next = a == row_axis_ ? last : Axis(owner.name, a);
      const std::string fused = fmt::format("{}.f{}", owner.name, a - 1);
      w_.Emit(fmt::format("{} = fuse({}, {})", fused, block, next));
      block = fused;
    }
    w_.Emit(fmt::format("bind({}, block.x)", block));
    const bool by_warps = SharedByWarps(w_.workload(), cluster_, threads_);
    std::string row = Axis(owner.name, row_axis_) + ".1";
    if (by_warps && rows_ > 1) {
      const std::string both = fmt::format("{}.f{}", owner.name, row_axis_);
      w_.Emit(fmt::format("{} = fuse({}, {})", both, row, inside[0]));
      row = both;
    }
    if (by_warps && rows_ == 1) row = inside[0];
    if (by_warps || rows_ > 1) w_.Emit(fmt::format("bind({}, thread.y)", row));
  }

  void SplitRows(const ir::Stage& owner) {
    if (rows_ == 1) return;
    w_.Emit(fmt::format("split({}, {}{})", Axis(owner.name, row_axis_), rows_,
                        Tail(owner.spatial[row_axis_], rows_)));
  }

  /// What threads of the block do together: one element of `axis` each.
  void BindLanes(const std::string& stage, const std::string& loop) {
    if (rows_ > 1) w_.Emit(fmt::format("bind({}, thread.y)", Axis(stage, row_axis_)));
    w_.Emit(fmt::format("bind({}, thread.x)", loop));
  }

  /// One number for a row, or for each warp of it, by a warp: a lane reduces every 32nd element.
  void ReduceByLanes(const ir::Stage& stage) {
    const std::string terms = stage.name + ".r0", lane = terms + ".1";
    w_.Emit(
        fmt::format("split({}, {}{})", terms, kWarpThreads, Tail(stage.reduce[0], kWarpThreads)));
    w_.Emit(fmt::format("reorder({}, {}.0)", lane, terms));
    w_.Emit(fmt::format("{} = cache_write({}, register, at={})", w_.NextStage(), stage.name, lane));
    w_.Emit(fmt::format("bind({}, thread.x)", lane));
  }

  /// One number for a row, by one thread of it.
  void BindScalar(const std::string& stage) {
    const std::string row = Axis(stage, row_axis_);
    if (rows_ == 1) {
      w_.Emit(fmt::format("bind({}, thread.x)", row));
      return;
    }
    w_.Emit(fmt::format("split({}, 1)", row));
    w_.Emit(fmt::format("bind({}.0, thread.y)", row));
    w_.Emit(fmt::format("bind({}.1, thread.x)", row));
  }

  TraceWriter& w_;
  const Cluster& cluster_;
  const int64_t threads_, rows_, vectors_;
  const int row_axis_;  ///< the last of the axes over rows
};

/// What bounds the numbers of all clusters.
std::shared_ptr<RowsForm> FormOf(const TraceWriter& w, const std::vector<Cluster>& clusters) {
  auto form = std::make_shared<RowsForm>();
  form->rows = INT64_MAX;
  for (const Cluster& cluster : clusters) {
    const ir::Stage& owner = w.stage(cluster.owner);
    const int row_axis = cluster.row_axes - 1;
    if (form->row_loop.empty()) {
      form->row_loop = fmt::format("{}.i{}", owner.name, row_axis);
      form->column_loop = fmt::format("{}.i{}", owner.name, row_axis + 1);
    }
    form->rows = std::min(form->rows, owner.spatial[row_axis]);
    form->columns = std::min(form->columns, owner.spatial[row_axis + 1]);
    form->vectors = form->vectors && owner.spatial[row_axis + 1] % 4 == 0;
    int64_t bytes = 0;
    for (const int id : cluster.members) {
      const ir::Stage& stage = w.stage(id);
      if (IsReduction(stage)) {
        ++form->reductions;
        form->exchanged += ReducedByLanes(w.workload(), stage, kWarpThreads) ? 1 : 0;
        form->shortest = std::min(form->shortest, stage.reduce[0]);
      }
      const ir::Tensor& result = w.workload().tensors[stage.results[0]];
      bytes += ir::SizeOf(result.dtype) *
               (stage.num_spatial() > row_axis + 1 ? stage.spatial[row_axis + 1] : 1);
    }
    form->shared_bytes = std::max(form->shared_bytes, bytes);
  }
  return form;
}

std::string_view RefusalOf(const RowsForm& form, const Values& v, int64_t most_shared_bytes) {
  if (v[kThreads] * v[kRows] > kMostThreads) return "too many threads";
  if (v[kRows] > form.rows) return "a block has more rows than there are";
  const bool warps = form.exchanged == form.reductions;
  const int64_t factored = form.reductions - (v[kThreads] == kWarpThreads ? form.exchanged : 0);
  const int64_t found = warps ? v[kThreads] / kWarpThreads : v[kThreads] + 2 * kFold;
  const int64_t partial = 4 * factored * found;
  if (v[kRows] * (form.shared_bytes + partial) > most_shared_bytes)
    return "rows larger than a block's shared memory";
  return {};
}

/// A thread for every eight elements of a row, and rows until a block has 128 threads.
std::optional<Values> NominalOf(const RowsForm& form) {
  constexpr int64_t kOfAThread = 8, kWanted = 128;
  int64_t threads = kLeastRow;
  while (2 * threads <= form.shortest && kOfAThread * threads < form.columns && threads < 256)
    threads *= 2;
  const auto fits = [&](const Values& values) {
    return RefusalOf(form, values, kNominalSharedBytes).empty();
  };
  Values v{threads, 1, form.vectors && form.columns >= 4 * threads ? 4 : 1};
  for (const int64_t rows : {4, 2}) {
    if (v[kRows] == 1 && threads * rows <= kWanted && fits({threads, rows, 1})) v[kRows] = rows;
  }
  return fits(v) ? std::optional(v) : std::nullopt;
}

class RowsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const RowsForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w);
    for (const Cluster& cluster : parts.rows) ScheduleRow(w, cluster, v);
    ScheduleProducts(w, parts, form.card);
    ScheduleOthers(w, parts, form.card);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const RowsForm&>(*sketch.form);
    Values values{sketch.tables[0].rows[0][0], 1, 1};
    const std::vector<int64_t> rows = FactorsOf(trace, form.row_loop);
    const std::vector<int64_t> columns = FactorsOf(trace, form.column_loop);
    if (!rows.empty()) values[kRows] = rows[0];
    const bool warps = columns.size() > 1 && columns[1] == kWarpThreads;
    if (!columns.empty()) values[kThreads] = columns[0] * (warps ? kWarpThreads : 1);
    if (columns.size() > (warps ? 2U : 1U)) values[kVectors] = columns.back();
    return values;
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const RowsForm&>(*sketch.form);
    return RefusalOf(form, v, form.card.block_shared_bytes);
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return NominalOf(static_cast<const RowsForm&>(*sketch.form));
  }
};

}  // namespace

bool ReducedByLanes(const ir::Workload& workload, const ir::Stage& stage, int64_t threads) {
  return threads == kWarpThreads && IsReduction(stage) && !ir::IsTuple(stage.combiner) &&
         stage.results.size() == 1 && ir::SizeOf(workload.tensors[stage.results[0]].dtype) >= 4;
}

std::vector<Cluster> RowClusters(TraceWriter& writer, const std::set<int>& keep) {
  const ir::Workload& w = writer.workload();
  std::vector<Cluster> all = FindClusters(writer, keep, -1);
  const std::vector<int> live = LiveStages(writer.schedule());
  std::vector<Cluster> rows;
  for (size_t k = 0; k < all.size(); ++k) {
    // What stands for itself on a CPU, as squares of sums do, may be of these rows all the same.
    for (size_t other = k; other-- > 0;) TakeReduction(w, live, all[other], all[k]);
    if (HasRows(w, all[k])) rows.push_back(all[k]);
  }
  return rows;
}

std::optional<Values> NominalRows(const TraceWriter& writer, const std::vector<Cluster>& clusters) {
  if (clusters.empty()) return std::nullopt;
  return NominalOf(*FormOf(writer, clusters));
}

void ScheduleRow(TraceWriter& writer, const Cluster& cluster, const Values& numbers) {
  RowWriter(writer, cluster, numbers).Write();
}

std::optional<Sketch> RowsSketch(const ir::Workload& workload, const ir::Target& target) {
  static const RowsRule rule;
  TraceWriter w(workload);
  const std::vector<Cluster> clusters = RowClusters(w, WindowInputs(workload));
  if (clusters.empty()) return std::nullopt;
  auto form = FormOf(w, clusters);
  form->card = target.As<ir::CudaTarget>();
  DecisionTable threads{"threads", {"row_threads"}, {}};
  for (int64_t t = kLeastRow; t <= form->shortest; t *= 2) threads.rows.push_back({t});
  DecisionTable rows{"rows", {"block_rows"}, {{1}, {2}, {4}, {8}}};
  DecisionTable elements{"elements", {"row_elements"}, {{1}}};
  if (form->vectors) elements.rows.push_back({4});
  return Sketch{
      "rows", {std::move(threads), std::move(rows), std::move(elements)}, &rule, std::move(form)};
}

}  // namespace hone::schedule

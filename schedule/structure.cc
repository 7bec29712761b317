#include "schedule/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "schedule/affine.h"
#include "schedule/nest_builder.h"

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

constexpr int64_t kCheap = 2;      ///< operations that may be repeated for every read
constexpr int64_t kShortAxis = 8;  ///< iterations below which an axis fills no vector

void CollectAccesses(const ir::Workload& w, const ir::Stage& stage, const Expr& e, bool guarded,
                     std::vector<Access>* out) {
  if (e->kind == ExprKind::kLoad) {
    Access a;
    a.tensor = e->id;
    a.indices = e->args;
    a.guarded = guarded;
    a.stride.assign(stage.num_axes(), 0);
    a.linear.assign(stage.num_axes(), true);
    const auto& shape = w.tensors[e->id].shape;
    VarRanges ranges;
    for (int x = 0; x < stage.num_axes(); ++x) ranges.extent.push_back(stage.Extent(x));
    int64_t scale = 1;
    for (size_t d = shape.size(); d-- > 0; scale *= shape[d]) {
      Linear l = ToLinear(e->args[d], ranges);
      for (const auto& t : l.terms) {
        for (int x = 0; x < stage.num_axes(); ++x) {
          if (t.atom->kind == ExprKind::kVar ? t.atom->id != x : !DependsOnVar(t.atom, x)) continue;
          if (t.atom->kind == ExprKind::kVar)
            a.stride[x] += t.coefficient * scale;
          else
            a.linear[x] = false;
        }
      }
    }
    out->push_back(std::move(a));
  }
  for (size_t i = 0; i < e->args.size(); ++i) {
    CollectAccesses(w, stage, e->args[i], guarded || (e->kind == ExprKind::kSelect && i > 0), out);
  }
}

int64_t CostOfExpr(const Expr& e) {
  int64_t cost = 0;
  if (e->kind == ExprKind::kLoad) return 0;  // index arithmetic is not counted
  if (e->kind == ExprKind::kUnary) {
    bool cheap = e->unary() == ir::UnaryOp::kNeg || e->unary() == ir::UnaryOp::kAbs ||
                 e->unary() == ir::UnaryOp::kNot;
    cost = cheap ? 1 : 16;
  }
  if (e->kind == ExprKind::kBinary && ir::IsFloat(e->dtype)) {
    cost = e->binary() == ir::BinaryOp::kPow                                        ? 16
           : e->binary() == ir::BinaryOp::kDiv                                      ? 4
           : e->binary() == ir::BinaryOp::kMax || e->binary() == ir::BinaryOp::kMin ? 0
                                                                                    : 1;
  }
  for (const Expr& a : e->args) cost += CostOfExpr(a);
  return cost;
}

bool IsOutput(const ir::Workload& w, const ir::Stage& s) {
  return std::any_of(s.results.begin(), s.results.end(),
                     [&](int r) { return w.tensors[r].output; });
}

std::vector<int> ReadersOf(const ir::Workload& w, const std::vector<int>& live, int id) {
  std::vector<int> out;
  for (int r : live) {
    if (r == id) continue;
    bool reads = false;
    for (const auto& a : AccessesOf(w, w.stages[r])) {
      for (int result : w.stages[id].results) reads |= a.tensor == result;
    }
    if (reads) out.push_back(r);
  }
  return out;
}

/// Whether the reader evaluates each element of the producer about once.
bool ReadOnce(const ir::Workload& w, const ir::Stage& reader, const ir::Stage& producer) {
  int loads = 0;
  int64_t points = 1;
  for (int a = 0; a < reader.num_axes(); ++a) points *= reader.Extent(a);
  for (const auto& a : AccessesOf(w, reader)) loads += a.tensor == producer.results[0];
  return loads == 1 && points <= w.tensors[producer.results[0]].NumElements();
}

/// Whether some reader evaluates each element of a computed Stage again and again in its innermost
/// loop: a contraction's broadcast operand costs as much there as the product itself.
bool IsComputedForContraction(const ir::Workload& w, const ir::Stage& stage,
                              const std::vector<int>& readers) {
  return Computes(stage) && std::any_of(readers.begin(), readers.end(), [&](int r) {
           return RoleOf(w, w.stages[r]) == Role::kContraction && !ReadOnce(w, w.stages[r], stage);
         });
}

void InlineStages(TraceWriter& writer, int keep, int force) {
  std::vector<int> live = LiveStages(writer.schedule());
  for (int id : live) {
    const ir::Stage stage = writer.stage(id);
    const ir::Workload& w = writer.workload();
    if (id == keep || stage.combiner != ir::Combiner::kNone || stage.scan >= 0 ||
        IsOutput(w, stage))
      continue;
    std::vector<int> readers = ReadersOf(w, LiveStages(writer.schedule()), id);
    bool in_scan =
        std::any_of(readers.begin(), readers.end(), [&](int r) { return w.stages[r].scan >= 0; });
    if (in_scan && CostOf(stage) > 0) continue;
    if (id != force && IsComputedForContraction(w, stage, readers)) continue;
    bool once = id == force || (readers.size() == 1 && ReadOnce(w, w.stages[readers[0]], stage));
    if (once || CostOf(stage) <= kCheap) writer.Emit(fmt::format("inline({})", stage.name));
  }
}

/// Whether the reader's axis k is that of the Stage; one of extent 1 may be written as 0.
bool ReadsOwnAxis(const ir::Stage& reader, const ir::Stage& stage, const ir::Expr& index, int k) {
  if (index->kind == ExprKind::kVar) return index->id == k;
  return reader.spatial[k] == 1 && stage.spatial[k] == 1 && ir::AsInt(index) == 0;
}

/// How many leading axes of `stage` are read by `reader` as its own leading axes, in order.
int SharedLeading(const ir::Workload& w, const ir::Stage& reader, const ir::Stage& stage) {
  int shared = std::min(reader.num_spatial(), stage.num_spatial());
  for (const auto& a : AccessesOf(w, reader)) {
    if (std::find(stage.results.begin(), stage.results.end(), a.tensor) == stage.results.end())
      continue;
    int k = 0;
    while (k < shared && ReadsOwnAxis(reader, stage, a.indices[k], k)) ++k;
    shared = k;
  }
  return shared;
}

bool IdentityRead(const ir::Workload& w, const ir::Stage& reader, const ir::Stage& stage) {
  return reader.combiner == ir::Combiner::kNone && reader.spatial == stage.spatial &&
         SharedLeading(w, reader, stage) == stage.num_spatial();
}

}  // namespace

std::vector<Access> AccessesOf(const ir::Workload& workload, const ir::Stage& stage) {
  std::vector<Access> out;
  for (const auto& body : stage.body) CollectAccesses(workload, stage, body, false, &out);
  return out;
}

int64_t CostOf(const ir::Stage& stage) {
  int64_t cost = 0;
  for (const auto& body : stage.body) cost += CostOfExpr(body);
  return cost;
}

bool Computes(const ir::Stage& stage) {
  bool computes = false;
  const std::function<void(const Expr&)> visit = [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) return;  // index arithmetic is not counted
    computes |= e->kind == ExprKind::kUnary;
    computes |= e->kind == ExprKind::kBinary && ir::IsFloat(e->dtype);
    computes |= e->kind == ExprKind::kCast && ir::IsFloat(e->dtype);
    for (const Expr& a : e->args) visit(a);
  };
  for (const auto& body : stage.body) visit(body);
  return computes;
}

int VectorAxis(const ir::Stage& stage) {
  int axis = -1;
  for (int a = stage.num_spatial(); a-- > 0 && axis < 0;) {
    if (stage.spatial[a] > 1) axis = a;
  }
  // A store map may hold the memory's innermost axis further outside, as depth-to-space does.
  if (axis < 0 || stage.store.empty() || stage.spatial[axis] >= kShortAxis) return axis;
  const Expr& last = stage.store.back();
  if (last->kind == ExprKind::kVar && stage.spatial[last->id] > stage.spatial[axis]) {
    return last->id;
  }
  return axis;
}

Role RoleOf(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.combiner == ir::Combiner::kNone) return Role::kMap;
  std::vector<Access> accesses;
  for (auto& a : AccessesOf(workload, stage)) {
    if (workload.tensors[a.tensor].kind != ir::TensorKind::kImmediate)
      accesses.push_back(std::move(a));
  }
  const int v = VectorAxis(stage);
  // A product whose vector axis is read by one factor is a contraction; when all read it, it is a
  // window.
  if (stage.combiner == ir::Combiner::kSum && v >= 0) {
    bool along = false, across = false;
    for (const auto& a : accesses) {
      bool reduced = false;
      for (int r = stage.num_spatial(); r < stage.num_axes(); ++r)
        reduced |= stage.Extent(r) > 1 && a.DependsOn(r);
      along |= reduced && a.DependsOn(v);
      across |= reduced && !a.DependsOn(v);
    }
    if (along && across) return Role::kContraction;
  }
  for (const auto& a : accesses) {
    if (v >= 0 && a.linear[v] && a.stride[v] == 1) return Role::kWindow;
  }
  for (const auto& a : accesses) {
    for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
      if (a.linear[r] && a.stride[r] == 1 && stage.Extent(r) > 1) return Role::kRow;
    }
  }
  return Role::kWindow;
}

int FindInputStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    const ir::Stage& s = workload.stages[id];
    if (s.combiner != ir::Combiner::kNone || s.scan >= 0 || IsOutput(workload, s)) continue;
    std::vector<int> readers = workload.Readers(static_cast<int>(id));
    const bool pads =
        s.body[0]->kind == ExprKind::kSelect && s.body[0]->args[2]->kind == ExprKind::kConst;
    if (!pads && !IsComputedForContraction(workload, s, readers)) continue;
    bool heavy = !readers.empty();
    for (int r : readers) {
      Role role = RoleOf(workload, workload.stages[r]);
      heavy &= role == Role::kContraction || role == Role::kWindow;
    }
    if (heavy) return static_cast<int>(id);
  }
  return -1;
}

std::vector<Cluster> FindClusters(TraceWriter& writer, int keep, int force) {
  InlineStages(writer, keep, force);
  const ir::Workload& w = writer.workload();
  const std::vector<int> live = LiveStages(writer.schedule());
  std::vector<Cluster> clusters;
  std::vector<int> cluster_of(w.stages.size(), -1);
  for (auto it = live.rbegin(); it != live.rend(); ++it) {
    const int id = *it;
    const ir::Stage& stage = w.stages[id];
    const Role role = RoleOf(w, stage);
    const bool heavy = role == Role::kContraction || role == Role::kWindow;
    std::vector<int> readers = ReadersOf(w, live, id);
    if (!IsOutput(w, stage) && !readers.empty() && stage.scan < 0) {
      Cluster* home = nullptr;
      bool one = cluster_of[readers[0]] >= 0;
      for (int r : readers)
        one = one && cluster_of[r] == cluster_of[readers[0]] && w.stages[r].scan < 0;
      if (one) home = &clusters[cluster_of[readers[0]]];
      if (home && heavy && readers.size() == 1 && readers[0] == home->owner && home->anchor < 0 &&
          home->members.empty() && IdentityRead(w, w.stages[home->owner], stage)) {
        home->anchor = id;
        cluster_of[id] = cluster_of[readers[0]];
        continue;
      }
      if (home && !heavy && home->anchor < 0) {
        int rows = home->members.empty() ? w.stages[home->owner].num_spatial() : home->row_axes;
        for (int r : readers) rows = std::min(rows, SharedLeading(w, w.stages[r], stage));
        // A map with one reader per row would be inlined; a reduction per row wants at least one
        // shared axis.
        int64_t row_points = 1;
        for (int a = 0; a < rows; ++a) row_points *= stage.spatial[a];
        int64_t reader_points = 1;
        for (int a = 0; a < rows; ++a) reader_points *= w.stages[home->owner].spatial[a];
        if (rows > 0 && row_points == reader_points) {
          home->row_axes = rows;
          home->members.push_back(id);
          cluster_of[id] = cluster_of[readers[0]];
          continue;
        }
      }
    }
    Cluster c;
    c.owner = id;
    c.anchor = heavy ? id : -1;
    cluster_of[id] = static_cast<int>(clusters.size());
    clusters.push_back(c);
  }
  std::reverse(clusters.begin(), clusters.end());
  for (auto& c : clusters) std::reverse(c.members.begin(), c.members.end());
  return clusters;
}

}  // namespace hone::schedule

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

constexpr int64_t kCheap = 2;  ///< operations that may be repeated for every read

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

void InlineStages(TraceWriter& writer, int keep) {
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
    bool once = readers.size() == 1 && ReadOnce(w, w.stages[readers[0]], stage);
    if (once || CostOf(stage) <= kCheap) writer.Emit(fmt::format("inline({})", stage.name));
  }
}

/// How many leading axes of `stage` are read by `reader` as its own leading axes, in order.
int SharedLeading(const ir::Workload& w, const ir::Stage& reader, const ir::Stage& stage) {
  int shared = std::min(reader.num_spatial(), stage.num_spatial());
  for (const auto& a : AccessesOf(w, reader)) {
    if (std::find(stage.results.begin(), stage.results.end(), a.tensor) == stage.results.end())
      continue;
    int k = 0;
    while (k < shared && a.indices[k]->kind == ExprKind::kVar && a.indices[k]->id == k) ++k;
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

int VectorAxis(const ir::Stage& stage) {
  for (int a = stage.num_spatial(); a-- > 0;) {
    if (stage.spatial[a] > 1) return a;
  }
  return -1;
}

Role RoleOf(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.combiner == ir::Combiner::kNone) return Role::kMap;
  std::vector<Access> accesses;
  for (auto& a : AccessesOf(workload, stage)) {
    if (workload.tensors[a.tensor].kind != ir::TensorKind::kImmediate)
      accesses.push_back(std::move(a));
  }
  const int v = VectorAxis(stage);
  if (stage.combiner == ir::Combiner::kSum && accesses.size() >= 2 && v >= 0) {
    bool left = false, right = false;
    for (int a = 0; a < stage.num_spatial(); ++a) {
      if (stage.spatial[a] == 1) continue;
      left |= accesses[0].DependsOn(a) && !accesses[1].DependsOn(a);
      right |= accesses[1].DependsOn(a) && !accesses[0].DependsOn(a);
    }
    if (left || right) {
      // A product whose vector axis is read by one factor is a contraction; when both read it, it
      // is a window.
      if (accesses[0].DependsOn(v) != accesses[1].DependsOn(v)) return Role::kContraction;
    }
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

int FindPadStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    const ir::Stage& s = workload.stages[id];
    if (s.combiner != ir::Combiner::kNone || s.scan >= 0 || IsOutput(workload, s)) continue;
    if (s.body[0]->kind != ExprKind::kSelect || s.body[0]->args[2]->kind != ExprKind::kConst)
      continue;
    std::vector<int> readers = workload.Readers(static_cast<int>(id));
    bool heavy = !readers.empty();
    for (int r : readers) {
      Role role = RoleOf(workload, workload.stages[r]);
      heavy &= role == Role::kContraction || role == Role::kWindow;
    }
    if (heavy) return static_cast<int>(id);
  }
  return -1;
}

std::vector<Cluster> FindClusters(TraceWriter& writer, int keep) {
  InlineStages(writer, keep);
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

#include "schedule/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/index/simplify.h"
#include "schedule/nest_builder.h"
#include "schedule/stage_cost.h"

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

constexpr int64_t kCheap = 2;    ///< operations that may be repeated for every read
constexpr int64_t kWhole = 128;  ///< operations that may stand in one expression, repeated or not
/// Expressions are inlined as trees: what is read twice, and again by what is read twice, doubles.
constexpr int64_t kMostNodes = 1 << 12;
constexpr int64_t kShortAxis = 8;  ///< iterations below which an axis fills no vector
constexpr int64_t kShortRow = 32;  ///< and below which a row has no vector of partial results

/// The last spatial axis with more than one element; -1 when there is none.
int LastAxis(const ir::Stage& stage) {
  for (int a = stage.num_spatial(); a-- > 0;) {
    if (stage.spatial[a] > 1) return a;
  }
  return -1;
}

/// The axis along which neighbours are stored nearest to each other: of i2 * 2 + i4, with i4 < 2, a
/// vector's worth are those of i2.
int NearestAxis(const ir::Stage& stage, const Expr& index) {
  int nearest = -1;
  int64_t step = 0;
  for (const auto& t : ir::ToLinear(index, RangesOf(stage)).terms) {
    if (t.atom->kind != ExprKind::kVar) return -1;
    const int64_t away = std::abs(t.coefficient);
    if (stage.spatial[t.atom->id] < kShortAxis || (nearest >= 0 && step <= away)) continue;
    nearest = t.atom->id;
    step = away;
  }
  return nearest;
}

/// The axis along which neighbours are stored side by side, or nearly.
int StoreAxis(const ir::Stage& stage) {
  for (size_t d = stage.store.size(); d-- > 0;) {
    const Expr& index = stage.store[d];
    if (ir::AsInt(index) == 0) continue;
    const bool plain = index->kind == ExprKind::kVar;
    if (plain && stage.spatial[index->id] == 1) continue;
    if (plain) return index->id;
    const int nearest = NearestAxis(stage, index);
    return nearest >= 0 ? nearest : LastAxis(stage);
  }
  return LastAxis(stage);
}

bool MovesAsReduced(const ir::Stage& stage, const Access& a) {
  for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
    if (stage.Extent(r) > 1 && a.DependsOn(r)) return true;
  }
  return false;
}

/// The loads of what is no immediate and, where something is reduced, of what moves along it: one
/// value a row says nothing of the row.
std::vector<Access> MovingAccesses(const ir::Workload& w, const ir::Stage& stage) {
  std::vector<Access> accesses = AccessesOf(w, stage);
  std::erase_if(accesses, [&](const Access& a) {
    return w.tensors[a.tensor].kind == ir::TensorKind::kImmediate;
  });
  const auto still = [&](const Access& a) { return !MovesAsReduced(stage, a); };
  if (stage.num_reduce() > 0 && !std::all_of(accesses.begin(), accesses.end(), still))
    std::erase_if(accesses, still);
  return accesses;
}

bool MovesBy(const std::vector<Access>& accesses, int axis, int64_t step) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& a) { return a.linear[axis] && a.stride[axis] == step; });
}

bool IsContiguous(const std::vector<Access>& accesses, int axis) {
  return MovesBy(accesses, axis, 1);
}

/// What an expression reads, of what the Stage reduces, by how it moves along an axis.
struct Factor {
  bool along = false, across = false, product = false;  ///< product: of one kind by the other
  bool Multiplies(const Factor& other) const { return across && !along && other.along; }
};

Factor FactorOf(const ir::Stage& s, const std::vector<Access>& accesses, int axis, const Expr& e) {
  Factor all;
  std::vector<Factor> parts;
  for (const Expr& argument : e->args) {
    parts.push_back(FactorOf(s, accesses, axis, argument));
    all.along |= parts.back().along;
    all.across |= parts.back().across;
    all.product |= parts.back().product;
  }
  const bool binary = e->kind == ExprKind::kBinary;
  if (binary && (e->binary() == ir::BinaryOp::kMul || e->binary() == ir::BinaryOp::kDiv))
    all.product |= parts[0].Multiplies(parts[1]) || parts[1].Multiplies(parts[0]);
  if (e->kind != ExprKind::kLoad) return all;
  for (const Access& a : accesses) {
    if (a.tensor != e->id || !std::ranges::equal(a.indices, e->args, ir::Equal)) continue;
    (a.SharedAlong(axis) ? all.across : all.along) |= MovesAsReduced(s, a);
  }
  return all;
}

/// A sum of products of which some factors move along the axis and others do not. What is added to
/// the factors is none: the rows of a layer normalisation, with the bias before it, are no product.
bool IsProductAlong(const ir::Stage& stage, const std::vector<Access>& accesses, int axis) {
  return stage.combiner == ir::Combiner::kSum &&
         FactorOf(stage, accesses, axis, stage.body[0]).product;
}

/// Whether what moves along the axis slides (an index holds an axis and a reduce axis) and nothing
/// of it is used again for another point, as in a depthwise convolution along a row of pixels.
bool SlidesAlong(const ir::Stage& stage, const std::vector<Access>& accesses, int axis) {
  for (const auto& a : accesses) {
    if (a.SharedAlong(axis)) continue;
    bool slides = false;
    for (const Expr& index : a.indices) {
      bool spatial = false, reduced = false;
      for (int x = 0; x < stage.num_axes(); ++x)
        (x < stage.num_spatial() ? spatial : reduced) |= ir::DependsOnVar(index, x);
      // What is looked up slides nowhere.
      slides |= spatial && reduced && !ir::HasLoad(index);
    }
    if (!slides) return false;
    for (int x = 0; x < stage.num_spatial(); ++x) {
      if (stage.spatial[x] > 1 && !a.DependsOn(x)) return false;
    }
  }
  return true;
}

/// Whether some reader has more points than the Stage, as what normalises its rows has.
bool IsReadByRows(const ir::Workload& w, const ir::Stage& stage) {
  const auto points = [](const ir::Stage& s) {
    int64_t n = 1;
    for (int64_t extent : s.spatial) n *= extent;
    return n;
  };
  const std::vector<int> readers = w.Readers(w.Producer(stage.results[0]));
  return std::any_of(readers.begin(), readers.end(),
                     [&](int r) { return points(w.stages[r]) > points(stage); });
}

bool IsOutput(const ir::Workload& w, const ir::Stage& s) {
  return std::any_of(s.results.begin(), s.results.end(),
                     [&](int r) { return w.tensors[r].output; });
}

std::vector<int> ReadersOf(const ir::Workload& w, const std::vector<int>& live, int id) {
  std::vector<int> out;
  for (int r : live) {
    if (r != id && Loads(w.stages[r], w.stages[id])) out.push_back(r);
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

/// Whether every reader stays small with the stage in place of each load of it. What is read in one
/// place alone makes nothing double.
bool StaysSmall(const ir::Workload& w, const ir::Stage& stage, const std::vector<int>& readers) {
  const int64_t nodes = NodesOf(stage, kMostNodes);
  int64_t reads = 0;
  bool small = true;
  for (int r : readers) {
    int64_t own = 0;
    for (const auto& a : AccessesOf(w, w.stages[r])) own += a.tensor == stage.results[0];
    small = small && NodesOf(w.stages[r], kMostNodes) + own * nodes <= kMostNodes;
    reads += own;
  }
  return small || reads <= 1;
}

/// Whether all the stage is read for is one map, at the same point: however often it stands there,
/// its value is computed once, since equal expressions of a point are found by the compiler.
bool IsReadAtOnePoint(const ir::Workload& w, const ir::Stage& stage,
                      const std::vector<int>& readers) {
  if (readers.size() != 1 || !IdentityRead(w, w.stages[readers[0]], stage)) return false;
  int64_t reads = 0;
  for (const auto& a : AccessesOf(w, w.stages[readers[0]])) reads += a.tensor == stage.results[0];
  return CostOf(w.stages[readers[0]]) + reads * CostOf(stage) <= kWhole;
}

/// Whether a product of a scan is only read by a map of its scan, at the same step and point by
/// point: the map can have it from registers, and no barrier stands between the two.
bool IsTileOfStep(const ir::Workload& w, const ir::Stage& stage, const std::vector<int>& readers) {
  if (stage.scan < 0 || readers.size() != 1 || IsOutput(w, stage)) return false;
  const ir::Stage& reader = w.stages[readers[0]];
  const int v = VectorAxis(w, stage);
  return reader.scan == stage.scan && IdentityRead(w, reader, stage) && v >= 1 &&
         VectorAxis(w, reader) == v;
}

/// The axis along which what the Stage finally becomes, through maps that read it point by point,
/// is stored.
int FinalStoreAxis(const ir::Workload& w, const std::vector<int>& live, const ir::Stage& stage) {
  const int id = w.Producer(stage.results[0]);
  const std::vector<int> readers = ReadersOf(w, live, id);
  if (readers.size() != 1 || !IdentityRead(w, w.stages[readers[0]], stage)) return StoreAxis(stage);
  return FinalStoreAxis(w, live, w.stages[readers[0]]);
}

/// Whether the map computes, itself or through what is inlined into it.
bool ComputesWithin(const ir::Workload& w, const ir::Stage& stage) {
  if (Computes(stage)) return true;
  for (const auto& a : AccessesOf(w, stage)) {
    const int p = w.Producer(a.tensor);
    if (p >= 0 && w.stages[p].combiner == ir::Combiner::kNone && w.stages[p].scan < 0 &&
        CostOf(w.stages[p]) <= kCheap && ComputesWithin(w, w.stages[p]))
      return true;
  }
  return false;
}

/// Whether the map lays its source out anew: along its last axis it jumps, along another it walks.
bool Transposes(const ir::Workload& w, const ir::Stage& stage) {
  const int last = LastAxis(stage);
  if (last < 0 || stage.combiner != ir::Combiner::kNone || stage.spatial[last] < kShortAxis)
    return false;
  const std::vector<Access> accesses = MovingAccesses(w, stage);
  for (const auto& a : accesses) {
    const int p = w.Producer(a.tensor);
    if (p >= 0 && w.stages[p].scan < 0 && Transposes(w, w.stages[p])) return true;
  }
  if (IsContiguous(accesses, last)) return false;
  for (int a = 0; a < last; ++a) {
    if (stage.spatial[a] > 1 && IsContiguous(accesses, a)) return true;
  }
  return false;
}

/// Whether the map makes bytes of other bytes: a sum of products of bytes takes them as they lie.
bool ChangesBytes(const ir::Workload& w, const ir::Stage& stage) {
  const ir::DType dtype = w.tensors[stage.results[0]].dtype;
  if (!ir::IsInteger(dtype) || ir::SizeOf(dtype) != 1) return false;
  const std::function<bool(const Expr&)> changes = [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) return false;
    if (e->kind == ExprKind::kSelect) return changes(e->args[1]) || changes(e->args[2]);
    return e->kind == ExprKind::kCast || e->kind == ExprKind::kUnary ||
           e->kind == ExprKind::kBinary;
  };
  return changes(stage.body[0]);
}

/// Whether the map fills up an operand of bytes or bf16 for a matrix product: terms under a
/// condition are multiplied one by one.
bool FillsUp(const ir::Workload& w, const ir::Stage& stage, const ir::Stage& reader) {
  const ir::DType dtype = w.tensors[stage.results[0]].dtype;
  const bool narrow = dtype == ir::DType::kBF16 || (ir::IsInteger(dtype) && ir::SizeOf(dtype) == 1);
  if (!narrow || stage.body[0]->kind != ExprKind::kSelect) return false;
  const std::vector<Access> accesses = AccessesOf(w, reader);
  return std::ranges::all_of(accesses, [&](const Access& a) {
    return a.tensor != stage.results[0] || std::ranges::all_of(a.indices, [](const Expr& index) {
             return index->kind == ExprKind::kVar || ir::AsInt(index).has_value();
           });
  });
}

/// Whether a map is better copied once than repeated where reductions read it: a contraction's
/// broadcast operand costs as much in the innermost loop as the product itself, and data in another
/// layout is read element by element.
bool NeedsCopy(const ir::Workload& w, const std::vector<int>& live, const ir::Stage& stage,
               const std::vector<int>& readers) {
  for (int r : readers) {
    const ir::Stage& reader = w.stages[r];
    const Role role = RoleOf(w, reader);
    if (ReadOnce(w, reader, stage)) continue;
    if (role == Role::kContraction && (ComputesWithin(w, stage) || Transposes(w, stage) ||
                                       ChangesBytes(w, stage) || FillsUp(w, stage, reader)))
      return true;
    if (role == Role::kWindow && Transposes(w, stage) &&
        FinalStoreAxis(w, live, reader) == LastAxis(reader))
      return true;
  }
  return false;
}

/// Whether the expression has one value at all points of the Stage, as zero or a zero point has.
bool IsOneValue(const ir::Stage& stage, const Expr& e) {
  for (int a = 0; a < stage.num_axes(); ++a) {
    if (ir::DependsOnVar(e, a)) return false;
  }
  return true;
}

void InlineStages(TraceWriter& writer, const std::set<int>& keep, int force) {
  const std::vector<int> live = LiveStages(writer.schedule());
  std::vector<int> now = live;  // without what is inlined by now
  for (int id : live) {
    const ir::Stage stage = writer.stage(id);
    const ir::Workload& w = writer.workload();
    if (keep.contains(id) || stage.combiner != ir::Combiner::kNone || stage.scan >= 0 ||
        IsOutput(w, stage))
      continue;
    std::vector<int> readers = ReadersOf(w, now, id);
    bool in_scan =
        std::any_of(readers.begin(), readers.end(), [&](int r) { return w.stages[r].scan >= 0; });
    if (in_scan && CostOf(stage) > 0) continue;
    if (id != force && NeedsCopy(w, now, stage, readers)) continue;
    const bool once = id == force || IsReadAtOnePoint(w, stage, readers) ||
                      (readers.size() == 1 && ReadOnce(w, w.stages[readers[0]], stage));
    if (!once && CostOf(stage) > kCheap) continue;
    if (id != force && !StaysSmall(w, stage, readers)) continue;
    writer.Emit(fmt::format("inline({})", stage.name));
    now.erase(std::remove(now.begin(), now.end(), id), now.end());
  }
}

}  // namespace

int VectorAxis(const ir::Workload& workload, const ir::Stage& stage) {
  const int last = LastAxis(stage);
  if (last < 0) return last;
  if (stage.combiner == ir::Combiner::kNone) {
    const int stored = StoreAxis(stage);
    return stage.spatial[stored] >= std::min(kShortAxis, stage.spatial[last]) ? stored : last;
  }
  const std::vector<Access> accesses = MovingAccesses(workload, stage);
  // The phases of a deconvolution's stride fill no vector; its pixels do.
  bool better = false;
  for (int a = 0; a < last; ++a) {
    better |= stage.spatial[last] < kShortAxis && stage.spatial[a] >= kShortAxis &&
              MovesBy(accesses, a, 1);
  }
  if (!better && (IsProductAlong(stage, accesses, last) || IsContiguous(accesses, last)))
    return last;
  // A window over data whose channels stand further outside, by short steps.
  for (int64_t step : {1, 2, 3, 4}) {
    for (int a = last; a-- > 0;) {
      if (stage.spatial[a] >= kShortAxis && MovesBy(accesses, a, step)) return a;
    }
  }
  return last;
}

Role RoleOf(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.combiner == ir::Combiner::kNone) return Role::kMap;
  const std::vector<Access> accesses = MovingAccesses(workload, stage);
  const int v = VectorAxis(workload, stage);
  if (v >= 0 && IsProductAlong(stage, accesses, v) && !SlidesAlong(stage, accesses, v))
    return Role::kContraction;
  if (v >= 0 && IsContiguous(accesses, v)) return Role::kWindow;
  for (const auto& a : accesses) {
    for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
      if (a.linear[r] && a.stride[r] == 1 && stage.Extent(r) > 1) {
        // Too short to fill vectors: they run across rows, unless whole rows are read once more.
        const bool across = v >= 0 && stage.spatial[v] >= kShortAxis &&
                            stage.Extent(r) < kShortRow && !IsReadByRows(workload, stage);
        return across ? Role::kWindow : Role::kRow;
      }
    }
  }
  return Role::kWindow;
}

bool IsCostlyInput(const ir::Workload& workload, int stage) {
  std::vector<int> all(workload.stages.size());
  std::iota(all.begin(), all.end(), 0);
  return NeedsCopy(workload, all, workload.stages[stage], workload.Readers(stage));
}

int FindInputStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    const ir::Stage& s = workload.stages[id];
    if (s.combiner != ir::Combiner::kNone || s.scan >= 0 || IsOutput(workload, s)) continue;
    std::vector<int> readers = workload.Readers(static_cast<int>(id));
    const bool pads = s.body[0]->kind == ExprKind::kSelect && IsOneValue(s, s.body[0]->args[2]);
    if (!pads && !IsCostlyInput(workload, static_cast<int>(id))) continue;
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
  return FindClusters(writer, std::set<int>{keep}, force);
}

std::vector<Cluster> FindClusters(TraceWriter& writer, const std::set<int>& keep, int force) {
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
    if (role == Role::kContraction && IsTileOfStep(w, stage, readers)) {
      Cluster& home = clusters[cluster_of[readers[0]]];
      if (home.owner == readers[0] && home.anchor < 0 && home.members.empty()) {
        home.anchor = id;
        cluster_of[id] = cluster_of[readers[0]];
        continue;
      }
    }
    if (!IsOutput(w, stage) && !readers.empty() && stage.scan < 0) {
      Cluster* home = nullptr;
      bool one = cluster_of[readers[0]] >= 0;
      for (int r : readers)
        one = one && cluster_of[r] == cluster_of[readers[0]] && w.stages[r].scan < 0;
      if (one) home = &clusters[cluster_of[readers[0]]];
      if (home && heavy && readers.size() == 1 && readers[0] == home->owner && home->anchor < 0 &&
          home->members.empty() && IdentityRead(w, w.stages[home->owner], stage) &&
          VectorAxis(w, w.stages[home->owner]) == VectorAxis(w, stage)) {
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
  for (auto& c : clusters) {
    // Maps alone leave the last axis to vectors.
    const ir::Stage& owner = w.stages[c.owner];
    const bool maps = owner.combiner == ir::Combiner::kNone &&
                      std::all_of(c.members.begin(), c.members.end(), [&](int id) {
                        return w.stages[id].combiner == ir::Combiner::kNone;
                      });
    if (!c.members.empty() && maps && c.row_axes > 1 && c.row_axes == owner.num_spatial())
      --c.row_axes;
  }
  for (auto& c : clusters) std::reverse(c.members.begin(), c.members.end());
  return clusters;
}

}  // namespace hone::schedule

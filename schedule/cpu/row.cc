#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// The reduce axis that a load walks contiguously, by number among the reduce axes; -1 when there
/// is none.
int ContiguousReduceAxis(const ir::Workload& w, const ir::Stage& stage) {
  for (const auto& a : AccessesOf(w, stage)) {
    for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
      if (a.linear[r] && a.stride[r] == 1 && stage.Extent(r) > 1) return r - stage.num_spatial();
    }
  }
  return -1;
}

/// Computes partial results, of which there are some vectors along the last axis, at `loop`.
void InRegisters(TraceWriter& w, const std::string& partial, const std::string& loop, int last_axis,
                 int reduce_axes, int lanes) {
  w.Emit(fmt::format("compute_at({}, {}, register)", partial, loop));
  const std::string axis = fmt::format("{}.i{}", partial, last_axis);
  w.Emit(fmt::format("split({}, {})", axis, lanes));
  std::vector<std::string> order;
  for (int k = 0; k < reduce_axes; ++k) order.push_back(fmt::format("{}.r{}", partial, k));
  order.push_back(axis + ".0");
  order.push_back(axis + ".1");
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  w.Emit(fmt::format("unroll({}.0)", axis));
  w.Emit(fmt::format("vectorize({}.1)", axis));
}

/// How many vectors of `width` elements a row of n takes at a time: at least two passes of them.
int64_t VectorsFor(int64_t n, int64_t width, int64_t most) {
  return std::clamp<int64_t>(n / (2 * width), 1, most);
}

/// Splits a row reduction into vectors of partial results computed at `loop` (empty: the Stage's
/// own innermost spatial loop).
void ScheduleRowReduction(TraceWriter& w, int id, const std::string& loop, int64_t partial_vectors,
                          const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const int r = ContiguousReduceAxis(w.workload(), stage);
  const int lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
  if (r >= 0 && !ir::IsTuple(stage.combiner) && stage.reduce[r] >= 2 * lanes) {
    const int64_t vectors = VectorsFor(stage.reduce[r], lanes, partial_vectors);
    const int64_t width = vectors * lanes;
    const std::string partial = w.NextStage();
    w.Emit(fmt::format("{} = rfactor({}, {}.r{}, {}, inner)", partial, stage.name, stage.name, r,
                       width));
    std::string at = loop;
    if (at.empty()) at = fmt::format("{}.i{}", stage.name, stage.num_spatial() - 1);
    if (stage.num_spatial() == 0) return;
    // The vectors are folded into one before its lanes are.
    if (vectors > 1) {
      const std::string fold = w.NextStage();
      w.Emit(
          fmt::format("{} = rfactor({}, {}.r0, {}, inner)", fold, stage.name, stage.name, lanes));
      w.Emit(fmt::format("compute_at({}, {}, register)", fold, at));
      w.Emit(fmt::format("reorder({0}.r0, {0}.i{1})", fold, stage.num_spatial()));
      w.Emit(fmt::format("unroll({}.r0)", fold));
      w.Emit(fmt::format("vectorize({}.i{})", fold, stage.num_spatial()));
    }
    InRegisters(w, partial, at, stage.num_spatial(), stage.num_reduce(), lanes);
    w.Emit(fmt::format("vectorize({}.r0)", stage.name));
  }
}

/// The loop over a row's vectors.
struct VectorLoop {
  std::string name;
  int64_t iterations = 0;
};

/// As many vectors an iteration as a reduction of such rows takes, so that the two can be one loop.
VectorLoop VectorizeLast(TraceWriter& w, int id, int first_free_axis, int64_t most_vectors,
                         const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const int v = VectorAxis(w.workload(), stage);
  if (v < first_free_axis || stage.num_reduce() > 0) return {};
  const int lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
  const int64_t width = std::min<int64_t>(lanes, stage.spatial[v]);
  if (width < 2) return {};
  const int64_t vectors = VectorsFor(stage.spatial[v], width, most_vectors);
  const std::string axis = fmt::format("{}.i{}", stage.name, v);
  const char* tail = stage.spatial[v] % (vectors * width) == 0 ? "" : ", mask";
  if (vectors == 1) {
    w.Emit(fmt::format("split({}, {}{})", axis, width, tail));
    w.Emit(fmt::format("vectorize({}.1)", axis));
  } else {
    w.Emit(fmt::format("split({}, [{}, {}]{})", axis, vectors, width, tail));
    w.Emit(fmt::format("unroll({}.1)", axis));
    w.Emit(fmt::format("vectorize({}.2)", axis));
  }
  const int64_t step = vectors * width;
  return {axis + ".0", (stage.spatial[v] + step - 1) / step};
}

/// Rows that a map reads from what does not fit the second cache: the next one is fetched while
/// this one is worked on, because the machine's own prefetchers stop at the end of a page. Whether
/// it was done.
bool PrefetchNextRow(TraceWriter& w, int id, int row_axis, const VectorLoop& loop,
                     const ir::Target& target) {
  constexpr int64_t kLongRowBytes = 1024, kMostIterations = 1024;
  const ir::Stage stage = w.stage(id);
  const int v = VectorAxis(w.workload(), stage);
  if (loop.iterations < 2 || loop.iterations > kMostIterations || row_axis < 0 || row_axis >= v ||
      v + 1 != stage.num_spatial())
    return false;
  const std::vector<Access> accesses = AccessesOf(w.workload(), stage);
  const auto walks = [&](const Access& a) {
    return !a.guarded && a.linear[v] && a.linear[row_axis] && a.stride[v] == 1 &&
           a.stride[row_axis] == stage.spatial[v];
  };
  for (const Access& a : accesses) {
    const ir::Tensor& t = w.workload().tensors[a.tensor];
    const int64_t size = ir::SizeOf(t.dtype);
    if (t.kind != ir::TensorKind::kInput || stage.spatial[v] * size < kLongRowBytes ||
        t.NumElements() * size < target.As<ir::CpuTarget>().l2_bytes)
      continue;
    if (!std::all_of(accesses.begin(), accesses.end(),
                     [&](const Access& b) { return b.tensor != a.tensor || walks(b); }))
      continue;
    w.Emit(fmt::format("prefetch({}, {}, {})", loop.name, t.name, loop.iterations));
    return true;
  }
  return false;
}

/// Reductions to fewer results than threads: cut into parts that run in parallel, then folded.
constexpr int64_t kManyPoints = 1 << 15;

/// The reduction's partial results over parts of its outermost long axis, or -1 when it is better
/// left whole.
int CutReduction(TraceWriter& w, int id, const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  if (ir::IsTuple(stage.combiner) || stage.num_spatial() >= ir::kMaxRank) return -1;
  const int lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
  int64_t results = 1, points = 1;
  for (int64_t n : stage.spatial) results *= n;
  for (int64_t n : stage.reduce) points *= n;
  if (points < kManyPoints || results >= 2 * std::max(target.threads, 2)) return -1;
  for (int r = 0; r < stage.num_reduce(); ++r) {
    if (stage.reduce[r] < lanes) continue;
    w.Emit(fmt::format("{0} = rfactor({1}, {1}.r{2}, {3}, outer)", w.NextStage(), stage.name, r,
                       lanes));
    return w.status().ok() ? static_cast<int>(w.workload().stages.size()) - 1 : -1;
  }
  return -1;
}

/// Whether rows of a cluster can be taken so many at a time.
bool FitsRowsAtATime(const TraceWriter& writer, const Cluster& cluster, int64_t rows) {
  if (cluster.members.empty() || cluster.row_axes == 0) return false;
  const ir::Stage& owner = writer.stage(cluster.owner);
  if (owner.num_spatial() == cluster.row_axes) return false;
  // A reduction is cut into partial results before its loops are split.
  if (owner.combiner != ir::Combiner::kNone) return false;
  const auto last = owner.spatial.begin() + cluster.row_axes - 1;
  // Blocks of two sizes are two loops, which threads cannot share: one goes around them.
  const bool outer = std::any_of(owner.spatial.begin(), last, [](int64_t n) { return n > 1; });
  return *last >= 2 * rows && (outer || *last % rows == 0);
}

/// The loop over rows, or over blocks of so many of them, at which members are computed.
std::string RowLoop(TraceWriter& w, const Cluster& cluster, int rows, int64_t at_a_time) {
  const ir::Stage& owner = w.stage(cluster.owner);
  if (rows == 0) return "";
  const std::string loop = fmt::format("{}.i{}", owner.name, rows - 1);
  if (at_a_time == 1) return loop;
  const bool even = owner.spatial[rows - 1] % at_a_time == 0;
  w.Emit(fmt::format("split({}, {}{})", loop, at_a_time, even ? "" : ", two_sizes"));
  return loop + ".0";
}

/// Rows that are computed one after the other, or a few together, with what their reductions need.
void ScheduleWholeRows(TraceWriter& w, const Cluster& cluster, const RowChoice& choice,
                       const ir::Target& target) {
  const ir::Stage owner = w.stage(cluster.owner);
  const int rows = cluster.members.empty() ? owner.num_spatial() : cluster.row_axes;
  const bool one_by_one = choice.rows == 1 || !FitsRowsAtATime(w, cluster, choice.rows);
  const std::string row_loop = RowLoop(w, cluster, rows, one_by_one ? 1 : choice.rows);
  // Partial results live in registers: of one row at a time.
  const auto is_one_row = [&](const ir::Stage& stage) {
    return std::all_of(stage.spatial.begin() + std::min(rows, stage.num_spatial()),
                       stage.spatial.end(), [](int64_t n) { return n == 1; });
  };
  // Before members hang on the owner's loops, which must be whole to be factored.
  if (owner.combiner != ir::Combiner::kNone)
    ScheduleRowReduction(w, cluster.owner, is_one_row(owner) ? row_loop : "",
                         choice.partial_vectors, target);
  for (auto it = cluster.members.rbegin(); it != cluster.members.rend(); ++it) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(*it), row_loop));
  }
  bool fetched = false;
  VectorLoop last;
  for (int id : cluster.members) {
    if (w.stage(id).combiner != ir::Combiner::kNone)
      ScheduleRowReduction(w, id, is_one_row(w.stage(id)) && one_by_one ? row_loop : "",
                           choice.partial_vectors, target);
    else
      fetched |= PrefetchNextRow(w, id, rows - 1,
                                 VectorizeLast(w, id, rows, choice.map_vectors, target), target);
  }
  if (owner.combiner == ir::Combiner::kNone)
    last = VectorizeLast(w, cluster.owner, rows, choice.map_vectors, target);
  if (!fetched && !cluster.members.empty())
    PrefetchNextRow(w, cluster.owner, rows - 1, last, target);
  std::vector<std::string> loops;
  std::vector<int64_t> extents;
  for (int a = 0; a < rows; ++a) {
    loops.push_back(fmt::format("{}.i{}", owner.name, a));
    extents.push_back(owner.spatial[a]);
  }
  // Attached Stages hang on the innermost row loop: it stays as it is.
  if (!loops.empty()) {
    loops.pop_back();
    extents.pop_back();
    size_t best = 0;
    while (best < loops.size() && extents[best] == 1) ++best;
    if (best < loops.size())
      Parallelise(w, cluster.owner, loops, extents, target);
    else
      w.Emit(fmt::format("parallel({}, {})", row_loop, target.threads));
  }
}

}  // namespace

std::vector<int64_t> RowsAtATime(const TraceWriter& writer, const Cluster& cluster) {
  std::vector<int64_t> out = {1};
  for (const int64_t rows : {2, 4, 8, 3, 5, 7}) {
    const bool power = (rows & (rows - 1)) == 0;
    if (!power && out.size() > 1) break;
    if (FitsRowsAtATime(writer, cluster, rows)) out.push_back(rows);
  }
  return out;
}

int64_t NominalRowsAtATime(const TraceWriter& writer, const Cluster& cluster,
                           const ir::Target& target) {
  // Measured on rows of 32 to 4,096 numbers: short ones are fastest by eights, those of 2,048
  // alone.
  constexpr int64_t kElements = 1536;
  const ir::Stage& owner = writer.stage(cluster.owner);
  int64_t longest = 1, total = 1, nominal = 1;
  std::vector<int> stages = cluster.members;
  stages.push_back(cluster.owner);
  for (const int id : stages) {
    const ir::Stage& stage = writer.stage(id);
    int64_t length = 1;
    for (int a = std::min(cluster.row_axes, stage.num_spatial()); a < stage.num_axes(); ++a)
      length *= stage.Extent(a);
    longest = std::max(longest, length);
  }
  for (int a = 0; a < cluster.row_axes; ++a) total *= owner.spatial[a];
  for (const int64_t rows : RowsAtATime(writer, cluster)) {
    if (rows * longest <= kElements && total / rows >= target.threads)
      nominal = std::max(nominal, rows);
  }
  return nominal;
}

void ScheduleRows(TraceWriter& w, const Cluster& cluster, const RowChoice& choice,
                  const ir::Target& target) {
  const int parts = cluster.members.empty() ? CutReduction(w, cluster.owner, target) : -1;
  if (parts < 0) return ScheduleWholeRows(w, cluster, choice, target);
  w.Emit(fmt::format("vectorize({}.r0)", w.name(cluster.owner)));
  ScheduleWholeRows(w, {parts, -1, {}, 0}, choice, target);
}

namespace {

/// Columns, in the order of the tables.
enum Column : uint8_t { kPartialVectors, kUnroll, kRows };

/// Vectors of partial results, and of the maps in the row: equal ones make one loop of a map and
/// its reduction.
DecisionTable RowTable(int64_t row_length, int lanes) {
  DecisionTable t{"row", {"partial_vectors", "unroll"}, {}};
  for (int64_t partial : {1, 2, 4, 8}) {
    for (int64_t maps : {1, 2, 4, 8}) {
      const bool fits = row_length >= partial * lanes;
      if (partial == 4 || (fits && (maps == partial || maps == 4)))
        t.rows.push_back({partial, maps});
    }
  }
  return t;
}

/// Rows with their reductions, and the Stages computed in them.
class RowsRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& writer) const override {
    if (subject->kind != ClusterKind::kRows) return {};
    const ir::Stage& owner = writer.stage(subject->cluster.owner);
    const int v = VectorAxis(writer.workload(), owner);
    // Always there, so that Workloads whose rows fit other numbers are neighbours.
    DecisionTable together{"together", {"rows"}, {}};
    for (const int64_t n : RowsAtATime(writer, subject->cluster)) together.rows.push_back({n});
    return {{"rows",
             {RowTable(v < 0 ? 1 : owner.spatial[v], subject->lanes), std::move(together)},
             nullptr,
             std::make_shared<CpuForm>(subject)}};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    return EmitClusters(w, {.force = subject.input}, subject.target, [&](const Cluster& c) {
      const ClusterKind kind = KindOf(w, c);
      if (kind == ClusterKind::kRows)
        ScheduleRows(w, c, {v[kPartialVectors], v[kUnroll], v[kRows]}, subject.target);
      else if (kind == ClusterKind::kTile)  // a product that the inlined rows made the heaviest
        ScheduleTile(w, FindTileForm(w, c, subject.target), {.rows = v[kRows]}, Padding::kPeeled,
                     subject.target);
      else
        ScheduleNominally(w, c, subject.target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    TraceWriter w(subject.workload);
    HONE_ASSIGN_OR_RETURN(Cluster c, MainCluster(w, {.force = subject.input}));
    if (KindOf(w, c) == ClusterKind::kTile) {
      const auto tile = ReadTile(w, FindTileForm(w, c, subject.target), subject.target, trace);
      return Values{sketch.tables[0].rows[0][0], sketch.tables[0].rows[0][1],
                    tile ? tile->rows : 1};
    }
    const int parts = c.members.empty() ? CutReduction(w, c.owner, subject.target) : -1;
    if (parts >= 0) c = {parts, -1, {}, 0};
    std::vector<int64_t> together;
    if (!c.members.empty())
      together = FactorsOf(trace, fmt::format("{}.i{}", w.name(c.owner), c.row_axes - 1));
    // Short rows take fewer vectors than they are given: the first row that means the same.
    for (const auto& row : sketch.tables[0].rows) {
      if (MeansTheSame(w, c, trace, {row[0], row[1], 1}, subject.target))
        return Values{row[0], row[1], together.empty() ? 1 : together[0]};
    }
    return absl::InvalidArgumentError("rows: of other vectors");
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    // As many vectors of maps as of the reductions' partial results: then the two can be one loop.
    const RowChoice nominal;
    return Values{nominal.partial_vectors, nominal.map_vectors, SubjectOf(sketch).nominal.rows};
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    facts->rows = v[kRows];
    facts->partial_vectors = v[kPartialVectors];
    facts->unroll = v[kUnroll];
    DescribePass(SubjectOf(sketch), facts);
  }

 private:
  /// Whether each Stage of the cluster has as many vectors in the Trace as this choice gives it.
  static bool MeansTheSame(const TraceWriter& w, const Cluster& c, const Trace& trace,
                           const RowChoice& choice, const ir::Target& target) {
    const int rows = c.members.empty() ? w.stage(c.owner).num_spatial() : c.row_axes;
    std::vector<int> stages = c.members;
    stages.push_back(c.owner);
    return std::all_of(stages.begin(), stages.end(), [&](int id) {
      const ir::Stage& stage = w.stage(id);
      const int64_t lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
      if (stage.combiner != ir::Combiner::kNone) {
        const Instruction* factored = FindInstruction(trace, "rfactor", stage.name);
        const int r = ContiguousReduceAxis(w.workload(), stage);
        if (factored == nullptr || factored->positional.size() < 3 || r < 0) return true;
        const int64_t wanted = VectorsFor(stage.reduce[r], lanes, choice.partial_vectors) * lanes;
        return factored->positional[2] == std::to_string(wanted);
      }
      const int v = VectorAxis(w.workload(), stage);
      if (v < rows) return true;
      const std::vector<int64_t> factors = FactorsOf(trace, fmt::format("{}.i{}", stage.name, v));
      if (factors.empty()) return true;
      const int64_t width = std::min(lanes, stage.spatial[v]);
      return VectorsFor(stage.spatial[v], width, choice.map_vectors) ==
             (factors.size() == 2 ? factors[0] : 1);
    });
  }
};

}  // namespace

const CpuRule& RowsSketches() {
  static const RowsRule rule;
  return rule;
}

}  // namespace hone::schedule

#include "schedule/cpu/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/nest_builder.h"
#include "schedule/stage_cost.h"
#include "schedule/structure.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr int64_t kCheap = 2;  ///< operations that may be repeated for every read

absl::Status Unfit(const std::string& why) {
  return absl::InvalidArgumentError("attention: " + why);
}

std::string LoopOf(const TraceWriter& w, int stage, int axis) {
  return fmt::format("{}.i{}", w.name(stage), axis);
}

/// The Stage that owns the loops and its axes.
struct Owner {
  int stage = -1;
  int query = -1;           ///< the axis along which rows share keys and values
  int vector = -1;          ///< the axis of the values
  std::vector<int> others;  ///< batches, heads
};

/// What stands in the way when a product's rows and columns are taken for the tile's.
absl::StatusOr<Owner> AxesOfProduct(const TraceWriter& w, const AttentionForm& f) {
  Owner own;
  own.stage = f.product;
  const ir::Stage& p = w.stage(f.product);
  own.vector = VectorAxis(w.workload(), p);
  std::vector<bool> row(p.spatial.size(), false), value(p.spatial.size(), false);
  for (int a = 0; a < p.num_spatial(); ++a) {
    for (const ir::Expr& i : f.row) row[a] = row[a] || ir::DependsOnVar(i, a);
    value[a] = ir::DependsOnVar(f.values, a);
    if (row[a] && !value[a] && p.spatial[a] > 1) own.query = a;
  }
  if (own.vector < 0 || row[own.vector] || own.query < 0) return Unfit("no rows share their keys");
  for (int a = 0; a < p.num_spatial(); ++a) {
    if (a != own.query && a != own.vector) own.others.push_back(a);
  }
  return own;
}

/// The map that stores the product, by the product's axes in its own order; or the product itself.
absl::StatusOr<Owner> FindOwner(const TraceWriter& w, const AttentionForm& f) {
  HONE_ASSIGN_OR_RETURN(const Owner product, AxesOfProduct(w, f));
  const ir::Workload& workload = w.workload();
  if (workload.tensors[w.stage(f.product).results[0]].output) return product;
  std::vector<int> readers;
  for (int id : LiveStages(w.schedule())) {
    if (id != f.product && Loads(w.stage(id), w.stage(f.product))) readers.push_back(id);
  }
  if (readers.size() != 1) return Unfit("its result has several readers");
  const ir::Stage& map = w.stage(readers[0]);
  if (map.combiner != ir::Combiner::kNone || !workload.tensors[map.results[0]].output)
    return Unfit("its result is not stored by a map");
  for (const Access& a : AccessesOf(workload, map)) {
    if (a.tensor != w.stage(f.product).results[0]) continue;
    Owner own;
    own.stage = readers[0];
    std::vector<int> axis_of;
    for (const ir::Expr& i : a.indices)
      axis_of.push_back(i->kind == ir::ExprKind::kVar ? i->id : -1);
    own.query = axis_of[product.query];
    own.vector = axis_of[product.vector];
    if (own.query < 0 || own.vector < 0) return Unfit("its result is stored in another shape");
    for (int k = 0; k < map.num_spatial(); ++k) {
      if (k != own.query && k != own.vector) own.others.push_back(k);
    }
    const ir::Stage& p = w.stage(f.product);
    const bool same = map.spatial[own.query] == p.spatial[product.query] &&
                      map.spatial[own.vector] == p.spatial[product.vector];
    if (!same) return Unfit("its result is stored in another shape");
    return own;
  }
  return Unfit("its result is stored in another shape");
}

/// Rows of a reduction along the last axis of memory, in vectors of partial results.
void ScheduleRowSum(TraceWriter& w, int id, int lanes) {
  constexpr int64_t kMostVectors = 4;
  const ir::Stage stage = w.stage(id);
  const int64_t n = stage.reduce[0];
  if (n < 2 * lanes) return;
  const int64_t vectors = std::clamp<int64_t>(n / (2 * lanes), 1, kMostVectors);
  const std::string at = LoopOf(w, id, stage.num_spatial() - 1);
  const int last = stage.num_spatial();
  const std::string partial = w.NextStage();
  w.Emit(fmt::format("{} = rfactor({}, {}.r0, {}, inner)", partial, stage.name, stage.name,
                     vectors * lanes));
  if (vectors > 1) {
    const std::string fold = w.NextStage();
    w.Emit(fmt::format("{} = rfactor({}, {}.r0, {}, inner)", fold, stage.name, stage.name, lanes));
    w.Emit(fmt::format("compute_at({}, {}, register)", fold, at));
    w.Emit(
        fmt::format("reorder({0}.r0, {0}.i{1}); unroll({0}.r0); vectorize({0}.i{1})", fold, last));
  }
  w.Emit(fmt::format("compute_at({}, {}, register)", partial, at));
  w.Emit(fmt::format("split({0}.i{1}, {2}); reorder({0}.r0, {0}.i{1}.0, {0}.i{1}.1)", partial, last,
                     lanes));
  w.Emit(fmt::format("unroll({0}.i{1}.0); vectorize({0}.i{1}.1)", partial, last));
  w.Emit(fmt::format("vectorize({}.r0)", stage.name));
}

/// A map's last axis in vectors.
void VectorizeKeys(TraceWriter& w, int id, int lanes) {
  const ir::Stage& stage = w.stage(id);
  const int64_t n = stage.spatial.back(), width = std::min<int64_t>(lanes, n);
  if (width < 2) return;
  const std::string axis = LoopOf(w, id, stage.num_spatial() - 1);
  w.Emit(fmt::format("split({}, {}{})", axis, width, n % width == 0 ? "" : ", mask"));
  w.Emit(fmt::format("vectorize({}.1)", axis));
}

/// The register tile of the product with the values, for a block of rows.
TileChoice OutputTile(const TraceWriter& w, TileForm form, int64_t rows, const ir::Target& target) {
  form.rows_total = rows;
  return NominalTile(w, form, target);
}

/// The register tile of the scores: the choice's, as far as there are so many rows and vectors.
TileChoice Clamped(const TileForm& form, const AttentionChoice& choice, int64_t rows) {
  TileChoice c = choice.tile;
  c.rows = std::clamp<int64_t>(c.rows, 1, rows);
  c.vectors = std::clamp<int64_t>(c.vectors, 1, form.vectors_total);
  while (c.vectors > 1 && !form.FitsBlock(c.vectors)) --c.vectors;
  return c;
}

/// The owner's loops: blocks of rows, shared among threads, then the tile. `time` (or -1) stands
/// inside the block's loop. Gives the loop at which what a block needs is computed, and the tile's.
struct BlockLoops {
  std::string block, tile;
};
BlockLoops OwnerLoops(TraceWriter& w, const Owner& own, const TileForm& form, const TileChoice& c,
                      int64_t block, int time, bool reduces, const ir::Target& target) {
  const ir::Stage stage = w.stage(own.stage);
  const int64_t rows = stage.spatial[own.query];
  const std::string q = LoopOf(w, own.stage, own.query), v = LoopOf(w, own.stage, own.vector);
  const bool even = rows % block == 0;
  const int64_t panel = c.vectors * form.lanes;
  w.Emit(fmt::format("split({}, {}{})", q, block, even ? "" : ", two_sizes"));
  w.Emit(fmt::format("split({}.1, {}, two_sizes)", q, c.rows));
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, c.vectors, form.lanes,
                     stage.spatial[own.vector] % panel == 0 ? "" : ", mask"));
  std::vector<std::string> loops, order;
  std::vector<int64_t> extents;
  for (int a : own.others) {
    if (a == time) continue;
    loops.push_back(LoopOf(w, own.stage, a));
    extents.push_back(stage.spatial[a]);
  }
  order = loops;
  order.push_back(q + ".0");
  if (even) loops.push_back(order.back()), extents.push_back(rows / block);
  if (time >= 0) order.push_back(LoopOf(w, own.stage, time));
  BlockLoops out{order.back(), q + ".1.0"};
  order.insert(order.end(), {v + ".0", q + ".1.0"});
  if (reduces) order.push_back(w.name(own.stage) + ".r0");
  order.insert(order.end(), {q + ".1.1", v + ".1", v + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (reduces) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), w.name(own.stage),
                       out.tile));
  }
  w.Emit(fmt::format("unroll({}.1.1); unroll({}.1); vectorize({}.2)", q, v, v));
  const ParallelLoop parallel = Parallelise(w, own.stage, loops, extents, target);
  if (even && time < 0 && parallel.consumed == loops.size()) out.block = parallel.name;
  return out;
}

/// The tile of the scores, whose maps between the first and the last of the chain are inlined.
TileForm FormOfScores(TraceWriter& w, const std::vector<int>& chain, const ir::Target& target) {
  for (size_t k = 1; k + 1 < chain.size(); ++k) w.Emit(fmt::format("inline({})", w.name(chain[k])));
  return FindTileForm(w, {chain.back(), chain.front(), {}, 0}, target);
}

/// The scores' contraction in the registers of the last map of it, or in a tile of its own, for the
/// rows of one block.
void ScheduleScores(TraceWriter& w, const std::vector<int>& chain, const AttentionChoice& choice,
                    int64_t block, const std::string& at, const ir::Target& target) {
  const TileForm form = FormOfScores(w, chain, target);
  if (!w.status().ok() || form.vector_axis < 0) return;
  const TileChoice c = Clamped(form, choice, form.row_axis < 0 ? 1 : block);
  PackPanels(w, form, c.vectors * form.lanes, target);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(chain.back()), at));
  ScheduleTileInside(w, form, c);
}

/// Maps around the attention are inlined, or scheduled as phases of their own.
absl::Status ScheduleOthers(TraceWriter& w, const AttentionForm& f, int owner,
                            const ir::Target& target) {
  std::vector<int> own = f.chain;
  own.insert(own.end(), {f.product, f.max, f.exponential, f.sum, f.quotient, owner});
  for (int id : LiveStages(w.schedule())) {
    if (std::find(own.begin(), own.end(), id) != own.end()) continue;
    const ir::Stage stage = w.stage(id);
    if (stage.combiner != ir::Combiner::kNone || stage.scan >= 0)
      return Unfit(fmt::format("{} stands beside it", stage.name));
    if (CostOf(stage) <= kCheap && !w.workload().tensors[stage.results[0]].output)
      w.Emit(fmt::format("inline({})", stage.name));
    else
      ScheduleMap(w, id, 1, target);
  }
  return w.status();
}

int64_t BlockOfRows(int64_t wanted, int64_t rows, bool must_divide) {
  int64_t block = std::clamp<int64_t>(wanted, 1, rows);
  while (must_divide && rows % block != 0) --block;
  return block;
}

/// Blocks of two sizes are serial loops: only where the other axes feed the threads.
bool HasUnevenOthers(const TraceWriter& w, const Owner& own, const ir::Target& target) {
  int64_t others = 1;
  for (int a : own.others) others *= w.stage(own.stage).spatial[a];
  return others % target.threads != 0;
}

absl::Status PlanByRows(TraceWriter& w, const AttentionChoice& choice, const AttentionForm& f,
                        const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const Owner own, FindOwner(w, f));
  HONE_RETURN_IF_ERROR(ScheduleOthers(w, f, own.stage, target));
  TileForm form = FindTileForm(w, {f.product, f.product, {}, 0}, target);
  const int64_t block = BlockOfRows(choice.query_rows, w.stage(own.stage).spatial[own.query],
                                    HasUnevenOthers(w, own, target));
  const TileChoice c = OutputTile(w, form, block, target);
  PackPanels(w, form, c.vectors * form.lanes, target);
  const BlockLoops loops = OwnerLoops(w, own, form, c, block, -1, own.stage == f.product, target);
  if (own.stage != f.product) ScheduleAnchorInside(w, form, loops.tile);
  const auto row_of = [&](int id) { return LoopOf(w, id, w.stage(id).num_spatial() - 2); };
  const int softmax = f.quotient >= 0 ? f.quotient : f.exponential;
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(softmax), loops.block));
  VectorizeKeys(w, softmax, form.lanes);
  const std::string row = row_of(softmax);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.sum),
                     f.quotient >= 0 ? row : loops.block));
  ScheduleRowSum(w, f.sum, form.lanes);
  if (f.quotient >= 0) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.exponential), row));
    VectorizeKeys(w, f.exponential, form.lanes);
  }
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.max), row));
  ScheduleRowSum(w, f.max, form.lanes);
  ScheduleScores(w, f.chain, choice, block, loops.block, target);
  return w.status();
}

/// The Stages of algorithms/online_softmax.h after the scores, in order.
enum OnlineStage : uint8_t {
  kBlockMax,
  kMax,
  kShift,
  kWeights,
  kBlockSum,
  kFade,
  kSum,
  kScale,
  kPartial,
  kOutput
};

absl::Status PlanByBlocks(TraceWriter& w, const AttentionChoice& choice, const AttentionForm& f,
                          const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const Owner result, FindOwner(w, f));
  HONE_ASSIGN_OR_RETURN(Owner own, AxesOfProduct(w, f));
  HONE_RETURN_IF_ERROR(ScheduleOthers(w, f, result.stage, target));
  // Keys are packed before they are cut into blocks, which whole panels make up.
  const TileForm scores = FindTileForm(w, {f.chain.back(), f.chain.front(), {}, 0}, target);
  const int64_t panels = std::max<int64_t>(1, choice.key_block / scores.lanes);
  TileChoice panel = Clamped(scores, choice, 1);
  while (panels % panel.vectors != 0) --panel.vectors;
  PackPanels(w, scores, panel.vectors * scores.lanes, target);
  const int first = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = algorithm({}, online_softmax, {})", w.NextStage(), w.name(f.product),
                     std::min(choice.key_block, f.keys)));
  HONE_RETURN_IF_ERROR(w.status());
  const int after = first + static_cast<int>(f.chain.size());
  const auto id = [&](OnlineStage s) { return after + static_cast<int>(s); };
  std::vector<int> chain;
  for (int k = first; k < after; ++k) chain.push_back(k);
  // The product's axes stand after the blocks' axis.
  own.stage = id(kOutput);
  ++own.query, ++own.vector;
  for (int& a : own.others) ++a;
  TileForm form = FindTileForm(w, {id(kPartial), id(kPartial), {}, 0}, target);
  const int64_t block = BlockOfRows(choice.query_rows, w.stage(own.stage).spatial[own.query], true);
  // What is carried must be made whole by each block of keys: tiles divide the rows and the values.
  const int64_t width = w.stage(own.stage).spatial[own.vector];
  while (width % form.lanes != 0) --form.lanes;
  form.vectors_total = width / form.lanes;
  TileChoice c = OutputTile(w, form, block, target);
  while (block % c.rows != 0) --c.rows;
  while (form.vectors_total % c.vectors != 0) --c.vectors;
  PackPanels(w, form, c.vectors * form.lanes, target);
  const BlockLoops loops = OwnerLoops(w, own, form, c, block, 0, false, target);
  const std::string at = LoopOf(w, own.stage, 0);
  w.Emit(fmt::format("compute_at({}, {}, register)", w.name(id(kPartial)), loops.tile));
  ScheduleTileLoops(w, form);
  for (OnlineStage s : {kScale, kSum, kFade, kBlockSum, kWeights, kShift, kMax, kBlockMax})
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(id(s)), at));
  const int lanes = LanesFor(ir::DType::kF32, target);
  VectorizeKeys(w, id(kWeights), lanes);
  const std::string sum = fmt::format("{}.r0", w.name(id(kBlockSum)));
  if (choice.key_block >= lanes)
    w.Emit(fmt::format("split({0}, {1}, mask); vectorize({0}.1)", sum, lanes));
  ScheduleRowSum(w, id(kBlockMax), lanes);
  ScheduleScores(w, chain, choice, block, at, target);
  if (result.stage != f.product) w.Emit(fmt::format("inline({})", w.name(f.product)));
  ScheduleMap(w, result.stage, 1, target);
  return w.status();
}

}  // namespace

std::optional<AttentionForm> FindAttention(const Schedule& schedule) {
  for (int id : LiveStages(schedule)) {
    if (schedule.workload.stages[id].combiner != ir::Combiner::kSum) continue;
    auto form = MatchAttention(schedule, id);
    if (form.ok()) return *std::move(form);
  }
  return std::nullopt;
}

absl::Status PlanAttention(TraceWriter& w, const AttentionChoice& choice,
                           const ir::Target& target) {
  const std::optional<AttentionForm> form = FindAttention(w.schedule());
  if (!form) return Unfit("there is none");
  return choice.key_block > 0 ? PlanByBlocks(w, choice, *form, target)
                              : PlanByRows(w, choice, *form, target);
}

namespace {

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kVectors, kQueryRows, kKeyBlock };

AttentionChoice ChoiceOf(const Values& v) {
  return {{v[kRows], v[kVectors]}, v[kQueryRows], v[kKeyBlock]};
}

/// A Workload's attention in one phase: Sketches of which every block of rows fits half the
/// Target's L2.
class AttentionRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    const std::optional<AttentionForm> form = FindAttention(Schedule(subject->workload));
    if (!form) return {};
    const ir::Target& target = subject->target;
    DecisionTable tile{"tile", {"rows", "vectors"}, {}}, rows{"block", {"query_rows"}, {}},
        keys{"keys", {"key_block"}, {}};
    for (int64_t h : {4, 6, 8, 12, 14}) {
      for (int64_t v : {1, 2, 3, 4}) {
        if (h * v >= 8 && h * v + v + 1 <= target.As<ir::CpuTarget>().registers)
          tile.rows.push_back({h, v});
      }
    }
    int64_t queries = 1;
    for (const ir::Expr& i : form->row) {
      if (i->kind == ir::ExprKind::kVar)
        queries = std::max(queries, subject->workload.stages[form->product].spatial[i->id]);
    }
    for (int64_t r : {8, 16, 24, 32, 64, 128}) {
      if (r <= queries && 3 * r * form->keys * 4 <= target.As<ir::CpuTarget>().l2_bytes / 2)
        rows.rows.push_back({r});
    }
    for (int64_t k : {32, 64, 128, 256, 512}) {
      if (k < form->keys) keys.rows.push_back({k});
    }
    std::vector<Sketch> sketches;
    for (auto* more : {&rows, &keys}) {
      Sketch s{more == &rows ? "attention/rows" : "attention/online",
               {tile, rows},
               nullptr,
               std::make_shared<CpuForm>(subject)};
      if (more == &keys) s.tables.push_back(keys);
      if (s.Product() == 0) continue;
      Values first;
      for (const DecisionTable& t : s.tables) {
        for (const int64_t value : t.rows[0]) first.Add(value);
      }
      TraceWriter probe(subject->workload);
      if (Emit(s, first, probe).ok()) sketches.push_back(std::move(s));
    }
    return sketches;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    return PlanAttention(w, ChoiceOf(v), SubjectOf(sketch).target);
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    TraceWriter w(subject.workload);
    const std::optional<AttentionForm> form = FindAttention(w.schedule());
    if (!form) return Unfit("there is none");
    const Instruction* algorithm = FindInstruction(trace, "algorithm");
    if ((sketch.tables.size() > kKeyBlock - 1) != (algorithm != nullptr))
      return Unfit("by another algorithm");
    HONE_ASSIGN_OR_RETURN(
        const Place at, algorithm == nullptr ? PlaceByRows(w, *form, subject.target)
                                             : PlaceByBlocks(w, *form, *algorithm, subject.target));
    const std::vector<int64_t> block = FactorsOf(trace, at.query);
    if (block.empty()) return Unfit("its rows are not in blocks");
    // Blocks and tiles are clamped to what there is: the first values that mean the same.
    Values values;
    for (const auto& row : sketch.tables[0].rows) {
      const TileChoice c =
          Clamped(at.scores, {{row[0], row[1]}}, at.scores.row_axis < 0 ? 1 : block[0]);
      const std::vector<int64_t> rows =
          FactorsOf(trace, fmt::format("{}.i{}", at.stage, at.scores.row_axis));
      const std::vector<int64_t> vectors =
          FactorsOf(trace, fmt::format("{}.i{}", at.stage, at.scores.vector_axis));
      if ((!rows.empty() && rows[0] != c.rows) || (!vectors.empty() && vectors[0] != c.vectors))
        continue;
      values = {row[0], row[1]};
      break;
    }
    for (const auto& row : sketch.tables[1].rows) {
      if (values.size() != kQueryRows || BlockOfRows(row[0], at.rows, at.divides) != block[0])
        continue;
      values.Add(row[0]);
    }
    if (values.size() <= kQueryRows) return Unfit("its tiles are of another size");
    if (algorithm != nullptr) values.Add(std::atoll(algorithm->positional.back().c_str()));
    return values;
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    DescribeTile(SubjectOf(sketch), facts);
  }

 private:
  /// Where a Trace says what was decided.
  struct Place {
    std::string query;     ///< the owner's loop that is split into blocks of rows
    int64_t rows = 0;      ///< of all blocks
    bool divides = false;  ///< a block must divide them
    std::string stage;     ///< of the scores' tile
    TileForm scores;
  };

  static absl::StatusOr<Place> PlaceByRows(TraceWriter& w, const AttentionForm& f,
                                           const ir::Target& target) {
    HONE_ASSIGN_OR_RETURN(const Owner own, FindOwner(w, f));
    HONE_RETURN_IF_ERROR(ScheduleOthers(w, f, own.stage, target));
    return Place{LoopOf(w, own.stage, own.query), w.stage(own.stage).spatial[own.query],
                 HasUnevenOthers(w, own, target), w.name(f.chain.back()),
                 FormOfScores(w, f.chain, target)};
  }

  static absl::StatusOr<Place> PlaceByBlocks(TraceWriter& w, const AttentionForm& f,
                                             const Instruction& algorithm,
                                             const ir::Target& target) {
    HONE_ASSIGN_OR_RETURN(const Owner result, FindOwner(w, f));
    HONE_ASSIGN_OR_RETURN(const Owner own, AxesOfProduct(w, f));
    const int64_t rows = w.stage(f.product).spatial[own.query];
    HONE_RETURN_IF_ERROR(ScheduleOthers(w, f, result.stage, target));
    const int first = static_cast<int>(w.workload().stages.size());
    w.Emit(fmt::format("{} = algorithm({}, online_softmax, {})", w.NextStage(), w.name(f.product),
                       algorithm.positional.back()));
    HONE_RETURN_IF_ERROR(w.status());
    std::vector<int> chain(f.chain.size());
    std::iota(chain.begin(), chain.end(), first);
    // The Trace has more Stages than there are here: panels of keys were made before.
    const int after = std::atoi(algorithm.result.c_str() + 1) + static_cast<int>(f.chain.size());
    return Place{fmt::format("s{}.i{}", after + kOutput, own.query + 1), rows, true,
                 fmt::format("s{}", after - 1), FormOfScores(w, chain, target)};
  }
};

}  // namespace

const CpuRule& AttentionSketches() {
  static const AttentionRule rule;
  return rule;
}

}  // namespace hone::schedule

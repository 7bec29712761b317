#include "schedule/cpu/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/algorithms/causal_form.h"
#include "schedule/cpu/attention_nest.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/panels.h"
#include "schedule/nest_builder.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

int64_t BlockOfRows(int64_t wanted, int64_t rows, bool must_divide) {
  int64_t block = std::clamp<int64_t>(wanted, 1, rows);
  while (must_divide && rows % block != 0) --block;
  return block;
}

absl::Status ScheduleOthersOfRows(TraceWriter& w, const AttentionForm& f, const AttentionOwner& own,
                                  const ir::Target& target) {
  std::vector<int> apart = StagesOf(f);
  apart.push_back(own.stage);
  return ScheduleOthers(w, apart, target);
}

absl::Status PlanByRows(TraceWriter& w, const AttentionChoice& choice, const AttentionForm& f,
                        const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const AttentionOwner own, FindOwner(w, f));
  HONE_RETURN_IF_ERROR(ScheduleOthersOfRows(w, f, own, target));
  TileForm form = FindTileForm(w, {f.product, f.product, {}, 0}, target);
  const int64_t block = BlockOfRows(choice.query_rows, w.stage(own.stage).spatial[own.query],
                                    HasUnevenOthers(w, own, target));
  const TileChoice c = OutputTile(w, form, block, target);
  PackPanels(w, form, c.vectors * form.lanes, target);
  const BlockLoops loops = OwnerLoops(w, own, form, c, block, -1, own.stage == f.product, target);
  if (own.stage != f.product) ScheduleAnchorInside(w, form, loops.tile);
  const auto row_of = [&](int id) { return AxisLoop(w, id, w.stage(id).num_spatial() - 2); };
  const int softmax = f.quotient >= 0 ? f.quotient : f.exponential;
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(softmax), loops.block));
  VectorizeLast(w, softmax, form.lanes, f.keys, true);
  const std::string row = row_of(softmax);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.sum),
                     f.quotient >= 0 ? row : loops.block));
  ScheduleRowSum(w, f.sum, form.lanes);
  if (f.quotient >= 0) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.exponential), row));
    VectorizeLast(w, f.exponential, form.lanes, f.keys, true);
  }
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(f.max), row));
  ScheduleRowSum(w, f.max, form.lanes);
  const TileForm scores = FormOfScores(w, f.chain, target);
  ScheduleScores(w, scores, TileOfScores(scores, choice, scores.row_axis < 0 ? 1 : block),
                 loops.block, target);
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
  if (!form) return UnfitAttention("there is none");
  if (choice.lanes) return PlanAttentionByLanes(w, choice, *form, target);
  return choice.key_block > 0 ? PlanAttentionByKeys(w, choice, *form, target)
                              : PlanByRows(w, choice, *form, target);
}

namespace {

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kVectors, kQueryRows, kKeyBlock };

/// How the scores lie and are gone through.
enum class Kind : uint8_t { kRows, kLanes, kOnline };

/// What was found of a Workload's attention.
struct Form : CpuForm {
  using CpuForm::CpuForm;
  Kind kind = Kind::kRows;
  std::optional<Values> nominal = {};  ///< of the default, where it is this Sketch
};

/// Rows of the product, all blocks together.
int64_t QueriesOf(const ir::Workload& workload, const AttentionForm& f) {
  int64_t queries = 1;
  for (const ir::Expr& i : f.row) {
    if (i->kind == ir::ExprKind::kVar)
      queries = std::max(queries, workload.stages[f.product].spatial[i->id]);
  }
  return queries;
}

/// A Workload's attention in one phase: by rows, of which every block fits half the Target's L2
/// with all keys, or by blocks of keys.
class AttentionRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    const std::optional<AttentionForm> form = FindAttention(Schedule(subject->workload));
    if (!form) return {};
    const auto& cpu = subject->target.As<ir::CpuTarget>();
    DecisionTable tile{"tile", {"rows", "vectors"}, {}}, rows{"block", {"query_rows"}, {}},
        blocks = rows, keys{"keys", {"key_block"}, {}};
    for (int64_t h : {4, 6, 8, 12, 14}) {
      for (int64_t v : {1, 2, 3, 4}) {
        if (h * v >= 8 && h * v + v + 1 <= cpu.registers) tile.rows.push_back({h, v});
      }
    }
    const int64_t queries = QueriesOf(subject->workload, *form);
    for (int64_t r : {8, 16, 24, 32, 64, 128}) {
      if (r <= queries && 3 * r * form->keys * 4 <= cpu.l2_bytes / 2) rows.rows.push_back({r});
    }
    for (int64_t r : {8, 16, 32, 64, 96, 128, 192, 256}) {
      if (r <= queries || (r <= kNominalRows && queries >= kLongQueries))
        blocks.rows.push_back({r});
    }
    for (int64_t k : {32, 64, 128, 256, 512, 1024}) {
      if (k < form->keys || k == kLongKeys) keys.rows.push_back({k});
    }
    std::vector<Sketch> sketches;
    Add({"attention/lanes", {LaneTable(*subject, *form)}, nullptr, nullptr}, Kind::kLanes, subject,
        *form, &sketches);
    Add({"attention/rows", {tile, rows}, nullptr, nullptr}, Kind::kRows, subject, *form, &sketches);
    // The default stands in the tables.
    const Values nominal = NominalValues(*subject, *form);
    const std::vector<int64_t> nominal_tile = {nominal[kRows], nominal[kVectors]};
    if (IsLong(*subject, *form) && std::ranges::count(tile.rows, nominal_tile) == 0)
      tile.rows.push_back(nominal_tile);
    Add({"attention/online", {tile, blocks, keys}, nullptr, nullptr}, Kind::kOnline, subject, *form,
        &sketches);
    return sketches;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    AttentionChoice choice{.tile = {v[kRows], v[kVectors]}};
    const Kind kind = KindOf(sketch);
    choice.lanes = kind == Kind::kLanes;
    if (kind != Kind::kLanes) choice.query_rows = v[kQueryRows];
    if (kind == Kind::kOnline) choice.key_block = v[kKeyBlock];
    return PlanAttention(w, choice, SubjectOf(sketch).target);
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    TraceWriter w(subject.workload);
    const std::optional<AttentionForm> form = FindAttention(w.schedule());
    if (!form) return UnfitAttention("there is none");
    const bool lanes = FindInstruction(trace, "permute") != nullptr;
    const Instruction* algorithm = lanes ? nullptr : FindInstruction(trace, "algorithm");
    const Kind kind = lanes                  ? Kind::kLanes
                      : algorithm != nullptr ? Kind::kOnline
                                             : Kind::kRows;
    if (KindOf(sketch) != kind) return UnfitAttention("by another algorithm");
    if (lanes) return ReadLanes(w.stage(form->chain.back()), trace);
    HONE_ASSIGN_OR_RETURN(const Place at, algorithm == nullptr
                                              ? PlaceByRows(w, *form, subject.target)
                                              : PlaceByKeys(w, *form, *algorithm, subject.target));
    const std::vector<int64_t> block = FactorsOf(trace, at.query);
    if (block.empty()) return UnfitAttention("its rows are not in blocks");
    // Blocks and tiles are clamped to what there is: the first values that mean the same.
    Values values;
    const std::vector<int64_t> rows = FactorsOf(trace, at.tile_rows),
                               vectors = FactorsOf(trace, at.tile_vectors);
    for (const auto& row : sketch.tables[0].rows) {
      const TileChoice c = at.TileOf({{row[0], row[1]}}, block[0]);
      if ((!rows.empty() && rows[0] != c.rows) || (!vectors.empty() && vectors[0] != c.vectors))
        continue;
      values = {row[0], row[1]};
      break;
    }
    for (const auto& row : sketch.tables[1].rows) {
      if (values.size() == kQueryRows && at.BlockOf(row[0]) == block[0]) values.Add(row[0]);
    }
    if (algorithm == nullptr && values.size() == kKeyBlock) return values;
    for (size_t k = 0; algorithm != nullptr && k < sketch.tables[2].rows.size(); ++k) {
      const int64_t wanted = sketch.tables[2].rows[k][0];
      if (values.size() == kKeyBlock && OnlineKeys(wanted, form->keys, at.scores.lanes) == at.keys)
        values.Add(wanted);
    }
    if (values.size() <= kKeyBlock) return UnfitAttention("its tiles are of another size");
    return values;
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return static_cast<const Form&>(*sketch.form).nominal;
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    DescribeTile(SubjectOf(sketch), facts);
  }

 private:
  static Kind KindOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form).kind; }

  static DecisionTable LaneTable(const CpuSubject& subject, const AttentionForm& f) {
    DecisionTable table{"tile", {"rows", "vectors"}, {}};
    for (const TileChoice& c : LaneTiles(TraceWriter(subject.workload), f, subject.target))
      table.rows.push_back({c.rows, c.vectors});
    return table;
  }

  /// By lanes, where they feed all threads.
  static std::optional<Values> NominalLanes(const CpuSubject& subject, const AttentionForm& f) {
    const auto tile = NominalLaneTile(TraceWriter(subject.workload), f, subject.target);
    if (!tile) return std::nullopt;
    return Values{tile->rows, tile->vectors};
  }

  /// The tile of the scores, whose last axes are the keys and the rows.
  static absl::StatusOr<Values> ReadLanes(const ir::Stage& scores, const Trace& trace) {
    const auto factors = [&](int from_last) {
      return FactorsOf(trace, fmt::format("{}.i{}", scores.name, scores.num_spatial() - from_last));
    };
    const std::vector<int64_t> keys = factors(2), rows = factors(1);
    if (keys.size() != 1 || rows.size() != 2) return UnfitAttention("its scores have no tile");
    return Values{keys[0], rows[0]};
  }

  /// Adds a Sketch that can be written.
  void Add(Sketch sketch, Kind kind, const std::shared_ptr<const CpuSubject>& subject,
           const AttentionForm& f, std::vector<Sketch>* sketches) const {
    if (sketch.Product() == 0) return;
    auto form = std::make_shared<Form>(subject);
    form->kind = kind;
    sketch.form = form;
    Values first;
    for (const DecisionTable& t : sketch.tables) {
      for (const int64_t value : t.rows[0]) first.Add(value);
    }
    TraceWriter probe(subject->workload);
    if (!Emit(sketch, first, probe).ok()) return;
    const bool is_long = IsLong(*subject, f);
    if (kind == Kind::kOnline && is_long) form->nominal = NominalValues(*subject, f);
    if (kind == Kind::kLanes && !is_long) form->nominal = NominalLanes(*subject, f);
    sketches->push_back(std::move(sketch));
  }

  static constexpr int64_t kNominalRows = 128, kNominalKeys = 256;
  /// The same under a causal mask: the smaller the blocks on the diagonal, the less is computed for
  /// nothing.
  static constexpr int64_t kCausalRows = 64, kCausalKeys = 64;

  static bool IsLong(const CpuSubject& subject, const AttentionForm& f) {
    return f.keys >= kLongKeys && QueriesOf(subject.workload, f) >= kLongQueries;
  }

  static Values NominalValues(const CpuSubject& subject, const AttentionForm& f) {
    const TraceWriter w(subject.workload);
    const bool causal = FindCausal(subject.workload, f).has_value();
    const int64_t most_rows = causal ? kCausalRows : kNominalRows;
    TileForm form = FindTileForm(w, {f.chain.back(), f.chain.front(), {}, 0}, subject.target);
    form.rows_total = std::min(form.rows_total, most_rows);
    const TileChoice tile = NominalTile(w, form, subject.target);
    return {tile.rows, tile.vectors, NominalRows(w, f, most_rows, subject.target),
            causal ? kCausalKeys : kNominalKeys};
  }

  /// Rows of a block; fewer where threads would have unequal shares.
  static int64_t NominalRows(const TraceWriter& w, const AttentionForm& f, int64_t most,
                             const ir::Target& target) {
    const auto own = AxesOfProduct(w, f);
    if (!own.ok()) return most;
    const std::vector<int64_t>& extents = w.stage(f.product).spatial;
    const int64_t rows = extents[own->query];
    int64_t best = most;
    double least = 0;
    for (int64_t wanted : {kNominalRows, int64_t{96}, int64_t{64}, int64_t{32}}) {
      if (wanted > most) continue;
      const int64_t block = OnlineRows(wanted, rows, HasUnevenOthers(w, *own, target));
      int64_t shared = rows % block == 0 ? rows / block : 1;
      for (int a : own->others) shared *= extents[a];
      const double imbalance = ThreadImbalance(shared, target);
      if (least == 0 || imbalance < least) best = wanted, least = imbalance;
      if (least <= kMostImbalance) break;
    }
    return best;
  }

  /// Where a Trace says what was decided.
  struct Place {
    std::string query;                    ///< the owner's loop that is split into blocks of rows
    int64_t rows = 0;                     ///< of all blocks
    bool divides = false;                 ///< a block must divide them
    std::string tile_rows, tile_vectors;  ///< the scores' loops that are split into the tile's
    TileForm scores;
    int64_t keys = 0;  ///< of a block; 0: all of them

    TileChoice TileOf(const AttentionChoice& choice, int64_t block) const {
      if (keys > 0) return OnlineTile(scores, choice, block, keys);
      return TileOfScores(scores, choice, scores.row_axis < 0 ? 1 : block);
    }
    int64_t BlockOf(int64_t wanted) const {
      return keys > 0 ? OnlineRows(wanted, rows, divides) : BlockOfRows(wanted, rows, divides);
    }
  };

  static absl::StatusOr<Place> PlaceByRows(TraceWriter& w, const AttentionForm& f,
                                           const ir::Target& target) {
    HONE_ASSIGN_OR_RETURN(const AttentionOwner own, FindOwner(w, f));
    HONE_RETURN_IF_ERROR(ScheduleOthersOfRows(w, f, own, target));
    const TileForm scores = FormOfScores(w, f.chain, target);
    return Place{AxisLoop(w, own.stage, own.query),
                 w.stage(own.stage).spatial[own.query],
                 HasUnevenOthers(w, own, target),
                 AxisLoop(w, f.chain.back(), scores.row_axis),
                 AxisLoop(w, f.chain.back(), scores.vector_axis),
                 scores};
  }

  static absl::StatusOr<Place> PlaceByKeys(const TraceWriter& w, const AttentionForm& f,
                                           const Instruction& algorithm, const ir::Target& target) {
    HONE_ASSIGN_OR_RETURN(const AttentionOwner own, AxesOfProduct(w, f));
    const TileForm scores = FindTileForm(w, {f.chain.back(), f.chain.front(), {}, 0}, target);
    // Each Stage's axes stand after that of the blocks.
    const int after = std::atoi(algorithm.result.c_str() + 1) + static_cast<int>(f.chain.size());
    return Place{fmt::format("s{}.i{}", after + kOutput, own.query + 1),
                 w.stage(f.product).spatial[own.query],
                 HasUnevenOthers(w, own, target),
                 fmt::format("s{}.i{}", after - 1, scores.row_axis + 1),
                 fmt::format("s{}.i{}", after - 1, scores.vector_axis + 1),
                 scores,
                 std::atoll(algorithm.positional.back().c_str())};
  }
};

}  // namespace

const CpuRule& AttentionSketches() {
  static const AttentionRule rule;
  return rule;
}

}  // namespace hone::schedule

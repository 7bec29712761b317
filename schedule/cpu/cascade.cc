#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/cpu/cpu_target.h"
#include "schedule/cpu/cascade_chain.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/tile_table.h"
#include "schedule/lower.h"
#include "schedule/trace_query.h"

// A chain of layers (products and windows) of which each reads the one before alone, in bands of
// the last one's rows: what a band needs of the layers before is computed at the band's loop into
// scratch, with its halo, and never leaves the near caches. Neighbouring bands compute the rows
// that both need twice; the number of rows in a band says how many that are. Where the last layer
// is a product, its reduction may go in blocks too ("cascade/blocks"): then the layers before are
// computed for a block of their channels, and bands can be higher.
namespace hone::schedule {

namespace {

constexpr double kMostRecomputed = 1.4;  ///< multiply-adds over those without bands
constexpr int64_t kMostSteps = 700;      ///< unrolled multiply-adds of one tile, siblings included
constexpr int64_t kLeastTile = 8;        ///< sums that hide the latency of a multiply-add

std::string LoopOf(const TraceWriter& w, int stage, int axis) {
  return fmt::format("{}.i{}", w.name(stage), axis);
}

struct Form : CpuForm {
  using CpuForm::CpuForm;
  CascadeChain chain;
  bool blocks = false;  ///< the last layer's reduction is in blocks
  bool is_default = false;
  std::vector<BandCost> costs;  ///< by rows of the tables of bands and blocks
  Values nominal;

  size_t FirstTile() const { return blocks ? 2 : 1; }
  TileChoice TileOf(const Values& v, size_t layer) const {
    return {v[FirstTile() + 2 * layer], v[FirstTile() + 2 * layer + 1]};
  }
  const BandCost* CostOf(const Values& v) const {
    const auto at = std::ranges::find_if(
        costs, [&](const BandCost& c) { return c.rows == v[0] && c.block == (blocks ? v[1] : 0); });
    return at == costs.end() ? nullptr : &*at;
  }
};
const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

/// What a point decides: rows of a band, channels of a block (0: all), the layers' tiles.
struct Choice {
  int64_t rows = 1, block = 0;
  std::vector<TileChoice> tiles;
};
Choice ChoiceOf(const Form& form, const Values& v) {
  Choice choice{v[0], form.blocks ? v[1] : 0, {}};
  for (size_t k = 0; k < form.chain.layers.size(); ++k) choice.tiles.push_back(form.TileOf(v, k));
  return choice;
}

/// A layer's nominal tile, within a band's rows and a block.
TileChoice NominalOf(const TraceWriter& w, const CascadeChain& chain, size_t k,
                     const BandCost& bands, const ir::Target& target) {
  TileForm form = chain.layers[k].tile;
  if (form.row_axis == chain.band_axis) form.rows_total = std::min(form.rows_total, bands.rows);
  TileChoice tile = NominalTile(w, form, target);
  const bool last = k + 1 == chain.layers.size();
  while (bands.block > 0 && !last && bands.block % (tile.vectors * form.lanes) != 0) --tile.vectors;
  return tile;
}

/// The last layer's loops around its bands, with their extents.
struct BandLoops {
  std::vector<std::string> names;
  std::vector<int64_t> extents;
};
BandLoops LoopsOfBands(const TraceWriter& w, const CascadeChain& chain, const Choice& choice) {
  BandLoops loops;
  const int owner = chain.last().owner;
  for (int a : chain.outside) {
    loops.names.push_back(LoopOf(w, owner, a));
    loops.extents.push_back(w.stage(owner).spatial[a]);
  }
  loops.names.push_back(LoopOf(w, owner, chain.band_axis) + ".0");
  loops.extents.push_back(chain.band_extent / choice.rows);
  return loops;
}

/// The last layer's loops; gives that at which a band's needs are computed.
std::string OwnerLoops(TraceWriter& w, const CascadeChain& chain, const Choice& choice,
                       const ir::Target& target) {
  const TileForm& f = chain.last().tile;
  const TileChoice& tile = choice.tiles.back();
  const ir::Stage owner = w.stage(f.owner);
  const std::string band = LoopOf(w, f.owner, chain.band_axis);
  std::string row = LoopOf(w, f.owner, f.row_axis);
  const std::string vec = LoopOf(w, f.owner, f.vector_axis);
  const bool rows_in_bands = chain.band_axis == f.row_axis;
  w.Emit(fmt::format("split({}, {})", band, choice.rows));
  if (rows_in_bands) row += ".1";
  w.Emit(fmt::format("split({}, {}, two_sizes)", row, tile.rows));
  w.Emit(fmt::format("split({}, [{}, {}]{})", vec, tile.vectors, f.lanes,
                     owner.spatial[f.vector_axis] % (tile.vectors * f.lanes) == 0 ? "" : ", mask"));
  const BandLoops bands = LoopsOfBands(w, chain, choice);
  std::vector<std::string> order = bands.names;
  order.push_back(vec + ".0");
  if (!rows_in_bands) order.push_back(band + ".1");
  order.push_back(row + ".0");
  const bool own = f.owner == f.anchor;
  if (own) {
    for (int r : f.reduce)
      order.push_back(fmt::format("{}.r{}", owner.name, r - owner.num_spatial()));
  }
  order.insert(order.end(), {row + ".1", vec + ".1", vec + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  const ParallelLoop parallel = Parallelise(w, f.owner, bands.names, bands.extents, target);
  if (own) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), owner.name, row));
  }
  w.Emit(fmt::format("unroll({}.1); unroll({}.1); vectorize({}.2)", row, vec, vec));
  if (own) {
    for (int r : f.unrolled)
      w.Emit(fmt::format("unroll({}.r{})", owner.name, r - owner.num_spatial()));
  } else {
    ScheduleAnchorInside(w, f, row + ".0");
  }
  return parallel.consumed == bands.names.size() ? parallel.name : band + ".0";
}

/// The same where the last layer's sums wait in memory for the next block; gives the loop of
/// blocks.
std::string OwnerLoopsOfBlocks(TraceWriter& w, const CascadeChain& chain, const Choice& choice,
                               const ir::Target& target) {
  const TileForm& f = chain.last().tile;
  const TileChoice& tile = choice.tiles.back();
  const ir::Stage owner = w.stage(f.owner), anchor = w.stage(f.anchor);
  const std::string band = LoopOf(w, f.owner, chain.band_axis);
  std::string vec = LoopOf(w, f.owner, f.vector_axis);
  w.Emit(fmt::format("split({}, {})", band, choice.rows));
  w.Emit(fmt::format("split({}, {}{})", vec, f.lanes,
                     owner.spatial[f.vector_axis] % f.lanes == 0 ? "" : ", mask"));
  const BandLoops bands = LoopsOfBands(w, chain, choice);
  std::vector<std::string> order = bands.names;
  for (int a = 0; a < owner.num_spatial(); ++a) {
    if (a == chain.band_axis)
      order.push_back(band + ".1");
    else if (a != f.vector_axis && std::ranges::count(chain.outside, a) == 0)
      order.push_back(LoopOf(w, f.owner, a));
  }
  order.insert(order.end(), {vec + ".0", vec + ".1"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  const ParallelLoop parallel = Parallelise(w, f.owner, bands.names, bands.extents, target);
  w.Emit(fmt::format("vectorize({}.1)", vec));
  const std::string at = parallel.consumed == bands.names.size() ? parallel.name : band + ".0";

  w.Emit(fmt::format("compute_at({}, {}, memory)", anchor.name, at));
  const std::string sum = anchor.name + ".r0", row = LoopOf(w, f.anchor, f.row_axis);
  vec = LoopOf(w, f.anchor, f.vector_axis);
  w.Emit(fmt::format("split({}, {})", sum, choice.block));
  w.Emit(fmt::format("split({}, [{}, {}]{})", vec, tile.vectors, f.lanes,
                     owner.spatial[f.vector_axis] % (tile.vectors * f.lanes) == 0 ? "" : ", mask"));
  w.Emit(fmt::format("split({}, {}, two_sizes)", row, tile.rows));
  order = {sum + ".0", vec + ".0"};
  for (int a : f.outer) order.push_back(LoopOf(w, f.anchor, a));
  order.insert(order.end(), {row + ".0", sum + ".1", row + ".1", vec + ".1", vec + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), anchor.name, row));
  w.Emit(fmt::format("unroll({}.1); unroll({}.1); vectorize({}.2)", row, vec, vec));
  return sum + ".0";
}

absl::Status EmitBands(TraceWriter& w, const Choice& choice, const ir::Target& target) {
  const std::optional<CascadeChain> chain = FindCascade(w, target);
  if (!chain || choice.tiles.size() != chain->layers.size())
    return absl::InvalidArgumentError("cascade: there is no such chain");
  if (choice.rows < 1 || chain->band_extent % choice.rows != 0)
    return absl::InvalidArgumentError("cascade: bands are not of equal size");
  for (size_t k = 0; k < chain->layers.size(); ++k) {
    const TileForm& f = chain->layers[k].tile;
    PackPanels(w, f, choice.tiles[k].vectors * f.lanes, target);
  }
  for (int id : chain->before) ScheduleMap(w, id, 1, target);
  const std::string at = choice.block > 0 ? OwnerLoopsOfBlocks(w, *chain, choice, target)
                                          : OwnerLoops(w, *chain, choice, target);
  for (size_t k = chain->layers.size() - 1; k-- > 0;) {
    const CascadeLayer& layer = chain->layers[k];
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(layer.owner), at));
    ScheduleTileInside(w, layer.tile, choice.tiles[k], Padding::kPeeled);
  }
  return w.status();
}

class CascadeRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    TraceWriter w(subject->workload);
    const std::optional<CascadeChain> chain = FindCascade(w, subject->target);
    if (!chain) return {};
    std::vector<Sketch> all;
    std::vector<std::shared_ptr<Form>> forms;
    double best = 0;
    for (const bool blocks : {false, true}) {
      auto form = std::make_shared<Form>(subject);
      form->chain = *chain;
      form->blocks = blocks;
      Sketch sketch{blocks ? "cascade/blocks" : "cascade", {}, nullptr, form};
      const std::optional<double> score = Fill(w, *form, sketch);
      if (!score) continue;
      // What cannot be lowered in bands is computed layer by layer.
      TraceWriter probe(subject->workload);
      if (!Emit(sketch, form->nominal, probe).ok() ||
          !LowerTrace(subject->workload, probe.trace(), subject->target, {}, "probe").ok())
        continue;
      if (forms.empty() || *score < best) {
        best = *score;
        for (const auto& other : forms) other->is_default = false;
        form->is_default = true;
      }
      forms.push_back(std::move(form));
      all.push_back(std::move(sketch));
    }
    return all;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    return EmitBands(w, ChoiceOf(FormOf(sketch), v), SubjectOf(sketch).target);
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    const CascadeChain& chain = form.chain;
    const TraceWriter w(form.subject->workload);
    const std::vector<int64_t> band =
        FactorsOf(trace, LoopOf(w, chain.last().owner, chain.band_axis));
    const std::vector<int64_t> block = FactorsOf(trace, w.name(chain.last().anchor) + ".r0");
    if (band.size() != 1 || form.blocks != (block.size() == 1))
      return absl::InvalidArgumentError("its rows are not in such bands");
    Values values{band[0]};
    if (form.blocks) values.Add(block[0]);
    for (const CascadeLayer& layer : chain.layers) {
      const TileForm& f = layer.tile;
      const bool last = f.owner == chain.last().owner;
      const int stage = last && form.blocks ? f.anchor : f.owner;
      std::string row = LoopOf(w, stage, f.row_axis);
      if (last && !form.blocks && f.row_axis == chain.band_axis) row += ".1";
      const std::vector<int64_t> rows = FactorsOf(trace, row);
      const std::vector<int64_t> vectors = FactorsOf(trace, LoopOf(w, stage, f.vector_axis));
      if (rows.size() != 1 || vectors.size() != 2)
        return absl::InvalidArgumentError("its layers are not in tiles");
      values.Add(rows[0]);
      values.Add(vectors[0]);
    }
    return values;
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const Form& form = FormOf(sketch);
    const BandCost* cost = form.CostOf(v);
    const int64_t most = form.subject->target.As<ir::CpuTarget>().l3_bytes;
    if (cost != nullptr && cost->scratch_bytes > most / form.subject->target.threads)
      return "what the bands need does not fit the last cache";
    for (size_t k = 0; k < form.chain.layers.size(); ++k) {
      const CascadeLayer& layer = form.chain.layers[k];
      const TileChoice tile = form.TileOf(v, k);
      int64_t steps = tile.rows * tile.vectors * (layer.tile.border ? 3 : 1);
      const ir::Stage& anchor = form.subject->workload.stages[layer.anchor];
      for (int r : layer.tile.unrolled) steps *= anchor.Extent(r);
      if (steps > kMostSteps) return "too much unrolled code";
      if (layer.tile.row_axis == form.chain.band_axis && tile.rows > v[0])
        return "more rows in a tile than in a band";
      const bool last = k + 1 == form.chain.layers.size();
      if (form.blocks && !last && v[1] % (tile.vectors * layer.tile.lanes) != 0)
        return "a block is no whole tiles";
    }
    return {};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    if (!FormOf(sketch).is_default) return std::nullopt;
    return FormOf(sketch).nominal;
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    const size_t heaviest = HeaviestLayer(form);
    facts->rows = form.TileOf(v, heaviest).rows;
    facts->vectors = form.TileOf(v, heaviest).vectors;
    facts->unroll = v[0];
    if (form.blocks) facts->reduce_block = v[1];
    DescribeTile(*form.subject, facts);
    const BandCost* cost = form.CostOf(v);
    if (cost == nullptr) return;
    facts->multiply_adds = cost->multiply_adds;
    facts->shares = static_cast<double>(cost->bands);
    const double all =
        2.0 * static_cast<double>(cost->scratch_bytes) * static_cast<double>(cost->bands);
    const bool near = cost->scratch_bytes <= form.subject->target.As<ir::CpuTarget>().l2_bytes;
    (near ? facts->l2_bytes : facts->l3_bytes) = all;
  }

 private:
  /// The Sketch's tables and nominal values, and what bands of each size cost; the score of those
  /// that are nominal, or nothing where bands cannot be or compute too much twice.
  static std::optional<double> Fill(const TraceWriter& w, Form& form, Sketch& sketch) {
    const CascadeChain& chain = form.chain;
    const ir::Target& target = form.subject->target;
    const std::vector<int64_t> blocks =
        form.blocks ? BlocksOfCascade(w, chain) : std::vector<int64_t>{0};
    sketch.tables = {{"band", {"band_rows"}, {}}};
    std::optional<BandCost> best;
    for (int64_t rows : RowsOfBands(chain)) {
      bool kept = false;
      for (int64_t block : blocks) {
        const BandCost cost = CostOfBands(w, chain, rows, block);
        if (cost.whole) continue;
        kept = true;
        form.costs.push_back(cost);
        if (!best || ScoreOfBands(cost, target) < ScoreOfBands(*best, target)) best = cost;
      }
      if (kept) sketch.tables[0].rows.push_back({rows});
    }
    if (!best || best->multiply_adds > kMostRecomputed * best->plain) return std::nullopt;
    form.nominal = {best->rows};
    if (form.blocks) {
      form.nominal.Add(best->block);
      sketch.tables.push_back({"block", {"block"}, {}});
      for (int64_t block : blocks) sketch.tables[1].rows.push_back({block});
    }
    for (size_t k = 0; k < chain.layers.size(); ++k) {
      sketch.tables.push_back(TableOf(chain, k, target));
      TileChoice tile = NominalOf(w, chain, k, *best, target);
      const std::vector<int64_t> row = {tile.rows, tile.vectors};
      std::vector<std::vector<int64_t>>& rows = sketch.tables.back().rows;
      if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
      form.nominal.Add(tile.rows);
      form.nominal.Add(tile.vectors);
    }
    return ScoreOfBands(*best, target);
  }

  static size_t HeaviestLayer(const Form& form) {
    for (size_t k = 0; k < form.chain.layers.size(); ++k) {
      if (form.chain.layers[k].anchor == form.subject->cluster.anchor) return k;
    }
    return form.chain.layers.size() - 1;
  }

  static DecisionTable TableOf(const CascadeChain& chain, size_t k, const ir::Target& target) {
    const CascadeLayer& layer = chain.layers[k];
    DecisionTable table = TileTable(layer.tile.rows_total, layer.tile, target, layer.contraction);
    table.name = fmt::format("tile{}", k);
    table.columns = {fmt::format("rows{}", k), fmt::format("vectors{}", k)};
    const int64_t most = std::min<int64_t>(kLeastTile, layer.tile.rows_total);
    auto kept = table.rows;
    std::erase_if(kept, [&](const std::vector<int64_t>& row) {
      return row[0] * row[1] < most || row[1] > 4;
    });
    if (!kept.empty()) table.rows = std::move(kept);
    return table;
  }
};

}  // namespace

double NominalWorkOfBands(const Sketch& sketch) {
  const BandCost* cost = FormOf(sketch).CostOf(FormOf(sketch).nominal);
  return cost->multiply_adds / cost->plain;
}

const CpuRule& CascadeSketches() {
  static const CascadeRule rule;
  return rule;
}

}  // namespace hone::schedule

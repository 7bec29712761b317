#include "ir/tile_product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "ir/narrow_product.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/panels.h"

// Products of bytes or of bf16 in tile registers (AMX): blocks of 16 rows and 16 columns of sums
// stay there while the reduce loops run, and come to what follows through memory.
namespace hone::schedule {

namespace {

/// Registers for sums: one is left for each factor.
constexpr int64_t kMostSums = 6;
/// Cycles from one product of full tiles to the next, and of a load of a tile from the first cache
/// (Intel's optimisation manual for Sapphire Rapids, "AMX instruction throughput and latency").
constexpr double kProductCycles = 16, kLoadCycles = 8;
/// Rows, and terms as bytes, below which a tile is too empty to win over vectors.
constexpr int64_t kLeastRows = 6, kLeastTermBytes = 32;

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kVectors, kOrder };

struct Form : CpuForm {
  using CpuForm::CpuForm;
  Inlining inlining;
  TileForm tile;
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The most groups, a divisor of all, that one product adds up.
int64_t GroupsOf(int64_t groups) {
  int64_t best = 1;
  for (int64_t g = 2; g <= std::min(groups, ir::kTileRows); ++g) {
    if (groups % g == 0) best = g;
  }
  return best;
}

/// The cluster's form with tiles in it; nothing where its product is not one for them.
std::optional<TileForm> FindForm(const TraceWriter& w, const Cluster& c, const ir::Target& target) {
  if (KindOf(w, c) != ClusterKind::kTile) return std::nullopt;
  TileForm f = FindTileForm(w, c, target);
  const ir::Stage& stage = w.stage(f.anchor);
  const ir::Expr& body = stage.body[0];
  if (f.row_axis < 0 || f.row_block != 1 || f.shared_block != 0 || f.lanes != ir::kTileRows ||
      stage.combiner != ir::Combiner::kSum || body->kind != ir::ExprKind::kBinary ||
      body->binary() != ir::BinaryOp::kMul)
    return std::nullopt;
  const ir::Expr left = ir::NarrowLoad(body->args[0]), right = ir::NarrowLoad(body->args[1]);
  if (left == nullptr || right == nullptr || !ir::AreTileFactors(left->dtype, right->dtype))
    return std::nullopt;
  const int64_t bytes = ir::SizeOf(left->dtype);
  const std::vector<Access> accesses = AccessesOf(w.workload(), stage);
  if (!SuitsDots(stage, accesses, f)) return std::nullopt;
  const int64_t terms = stage.Extent(f.reduce.back());
  f.dot = ir::kTileWordBytes / bytes;
  if (terms % f.dot != 0) return std::nullopt;
  f.tile_groups = GroupsOf(terms / f.dot);
  if (f.tile_groups * ir::kTileWordBytes < kLeastTermBytes || f.rows_total < kLeastRows)
    return std::nullopt;
  if (f.owner == f.anchor && stage.spatial[f.vector_axis] % f.lanes != 0) return std::nullopt;
  f.pairs = f.border = false;
  f.widened = -1;
  f.unrolled.clear();
  f.packed.clear();
  for (const Access& a : accesses) {
    // Rows of one factor are tiles as they lie.
    if (a.SharedAlong(f.vector_axis) ? !a.linear[f.row_axis] : a.DependsOn(f.row_axis))
      return std::nullopt;
    if (!a.SharedAlong(f.vector_axis)) f.packed.push_back(a.tensor);
  }
  return f;
}

/// Nominal cycles of one group of terms in all tiles of a choice.
double CostOf(const TileForm& f, int64_t rows, int64_t vectors) {
  const int64_t blocks = CeilDiv(f.rows_total, rows), high = CeilDiv(f.rows_total, blocks);
  const auto down = static_cast<double>(CeilDiv(high, ir::kTileRows));
  const auto across = static_cast<double>(vectors);
  const int shapes = high % ir::kTileRows == 0 && f.rows_total % blocks == 0 ? 1 : 2;
  const double free = ir::kTileRegisters - down * across - shapes;
  const double loads = down + across * (free >= across ? 1 : down);
  // Loads that could hide wait a little all the same, and each tile begins and ends.
  const double step = std::max(kProductCycles * down * across, kLoadCycles * loads) + loads;
  const auto columns = static_cast<double>(CeilDiv(f.vectors_total, vectors));
  return static_cast<double>(blocks) * columns * step;
}

bool Fits(const TileForm& f, int64_t rows, int64_t vectors) {
  // Sums in place have no room for what the last panel has too much.
  if (f.owner == f.anchor && f.vectors_total % vectors != 0) return false;
  const int64_t sums = CeilDiv(rows, ir::kTileRows) * vectors;
  // Rows of two sizes are two shapes of the first factor.
  const bool even = f.rows_total % rows == 0 && rows % ir::kTileRows == 0;
  return sums <= (even ? kMostSums : kMostSums - 1) && vectors <= f.vectors_total;
}

TileChoice ChoiceOf(const Values& v) {
  return {v[kRows], v[kVectors], 0, static_cast<TileChoice::Order>(v[kOrder])};
}

class TileProductRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    if (!subject->target.As<ir::CpuTarget>().amx || subject->kind != ClusterKind::kTile) return {};
    auto form = std::make_shared<Form>(subject);
    form->inlining = {subject->input, -1, -1};
    TraceWriter w(subject->workload);
    const absl::StatusOr<Cluster> main = MainCluster(w, form->inlining);
    const std::optional<TileForm> tile =
        main.ok() ? FindForm(w, *main, subject->target) : std::nullopt;
    if (!tile) return {};
    form->tile = *tile;
    DecisionTable tiles{"tile", {"rows", "vectors"}, {}};
    for (int64_t down = 1; down <= kMostSums; ++down) {
      const int64_t most = down * ir::kTileRows;
      const int64_t rows = CeilDiv(tile->rows_total, CeilDiv(tile->rows_total, most));
      for (int64_t vectors = 1; vectors <= kMostSums; ++vectors) {
        const std::vector<int64_t> row = {rows, vectors};
        if (Fits(*tile, rows, vectors) && std::ranges::count(tiles.rows, row) == 0)
          tiles.rows.push_back(row);
      }
    }
    if (tiles.rows.empty()) return {};
    return {Sketch{"tiles", {tiles, {"order", {"order"}, {{0}, {1}}}}, nullptr, form}};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    const ir::Target& target = form.subject->target;
    return EmitClusters(w, form.inlining, target, [&](const Cluster&) {
      ScheduleTile(w, form.tile, ChoiceOf(v), Padding::kRoot, target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    TraceWriter w(form.subject->workload);
    HONE_RETURN_IF_ERROR(MainCluster(w, form.inlining).status());
    const auto read = ReadTile(w, form.tile, form.subject->target, trace);
    if (!read) return absl::InvalidArgumentError("tiles: another trace");
    return Values{read->rows, read->vectors, static_cast<int64_t>(read->order)};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const Form& form = FormOf(sketch);
    const std::vector<std::vector<int64_t>>& tiles = sketch.tables[0].rows;
    const auto best = std::ranges::min_element(
        tiles, {}, [&](const std::vector<int64_t>& t) { return CostOf(form.tile, t[0], t[1]); });
    // All columns of some rows, which are whole lines, where the other factor stays in the cache.
    const CpuSubject& subject = *form.subject;
    const double stays = static_cast<double>(subject.target.As<ir::CpuTarget>().l2_bytes) / 4;
    const bool rows_outside =
        subject.work.constant_bytes <= stays && subject.work.outer >= subject.target.threads;
    return Values{(*best)[0], (*best)[1], rows_outside ? 0 : 1};
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    facts->columns_outside = v[kOrder] != 0;
    facts->padding = form.inlining.keep >= 0 ? Padding::kRoot : Padding::kPeeled;
    DescribeTile(*form.subject, facts);
    const double full = kProductCycles * static_cast<double>(form.tile.rows_total) / ir::kTileRows *
                        static_cast<double>(form.tile.vectors_total);
    facts->tile_efficiency = full / CostOf(form.tile, v[kRows], v[kVectors]);
  }
};

}  // namespace

void OrderTileProduct(TraceWriter& w, const TileForm& f, int stage, const std::string& rows,
                      const std::string& across, const std::string& columns,
                      std::vector<std::string>* order) {
  const int spatial = w.stage(stage).num_spatial();
  const auto reduce = [&](int r) { return fmt::format("{}.r{}", w.name(stage), r - spatial); };
  const std::string terms = reduce(f.reduce.back());
  w.Emit(fmt::format("split({}, {}, two_sizes)", rows, ir::kTileRows));
  w.Emit(fmt::format("split({}, [{}, {}])", terms, f.tile_groups, f.dot));
  for (int r : f.reduce) order->push_back(reduce(r));
  order->back() = terms + ".0";
  order->insert(order->end(),
                {rows + ".0", across, rows + ".1", columns, terms + ".1", terms + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(*order, ", ")));
  w.Emit(fmt::format("unroll({}.0)", rows));
  w.Emit(fmt::format("unroll({})", across));
  w.Emit(fmt::format("tensorize({}.1, tile)", rows));
}

void ScheduleTileProduct(TraceWriter& w, const TileForm& f) {
  const auto axis = [&](int a) { return fmt::format("{}.i{}", w.name(f.anchor), a); };
  const std::string columns = axis(f.vector_axis);
  w.Emit(fmt::format("split({}, {})", columns, f.lanes));
  std::vector<std::string> order;
  for (int a : f.outer) order.push_back(axis(a));
  OrderTileProduct(w, f, f.anchor, axis(f.row_axis), columns + ".0", columns + ".1", &order);
}

const CpuRule& TileProductSketches() {
  static const TileProductRule rule;
  return rule;
}

}  // namespace hone::schedule

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "ir/index/simplify.h"
#include "ir/panel_product.h"
#include "schedule/algorithms/kept_panels.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/rewritten_product.h"
#include "schedule/cpu/tile_table.h"
#include "schedule/trace_query.h"

// Products by weights of which many are known to be zero: each panel of columns sums up the groups
// that it keeps alone, with one panel's vector of weights and many rows in registers.
namespace hone::schedule {

namespace {

/// Rows that are worth it at least: fewer sums wait for each other.
constexpr int64_t kLeastRows = 6;
/// Rows from which on a panel's vector is used often enough.
constexpr int64_t kGoodRows = 12;
/// Share of groups above which the default stays dense.
constexpr double kMostKept = 0.5;

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kOrder, kRowBlocks };

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Form : CpuForm {
  using CpuForm::CpuForm;
  int product = -1;  ///< the Stage
  ir::KeptPanels panels;
  /// What the rows share with the panels is copied so that the elements of a tile's rows lie side
  /// by side: they are read at terms far from each other.
  bool packed = false;
  /// Rows of a tile, for the first cache's sets, where they are not packed.
  int64_t most_rows = std::numeric_limits<int64_t>::max();
  int64_t default_rows = 0;  ///< 0: the default is none of this
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

TileChoice ChoiceOf(const Values& v) {
  return {.rows = v[kRows],
          .order = static_cast<TileChoice::Order>(v[kOrder]),
          .row_blocks = v[kRowBlocks]};
}

absl::StatusOr<RewrittenProduct> Begin(TraceWriter& w, const Form& form) {
  return RewriteProduct(w, form.product, fmt::format("panels, {}", form.panels.width),
                        kStagesOfKeptPanels, form.subject->input);
}

/// The register tile: the vectors of one panel, for many rows; the terms that are taken at a time
/// are unrolled.
TileForm TileOf(const TraceWriter& w, const RewrittenProduct& parts, const ir::Target& target) {
  TileForm tile = FindTileForm(w, parts.main, target);
  tile.unrolled = {w.stage(tile.anchor).num_axes() - 1};
  return tile;
}

/// The tensor that the rows read, where they are a dimension of it, and not the last.
struct Shared {
  int tensor = -1;
  int row = -1;
};

std::optional<Shared> SharedOf(const TraceWriter& w, const TileForm& tile) {
  for (const Access& a : AccessesOf(w.workload(), w.stage(tile.anchor))) {
    if (!a.DependsOn(tile.row_axis)) continue;
    Shared shared{a.tensor, -1};
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const ir::ExprNode& index = *a.indices[d];
      if (!ir::DependsOnVar(a.indices[d], tile.row_axis)) continue;
      if (index.kind != ir::ExprKind::kVar || shared.row >= 0) return std::nullopt;
      shared.row = static_cast<int>(d);
    }
    if (shared.row < 0 || shared.row + 1 == static_cast<int>(a.indices.size())) return std::nullopt;
    return shared;
  }
  return std::nullopt;
}

/// [others, row / rows, term, row % rows].
void PackRows(TraceWriter& w, const TileForm& tile, int64_t rows, const ir::Target& target) {
  const std::optional<Shared> shared = SharedOf(w, tile);
  if (!shared) return;
  const int rank = static_cast<int>(w.workload().tensors[shared->tensor].shape.size());
  std::vector<std::string> dims;
  for (int d = 0; d + 1 < rank; ++d)
    dims.push_back(d == shared->row ? fmt::format("i{}/{}", d, rows) : fmt::format("i{}", d));
  dims.push_back(fmt::format("i{}", rank - 1));
  dims.push_back(fmt::format("i{}%{}", shared->row, rows));
  const int copy = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = pack({}, {}, [{}])", w.NextStage(), w.name(tile.anchor),
                     w.workload().tensors[shared->tensor].name, fmt::join(dims, ", ")));
  ScheduleMap(w, copy, 1, target);
}

/// Heights of tiles that make different tilings, or where they are packed those that divide all.
std::vector<int64_t> Heights(int64_t total, int64_t most, bool exact) {
  std::vector<int64_t> heights;
  for (int64_t h = 1; h <= std::min(total, most); ++h) {
    if (exact ? total % h == 0 : CeilDiv(total, CeilDiv(total, h)) == h) heights.push_back(h);
  }
  const bool enough = !heights.empty() && heights.back() >= kLeastRows;
  std::erase_if(heights, [&](int64_t h) { return enough && h < kLeastRows; });
  return heights;
}

/// Blocks of rows that stay in the second cache while all panels pass: "blocks", of the column
/// row_blocks.
DecisionTable RowBlockTable(int64_t rows) {
  DecisionTable blocks{"blocks", {"row_blocks"}, {{0}}};
  for (int64_t n = 2; n <= 64 && rows / n >= kLeastRows; n *= 2) {
    if (rows % n == 0) blocks.rows.push_back({n});
  }
  return blocks;
}

class KeptRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    const int product = FindPanelsStage(subject->workload);
    if (product < 0 || subject->kind != ClusterKind::kTile ||
        subject->cluster.anchor != product || subject->tile.row_axis < 0)
      return {};
    std::vector<Sketch> all;
    for (const bool packed : {false, true}) {
      auto form = std::make_shared<Form>(subject);
      form->product = product;
      form->panels = *ir::PanelsOfStage(subject->workload, product);
      form->packed = packed;
      if (!packed)
        form->most_rows = RowsWithinASet(subject->workload, subject->tile, subject->target);
      Sketch sketch{packed ? "panels/packed" : "panels", {}, nullptr, form};
      DecisionTable tile{"tile", {"rows"}, {}};
      for (int64_t h : Heights(subject->tile.rows_total, MostRows(*form), packed))
        tile.rows.push_back({h});
      if (packed && (tile.rows.empty() || tile.rows.back()[0] < kLeastRows)) continue;
      form->default_rows = DefaultRows(tile, *form);
      sketch.tables = {tile, {"order", {"order"}, {{0}, {1}}}};
      if (packed) sketch.tables.push_back(RowBlockTable(subject->tile.rows_total));
      TraceWriter probe(subject->workload);
      if (Emit(sketch, {tile.rows[0][0], 0, 0}, probe).ok()) all.push_back(std::move(sketch));
    }
    return all;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    const ir::Target& target = form.subject->target;
    HONE_ASSIGN_OR_RETURN(const RewrittenProduct parts, Begin(w, form));
    const TileForm tile = TileOf(w, parts, target);
    if (tile.row_axis < 0) return absl::InvalidArgumentError("panels: there are no rows");
    if (form.packed && !SharedOf(w, tile))
      return absl::InvalidArgumentError("panels: rows are no dimension of what they read");
    for (const Cluster& c : parts.others) ScheduleNominally(w, c, target);
    if (form.packed) PackRows(w, tile, v[kRows], target);
    ScheduleTile(w, tile, ChoiceOf(v), Padding::kPeeled, target);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    TraceWriter w(form.subject->workload);
    HONE_ASSIGN_OR_RETURN(const RewrittenProduct parts, Begin(w, form));
    const TileForm tile = TileOf(w, parts, form.subject->target);
    const std::optional<TileChoice> read = ReadTile(w, tile, form.subject->target, trace);
    if (!read) return absl::InvalidArgumentError("panels: another tile");
    Values values{read->rows, static_cast<int64_t>(read->order)};
    if (!form.packed) return values;
    TileChoice for_threads = *read;
    for_threads.row_blocks = 0;
    const int64_t blocks =
        RowBlocks(w.stage(tile.owner), tile, for_threads, form.subject->target);
    values.Add(read->row_blocks == blocks ? 0 : read->row_blocks);
    return values;
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const Form& form = FormOf(sketch);
    if (v[kRows] > form.most_rows) return "rows of the tile share a set of the first cache";
    const int64_t block = form.subject->tile.rows_total / std::max<int64_t>(1, v[kRowBlocks]);
    const bool whole = !form.packed || block % v[kRows] == 0;
    return whole ? "" : "its blocks are not whole tiles";
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const Form& form = FormOf(sketch);
    if (ir::MeanKept(form.panels) > kMostKept || form.default_rows == 0) return std::nullopt;
    Values values{form.default_rows, static_cast<int64_t>(form.subject->nominal.order)};
    if (form.packed) values.Add(DefaultBlocks(sketch.tables[2], form));
    return values;
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    facts->rows = v[kRows];
    facts->vectors = VectorsOfPanel(form);
    facts->columns_outside = v[kOrder] != 0;
    DescribeTile(*form.subject, facts);
    facts->work_reduce *= ir::MeanKept(form.panels);
    facts->multiply_adds *= ir::MeanKept(form.panels);
    if (!form.packed) return;
    facts->barriers += 1;
    facts->l2_bytes += 2 * form.subject->work.input_bytes;
  }

 private:
  static int64_t VectorsOfPanel(const Form& form) {
    return std::max<int64_t>(1, form.panels.width / form.subject->lanes);
  }
  /// The most rows that the cache's sets allow; 0 where those are few, or more can be packed.
  static int64_t DefaultRows(const DecisionTable& tile, const Form& form) {
    int64_t best = 0;
    for (const std::vector<int64_t>& row : tile.rows) {
      if (row[0] <= form.most_rows) best = std::max(best, row[0]);
    }
    const std::vector<int64_t> packed =
        Heights(form.subject->tile.rows_total, MostRows(form), true);
    const bool better_packed = !form.packed && best < kGoodRows && packed.back() > best;
    return better_packed || best < kLeastRows ? 0 : best;
  }
  /// As few blocks as fit half the second cache.
  static int64_t DefaultBlocks(const DecisionTable& blocks, const Form& form) {
    const CpuSubject& subject = *form.subject;
    const double row_bytes = subject.work.reduce * sizeof(float);
    const auto cache = static_cast<double>(subject.target.As<ir::CpuTarget>().l2_bytes);
    int64_t best = 0;
    for (const std::vector<int64_t>& row : blocks.rows) {
      const int64_t rows = subject.tile.rows_total / std::max<int64_t>(1, row[0]);
      if (rows % form.default_rows != 0) break;
      best = row[0];
      if (static_cast<double>(rows) * row_bytes <= cache / 2) break;
    }
    return best;
  }
  /// Rows whose sums, a panel's vectors and a broadcast, where it takes one, fit the registers.
  static int64_t MostRows(const Form& form) {
    const auto& cpu = form.subject->target.As<ir::CpuTarget>();
    const int64_t vectors = VectorsOfPanel(form);
    if (TakesBroadcastsFromMemory(form.subject->target)) return cpu.registers - 4;
    return (cpu.registers - vectors - 1) / vectors;
  }
};

}  // namespace

const CpuRule& KeptSketches() {
  static const KeptRule rule;
  return rule;
}

}  // namespace hone::schedule

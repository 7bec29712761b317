#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "ir/panel_product.h"
#include "schedule/algorithms/kept_panels.h"
#include "schedule/algorithms/kept_values.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/rewritten_product.h"

// A few rows times pruned weights: they wait for the weights, so that reading only those that are
// not zero, with a bit for each that says where, is as much faster as it reads less.
namespace hone::schedule {

namespace {

/// Rows, all in one tile.
constexpr int64_t kMostRows = 4;
/// Vectors of sums that a tile holds.
constexpr int64_t kMostSums = 16;
/// Share of values above which words of bits and shuffles cost more than they save.
constexpr double kMostKept = 0.7;

/// Columns, in the order of the tables.
enum Column : uint8_t { kVectors };

struct Form : CpuForm {
  using CpuForm::CpuForm;
  int product = -1;  ///< the Stage
  ir::KeptPanels panels;

  double kept() const { return static_cast<double>(panels.values) / ir::KeptPanels::kSteps; }
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

absl::StatusOr<RewrittenProduct> Begin(TraceWriter& w, const Form& form) {
  return RewriteProduct(w, form.product, fmt::format("bitmask, {}", form.panels.width),
                        kStagesOfKeptValues, form.subject->input);
}

/// Vectors of neighbouring panels side by side; the terms of a word are unrolled.
TileForm TileOf(const TraceWriter& w, const RewrittenProduct& product, const ir::Target& target) {
  TileForm tile = FindTileForm(w, product.main, target);
  tile.shared_block = 0;
  tile.unrolled = {w.stage(tile.anchor).num_axes() - 1};
  return tile;
}

class BitmaskRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    const int product = FindPanelsStage(subject->workload);
    if (product < 0 || subject->kind != ClusterKind::kTile ||
        subject->cluster.anchor != product || subject->tile.rows_total > kMostRows ||
        subject->target.As<ir::CpuTarget>().isa != ir::Isa::kAvx512)
      return {};
    auto form = std::make_shared<Form>(subject);
    form->product = product;
    form->panels = *ir::PanelsOfStage(subject->workload, product);
    DecisionTable tile{"tile", {"vectors"}, {}};
    for (const int64_t v : {1, 2, 3, 4, 6, 8}) {
      if (v <= subject->tile.vectors_total && v * subject->tile.rows_total <= kMostSums)
        tile.rows.push_back({v});
    }
    Sketch sketch{"bitmask", {tile}, nullptr, form};
    TraceWriter probe(subject->workload);
    if (!Emit(sketch, {1}, probe).ok()) return {};
    return {std::move(sketch)};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    const ir::Target& target = form.subject->target;
    HONE_ASSIGN_OR_RETURN(const RewrittenProduct product, Begin(w, form));
    for (const Cluster& c : product.others) ScheduleNominally(w, c, target);
    ScheduleTile(w, TileOf(w, product, target),
                 {.rows = form.subject->tile.rows_total,
                  .vectors = v[kVectors],
                  .order = TileChoice::Order::kColumnsOutside},
                 Padding::kPeeled, target);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    TraceWriter w(form.subject->workload);
    HONE_ASSIGN_OR_RETURN(const RewrittenProduct product, Begin(w, form));
    const TileForm tile = TileOf(w, product, form.subject->target);
    const std::optional<TileChoice> read = ReadTile(w, tile, form.subject->target, trace);
    if (!read) return absl::InvalidArgumentError("bitmask: another tile");
    return Values{read->vectors};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const Form& form = FormOf(sketch);
    const CpuSubject& subject = *form.subject;
    const auto cache = static_cast<double>(subject.target.As<ir::CpuTarget>().l2_bytes);
    if (form.kept() > kMostKept || subject.work.constant_bytes < cache) return std::nullopt;
    // Every thread has a share.
    int64_t vectors = std::min<int64_t>(4, subject.tile.vectors_total);
    while (vectors > 1 && subject.tile.vectors_total < vectors * subject.target.threads) --vectors;
    return Values{vectors};
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    facts->rows = form.subject->tile.rows_total;
    facts->vectors = v[kVectors];
    facts->columns_outside = true;
    DescribeTile(*form.subject, facts);
    facts->work_reduce *= form.kept();
  }
};

}  // namespace

const CpuRule& BitmaskSketches() {
  static const BitmaskRule rule;
  return rule;
}

}  // namespace hone::schedule

#include <algorithm>
#include <limits>
#include <utility>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/panels.h"
#include "schedule/cpu/tile_table.h"
#include "schedule/trace_query.h"

// Contractions and windows as they stand: a register tile, the order of the loops around it, blocks
// of the reduction, and four things that the padding of the input can become.
namespace hone::schedule {

namespace {

/// Unrolled multiply-adds of one tile and its siblings above which code generation costs more than
/// a candidate is worth.
constexpr int64_t kMostSteps = 700;

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kVectors, kOrder, kReduceBlock };

struct Form : CpuForm {
  using CpuForm::CpuForm;
  Padding padding = Padding::kPeeled;
  bool is_default = false;
  int64_t most_rows = std::numeric_limits<int64_t>::max();  ///< of a tile, for the L1's sets
  int64_t steps = 1;  ///< multiply-adds of one element of the tile in the code, siblings included
  int64_t fetched_bytes = 0;  ///< of constants whose panels can be fetched ahead

  Inlining inlining() const {
    const bool keep = padding == Padding::kTile || padding == Padding::kRoot;
    return {keep ? subject->input : -1, keep ? -1 : subject->input,
            padding == Padding::kTile ? subject->input : -1};
  }
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

TileChoice ChoiceOf(const Values& v) {
  return {v[kRows], v[kVectors], v[kReduceBlock], static_cast<TileChoice::Order>(v[kOrder])};
}

Values ValuesOf(const TileChoice& c, const Sketch& sketch) {
  Values v{c.rows, c.vectors, static_cast<int64_t>(c.order)};
  if (sketch.tables.size() == 3) v.Add(c.reduce_block);
  return v;
}

class DirectRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    if (subject->kind != ClusterKind::kTile) return {};
    if (subject->input < 0) return {Make(subject, "direct", Padding::kPeeled)};
    const int prepared = subject->workload.stages[subject->input].results[0];
    if (subject->tile.dot > 1 && std::ranges::count(subject->tile.packed, prepared) > 0)
      return {Make(subject, "direct/root", Padding::kRoot)};
    std::vector<Sketch> all;
    // Narrow numbers are multiplied several at a time where none of them is guarded.
    if (!IsSumOfNarrowProducts(subject->workload.stages[subject->cluster.anchor],
                               subject->target)) {
      all.push_back(Make(subject, "direct/peeled", Padding::kPeeled));
      all.push_back(Make(subject, "direct/guard", Padding::kGuard));
    }
    // In the loops of the heaviest cluster only what that cluster reads can be computed.
    if (subject->workload.Readers(subject->input) == std::vector<int>{subject->cluster.anchor})
      all.push_back(Make(subject, "direct/tile", Padding::kTile));
    all.push_back(Make(subject, "direct/root", Padding::kRoot));
    return all;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    const ir::Target& target = form.subject->target;
    return EmitClusters(w, form.inlining(), target, [&](const Cluster& c) {
      // With the input inlined or kept something else may be the heaviest.
      if (KindOf(w, c) == ClusterKind::kTile)
        ScheduleTile(w, FindTileForm(w, c, target), ChoiceOf(v), form.padding, target);
      else
        ScheduleNominally(w, c, target);
      if (form.padding == Padding::kTile)
        ScheduleInputTile(w, form.subject->input, c.owner, target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    TraceWriter w(form.subject->workload);
    HONE_ASSIGN_OR_RETURN(const Cluster c, MainCluster(w, form.inlining()));
    TileChoice read{sketch.tables[0].rows[0][0], sketch.tables[0].rows[0][1]};
    if (KindOf(w, c) == ClusterKind::kTile) {
      const TileForm tile = FindTileForm(w, c, form.subject->target);
      read = ReadTile(w, tile, form.subject->target, trace).value_or(read);
    }
    return ValuesOf(read, sketch);
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const Form& form = FormOf(sketch);
    if (v[kRows] > form.most_rows) return "rows of the tile share a set of the first cache";
    if (v[kRows] * v[kVectors] * form.steps > kMostSteps) return "too much unrolled code";
    return {};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const Form& form = FormOf(sketch);
    if (!form.is_default) return std::nullopt;
    TileChoice c = form.subject->nominal;
    // What does not fit the second cache is not to be read again for each row. A fetch in every
    // iteration is too much where that has but a dozen multiply-adds, two a cycle.
    const ir::Target& target = form.subject->target;
    const int64_t l2_bytes = target.As<ir::CpuTarget>().l2_bytes;
    if (form.fetched_bytes > (c.order == TileChoice::Order::kRowsOutside ? l2_bytes : 0)) {
      c.order = TakesBroadcastsFromMemory(target) ? TileChoice::Order::kColumnsAhead
                                                  : TileChoice::Order::kColumnsOutside;
    }
    return ValuesOf(c, sketch);
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    facts->padding = form.padding;
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    facts->columns_outside = v[kOrder] != 0;
    facts->ahead = v[kOrder] == static_cast<int64_t>(TileChoice::Order::kColumnsAhead);
    facts->reduce_block = v[kReduceBlock];
    DescribeTile(*form.subject, facts);
  }

 private:
  Sketch Make(const std::shared_ptr<const CpuSubject>& subject, const char* name,
              Padding padding) const {
    const ir::Workload& workload = subject->workload;
    const TileForm& tile = subject->tile;
    const ir::Stage& anchor = workload.stages[tile.anchor];
    const bool contraction = !tile.packed.empty() || subject->work.contraction;
    auto form = std::make_shared<Form>(subject);
    form->padding = padding;
    const bool costly = subject->input >= 0 && (IsCostlyInput(workload, subject->input) ||
                                                IsSumOfNarrowProducts(anchor, subject->target));
    form->is_default = padding == (costly ? Padding::kRoot : Padding::kPeeled);
    if (contraction && tile.row_axis >= 0)
      form->most_rows = RowsWithinASet(workload, tile, subject->target);
    const bool inlined = padding == Padding::kPeeled || padding == Padding::kGuard;
    if (inlined || tile.packed.empty()) {
      for (int r : tile.unrolled) form->steps *= anchor.Extent(r);
    }
    if (padding == Padding::kPeeled && tile.border) form->steps *= 3;
    Sketch s{name, {}, nullptr, form};
    s.tables = {TileTable(tile.rows_total, tile, subject->target, contraction),
                {"order", {"order"}, {{0}, {1}}}};
    if (contraction && HasPanelsToFetch(workload, tile)) {
      form->fetched_bytes = workload.tensors[tile.packed[0]].Bytes();
      s.tables.back().rows.push_back({2});
    }
    if (tile.owner == tile.anchor && contraction) {
      s.tables.push_back(BlockTable(tile.reduce.empty() ? 1 : anchor.Extent(tile.reduce.back())));
    }
    return s;
  }
};

}  // namespace

const CpuRule& DirectSketches() {
  static const DirectRule rule;
  return rule;
}

}  // namespace hone::schedule

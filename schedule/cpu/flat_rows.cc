#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "schedule/cpu/cpu_rules.h"

// A product whose rows lie in two axes, one after the other, as the pixels of a convolution of one
// tap: where neither fills many threads evenly they become one axis, which tiles cut finely.
namespace hone::schedule {

namespace {

/// The rules' subject is that of the Workload with one axis of rows; `direct` is a Sketch of it.
struct Form : CpuForm {
  using CpuForm::CpuForm;
  std::vector<std::string> prelude;  ///< what makes them one
  Sketch direct;
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

/// Whether what the Stage reads lies as if the two axes were one.
bool IsOneAxis(const ir::Workload& workload, const ir::Stage& stage, int outer, int rows) {
  const std::vector<Access> accesses = AccessesOf(workload, stage);
  return std::ranges::all_of(accesses, [&](const Access& a) {
    if (a.guarded && (a.guard_moves[outer] || a.guard_moves[rows])) return false;
    if (!a.linear[outer] || !a.linear[rows]) return false;
    return a.stride[outer] == a.stride[rows] * stage.spatial[rows];
  });
}

/// What one axis must gain by the nominal tile's numbers.
constexpr double kGain = 1.1;

double ScoreOf(const CpuSubject& subject) {
  return TileScore(subject.workload, subject.tile, subject.nominal, subject.target);
}

/// The product and the Stages through which its results become the owner's, in the order of the
/// Workload.
std::vector<int> StagesBetween(const ir::Workload& workload, const TileForm& tile) {
  std::vector<int> stages = {tile.anchor};
  for (int id = tile.anchor + 1; id <= tile.owner; ++id) {
    const std::vector<Access> reads = AccessesOf(workload, workload.stages[id]);
    const bool follows = std::ranges::any_of(reads, [&](const Access& a) {
      return std::ranges::find(stages, workload.Producer(a.tensor)) != stages.end();
    });
    if (follows) stages.push_back(id);
  }
  return stages;
}

/// The instructions that make the rows and the axis outside of them one; none where that is not
/// possible.
std::vector<std::string> Prelude(const CpuSubject& subject) {
  const TileForm& tile = subject.tile;
  const ir::Workload& workload = subject.workload;
  const int outer = tile.row_axis - 1;
  if (tile.border || std::ranges::find(tile.outer, outer) == tile.outer.end()) return {};
  std::vector<std::string> prelude;
  for (const int id : StagesBetween(workload, tile)) {
    const ir::Stage& stage = workload.stages[id];
    if (stage.num_spatial() <= tile.row_axis || stage.spatial[outer] < 2 || !stage.store.empty() ||
        !IsOneAxis(workload, stage, outer, tile.row_axis))
      return {};
    prelude.push_back(fmt::format("flatten({}, [i{},i{}])", stage.name, outer, tile.row_axis));
  }
  // Readers first: what they read is then told where it lies.
  std::ranges::reverse(prelude);
  return prelude;
}

class FlatRowsRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    const CpuSubject& given = *subject;
    if (!HasManyThreads(given.target) || given.kind != ClusterKind::kTile ||
        !given.work.contraction || given.tile.row_axis < 1)
      return {};
    const std::vector<std::string> prelude = Prelude(given);
    if (prelude.empty()) return {};
    TraceWriter flat(given.workload);
    for (const std::string& instruction : prelude) flat.Emit(instruction);
    if (!flat.status().ok()) return {};
    TraceWriter inlined(flat.workload());
    const std::vector<Cluster> clusters = FindClusters(inlined, -1, -1);
    const auto one = std::make_shared<const CpuSubject>(inlined, clusters, flat.workload(),
                                                        given.target, given.accuracy);
    const bool same = one->kind == ClusterKind::kTile && one->tile.owner == given.tile.owner &&
                      one->tile.anchor == given.tile.anchor && one->tile.row_axis >= 0;
    if (!same || ScoreOf(*one) < kGain * ScoreOf(given)) return {};
    std::vector<Sketch> all;
    for (Sketch& direct : DirectSketches().Sketches(one, inlined)) {
      auto form = std::make_shared<Form>(one);
      form->prelude = prelude;
      Sketch sketch{"flat_rows/" + direct.name, direct.tables, nullptr, nullptr};
      form->direct = std::move(direct);
      sketch.form = std::move(form);
      all.push_back(std::move(sketch));
    }
    return all;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    for (const std::string& instruction : form.prelude) w.Emit(instruction);
    return DirectSketches().Emit(form.direct, v, w);
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    return DirectSketches().Read(FormOf(sketch).direct, trace);
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    return DirectSketches().Refusal(FormOf(sketch).direct, v);
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return DirectSketches().Default(FormOf(sketch).direct);
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    DirectSketches().Describe(FormOf(sketch).direct, v, facts);
  }
};

}  // namespace

const CpuRule& FlatRowsSketches() {
  static const FlatRowsRule rule;
  return rule;
}

}  // namespace hone::schedule

#include "schedule/cpu/cpu_rules.h"

#include <utility>

#include "base/core/check.h"
#include "schedule/cpu/cascade_chain.h"

namespace hone::schedule {

namespace {

/// Every Sketch until `last` says of one that no more are needed.
std::vector<Sketch> SketchesUntil(const ir::Workload& workload, const ir::Target& target,
                                  ir::AccuracyClass accuracy, bool (*last)(const Sketch&)) {
  TraceWriter writer(workload);
  const std::vector<Cluster> clusters = FindClusters(writer, -1, -1);
  const auto subject =
      std::make_shared<const CpuSubject>(writer, clusters, workload, target, accuracy);
  std::vector<Sketch> all;
  for (const CpuRule* rule : CpuRules()) {
    for (Sketch& sketch : rule->Sketches(subject, writer)) {
      sketch.rule = rule;
      all.push_back(std::move(sketch));
      if (last(all.back())) return all;
    }
  }
  return all;
}

class AllSketches final : public KindSketches {
 public:
  std::vector<Sketch> Sketches(const ir::Workload& workload, const ir::Target& target,
                               ir::AccuracyClass accuracy) const override {
    return SketchesUntil(workload, target, accuracy, [](const Sketch&) { return false; });
  }

  Sketch DefaultSketch(const ir::Workload& workload, const ir::Target& target) const override {
    const auto all = SketchesUntil(workload, target, ir::AccuracyClass::kDefault,
                                   [](const Sketch& s) { return s.rule->Default(s).has_value(); });
    HONE_CHECK(!all.empty() && all.back().rule->Default(all.back()))
        << "every Workload has a default schedule";
    return all.back();
  }

  double WorkInBands(const ir::Workload& workload, const ir::Target& target) const override {
    const Sketch sketch = DefaultSketch(workload, target);
    return sketch.rule == &CascadeSketches() ? NominalWorkOfBands(sketch) : 0;
  }
};

}  // namespace

const std::vector<const CpuRule*>& CpuRules() {
  static const std::vector<const CpuRule*> rules = {
      // Before the others: its default, where it has one, is better than theirs.
      &AttentionSketches(),    //
      &CascadeSketches(),      //
      &KeptSketches(),         //
      &BitmaskSketches(),      //
      &TileProductSketches(),  //
      &WinogradSketches(),     //
      &FlatRowsSketches(),     //
      &DirectSketches(),       //
      &RowsSketches(),         //
      &MapSketches(),          //
      &ScanSketches(),         //
      &CumulatedSketches(),    //
  };
  return rules;
}

const KindSketches& CpuSketches() {
  static const AllSketches sketches;
  return sketches;
}

}  // namespace hone::schedule

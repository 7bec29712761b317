#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Columns, in the order of the tables.
enum Column : uint8_t { kVectors, kSteps };

/// The only Stage of a scan whose points each carry on from the same point one step before, as in a
/// cumulative sum: so many vectors side by side advance together, and so many steps of one vector
/// follow each other, between which what is carried stays in a register.
class CumulatedRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& writer) const override {
    const int owner = subject->cluster.owner;
    if (subject->kind != ClusterKind::kScan || subject->tile.anchor >= 0 || owner < 0) return {};
    const ir::Stage& stage = writer.stage(owner);
    const int v = VectorAxis(writer.workload(), stage);
    if (!CarriesPointByPoint(writer.workload(), stage) || v < 1) return {};
    const int64_t total = CeilDiv(stage.spatial[v], subject->lanes);
    DecisionTable vectors{"vectors", {"vectors"}, {}}, steps{"steps", {"steps"}, {{1}}};
    for (int64_t n = 1; n < total; n *= 2) vectors.rows.push_back({n});
    vectors.rows.push_back({total});
    for (int64_t n = 2; n <= std::min<int64_t>(stage.spatial[0], 16); n *= 2)
      steps.rows.push_back({n});
    return {{"cumulated", {vectors, steps}, nullptr, std::make_shared<CpuForm>(subject)}};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    return EmitClusters(w, {.force = subject.input}, subject.target, [&](const Cluster& c) {
      if (c.owner == subject.cluster.owner)
        Schedule(w, c.owner, v, subject);
      else
        ScheduleNominally(w, c, subject.target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    TraceWriter w(subject.workload);
    HONE_ASSIGN_OR_RETURN(const Cluster c, MainCluster(w, {.force = subject.input}));
    const ir::Stage& stage = w.stage(c.owner);
    const std::vector<int64_t> block =
        FactorsOf(trace, fmt::format("{}.i{}", stage.name, VectorAxis(w.workload(), stage)));
    if (block.size() != 2) return absl::InvalidArgumentError("cumulated: no blocks of vectors");
    const std::vector<int64_t> steps = FactorsOf(trace, stage.name + ".i0");
    return Values{block[0], steps.empty() ? 1 : steps[0]};
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    facts->vectors = v[kVectors];
    facts->unroll = v[kSteps];
    DescribePass(SubjectOf(sketch), facts);
  }

 private:
  static void Schedule(TraceWriter& w, int id, const Values& values, const CpuSubject& subject) {
    const ir::Stage stage = w.stage(id);
    const int v = VectorAxis(w.workload(), stage);
    const std::string t = stage.name + ".i0", axis = fmt::format("{}.i{}", stage.name, v);
    const int64_t block = values[kVectors], steps = values[kSteps], width = subject.lanes;
    const int64_t columns = stage.spatial[v];
    w.Emit(fmt::format("split({}, [{}, {}]{})", axis, block, width,
                       columns % (block * width) == 0 ? "" : ", mask"));
    std::vector<std::string> outer;
    std::vector<int64_t> extents;
    for (int a = 1; a < stage.num_spatial(); ++a) {
      if (stage.spatial[a] == 1 && a != v) continue;
      outer.push_back(a == v ? axis + ".0" : fmt::format("{}.i{}", stage.name, a));
      extents.push_back(a == v ? CeilDiv(columns, block * width) : stage.spatial[a]);
    }
    std::vector<std::string> order = outer;
    if (steps > 1) {
      w.Emit(
          fmt::format("split({}, {}{})", t, steps, stage.spatial[0] % steps == 0 ? "" : ", mask"));
      order.insert(order.end(), {t + ".0", axis + ".1", t + ".1", axis + ".2"});
    } else {
      order.insert(order.end(), {t, axis + ".1", axis + ".2"});
    }
    w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    if (steps > 1) w.Emit(fmt::format("unroll({}.1)", t));
    w.Emit(fmt::format("vectorize({}.2)", axis));
    Parallelise(w, id, outer, extents, subject.target);
  }
};

}  // namespace

const CpuRule& CumulatedSketches() {
  static const CumulatedRule rule;
  return rule;
}

}  // namespace hone::schedule

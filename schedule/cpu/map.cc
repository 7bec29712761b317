#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {
/// A share of the work below this many elements per thread is not worth a barrier.
constexpr int64_t kGrain = 4096;
}  // namespace

double ThreadImbalance(int64_t iterations, const ir::Target& target) {
  const int64_t threads = target.threads;
  return static_cast<double>((iterations + threads - 1) / threads * threads) /
         static_cast<double>(iterations);
}

ParallelLoop Parallelise(TraceWriter& w, int owner, const std::vector<std::string>& loops,
                         const std::vector<int64_t>& extents, const ir::Target& target) {
  const std::string name = w.name(owner);
  // Leading loops of one iteration do not count; then fuse until the threads' shares differ by at
  // most a quarter.
  size_t first = 0;
  while (first < loops.size() && extents[first] == 1) ++first;
  if (first == loops.size()) return {};
  std::string loop = loops[first];
  int64_t n = extents[first];
  int fused = 0;
  auto uneven = [&] {
    return ThreadImbalance(n, target) > (HasManyThreads(target) ? kMostImbalance : 1.25);
  };
  size_t consumed = first + 1;
  for (size_t k = first + 1; k < loops.size() && target.threads > 1 && uneven(); ++k) {
    consumed = k + 1;
    std::string result = fmt::format("{}.f{}", name, fused++);
    w.Emit(fmt::format("{} = fuse({}, {})", result, loop, loops[k]));
    loop = result;
    n *= extents[k];
  }
  w.Emit(fmt::format("parallel({}, {})", loop, target.threads));
  return {loop, consumed};
}

ParallelLoop ParalleliseAll(TraceWriter& w, int owner, const std::vector<std::string>& loops,
                            const ir::Target& target) {
  std::string loop = loops[0];
  for (size_t k = 1; k < loops.size(); ++k) {
    const std::string result = fmt::format("{}.f{}", w.name(owner), k - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", result, loop, loops[k]));
    loop = result;
  }
  w.Emit(fmt::format("parallel({}, {})", loop, target.threads));
  return {loop, loops.size()};
}

namespace {
/// The axis along which the map reads what it writes along another one; -1 when there is none.
int TransposedAxis(const ir::Workload& w, const ir::Stage& stage, int vector_axis) {
  for (const auto& a : AccessesOf(w, stage)) {
    if (!a.linear[vector_axis] || a.stride[vector_axis] < 2) continue;
    for (int x = stage.num_spatial(); x-- > 0;) {
      if (x != vector_axis && stage.spatial[x] > 1 && a.linear[x] && a.stride[x] == 1) return x;
    }
  }
  return -1;
}

/// The period with which loads repeat along the axis (an index is taken modulo it, as when a tensor
/// is tiled); 0 when there is none, or several.
int64_t PeriodAlong(const ir::Stage& stage, int axis) {
  int64_t period = 0;
  bool one = true;
  for (const ir::Expr& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kBinary || e.binary() != ir::BinaryOp::kMod ||
          e.args[0]->kind != ir::ExprKind::kVar || e.args[0]->id != axis)
        return;
      const int64_t c = ir::AsInt(e.args[1]).value_or(0);
      one &= period == 0 || period == c;
      period = c;
    });
  }
  return one ? period : 0;
}

/// Whether some index bends along the axis (it is held at a border, or reflected there): inside,
/// all lanes stand side by side.
bool BendsAlong(const ir::Stage& stage, int axis) {
  bool bends = false;
  for (const ir::Expr& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& load) {
      if (load.kind != ir::ExprKind::kLoad) return;
      for (const ir::Expr& index : load.args) {
        ir::Visit(index, [&](const ir::ExprNode& e) {
          if (e.kind != ir::ExprKind::kBinary ||
              (e.binary() != ir::BinaryOp::kMin && e.binary() != ir::BinaryOp::kMax))
            return;
          bends |= ir::DependsOnVar(e.args[0], axis) || ir::DependsOnVar(e.args[1], axis);
        });
      }
    });
  }
  return bends;
}

/// Cuts the axis along which the source is contiguous into blocks of about `width` lines, which are
/// turned in registers; gives its loops, the last one unrolled.
std::vector<std::string> TurnedLoops(TraceWriter& w, const std::string& axis, int64_t n,
                                     int64_t width) {
  if (2 * n < width) return {axis};
  if (n <= width) {
    w.Emit(fmt::format("unroll({})", axis));
    return {axis};
  }
  w.Emit(fmt::format("split({}, {}{})", axis, width, n % width == 0 ? "" : ", two_sizes"));
  w.Emit(fmt::format("unroll({}.1)", axis));
  return {axis + ".0", axis + ".1"};
}
}  // namespace

void ScheduleMap(TraceWriter& w, int id, int64_t unroll, const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const int v = VectorAxis(w.workload(), stage);
  if (v < 0) return;
  const ir::DType dtype = w.workload().tensors[stage.results[0]].dtype;
  const int lanes = LanesFor(dtype, target);
  const int turned = TransposedAxis(w.workload(), stage, v);
  std::vector<std::string> loops, order;
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (int a = 0; a < stage.num_spatial(); ++a) {
    points *= stage.spatial[a];
    if (a == v || a == turned) continue;
    loops.push_back(fmt::format("{}.i{}", stage.name, a));
    extents.push_back(stage.spatial[a]);
  }
  int64_t n = stage.spatial[v];
  std::string axis = fmt::format("{}.i{}", stage.name, v);
  // Within a period lanes stand side by side.
  const int64_t period = PeriodAlong(stage, v);
  if (turned < 0 && period >= lanes && period % lanes != 0 && n > period && n % period == 0) {
    w.Emit(fmt::format("split({}, {})", axis, period));
    loops.push_back(axis + ".0");
    extents.push_back(n / period);
    axis += ".1";
    n = period;
  }
  if (n >= 2) {
    int64_t width = std::min<int64_t>(lanes, n);
    // A block of lines fills the registers already.
    const bool unrolled = turned < 0 && unroll > 1 && n >= width * unroll;
    const int64_t step = unrolled ? width * unroll : width;
    const std::string factors =
        unrolled ? fmt::format("[{}, {}]", unroll, width) : fmt::format("{}", width);
    w.Emit(fmt::format("split({}, {}{})", axis, factors, n % step == 0 ? "" : ", mask"));
    std::vector<std::string> lines;
    if (turned >= 0) {
      const int64_t count = stage.spatial[turned];
      lines = TurnedLoops(w, fmt::format("{}.i{}", stage.name, turned), count, lanes);
      // The result is written line by line where its blocks are equal (and so may be parallel).
      if (lines.size() > 1 && count % lanes == 0) {
        loops.push_back(lines[0]);
        extents.push_back(count / lanes);
        lines.erase(lines.begin());
      }
    }
    order = loops;
    order.push_back(axis + ".0");
    // The first and the last vector stand on their own; such siblings cannot be parallel.
    if (n > 2 * step && points / stage.spatial[v] >= 2 * target.threads && BendsAlong(stage, v)) {
      w.Emit(fmt::format("partition({}.0, [1, -1])", axis));
    } else {
      loops.push_back(axis + ".0");
      extents.push_back((n + step - 1) / step);
    }
    order.insert(order.end(), lines.begin(), lines.end());
    for (int k = 1; k <= (unrolled ? 2 : 1); ++k) order.push_back(fmt::format("{}.{}", axis, k));
    if (turned >= 0 || v + 1 < stage.num_spatial())
      w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    if (unrolled) w.Emit(fmt::format("unroll({}.1)", axis));
    w.Emit(fmt::format("vectorize({}.{})", axis, unrolled ? 2 : 1));
  }
  if (points < kGrain) return;
  Parallelise(w, id, loops, extents, target);
}

namespace {

/// A map that nothing is computed inside: how many vectors an iteration takes.
class MapRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& writer) const override {
    if (subject->kind != ClusterKind::kMap) return {};
    DecisionTable t{"unroll", {"unroll"}, {{1}}};
    const int owner = subject->cluster.owner;
    const int axis = owner < 0 ? -1 : VectorAxis(writer.workload(), writer.stage(owner));
    const int64_t length = axis < 0 ? 1 : writer.stage(owner).spatial[axis];
    for (int64_t u : {2, 4, 8}) {
      if (length >= u * subject->lanes) t.rows.push_back({u});
    }
    return {{"map", {t}, nullptr, std::make_shared<CpuForm>(subject)}};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    return EmitClusters(w, {.force = subject.input}, subject.target, [&](const Cluster& c) {
      if (KindOf(w, c) == ClusterKind::kMap)
        ScheduleMap(w, c.owner, v[0], subject.target);
      else
        ScheduleNominally(w, c, subject.target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    if (subject.cluster.owner < 0) return Values{1};
    TraceWriter w(subject.workload);
    HONE_ASSIGN_OR_RETURN(const Cluster c, MainCluster(w, {.force = subject.input}));
    const ir::Stage& stage = w.stage(c.owner);
    const std::string loop = fmt::format("{}.i{}", stage.name, VectorAxis(w.workload(), stage));
    for (const std::string& name : {loop, loop + ".1"}) {
      const std::vector<int64_t> factors = FactorsOf(trace, name);
      if (factors.size() == 2) return Values{factors[0]};
    }
    return Values{1};
  }

  std::optional<Values> Default(const Sketch&) const override { return Values{1}; }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    facts->unroll = v[0];
    DescribePass(SubjectOf(sketch), facts);
  }
};

}  // namespace

const CpuRule& MapSketches() {
  static const MapRule rule;
  return rule;
}

}  // namespace hone::schedule

#include "schedule/cuda/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "ir/combiner.h"
#include "schedule/access.h"
#include "schedule/cuda/parts.h"
#include "schedule/cuda/rows.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Fewer results than threads that fill a card, and enough terms for two launches.
constexpr int64_t kMostResults = 1 << 14, kLeastTerms = 256, kWantedThreads = 1 << 16;
constexpr int64_t kLeastPartials = 16, kMostPartials = 256;

int64_t ResultsOf(const ir::Stage& stage) {
  int64_t results = 1;
  for (const int64_t extent : stage.spatial) results *= extent;
  return results;
}

int64_t TermsOf(const ir::Stage& stage) {
  int64_t terms = 1;
  for (const int64_t extent : stage.reduce) terms *= extent;
  return terms;
}

struct SumsForm : SketchForm {
  std::string stage;  ///< the one with most terms
  int64_t nominal = 0;
  ir::CudaTarget card;
};

class SumsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const SumsForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w, v[0]);
    ScheduleProducts(w, parts, form.card);
    ScheduleRows(w, parts);
    ScheduleOthers(w, parts, form.card);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const SumsForm&>(*sketch.form);
    const Instruction* factored = FindInstruction(trace, "rfactor", form.stage);
    return Values{PartialsIn(factored, form.nominal)};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return Values{static_cast<const SumsForm&>(*sketch.form).nominal};
  }
};

}  // namespace

std::vector<LongSum> LongSums(const TraceWriter& writer, const std::vector<int>& stages) {
  const ir::Workload& workload = writer.workload();
  std::vector<LongSum> sums;
  for (const int id : stages) {
    const ir::Stage& stage = writer.stage(id);
    if (stage.combiner == ir::Combiner::kNone || ir::IsTuple(stage.combiner) || stage.scan >= 0 ||
        stage.results.size() != 1 || stage.num_spatial() == 0 ||
        stage.num_spatial() + 1 > ir::kMaxRank)
      continue;
    if (ResultsOf(stage) > kMostResults || TermsOf(stage) < kLeastTerms) continue;
    LongSum sum{.stage = id, .along = false};
    for (const Access& access : AccessesOf(workload, stage)) {
      for (int r = stage.num_spatial(); r < stage.num_axes(); ++r)
        sum.along = sum.along || (access.linear[r] && access.stride[r] == 1 && stage.Extent(r) > 1);
    }
    // The matrix decides of its product with a row.
    for (const Access& access : AccessesOf(workload, stage)) {
      const int last = stage.num_spatial() - 1;
      if (access.linear[last] && access.stride[last] == 1 && stage.spatial[last] > 1)
        sum.along = false;
    }
    sums.push_back(sum);
  }
  return sums;
}

int64_t NominalPartials(const TraceWriter& writer, const LongSum& sum) {
  const ir::Stage& stage = writer.stage(sum.stage);
  int64_t partials = kLeastPartials;
  while (2 * partials <= kMostPartials && partials * ResultsOf(stage) < kWantedThreads &&
         8 * partials < TermsOf(stage))
    partials *= 2;
  return partials;
}

int FactorSum(TraceWriter& writer, const LongSum& sum, int64_t partials,
              const std::vector<int>& stages) {
  const ir::Stage stage = writer.stage(sum.stage);
  if (partials == 0) partials = NominalPartials(writer, sum);
  if (stage.num_reduce() > 1) {
    std::vector<std::string> axes;
    for (int r = 0; r < stage.num_reduce(); ++r) axes.push_back(fmt::format("r{}", r));
    writer.Emit(fmt::format("flatten({}, [{}])", stage.name, fmt::join(axes, ",")));
  }
  const std::string made = writer.NextStage();
  writer.Emit(fmt::format("{0} = rfactor({1}, {1}.r0, {2}, inner)", made, stage.name, partials));
  const int map = EpilogueOf(writer, sum.stage, stages);
  if (map >= 0) writer.Emit(fmt::format("epilogue({}, {})", stage.name, writer.name(map)));
  return writer.workload().FindStage(made);
}

bool SummedByLanes(const TraceWriter& writer, int sum, int64_t partials) {
  const ir::Stage& stage = writer.stage(sum);
  return partials >= kWarpThreads && stage.num_reduce() == 1 &&
         ReducedByLanes(writer.workload(), stage, kWarpThreads);
}

void ScheduleOnLanes(TraceWriter& w, int id) {
  const ir::Stage stage = w.stage(id);
  std::string loop = stage.name + ".i0";
  for (int a = 1; a < stage.num_spatial(); ++a) {
    const std::string fused = fmt::format("{}.f{}", stage.name, a - 1);
    w.Emit(fmt::format("{} = fuse({}, {}.i{})", fused, loop, stage.name, a));
    loop = fused;
  }
  const std::string terms = stage.name + ".r0", lane = terms + ".1";
  const auto tail = [](int64_t extent, int64_t part) { return extent % part == 0 ? "" : ", mask"; };
  w.Emit(fmt::format("split({}, {}{})", loop, kWarpsOfSums, tail(ResultsOf(stage), kWarpsOfSums)));
  w.Emit(fmt::format("split({}, {}{})", terms, kWarpThreads, tail(stage.reduce[0], kWarpThreads)));
  w.Emit(fmt::format("reorder({}, {}.0)", lane, terms));
  w.Emit(fmt::format("bind({}.0, block.x)", loop));
  w.Emit(fmt::format("bind({}.1, thread.y)", loop));
  w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), stage.name, lane));
  w.Emit(fmt::format("bind({}, thread.x)", lane));
}

std::optional<Sketch> SumsSketch(const ir::Workload& workload, const ir::Target& target) {
  static const SumsRule rule;
  TraceWriter w(workload);
  const CudaParts parts = PartsOf(w, 0);
  auto form = std::make_shared<SumsForm>();
  int64_t most = 0;
  for (const CudaParts::Partial& partial : parts.partials) {
    const int64_t terms = TermsOf(w.stage(partial.stage)) * partial.count;
    if (terms <= most) continue;
    most = terms;
    form->stage = w.name(partial.sum);
    form->nominal = partial.count;
  }
  if (parts.partials.empty()) return std::nullopt;
  form->card = target.As<ir::CudaTarget>();
  DecisionTable partials{"partials", {"partials"}, {}};
  for (int64_t p = kLeastPartials; p <= kMostPartials; p *= 2) partials.rows.push_back({p});
  return Sketch{"sums", {std::move(partials)}, &rule, std::move(form)};
}

}  // namespace hone::schedule

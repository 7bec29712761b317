#include "tests/search/fake_measurer.h"

#include <algorithm>

#include "base/core/check.h"
#include "base/core/hash128.h"
#include "ir/hash.h"
#include "ir/text.h"

namespace hone::search {

namespace {
constexpr char kProduct[] =
    "workload 1\n"
    "x0: f32[48,64] input range(-1,1)\n"
    "x1: f32[64,96] constant\n"
    "s0: f32[48,96] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n";
constexpr char kConvolution[] =
    "workload 1\n"
    "x0: f32[1,14,14,32] input range(-1,1)\n"
    "x1: f32[64,32,3,3] constant\n"
    "x2: f32[64] constant\n"
    "s0: f32[1,16,16,32] = select(i1 >= 1 & i1 < 15 & i2 >= 1 & i2 < 15, x0[0, i1 - 1, i2 - 1, "
    "i3], 0.0)\n"
    "s1: f32[1,14,14,64] = sum[r0:3,r1:3,r2:32] (s0[0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, "
    "r1])\n"
    "s2: f32[1,14,14,64] output = s1[i0, i1, i2, i3] + x2[i3]\n";
}  // namespace

namespace {
TuningTask TaskOf(const char* text, int count) {
  TuningTask t;
  auto workload = ir::ParseWorkload(text);
  HONE_CHECK(workload.ok());
  t.workload = std::make_shared<const ir::Workload>(*std::move(workload));
  t.hash = HashBytes(ir::ToText(*t.workload));
  t.name = "task";
  t.count = count;
  t.flop = 1e6;
  return t;
}
}  // namespace

std::vector<TuningTask> TwoTasks() { return {TaskOf(kProduct, 1), TaskOf(kConvolution, 2)}; }

TuningTask TallerProduct() {
  return TaskOf(
      "workload 1\n"
      "x0: f32[96,64] input range(-1,1)\n"
      "x1: f32[64,96] constant\n"
      "s0: f32[96,96] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n",
      1);
}

ir::Target TestTarget() {
  ir::Target target;
  std::string error;
  HONE_CHECK(ir::ParseTarget("cpu:avx2,threads=1", &target, &error));
  return target;
}

double LandscapeNs(const std::string& trace) {
  return 1000 + static_cast<double>(HashBytes(trace).low % 100000);
}

void FakeMeasurer::Submit(measure::MeasureInput input) { waiting_.push_back(std::move(input)); }

std::vector<measure::MeasureResult> FakeMeasurer::Collect(int64_t) {
  if (waiting_.empty()) return {};
  if (faults_.delay > 0 && static_cast<int>(waiting_.size()) < faults_.delay && random_.Chance(0.5))
    return {};
  size_t pick = faults_.reorder ? static_cast<size_t>(random_.Below(waiting_.size())) : 0;
  const measure::MeasureInput input = waiting_[pick];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(pick));
  if (random_.Chance(faults_.lose)) return {};
  measure::MeasureResult r;
  r.id = input.id;
  r.build_ms = 5;
  r.run_ms = 5;
  r.noisy = faults_.noisy;
  const std::string workload = HashBytes(ir::ToText(*input.workload)).ToHex();
  if (faults_.broken) {
    r.outcome = measure::Outcome::kWorkerLost;
    r.message = "no runner could be started";
  } else if (static_cast<double>(HashBytes(input.trace).high % 1000) < 1000 * faults_.fail) {
    r.outcome = measure::Outcome::kWrongAnswer;
    r.message = "element 3 is 1, not 2";
  } else {
    r.outcome = measure::Outcome::kOk;
    const double off = screens ? screens(input.trace) : 1;
    const auto ns = flat ? (met_.insert(workload).second ? 1000 : 2000)
                         : static_cast<int64_t>(off * slow * LandscapeNs(input.trace));
    r.samples_ns = {ns, ns + 1, ns + 2};
    if (part_says && input.part_ns > 0) {
      r.part_ns = static_cast<int64_t>(part_says(input.trace) * static_cast<double>(ns));
      const double expected = input.part_ratio * static_cast<double>(r.part_ns);
      const bool slower = expected >= 0.98 * static_cast<double>(input.incumbent_ns);
      if ((only_a_part && only_a_part(input.trace)) ||
          (input.incumbent_ns > 0 && !input.both_ways && slower)) {
        r.part = 0.05;
        r.samples_ns = {static_cast<int64_t>(expected)};
      }
    }
  }
  measured_.push_back(workload + input.trace);
  if (on_answer) on_answer();
  return {r};
}

std::vector<measure::ComparedTrace> FakeMeasurer::Compare(
    const std::vector<measure::MeasureInput>& inputs, int rounds) {
  std::vector<measure::ComparedTrace> out;
  double total_ns = 0;
  for (const auto& in : inputs) {
    measure::ComparedTrace t;
    t.error.outcome = measure::Outcome::kOk;
    t.noisy = faults_.noisy;
    HONE_CHECK(in.threads == 0 || with_threads);
    const double ns =
        slow * LandscapeNs(in.trace) * (in.threads > 0 ? with_threads(in.threads) : 1);
    for (int i = 0; i < rounds; ++i) t.samples_ns.push_back(static_cast<int64_t>(ns) + i % 3);
    total_ns += rounds * ns;
    out.push_back(std::move(t));
  }
  if (on_compare) on_compare(total_ns);
  return out;
}

}  // namespace hone::search

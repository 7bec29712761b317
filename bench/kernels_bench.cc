// bench-kernels [--case NAME]… [--trials N] [--seconds S] [--seed N] [--target T] [--json]
//               [--traces DIR] [--write-traces DIR]
// Searches each kernel from an empty log, times the winner in this process on one thread between
// two measurements of the FMA peak, and says whether it reaches its threshold. Where a convolution
// has Winograd schedules the threshold is for the best direct one; the best Winograd one stands
// beside it. --traces times the kept winners of --write-traces instead of searching.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/core/clock.h"
#include "base/program_options.h"
#include "base/status.h"
#include "bench/fma_peak.h"
#include "bench/kernel_cases.h"
#include "bench/kernel_run.h"
#include "bench/task_tuning.h"
#include "db/memory_database.h"
#include "ir/cpu/cpu_target.h"
#include "ir/text.h"
#include "measure/helper_check.h"
#include "schedule/space.h"
#include "schedule/trace.h"
#include "schedule/trace_writer.h"

namespace hone::bench {
namespace {

constexpr size_t kFinalists = 4;

struct Options {
  std::string target;
  std::vector<std::string> cases;
  int64_t trials = 0;
  uint64_t seed = 0;
  double seconds = 0;
  bool json = false;
  std::string traces, write_traces;
};

/// One schedule of a case, timed.
struct Timed {
  std::string sketch, trace;
  KernelRun::Times times;
  double peak_gflops = 0;
  int accumulators = 0;  ///< of the peak
  double gigahertz = 0;
};

struct CaseResult {
  KernelCase what;
  std::optional<Timed> direct, winograd;
  int64_t trials = 0;
  double search_seconds = 0;
  double Gflops(const Timed& t) const { return what.flop / t.times.best * 1e-9; }
  double Share(const Timed& t) const { return Gflops(t) / t.peak_gflops; }
  bool Met() const {
    return what.least_share == 0 || (direct && Share(*direct) >= what.least_share);
  }
};

bool IsWinograd(const std::string& sketch) { return sketch.starts_with("winograd"); }

/// Times the traces in turns, keeps the fastest and times it between two measurements of the peak.
absl::StatusOr<Timed> TimeBest(const ir::Workload& workload, const ir::Target& target,
                               const std::vector<MeasuredTrace>& finalists, double seconds,
                               const MonotonicClock& clock) {
  std::vector<std::unique_ptr<KernelRun>> kernels;
  for (const MeasuredTrace& f : finalists) {
    HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, schedule::ParseTrace(f.trace));
    HONE_ASSIGN_OR_RETURN(auto kernel, KernelRun::Make(workload, trace, target, clock, 1));
    if (!kernel->Run()) return absl::InternalError("a phase failed");
    kernels.push_back(std::move(kernel));
  }
  std::vector<double> best(kernels.size(), 1e30);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds && kernels.size() > 1; ++round) {
    for (size_t i = 0; i < kernels.size(); ++i)
      best[i] = std::min(best[i], kernels[i]->Time(seconds / kRounds / 2).best);
  }
  const auto winner = static_cast<size_t>(std::ranges::min_element(best) - best.begin());
  const bool wide = target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512;
  Timed out{finalists[winner].sketch, finalists[winner].trace, {}, 0, 0, 0};
  const FmaPeak before = MeasureFmaPeak(wide, 0.1, clock);
  out.times = kernels[winner]->Time(seconds);
  const FmaPeak after = MeasureFmaPeak(wide, 0.1, clock);
  const FmaPeak& peak = before.gflops > after.gflops ? before : after;
  out.peak_gflops = peak.gflops;
  out.accumulators = peak.accumulators;
  out.gigahertz = MeasureGigahertz(0.02, clock);
  return out;
}

std::string TracePath(const std::string& folder, const std::string& name, bool winograd) {
  return fmt::format("{}/{}{}.trace", folder, name, winograd ? ".winograd" : "");
}

/// What is to be timed: the search's best of either kind, or the kept ones.
absl::StatusOr<std::vector<MeasuredTrace>> FindTraces(const ir::Workload& workload,
                                                      const ir::Target& target,
                                                      const Options& options,
                                                      const MonotonicClock& clock,
                                                      CaseResult* result) {
  std::vector<MeasuredTrace> found;
  if (!options.traces.empty()) {
    const schedule::Space space(workload, target, ir::AccuracyClass::kDefault);
    for (const bool winograd : {false, true}) {
      const std::string path = TracePath(options.traces, result->what.name, winograd);
      std::ifstream in(path);
      std::stringstream all;
      all << in.rdbuf();
      const size_t cut = all.str().find("\n---\n");
      if (!in || cut == std::string::npos) continue;
      const std::string trace = all.str().substr(cut + 5);
      const auto id = space.Locate(trace);
      const std::string fallback = winograd ? "winograd" : "direct";
      found.push_back(
          {trace, id ? space.sketches()[static_cast<size_t>(space.At(*id).sketch)].name : fallback,
           0});
    }
    if (found.empty())
      return absl::NotFoundError(
          fmt::format("no trace of {} in {}", result->what.name, options.traces));
    return found;
  }
  measure::LocalMeasurerOptions measurer = MeasurerOptionsFor(target);
  // The comparison below repeats one kernel, whose constants stay where they fit.
  measurer.screen.cold_constants = false;
  db::MemoryDatabase log;
  HONE_ASSIGN_OR_RETURN(TunedTask tuned,
                        TuneTask(std::make_shared<const ir::Workload>(workload), target, measurer,
                                 {.trials = options.trials, .seed = options.seed}, log, clock));
  result->trials = tuned.trials;
  result->search_seconds = tuned.search_seconds;
  // Where Winograd wins, perhaps no direct schedule was tried: the nominal one stands for them.
  const schedule::Space space(workload, target, ir::AccuracyClass::kDefault);
  for (const schedule::Sketch& sketch : space.sketches()) {
    const auto values = sketch.rule->Default(sketch);
    if (!values || IsWinograd(sketch.name)) continue;
    schedule::TraceWriter writer(workload);
    HONE_RETURN_IF_ERROR(sketch.rule->Emit(sketch, *values, writer));
    tuned.best_first.push_back({schedule::ToText(writer.trace()), sketch.name, 0});
  }
  return std::move(tuned.best_first);
}

absl::StatusOr<CaseResult> RunCase(const KernelCase& what, const ir::Target& target,
                                   const Options& options, const MonotonicClock& clock) {
  CaseResult result{.what = what};
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(what.workload));
  HONE_ASSIGN_OR_RETURN(const std::vector<MeasuredTrace> found,
                        FindTraces(workload, target, options, clock, &result));
  std::vector<MeasuredTrace> direct, winograd;
  for (const MeasuredTrace& m : found) {
    auto& kind = IsWinograd(m.sketch) ? winograd : direct;
    if (kind.size() < kFinalists) kind.push_back(m);
  }
  if (!direct.empty()) {
    HONE_ASSIGN_OR_RETURN(result.direct,
                          TimeBest(workload, target, direct, options.seconds, clock));
  }
  if (!winograd.empty()) {
    HONE_ASSIGN_OR_RETURN(result.winograd,
                          TimeBest(workload, target, winograd, options.seconds, clock));
  }
  return result;
}

absl::Status WriteTraces(const CaseResult& result, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto* timed : {&result.direct, &result.winograd}) {
    if (!*timed) continue;
    const std::string path = TracePath(folder, result.what.name, timed == &result.winograd);
    std::ofstream out(path);
    out << result.what.workload << "---\n" << (*timed)->trace;
    out.close();
    if (!out) return absl::PermissionDeniedError("cannot write " + path);
  }
  return absl::OkStatus();
}

std::string Row(const CaseResult& r, const Timed& t, int lanes) {
  std::string line =
      fmt::format("{:20} {:28} {:9.1f} us", r.what.name, t.sketch, t.times.best * 1e6);
  if (r.what.flop > 0) {
    const double per_cycle = 1 / (2.0 * lanes * t.gigahertz);
    line += fmt::format(
        " {:7.1f} GFLOP/s {:6.1f} % of {:.1f} ({} accumulators), {:.2f} of {:.2f} FMA/cycle",
        r.Gflops(t), 100 * r.Share(t), t.peak_gflops, t.accumulators, r.Gflops(t) * per_cycle,
        t.peak_gflops * per_cycle);
  }
  return line;
}

void PrintRows(const CaseResult& r, const ir::Target& target) {
  if (r.direct) {
    std::string line = Row(r, *r.direct, target.As<ir::CpuTarget>().lanes);
    if (r.trials > 0) line += fmt::format(", {} trials in {:.1f} s", r.trials, r.search_seconds);
    if (r.what.least_share > 0)
      line += fmt::format(", at least {:.0f} %: {}", 100 * r.what.least_share,
                          r.Met() ? "met" : "NOT MET");
    std::cout << line << "\n";
  } else {
    std::cout << fmt::format("{:20} no direct schedule among the measured ones: NOT MET\n",
                             r.what.name);
  }
  if (r.winograd) std::cout << Row(r, *r.winograd, target.As<ir::CpuTarget>().lanes) << "\n";
  std::cout << std::flush;
}

std::string TimedJson(const CaseResult& r, const std::optional<Timed>& t) {
  if (!t) return "null";
  return fmt::format(
      R"({{"sketch":"{}","best_us":{:.3f},"median_us":{:.3f},"gflops":{:.2f},"peak_gflops":{:.2f},)"
      R"("accumulators":{},"gigahertz":{:.3f},"share":{:.4f}}})",
      t->sketch, t->times.best * 1e6, t->times.median * 1e6, r.Gflops(*t), t->peak_gflops,
      t->accumulators, t->gigahertz, r.Share(*t));
}

std::string CaseJson(const CaseResult& r) {
  return fmt::format(
      R"({{"case":"{}","trials":{},"search_seconds":{:.2f},"threshold":{},"met":{},"direct":{},)"
      R"("winograd":{}}})",
      r.what.name, r.trials, r.search_seconds, r.what.least_share, r.Met(), TimedJson(r, r.direct),
      TimedJson(r, r.winograd));
}

/// The exit code: 0; 1 when a threshold is missed; 2 for a usage error or a case that failed.
int RunCases(const Options& options, const ir::Target& target) {
  const SystemMonotonicClock clock;
  if (options.traces.empty()) {
    const measure::LocalMeasurerOptions measurer = MeasurerOptionsFor(target);
    if (const absl::Status s = measure::CheckHelpers(measurer.builder, measurer.runner, clock);
        !s.ok()) {
      std::cerr << StatusMessage(s) << "\n";
      return 2;
    }
  }
  std::vector<std::string> lines;
  bool met = true, failed = false;
  for (const KernelCase& what : KernelCases()) {
    if (!options.cases.empty() && std::ranges::count(options.cases, what.name) == 0) continue;
    const absl::StatusOr<CaseResult> result = RunCase(what, target, options, clock);
    absl::Status status = result.status();
    if (status.ok() && !options.write_traces.empty())
      status = WriteTraces(*result, options.write_traces);
    if (!status.ok()) {
      std::cerr << what.name << ": " << StatusMessage(status) << "\n";
      failed = true;
      continue;
    }
    met = met && result->Met();
    lines.push_back(CaseJson(*result));
    if (!options.json) PrintRows(*result, target);
  }
  if (options.json) {
    std::cout << fmt::format(R"({{"target":"{}","cases":[)", target.text) << "\n";
    for (size_t i = 0; i < lines.size(); ++i)
      std::cout << lines[i] << (i + 1 < lines.size() ? ",\n" : "\n");
    std::cout << "]}\n";
  } else if (!met) {
    std::cout << "a threshold is not met\n";
  }
  return failed ? 2 : met ? 0 : 1;
}

constexpr std::array kOptions = {
    OptionSpec{.name = "case",
               .kind = ValueKind::kText,
               .argument = "NAME",
               .help = "one of the cases; all without it",
               .repeated = true},
    OptionSpec{.name = "trials",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "candidates of a search",
               .default_text = "64",
               .low = 0},
    OptionSpec{.name = "seconds",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "how long a schedule is timed",
               .default_text = "0.3",
               .low = 0},
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "of the search",
               .default_text = "0"},
    OptionSpec{.name = "target",
               .kind = ValueKind::kText,
               .argument = "T",
               .help = "what code is made for",
               .default_text = "cpu:native,threads=1"},
    OptionSpec{.name = "json", .help = "print one JSON object"},
    OptionSpec{.name = "traces",
               .kind = ValueKind::kFile,
               .argument = "DIR",
               .help = "time the Traces there instead of searching"},
    OptionSpec{.name = "write-traces",
               .kind = ValueKind::kFile,
               .argument = "DIR",
               .help = "write the best Traces there"},
};

std::optional<Options> OptionsOf(int argc, char** argv) {
  const auto words = ReadOptions("bench-kernels [OPTION…]", kOptions, argc, argv);
  if (!words) return std::nullopt;
  for (const std::string& name : words->List("case")) {
    if (std::ranges::count(KernelCases(), name, &KernelCase::name) > 0) continue;
    std::cerr << "no case " << name << "; the cases are:";
    for (const KernelCase& c : KernelCases()) std::cerr << " " << c.name;
    std::cerr << "\n";
    return std::nullopt;
  }
  return Options{.target = words->Text("target"),
                 .cases = words->List("case"),
                 .trials = words->Integer("trials"),
                 .seed = static_cast<uint64_t>(words->Integer("seed")),
                 .seconds = words->Number("seconds"),
                 .json = words->Flag("json"),
                 .traces = words->Text("traces"),
                 .write_traces = words->Text("write-traces")};
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  const auto options = hone::bench::OptionsOf(argc, argv);
  if (!options) return 2;
  hone::ir::Target target;
  std::string error;
  if (!hone::ir::ParseTarget(hone::ir::ResolveNative(options->target, 1), &target, &error)) {
    std::cerr << error << "\n";
    return 2;
  }
  return hone::bench::RunCases(*options, target);
}

// bench-traces [--target T] [--seconds S] [--cold] [--assembly] FILE…: times kept Traces on one
// thread, as a share of the FMA peak measured around each, and checks each against the same
// workload without a schedule. FILE: workload text, a line `---`, trace text.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/core/clock.h"
#include "base/program_options.h"
#include "base/status.h"
#include "bench/fma_peak.h"
#include "bench/kernel_run.h"
#include "ir/cpu/cpu_target.h"
#include "ir/text.h"

namespace hone::bench {
namespace {

struct Options {
  double seconds = 0;
  bool cold = false;
  bool assembly = false;
};

absl::Status RunFile(const std::string& path, const Options& options, const ir::Target& target) {
  const SystemMonotonicClock clock;
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const size_t cut = text.find("\n---\n");
  if (!in || cut == std::string::npos)
    return absl::InvalidArgumentError(path + ": no workload and trace with --- between");
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(text.substr(0, cut + 1)));
  HONE_ASSIGN_OR_RETURN(schedule::Trace trace, schedule::ParseTrace(text.substr(cut + 5)));
  if (trace.instructions.empty()) {
    HONE_ASSIGN_OR_RETURN(trace, schedule::DefaultTrace(workload, target));
  }
  if (std::string why; !options.assembly && !ir::HostCanRun(target, &why))
    return absl::FailedPreconditionError(why);
  HONE_ASSIGN_OR_RETURN(auto kernel, KernelRun::Make(workload, trace, target, clock, 1));
  if (options.assembly) {
    std::cout << kernel->assembly();
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(auto plain, KernelRun::Make(workload, {}, target, clock, 1));
  if (!kernel->Run() || !plain->Run()) return absl::InternalError(path + ": a phase failed");
  const double worst = kernel->WorstAgainst(*plain);
  const bool wide = target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512;
  FmaPeak before = MeasureFmaPeak(wide, 0.1, clock);
  const KernelRun::Times times = kernel->Time(options.seconds, options.cold);
  // What a cold run takes depends on the memory meanwhile: no single run tells.
  const double seconds = options.cold ? times.median : times.best;
  FmaPeak after = MeasureFmaPeak(wide, 0.1, clock);
  const double peak = std::max(before.gflops, after.gflops);
  const double gflops = FlopOf(workload) / seconds * 1e-9;
  std::cout << fmt::format(
      "{:34} {:9.1f} us {:7.1f} GFLOP/s {:6.1f} % of {:.1f} (peaks {:.1f} {:.1f}) compile {:.1f} "
      "ms  error {:.2g} of the tolerance{}\n",
      path.substr(path.rfind('/') + 1), seconds * 1e6, gflops, 100 * gflops / peak, peak,
      before.gflops, after.gflops, kernel->compile_ms(), worst, worst <= 1 ? "" : "  WRONG");
  return worst <= 1 ? absl::OkStatus() : absl::InternalError(path + ": wrong answer");
}

constexpr std::array kOptions = {
    OptionSpec{.name = "target",
               .kind = ValueKind::kText,
               .argument = "T",
               .help = "what code is made for",
               .default_text = "cpu:avx512,threads=1"},
    OptionSpec{.name = "seconds",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "how long a Trace is timed",
               .default_text = "0.3",
               .low = 0},
    OptionSpec{.name = "cold",
               .help = "constants leave the caches before each run; the median counts"},
    OptionSpec{.name = "assembly", .help = "print the code instead"},
};

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  const auto words =
      hone::ReadOptions("bench-traces [--target T] [--seconds S] [--cold] [--assembly] FILE…",
                        hone::bench::kOptions, argc, argv);
  if (!words) return 2;
  const hone::bench::Options options{.seconds = words->Number("seconds"),
                                     .cold = words->Flag("cold"),
                                     .assembly = words->Flag("assembly")};
  hone::ir::Target target;
  std::string error;
  if (!hone::ir::ParseTarget(words->Text("target"), &target, &error)) {
    std::cerr << error << "\n";
    return 2;
  }
  int failed = 0;
  for (const auto& f : words->words()) {
    if (absl::Status s = hone::bench::RunFile(f, options, target); !s.ok()) {
      std::cerr << f << ": " << hone::StatusMessage(s) << "\n";
      ++failed;
    }
  }
  return failed ? 1 : 0;
}

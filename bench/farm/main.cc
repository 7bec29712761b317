#include <sys/resource.h>

#include <array>
#include <filesystem>

#include "absl/synchronization/mutex.h"
#include "fmt/core.h"

#include "base/core/clock.h"
#include "base/core/random_id.h"
#include "base/program_options.h"
#include "base/status.h"
#include "bench/farm/farm_bench.h"
#include "bench/farm/lookup_bench.h"
#include "db/log_file.h"

// A farm under load on this machine. `bench-farm --help` says how; bench/README.md has figures.
namespace hone::bench {
namespace {

constexpr char kUsage[] =
    R"(bench-farm [OPTION…]
honed of this build with simulated workers: results a second, latencies, memory, CPU; with --kill
also how fast all are back after a SIGKILL. Afterwards the log must have exactly what was
acknowledged. --strict: 500 results/s, 100 ms to a grant and 50 ms to a commit (p99), memory grows
by at most 5 % from the second quarter to the last (from 160 s on). --lookups: look-ups by 32
clients while results are recorded (p99 at most 100 us in the snapshot and 2 ms through honed).)";

constexpr std::array kOptions = {
    OptionSpec{.name = "workers",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "simulated workers",
               .default_text = "100",
               .low = 1},
    OptionSpec{.name = "seconds",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "how long is measured",
               .default_text = "20",
               .low = 0},
    OptionSpec{.name = "warm-up",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "after the last worker has dialled in",
               .default_text = "10",
               .low = 0},
    OptionSpec{.name = "rate",
               .kind = ValueKind::kNumber,
               .argument = "N",
               .help = "results a second that all workers together could give",
               .default_text = "800",
               .low = 1e-9},
    OptionSpec{.name = "sessions",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "sessions",
               .default_text = "16",
               .low = 1},
    OptionSpec{.name = "tasks",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "of each of eight targets",
               .default_text = "48",
               .low = 0},
    OptionSpec{.name = "kill", .help = "then SIGKILL honed, and see how fast all are back"},
    OptionSpec{.name = "after-kill",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "measured again",
               .default_text = "10",
               .low = 0},
    OptionSpec{.name = "strict",
               .help = "end with 1 where the figures that are asked of a quiet machine are missed"},
    OptionSpec{.name = "folder",
               .kind = ValueKind::kFile,
               .argument = "DIR",
               .help = "where the farm is made and kept; must not exist"},
    OptionSpec{.name = "honed",
               .kind = ValueKind::kFile,
               .argument = "PROGRAM",
               .help = "another than that of this build"},
    OptionSpec{.name = "lookups",
               .help = "make a log, time look-ups in its snapshot, then through honed"},
    OptionSpec{.name = "records",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "of that log",
               .default_text = "1000000",
               .low = 1},
    OptionSpec{.name = "keys",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "of that log",
               .default_text = "200000",
               .low = 1},
};

/// A thousand connections and what else there is.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

FarmBenchOptions FarmOf(const ProgramOptions& words) {
  FarmBenchOptions options;
  options.workers = static_cast<int>(words.Integer("workers"));
  options.sessions = static_cast<int>(words.Integer("sessions"));
  options.tasks = static_cast<int>(words.Integer("tasks"));
  options.rate = words.Number("rate");
  options.warm_up_s = words.Number("warm-up");
  options.seconds = words.Number("seconds");
  options.kill = words.Flag("kill");
  options.after_kill_s = words.Number("after-kill");
  options.honed = words.Text("honed");
  options.folder = words.Text("folder");
  options.strict = words.Flag("strict");
  return options;
}

/// Makes the log and asks its snapshot.
absl::StatusOr<Faults> LookUpInSnapshot(const LookupLog& log, bool strict,
                                        FarmBenchOptions* options, const MonotonicClock& clock) {
  const int64_t start_ns = clock.NowNs();
  const std::string path = options->folder + "/tune.db",
                    snapshot = options->folder + "/snapshot.db";
  HONE_RETURN_IF_ERROR(MakeLookupLog(log, path));
  {
    HONE_ASSIGN_OR_RETURN(const auto file, db::OpenLog(path, {.mode = db::OpenMode::kRead}));
    HONE_RETURN_IF_ERROR(file->Snapshot(snapshot).status());
  }
  constexpr int64_t kQuestions = 200'000;
  options->questions = LookupQuestions(log, kQuestions, 1);
  fmt::print("{} records of {} keys and a snapshot in {:.0f} s\n", log.records, log.keys,
             1e-9 * static_cast<double>(clock.NowNs() - start_ns));
  HONE_ASSIGN_OR_RETURN(const Latencies::Summary found,
                        TimeSnapshotLookups(snapshot, options->questions, clock));
  std::filesystem::remove(snapshot);
  constexpr double kMostUs = 100, kUsPerMs = 1000;
  fmt::print("look-ups in a warm snapshot: p50 {:.1f}, p99 {:.1f}, worst {:.1f} us\n",
             kUsPerMs * found.p50_ms, kUsPerMs * found.p99_ms, kUsPerMs * found.worst_ms);
  if (!strict || kUsPerMs * found.p99_ms <= kMostUs) return Faults();
  return Faults{fmt::format("p99 of look-ups in a snapshot {:.1f} us, {:.0f} us is asked for",
                            kUsPerMs * found.p99_ms, kMostUs)};
}

int Main(int argc, char** argv) {
  const auto words = ReadOptions(kUsage, kOptions, argc, argv);
  if (!words) return 2;
  FarmBenchOptions options = FarmOf(*words);
  const LookupLog lookups{.records = words->Integer("records"), .keys = words->Integer("keys")};
  RaiseFileLimit();
  const bool keep = !options.folder.empty();
  if (!keep) {
    options.folder = std::filesystem::temp_directory_path() / ("bench-farm-" + RandomId().ToHex());
  }
  if (!std::filesystem::create_directories(options.folder)) {
    fmt::print(stderr, "{} is there already\n", options.folder);
    return 2;
  }
  const SystemMonotonicClock clock;
  absl::StatusOr<Faults> faults = Faults();
  if (words->Flag("lookups")) faults = LookUpInSnapshot(lookups, options.strict, &options, clock);
  if (faults.ok()) {
    FarmBench bench(options, clock);
    const absl::StatusOr<Faults> of_farm = bench.Run();
    if (of_farm.ok()) {
      faults->insert(faults->end(), of_farm->begin(), of_farm->end());
    } else {
      faults = of_farm.status();
    }
  }
  if (!keep) std::filesystem::remove_all(options.folder);
  if (!faults.ok()) {
    fmt::print(stderr, "{}\n", StatusMessage(faults.status()));
    return 2;
  }
  for (const std::string& fault : *faults) fmt::print("WRONG: {}\n", fault);
  return faults->empty() ? 0 : 1;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  // As in honed and hone-worker.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return hone::bench::Main(argc, argv);
}

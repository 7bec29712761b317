#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "absl/synchronization/mutex.h"
#include "fmt/core.h"

#include "base/core/clock.h"
#include "base/core/random_id.h"
#include "base/status.h"
#include "bench/farm/farm_bench.h"
#include "bench/farm/lookup_bench.h"
#include "db/log_file.h"

// A farm under load on this machine. `bench-farm --help` says how; bench/README.md has figures.
namespace hone::bench {
namespace {

constexpr char kUsage[] =
    R"(bench-farm [--workers 100] [--seconds 20] [--warm-up 10] [--rate 800] [--sessions 16]
           [--tasks 48] [--kill] [--after-kill 10] [--strict] [--folder DIR] [--honed PROGRAM]
bench-farm --lookups [--records 1000000] [--keys 200000] [the options above]
honed of this build with simulated workers: results a second, latencies, memory, CPU; with --kill
also how fast all are back after a SIGKILL. Afterwards the log must have exactly what was
acknowledged. --rate: what all workers together could give. --tasks: of each of eight targets.
--strict: exits with 1 below 500 results/s and beyond 100 ms to a grant and 50 ms to a commit (p99),
or when memory grows by over 5 % from the second quarter to the last (from 160 s on).
The farm is made in DIR, which must not exist, and kept there; without it in a temporary folder that
is removed. --lookups: makes a log of so many records, times look-ups in its snapshot, then through
honed by 32 clients while results are recorded (p99 at most 100 us and 2 ms).
)";

/// A thousand connections and what else there is.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct Lookups {
  bool asked = false;
  LookupLog log;
};

bool Parse(int argc, char** argv, FarmBenchOptions* options, Lookups* lookups) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--kill" || word == "--strict") {
      (word == "--kill" ? options->kill : options->strict) = true;
      continue;
    }
    if (word == "--lookups") {
      lookups->asked = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[++i];
    if (word == "--workers") {
      options->workers = std::atoi(value);
    } else if (word == "--sessions") {
      options->sessions = std::atoi(value);
    } else if (word == "--tasks") {
      options->tasks = std::atoi(value);
    } else if (word == "--rate") {
      options->rate = std::atof(value);
    } else if (word == "--warm-up") {
      options->warm_up_s = std::atof(value);
    } else if (word == "--seconds") {
      options->seconds = std::atof(value);
    } else if (word == "--after-kill") {
      options->after_kill_s = std::atof(value);
    } else if (word == "--records") {
      lookups->log.records = std::atoll(value);
    } else if (word == "--keys") {
      lookups->log.keys = std::atoll(value);
    } else if (word == "--honed") {
      options->honed = value;
    } else if (word == "--folder") {
      options->folder = value;
    } else {
      return false;
    }
  }
  return options->workers > 0 && options->sessions > 0 && options->rate > 0;
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
  FarmBenchOptions options;
  Lookups lookups;
  if (!Parse(argc, argv, &options, &lookups)) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
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
  if (lookups.asked) faults = LookUpInSnapshot(lookups.log, options.strict, &options, clock);
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

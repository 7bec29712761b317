#include "bench/farm/farm_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "bench/farm/farm_tasks.h"
#include "db/farm_store.h"
#include "db/log_file.h"
#include "server/remote_measurer.h"

namespace hone::bench {
namespace {

constexpr double kNs = 1e9;
constexpr int64_t kLookNs = 50'000'000;
constexpr double kLineSeconds = 10;
constexpr double kMostBackSeconds = 30;
constexpr char kDeviceClass[] = "simulated";
constexpr char kDeviceTarget[] = "cpu:avx512+vnni+bf16,threads=8";
constexpr int kDeviceCores = 8;
double OwnCpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Some for each session of a target: neighbours share half of theirs.
std::vector<proto::TaskSpec> TasksOf(int session, int sessions, int count) {
  std::vector<proto::TaskSpec> tasks;
  const std::vector<proto::TaskSpec> all = FarmTasks(count);
  for (size_t i = 0; i < all.size(); ++i) {
    const int owner = static_cast<int>(i / 3) % sessions;
    if (owner == session || (owner + 1) % sessions == session) tasks.push_back(all[i]);
  }
  return tasks;
}

/// The growth from the mean of the second quarter to that of the last, once both have four values.
std::optional<double> Growth(const std::vector<double>& memory) {
  const auto quarter = static_cast<int64_t>(memory.size() / 4);
  if (quarter < 4) return std::nullopt;
  const double early = std::accumulate(memory.begin() + quarter, memory.begin() + 2 * quarter, 0.0);
  return std::accumulate(memory.end() - quarter, memory.end(), 0.0) / early - 1;
}

}  // namespace

/// What has been counted so far.
struct FarmBench::Moment {
  int64_t at_ns = 0;
  size_t grants = 0, commits = 0;
  int64_t acknowledged = 0;
  double own_cpu_s = 0, honed_cpu_s = 0;
  std::map<std::string, double> by_thread;
  double rss_mib = 0;
};

absl::StatusOr<Credentials> CredentialsIn(const std::string& folder, const std::string& name) {
  return ReadCredentials(folder + "/" + name);
}

std::string BuilderVersion() {
  return fmt::format("{}+{}", kBuilderVersion, HONE_LLVM_MAJOR_MINOR);
}

FarmBench::FarmBench(FarmBenchOptions options, const MonotonicClock& clock)
    : options_(std::move(options)),
      clock_(clock),
      start_ns_(clock.NowNs()),
      honed_({.folder = options_.folder, .program = options_.honed}, clock) {}

FarmBench::~FarmBench() {
  if (clients_) clients_->Stop();
  if (workers_) workers_->Stop();
}

FarmBench::Moment FarmBench::Now() {
  meter_->Look();
  return {.at_ns = clock_.NowNs(),
          .grants = workers_->grants().count(),
          .commits = workers_->commits().count(),
          .acknowledged = workers_->counts().acknowledged,
          .own_cpu_s = OwnCpuSeconds(),
          .honed_cpu_s = meter_->TotalSeconds(),
          .by_thread = meter_->Seconds(),
          .rss_mib = meter_->RssMib()};
}

absl::Status FarmBench::Begin() {
  HONE_RETURN_IF_ERROR(honed_.Issue("server", "honed"));
  HONE_RETURN_IF_ERROR(honed_.Issue("submit", "client"));
  std::vector<Credentials> credentials;
  for (int i = 0; i < options_.workers; ++i) {
    const std::string name = fmt::format("w{}", i);
    HONE_RETURN_IF_ERROR(honed_.Issue("measure", name));
    HONE_ASSIGN_OR_RETURN(credentials.emplace_back(), CredentialsIn(options_.folder, name));
  }
  fmt::print("{} certificates in {:.1f} s\n", options_.workers + 2,
             static_cast<double>(clock_.NowNs() - start_ns_) / kNs);
  HONE_RETURN_IF_ERROR(honed_.Start());
  meter_ = std::make_unique<ProcessMeter>(honed_.pid());
  workers_ = std::make_unique<WorkerLoad>(
      WorkerLoad::Options{.server = honed_.Address(),
                          .credentials = std::move(credentials),
                          .builder_version = BuilderVersion(),
                          .target = kDeviceTarget,
                          .device_class = kDeviceClass,
                          .cores = kDeviceCores,
                          .run_ns = static_cast<int64_t>(kNs * options_.workers / options_.rate),
                          .seed = 1},
      clock_);
  HONE_ASSIGN_OR_RETURN(Credentials client, CredentialsIn(options_.folder, "client"));
  clients_ = std::make_unique<SessionLoad>(honed_.Address(), std::move(client), clock_);
  constexpr double kRampPerWorker = 0.005;
  workers_->Start(static_cast<int64_t>(kNs * kRampPerWorker * options_.workers));
  return BeginSessions();
}

absl::Status FarmBench::BeginSessions() {
  const std::vector<std::string> all = FarmTargets();
  const int targets = std::min(static_cast<int>(all.size()), options_.sessions);
  for (int i = 0; i < options_.sessions; ++i) {
    const int of_target = (options_.sessions - i % targets + targets - 1) / targets;
    const proto::SessionSpec spec{.model = fmt::format("farm{}", i),
                                  .tasks = TasksOf(i / targets, of_target, options_.tasks),
                                  .target = all[static_cast<size_t>(i % targets)],
                                  .seconds = 86400,
                                  .seed = static_cast<uint64_t>(i),
                                  .project = i % 3 == 0 ? "one" : "other"};
    HONE_ASSIGN_OR_RETURN(const Hash128 session, clients_->Begin(spec));
    sessions_.push_back(session);
    clients_->Watch(session);
  }
  return absl::OkStatus();
}

void FarmBench::WaitForWorkers(double seconds) {
  const int64_t until_ns = clock_.NowNs() + static_cast<int64_t>(kNs * seconds);
  while (clock_.NowNs() < until_ns && workers_->counts().working < options_.workers) {
    clock_.SleepNs(kLookNs);
  }
}

void FarmBench::PrintLine(const Moment& from, const Moment& to) const {
  const double seconds = static_cast<double>(to.at_ns - from.at_ns) / kNs;
  const Latencies::Summary grant = workers_->grants().Since(from.grants);
  const Latencies::Summary commit = workers_->commits().Since(from.commits);
  fmt::print(
      "{:6.0f} s  {:6.0f} results/s  grant {:7.1f} {:7.1f} {:7.1f} ms  commit {:7.1f} {:7.1f} "
      "{:7.1f} ms  honed {:5.0f} MiB {:4.0f} %  load {:4.0f} %\n",
      static_cast<double>(to.at_ns - start_ns_) / kNs,
      static_cast<double>(to.acknowledged - from.acknowledged) / seconds, grant.p50_ms,
      grant.p99_ms, grant.worst_ms, commit.p50_ms, commit.p99_ms, commit.worst_ms, to.rss_mib,
      100 * (to.honed_cpu_s - from.honed_cpu_s) / seconds,
      100 * (to.own_cpu_s - from.own_cpu_s) / seconds);
  std::fflush(stdout);
}

void FarmBench::PrintCpu(const Moment& from, const Moment& to) const {
  const double seconds = static_cast<double>(to.at_ns - from.at_ns) / kNs;
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [name, cpu_s] : to.by_thread) {
    const auto before = from.by_thread.find(name);
    const double used = cpu_s - (before == from.by_thread.end() ? 0 : before->second);
    shares.emplace_back(100 * used / seconds, name);
  }
  std::ranges::sort(shares, std::greater<>());
  fmt::print("CPU: load {:.0f} %, honed {:.0f} % of a core:",
             100 * (to.own_cpu_s - from.own_cpu_s) / seconds,
             100 * (to.honed_cpu_s - from.honed_cpu_s) / seconds);
  for (const auto& [share, name] : shares) {
    if (share >= 0.5) fmt::print(" {} {:.0f}", name, share);
  }
  fmt::print("\n");
}

void FarmBench::Measure(const char* name, double seconds, bool strict) {
  fmt::print("{}: results, grant and commit p50, p99, worst\n", name);
  const Moment begin = Now();
  const int64_t until_ns = begin.at_ns + static_cast<int64_t>(kNs * seconds);
  Moment last = begin;
  std::vector<double> memory_mib;  // at the end of each line
  while (clock_.NowNs() < until_ns) {
    const double left = static_cast<double>(until_ns - clock_.NowNs()) / kNs;
    clock_.SleepNs(static_cast<int64_t>(kNs * std::min(left, kLineSeconds)));
    const Moment now = Now();
    PrintLine(last, now);
    memory_mib.push_back(now.rss_mib);
    last = now;
  }
  fmt::print("{} in all:\n", name);
  PrintLine(begin, last);
  PrintCpu(begin, last);
  constexpr double kLeastRate = 500, kMostGrantMs = 100, kMostCommitMs = 50, kMostGrowthPercent = 5;
  const double taken = static_cast<double>(last.at_ns - begin.at_ns) / kNs;
  const double rate = static_cast<double>(last.acknowledged - begin.acknowledged) / taken;
  const auto limit = [&](const char* what, double value, double low, double high) {
    if (!strict || (value >= low && value <= high)) return;
    faults_.push_back(
        fmt::format("{}: {} {:.1f}, {:.0f} to {:.0f} is asked for", name, what, value, low, high));
  };
  limit("results a second", rate, kLeastRate, 1e6);
  limit("p99 of grant, ms,", workers_->grants().Since(begin.grants).p99_ms, 0, kMostGrantMs);
  limit("p99 of commit, ms,", workers_->commits().Since(begin.commits).p99_ms, 0, kMostCommitMs);
  if (const std::optional<double> growth = Growth(memory_mib)) {
    fmt::print("memory grew by {:.1f} % from the second quarter to the last\n", 100 * *growth);
    limit("growth of memory, %,", 100 * *growth, -100, kMostGrowthPercent);
  }
  if (rate <= 0) faults_.push_back(fmt::format("{}: no result was acknowledged", name));
}

absl::Status FarmBench::LookUp() {
  LookupLoad load{.server = honed_.Address(),
                  .builder_version = BuilderVersion(),
                  .keys = &options_.questions,
                  .seconds = options_.seconds};
  HONE_ASSIGN_OR_RETURN(load.credentials, CredentialsIn(options_.folder, "client"));
  const Moment begin = Now();
  const LookupFigures figures = RunLookups(load, clock_);
  const Moment end = Now();
  PrintLine(begin, end);
  PrintCpu(begin, end);
  fmt::print(
      "look-ups through honed: {:.0f} a second by {} clients, p50 {:.2f}, p99 {:.2f}, worst "
      "{:.2f} ms; {} of {} found, {} failed\n",
      figures.rate, load.clients, figures.latency.p50_ms, figures.latency.p99_ms,
      figures.latency.worst_ms, figures.found, figures.latency.count, figures.failed);
  constexpr double kMostLookupMs = 2;
  if (figures.failed > 0) faults_.push_back(fmt::format("{} look-ups failed", figures.failed));
  if (options_.strict && figures.latency.p99_ms > kMostLookupMs) {
    faults_.push_back(fmt::format("p99 of look-ups {:.2f} ms, {:.0f} ms is asked for",
                                  figures.latency.p99_ms, kMostLookupMs));
  }
  return absl::OkStatus();
}

absl::Status FarmBench::KillAndReturn() {
  const int64_t streams = workers_->counts().streams;
  const int64_t kill_ns = clock_.NowNs();
  const auto since = [&] { return static_cast<double>(clock_.NowNs() - kill_ns) / kNs; };
  honed_.Kill();
  HONE_RETURN_IF_ERROR(honed_.Start());
  const double listens_s = since();
  meter_ = std::make_unique<ProcessMeter>(honed_.pid());
  double connected_s = 0, working_s = 0;
  constexpr double kPatience = 180;
  while (since() < kPatience && working_s == 0) {
    clock_.SleepNs(kLookNs);
    const WorkerLoad::Counts now = workers_->counts();
    const bool fresh = now.streams >= streams + options_.workers;
    if (fresh && connected_s == 0 && now.connected == options_.workers) connected_s = since();
    if (fresh && connected_s > 0 && now.working == options_.workers) working_s = since();
  }
  fmt::print(
      "killed: listens after {:.1f} s, all workers connected after {:.1f} s, all working "
      "after {:.1f} s\n",
      listens_s, connected_s, working_s);
  if (working_s == 0 || working_s > kMostBackSeconds) {
    faults_.push_back(fmt::format("after the kill {} of {} workers were back and working in time",
                                  working_s == 0 ? workers_->counts().working : 0,
                                  options_.workers));
  }
  return absl::OkStatus();
}

absl::Status FarmBench::CompareWithLog() {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::LogFile> log,
                        db::OpenLog(honed_.LogPath(), {.mode = db::OpenMode::kWrite}));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::FarmStore> store, db::FarmStore::Open(*log));
  std::map<Hash128, std::string> in_log;
  int64_t screened = 0;
  for (const Hash128& session : sessions_) {
    HONE_ASSIGN_OR_RETURN(const std::vector<db::FarmLease> leases, store->LeasesOf(session));
    for (const db::FarmLease& lease : leases) {
      if (lease.state != db::LeaseState::kDone) continue;
      in_log[lease.token] = lease.content;
      if (lease.attempt < server::kFirstComparison) ++screened;
    }
  }
  int64_t unknown = 0, other = 0, twice = 0;
  std::map<Hash128, int> seen;
  for (const WorkerLoad::Accepted& a : workers_->Journal()) {
    if (++seen[a.token] > 1) ++twice;
    const auto found = in_log.find(a.token);
    if (found == in_log.end()) {
      ++unknown;
    } else if (found->second != a.digest) {
      ++other;
    }
  }
  const auto unheard =
      static_cast<int64_t>(in_log.size()) - (static_cast<int64_t>(seen.size()) - unknown);
  HONE_ASSIGN_OR_RETURN(const db::LogStats stats, log->Stats());
  fmt::print("log: {} results closed, {} attempts, {} records, {:.0f} MiB; acknowledged {}\n",
             in_log.size(), stats.attempts, stats.records,
             static_cast<double>(stats.file_bytes) / (1 << 20), seen.size());
  const auto none = [&](const char* what, int64_t count) {
    if (count != 0) faults_.push_back(fmt::format("{}: {}", what, count));
  };
  none("acknowledged results that the log lacks", unknown);
  none("acknowledged results that the log has with other content", other);
  none("results acknowledged twice", twice);
  none("results in the log that nobody was told of", unheard);
  none("attempts in the log beside its closed results", stats.attempts - screened);
  none("events that watchers saw twice or out of order", clients_->disordered());
  return absl::OkStatus();
}

absl::Status FarmBench::End() {
  workers_->BeginDraining();
  constexpr double kPatience = 60;
  const int64_t until_ns = clock_.NowNs() + static_cast<int64_t>(kNs * kPatience);
  while (workers_->counts().held > 0 && clock_.NowNs() < until_ns) clock_.SleepNs(kLookNs);
  const WorkerLoad::Counts counts = workers_->counts();
  if (counts.held > 0) {
    faults_.push_back(fmt::format("{} results were never answered", counts.held));
  }
  clients_->Stop();
  workers_->Stop();
  HONE_RETURN_IF_ERROR(honed_.Terminate());
  fmt::print("watchers saw {} events; {} results had another answer than accepted\n",
             clients_->events(), counts.refused);
  if (clients_->ended() > 0) faults_.push_back("a session ended");
  return CompareWithLog();
}

absl::StatusOr<Faults> FarmBench::Run() {
  HONE_RETURN_IF_ERROR(Begin());
  constexpr double kPatience = 120;
  WaitForWorkers(kPatience);
  fmt::print("{} of {} workers work after {:.1f} s\n", workers_->counts().working, options_.workers,
             static_cast<double>(clock_.NowNs() - start_ns_) / kNs);
  clock_.SleepNs(static_cast<int64_t>(kNs * options_.warm_up_s));
  if (options_.questions.empty()) {
    Measure("measured", options_.seconds, options_.strict);
  } else {
    HONE_RETURN_IF_ERROR(LookUp());
  }
  if (options_.kill) {
    HONE_RETURN_IF_ERROR(KillAndReturn());
    if (options_.after_kill_s > 0) Measure("after the kill", options_.after_kill_s, false);
  }
  HONE_RETURN_IF_ERROR(End());
  return faults_;
}

}  // namespace hone::bench

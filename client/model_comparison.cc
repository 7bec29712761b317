#include "client/model_comparison.h"

#include <algorithm>
#include <utility>

#include "base/core/cpu.h"
#include "base/status.h"
#include "measure/measurer.h"
#include "runtime/package.h"
#include "search/tuning_session.h"

namespace hone::client {
namespace {

constexpr int kLeastRounds = 5, kMostRounds = 400, kMostRuns = 100;
constexpr int64_t kTurnNs = 1'000'000;

/// This thread on the CPU that bench uses too, until the end of the scope.
class PinnedThread {
 public:
  PinnedThread() : before_(AllowedCpus()) {
    // Where it is not allowed, times are a little less steady.
    static_cast<void>(PinThisThread({OnePerCore(before_).front()}));
  }
  ~PinnedThread() { static_cast<void>(PinThisThread(before_)); }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  const std::vector<int> before_;
};

struct Rounds {
  int least = 0, most = 0;
};

absl::Status RunRounds(std::vector<TimedModel*> models, Rounds rounds, double seconds,
                       const std::atomic<bool>* interrupted, const MonotonicClock& clock) {
  const PinnedThread pinned;
  const int64_t start_ns = clock.NowNs();
  for (int round = 0; round < rounds.most; ++round) {
    // In double: a session without a budget of time has infinite seconds left.
    const double elapsed_ns = static_cast<double>(clock.NowNs() - start_ns);
    if (round >= rounds.least && elapsed_ns >= seconds * 1e9) break;
    for (TimedModel* model : models) {
      if (interrupted != nullptr && interrupted->load()) return absl::CancelledError("interrupted");
      HONE_RETURN_IF_ERROR(model->TakeTurn());
    }
    // The second one finds the caches as the first left them: each is second as often.
    std::reverse(models.begin(), models.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TimedModel>> TimedModel::Create(
    graph::Graph graph, const compiler::CompileOptions& options, compiler::TraceSource& traces,
    measure::BuilderClient& builder, const NamedTensors& inputs, const MonotonicClock& clock,
    Times times) {
  std::string bytes;
  int possible_forks = 0;
  std::map<std::string, std::string> used;
  {
    HONE_ASSIGN_OR_RETURN(const compiler::CompiledModel model,
                          compiler::CompileModel(std::move(graph), options, builder, traces));
    for (const compiler::KernelReport& kernel : model.report.kernels) {
      used[kernel.workload_hash] = kernel.trace;
    }
    possible_forks = model.report.possible_forks;
    auto serialised = runtime::SerializePackage(model.package);
    if (!serialised.ok()) return ToAbsl(serialised.status());
    bytes = *std::move(serialised);
  }
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(bytes)), {});
  if (!executable.ok()) return ToAbsl(executable.status());
  runtime::Context::Options context;
  if (times == Times::kSteps) context.profile_clock = &clock;
  context.pin = true;
  context.fixed_shares = true;
  HONE_ASSIGN_OR_RETURN(ModelSession session,
                        ModelSession::Create(*std::move(executable), context));
  session.SetInputs(inputs);
  std::unique_ptr<TimedModel> timed(new TimedModel(std::move(session), clock));
  timed->traces_ = std::move(used);
  timed->possible_forks_ = possible_forks;
  return timed;
}

absl::Status TimedModel::Sample(int runs) {
  const ir::Plan& plan = session_.plan();
  std::map<std::string, int64_t> sums;
  int64_t total_ns = 0;
  const int skipped = runs > 1 ? 1 : 0;
  for (int run = 0; run < runs; ++run) {
    const int64_t begin_ns = clock_.NowNs();
    HONE_RETURN_IF_ERROR(session_.Run());
    if (run < skipped) continue;
    const int64_t host_ns = clock_.NowNs() - begin_ns;
    total_ns += session_.context().device_ns().value_or(host_ns);
    const std::span<const int64_t> times = session_.context().step_times_ns();
    for (size_t i = 0; i < times.size(); ++i) {
      const ir::PlanStep& step = plan.steps[i];
      if (step.kind != ir::PlanStepKind::kKernel) continue;
      sums[plan.kernels[static_cast<size_t>(step.kernel)].workload_hash] += times[i];
    }
  }
  samples_ns_.push_back(total_ns / (runs - skipped));
  for (const auto& [hash, ns] : sums) kernel_ns_[hash].push_back(ns / (runs - skipped));
  return absl::OkStatus();
}

void TimedModel::ForgetSamples() {
  samples_ns_.clear();
  kernel_ns_.clear();
}

double TimedModel::MedianNs() const { return search::IntervalOf(samples_ns_).median; }

absl::StatusOr<compiler::FoundTrace> WithDefaults::Find(const ir::Workload& workload,
                                                        const std::string& hash,
                                                        const ir::Target& target) {
  if (hashes_.count(hash) != 0) return compiler::FoundTrace{.rung = "default"};
  return source_.Find(workload, hash, target);
}

absl::Status TimedModel::BeginTurns() {
  ForgetSamples();
  HONE_RETURN_IF_ERROR(Sample(2));
  const int64_t once_ns = std::max<int64_t>(samples_ns_.front(), 1);
  const auto runs = static_cast<int>(std::min<int64_t>(kTurnNs / once_ns, kMostRuns));
  runs_ = runs < 1 ? 1 : runs + 1;
  ForgetSamples();
  return absl::OkStatus();
}

absl::Status RunInTurns(const std::vector<TimedModel*>& models, double seconds,
                        const std::atomic<bool>* interrupted, const MonotonicClock& clock) {
  {
    const PinnedThread pinned;
    for (TimedModel* model : models) HONE_RETURN_IF_ERROR(model->BeginTurns());
  }
  return RunRounds(models, {kLeastRounds, kMostRounds}, seconds, interrupted, clock);
}

absl::Status GoOnInTurns(const std::vector<TimedModel*>& models, int rounds, double seconds,
                         const std::atomic<bool>* interrupted, const MonotonicClock& clock) {
  return RunRounds(models, {0, rounds}, seconds, interrupted, clock);
}

std::set<std::string> ChangedKernels(const TimedModel& by_default, const TimedModel& tuned) {
  std::set<std::string> changed;
  for (const auto& [hash, trace] : tuned.traces()) {
    const auto before = by_default.traces().find(hash);
    if (before != by_default.traces().end() && before->second != trace) changed.insert(hash);
  }
  return changed;
}

std::set<std::string> LosingKernels(const TimedModel& by_default, const TimedModel& tuned) {
  std::set<std::string> losing;
  const std::set<std::string> changed = ChangedKernels(by_default, tuned);
  for (const auto& [hash, ns] : tuned.kernel_ns()) {
    if (changed.count(hash) == 0) continue;
    const auto before = by_default.kernel_ns().find(hash);
    if (before == by_default.kernel_ns().end()) continue;
    if (search::Loses(before->second, ns)) losing.insert(hash);
  }
  return losing;
}

}  // namespace hone::client

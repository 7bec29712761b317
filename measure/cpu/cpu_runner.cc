#include "measure/cpu/cpu_runner.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/core/status_macros.h"
#include "ir/cpu/cpu_target.h"
#include "measure/cpu/cpu_candidate.h"
#include "measure/model_turns.h"
#include "runtime/crew.h"

namespace hone::measure {
namespace {

// What may pass beside timed runs: pipes and the sentinel once; waking threads and flushing caches
// at each run. Generous, for a loaded machine; a process that says a tenth of the truth is caught.
constexpr int64_t kBesideNs = 50'000'000;
constexpr int64_t kBesideRunNs = 20'000;
constexpr int64_t kFlushNsPerByte = 2;
constexpr int64_t kMostTimesTimed = 4;

/// What an honest answer takes at most on a machine that does nothing else.
int64_t LongestWaitNs(const TimeReply& reply, int64_t flushed_bytes) {
  return kBesideNs + reply.runs * (kBesideRunNs + kFlushNsPerByte * flushed_bytes) +
         kMostTimesTimed * reply.timed_ns;
}

class Cores final : public OpenDevice {
 public:
  Cores(std::shared_ptr<runtime::ThreadPool> pool, const MonotonicClock& clock)
      : pool_(std::move(pool)), crew_(pool_, pool_->threads()), clock_(clock) {}

  Status MakeData(const PrepareJob& job) override {
    data_.reset();
    HONE_ASSIGN_OR_RETURN(data_, HostData::Make(job));
    return {};
  }

  Result<std::unique_ptr<LoadedCandidate>> Load(PrepareJob job) override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<CpuCandidate> loaded,
                          CpuCandidate::Load(job, data_, crew_, clock_));
    return std::unique_ptr<LoadedCandidate>(std::move(loaded));
  }

  Result<std::vector<ModelTimes>> RunModels(const ModelJob& job) override {
    return RunModelsInTurns(job, pool_, clock_);
  }

  // A fixed chain of dependent operations.
  int64_t SentinelNs() override {
    int64_t least_ns = INT64_MAX;
    for (int turn = 0; turn < 3; ++turn) {
      volatile double seed = 0.5;
      double value = seed;
      const int64_t start_ns = clock_.NowNs();
      for (int i = 0; i < 2000; ++i) value = value * 0.999 + 0.001;
      seed = value;
      const int64_t took_ns = clock_.NowNs() - start_ns;
      if (took_ns < least_ns) least_ns = took_ns;
    }
    return least_ns;
  }

 private:
  const std::shared_ptr<runtime::ThreadPool> pool_;
  runtime::Crew crew_;
  const MonotonicClock& clock_;
  std::shared_ptr<HostData> data_;
};

class Cpu final : public KindRunner {
 public:
  /// The thread pool wakes threads away from the CPU of who wakes them.
  RunnerNeeds needs() const override {
    return {.system_calls = {SYS_sched_setaffinity, SYS_getcpu}};
  }
  bool runs_parts() const override { return true; }

  Result<std::unique_ptr<OpenDevice>> Open(const DevicePlace& place,
                                           const MonotonicClock& clock) const override {
    // The sandbox has no such call: candidates with tiles find the leave that is given here.
    (void)ir::HasAmx();
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<runtime::ThreadPool> pool,
                          runtime::ThreadPool::Create({.threads = place.threads, .cpus = {}}));
    return std::unique_ptr<OpenDevice>(std::make_unique<Cores>(std::move(pool), clock));
  }

  Status CheckWait(const TimeReply& reply, int64_t flushed_bytes,
                   const AnswerWait& wait) const override {
    const int64_t longest_ns = LongestWaitNs(reply, flushed_bytes);
    const std::string late =
        "but the answer took " + std::to_string(wait.elapsed_ns) + " ns to come";
    // Threads that wait for each other's CPU excuse no running.
    if (wait.ran_ns.value_or(wait.elapsed_ns) > longest_ns) {
      return BadTimes(StatusCode::kUnavailable, reply, late);
    }
    if (wait.elapsed_ns - wait.queued_ns > longest_ns) {
      return BadTimes(StatusCode::kDeadlineExceeded, reply,
                      late + ", of which it ran for " + std::to_string(wait.ran_ns.value_or(0)) +
                          " ns and waited for a CPU for " + std::to_string(wait.queued_ns) + " ns");
    }
    return {};
  }

  bool CameLate(const TimeReply& reply, int64_t flushed_bytes,
                const AnswerWait& wait) const override {
    return wait.elapsed_ns > LongestWaitNs(reply, flushed_bytes);
  }
};

}  // namespace

const KindRunner& CpuRunner() {
  static const Cpu runner;
  return runner;
}

}  // namespace hone::measure

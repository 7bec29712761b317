// hone-runner: reads jobs on standard input, writes answers to standard output, until its input
// ends. Started by RunnerClient; runs code that nobody has checked, so it gives up every right that
// it does not need before the first job, and may end at any moment without harm to anybody else.
//
//     hone-runner THREADS [--test-hooks] [--unsafe-no-sandbox]

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/core/clock.h"
#include "base/core/status_macros.h"
#include "measure/prepared_kernel.h"
#include "measure/run_job.h"
#include "measure/run_test_hook.h"
#include "measure/sandbox.h"
#include "measure/wire.h"
#include "runtime/crew.h"

namespace hone::measure {
namespace {

void EndWithoutMemory() {
  constexpr char kMessage[] = "hone-runner: out of memory\n";
  // Nothing can be done about a failing write here.
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) _exit(kRunnerOutOfMemory);
  _exit(kRunnerOutOfMemory);
}

// A fixed chain of dependent operations: its time tells how fast the core is just now.
int64_t SentinelNs(const MonotonicClock& clock) {
  int64_t least_ns = INT64_MAX;
  for (int turn = 0; turn < 3; ++turn) {
    volatile double seed = 0.5;
    double value = seed;
    const int64_t start_ns = clock.NowNs();
    for (int i = 0; i < 2000; ++i) value = value * 0.999 + 0.001;
    seed = value;
    const int64_t took_ns = clock.NowNs() - start_ns;
    if (took_ns < least_ns) least_ns = took_ns;
  }
  return least_ns;
}

// As a candidate that has taken over the process might, for tests: it takes a quarter of a second,
// of CPU time however loaded the machine is, and says that it did not.
void SayATenThousandth(TimeReply& reply) {
  uint64_t chain = 1;
  for (int i = 0; i < 300'000'000; ++i) {
    chain *= 0x9E3779B97F4A7C15;
    asm volatile("" : "+r"(chain));
  }
  for (int64_t& sample_ns : reply.samples_ns) sample_ns = std::max<int64_t>(sample_ns / 10'000, 1);
  reply.timed_ns = std::max<int64_t>(reply.timed_ns / 10'000, reply.runs);
}

// As a machine might that stands still: nothing runs, and nothing waits for a CPU.
void Doze() { static_cast<void>(::poll(nullptr, 0, 600)); }

class Runner {
 public:
  Runner(runtime::Crew& crew, bool test_hooks) : crew_(crew), test_hooks_(test_hooks) {}

  Status Answer(const Frame& frame) {
    switch (static_cast<FrameType>(frame.type)) {
      case FrameType::kPrepareRequest: {
        HONE_ASSIGN_OR_RETURN(PrepareJob job, DecodePrepareJob(frame.payload));
        const PrepareReply reply{Prepare(std::move(job))};
        return WriteFrame(STDOUT_FILENO, FrameType::kPrepareReply, EncodePrepareReply(reply));
      }
      case FrameType::kTimeRequest: {
        HONE_ASSIGN_OR_RETURN(const TimeJob job, DecodeTimeJob(frame.payload));
        return WriteFrame(STDOUT_FILENO, FrameType::kTimeReply, EncodeTimeReply(Time(job)));
      }
      default:
        return Status(StatusCode::kDataLoss, "a frame of type " + std::to_string(frame.type));
    }
  }

 private:
  Status Prepare(PrepareJob job) {
    std::unique_ptr<PreparedKernel>& slot = slots_[static_cast<size_t>(job.slot)];
    slot.reset();
    if (data_ == nullptr || data_->key != job.data_key) {
      for (auto& other : slots_) other.reset();
      data_.reset();
      HONE_ASSIGN_OR_RETURN(data_, RunData::Make(job));
    }
    if (test_hooks_) kill_ = job.test_hook;
    EndIfAsked(kill_, "loading");
    PreparedKernel::Hook hook;
    if (test_hooks_ && !job.test_hook.empty()) {
      hook = [name = job.test_hook](const auto& outputs) { Misbehave(name, outputs); };
    }
    HONE_ASSIGN_OR_RETURN(slot, PreparedKernel::Make(std::move(job), data_, crew_));
    return slot->RunForCheck(kOutputFd, clock_, hook);
  }

  TimeReply Time(const TimeJob& job) {
    TimeReply reply;
    PreparedKernel* const kernel = slots_[static_cast<size_t>(job.slot)].get();
    if (kernel == nullptr) {
      reply.status = Status(StatusCode::kFailedPrecondition, "nothing is prepared in this slot");
      return reply;
    }
    EndIfAsked(kill_, "timing");
    reply.sentinel_ns = SentinelNs(clock_);
    Result<Race> race = kernel->Time(job.policy, clock_);
    reply.status = race.status();
    if (!race.ok()) return reply;
    reply.samples_ns = std::move(race->samples_ns);
    reply.hopeless = race->hopeless;
    reply.runs = race->runs;
    reply.timed_ns = race->timed_ns;
    if (kill_ == "lie") SayATenThousandth(reply);
    if (kill_ == "doze") Doze();
    return reply;
  }

  SystemMonotonicClock clock_;
  runtime::Crew& crew_;
  const bool test_hooks_;
  std::string kill_;  ///< a hook of the job that was prepared last
  std::shared_ptr<RunData> data_;
  std::array<std::unique_ptr<PreparedKernel>, kMaxSlots> slots_;
};

int Fail(const Status& status) {
  std::fprintf(stderr, "hone-runner: %s\n", status.message().c_str());
  return 1;
}

int Main(int threads, bool test_hooks, bool unsafe_no_sandbox) {
  std::set_new_handler(EndWithoutMemory);
  DieWithParent();
  const Status hidden = HideFiles();
  // Where the kernel cannot, its worker says so on the device's row.
  if (!hidden.ok() && hidden.code() != StatusCode::kUnimplemented && !unsafe_no_sandbox) {
    Fail(hidden);
    return kRunnerNoSandbox;
  }
  Result<std::unique_ptr<runtime::Crew>> crew =
      runtime::Crew::Create({.threads = threads, .cpus = {}});
  if (!crew.ok()) return Fail(crew.status());
  const Status sandboxed = EnterSandbox(SandboxKind::kRunner, test_hooks);
  if (!sandboxed.ok() && !unsafe_no_sandbox) {
    Fail(sandboxed);
    return kRunnerNoSandbox;
  }
  Runner runner(**crew, test_hooks);
  FrameDecoder decoder;
  for (;;) {
    Result<Frame> frame = ReadFrame(STDIN_FILENO, decoder);
    // Without destructors: what a candidate left behind is not worth a crash.
    if (frame.status().code() == StatusCode::kUnavailable) _exit(0);
    if (!frame.ok()) return Fail(frame.status());
    const Status status = runner.Answer(*frame);
    if (!status.ok()) return Fail(status);
  }
}

}  // namespace
}  // namespace hone::measure

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const auto said = [&](const char* word) {
    for (int i = 2; i < argc; ++i) {
      if (std::strcmp(argv[i], word) == 0) return true;
    }
    return false;
  };
  if (threads < 1) {
    std::fprintf(stderr, "hone-runner is started by Hone: hone-runner THREADS\n");
    return 2;
  }
  return hone::measure::Main(threads, said("--test-hooks"), said("--unsafe-no-sandbox"));
}

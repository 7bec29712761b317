#include "tests/kinds/abacus_runner.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"
#include "measure/host_data.h"
#include "runtime/crew.h"
#include "runtime/shared_object.h"
#include "tests/kinds/abacus_memory.h"

namespace hone::abacus {
namespace {

using measure::GuardedBuffer;
using measure::HostData;

constexpr int kBroken = 9;
/// Its clock goes slowly: what it says of a run is far less than the host waits.
constexpr int64_t kHostNsPerTick = 100;

class Candidate final : public measure::LoadedCandidate {
 public:
  Candidate(Queue& queue, const MonotonicClock& clock) : queue_(queue), clock_(clock) {}

  Status Load(const measure::PrepareJob& job, HostData& data, runtime::Crew& crew) {
    // The driver asks this of the system, which no runner of code for the host may.
    utsname system{};
    if (::uname(&system) != 0) return Status(StatusCode::kInternal, "no system");
    artifact_ = job.kernel.artifact;
    HONE_RETURN_IF_ERROR(data.Check(artifact_));
    const std::string code = Disguised(job.kernel.shared_object);
    HONE_ASSIGN_OR_RETURN(code_,
                          runtime::SharedObject::Load(std::as_bytes(std::span(code)), "abacus"));
    for (const ir::ArtifactPhase& phase : artifact_.phases) {
      HONE_ASSIGN_OR_RETURN(void* const address, code_.Symbol(phase.symbol));
      phases_.push_back(reinterpret_cast<ir::PhaseFunction>(address));
    }
    HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const HostData::Buffers> prologue,
                          data.PrologueOf(job, crew));
    using List = const HostData::Buffers*;
    for (List list : {List(&data.inputs), List(&data.constants), prologue.get()}) {
      for (const GuardedBuffer& buffer : *list) {
        arguments_.push_back(memory_.Copy(buffer.span()));
      }
    }
    first_output_ = arguments_.size();
    for (const auto* list : {&artifact_.outputs, &artifact_.workspace}) {
      for (const ir::ArtifactBuffer& buffer : *list) {
        arguments_.push_back(memory_.Allocate(static_cast<size_t>(buffer.bytes)));
      }
    }
    for (const ir::ArtifactPhase& phase : artifact_.phases) {
      scratch_.push_back(memory_.Allocate(static_cast<size_t>(phase.scratch_bytes)));
    }
    return {};
  }

  Status RunForCheck(const std::vector<GuardedBuffer>& outputs) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t bytes = outputs[i].span().size();
      measure::Poison(artifact_.outputs[i].dtype, {At(first_output_ + i), bytes});
    }
    HONE_RETURN_IF_ERROR(Run().status());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::span<std::byte> output = outputs[i].span();
      std::copy_n(At(first_output_ + i), output.size(), output.data());
    }
    return {};
  }

  Result<measure::Race> Time(const measure::TimingPolicy& policy) override {
    Status status;
    measure::Race race = measure::RunRace(policy, 0, [&] {
      const Result<int64_t> ticks = Run();
      if (!ticks.ok()) status = ticks.status();
      return ticks.ok() ? *ticks : 1;
    });
    if (!status.ok()) return status;
    return race;
  }

 private:
  std::byte* At(size_t buffer) { return memory_.At(arguments_[buffer]); }

  /// In ticks of its clock, at least one.
  Result<int64_t> Run() {
    int64_t took_ns = 0;
    queue_.Submit([&] {
      const int64_t start_ns = clock_.NowNs();
      Status status = RunPhases();
      took_ns = clock_.NowNs() - start_ns;
      return status;
    });
    HONE_RETURN_IF_ERROR(queue_.Wait());
    return took_ns / kHostNsPerTick + 1;
  }

  Status RunPhases() {
    for (const ir::ArtifactStep& step : artifact_.steps) {
      for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
        for (int32_t phase = step.first; phase < step.first + step.count; ++phase) {
          const auto at = static_cast<size_t>(phase);
          const int32_t result = LaunchGrid(phases_[at], artifact_.phases[at], memory_, arguments_,
                                            {.scratch = memory_.At(scratch_[at]), .step = repeat});
          HONE_RETURN_IF_ERROR(measure::StatusOf({.result = result, .phase = phase}));
        }
      }
    }
    return {};
  }

  Queue& queue_;
  const MonotonicClock& clock_;
  ir::Artifact artifact_;
  runtime::SharedObject code_;
  std::vector<ir::PhaseFunction> phases_;
  Memory memory_;
  std::vector<Memory::Handle> arguments_;  // of buffers, in the artifact's order
  std::vector<Memory::Handle> scratch_;    // by phase
  size_t first_output_ = 0;
};

class Opened final : public measure::OpenDevice {
 public:
  Opened(int number, UniqueFd file, std::unique_ptr<runtime::Crew> crew,
         const MonotonicClock& clock)
      : file_(std::move(file)), crew_(std::move(crew)), clock_(clock), queue_(number == kBroken) {}

  Status MakeData(const measure::PrepareJob& job) override {
    HONE_ASSIGN_OR_RETURN(data_, HostData::Make(job));
    return {};
  }
  Result<std::unique_ptr<measure::LoadedCandidate>> Load(measure::PrepareJob job) override {
    auto candidate = std::make_unique<Candidate>(queue_, clock_);
    HONE_RETURN_IF_ERROR(candidate->Load(job, *data_, *crew_));
    return std::unique_ptr<measure::LoadedCandidate>(std::move(candidate));
  }
  int64_t SentinelNs() override { return 1000; }

 private:
  const UniqueFd file_;
  const std::unique_ptr<runtime::Crew> crew_;  // of prologues, which are the host's
  const MonotonicClock& clock_;
  std::shared_ptr<HostData> data_;
  Queue queue_;
};

class Abacus final : public measure::KindRunner {
 public:
  measure::RunnerNeeds needs() const override {
    return {.folders = {"/dev"},
            .system_calls = {SYS_uname},
            .open_files = 1,
            .any_address_space = true};
  }
  Result<std::unique_ptr<measure::OpenDevice>> Open(const measure::DevicePlace& place,
                                                    const MonotonicClock& clock) const override {
    UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!file.valid()) {
      return Status(StatusCode::kFailedPrecondition,
                    "its device file cannot be opened: " + std::to_string(errno));
    }
    HONE_ASSIGN_OR_RETURN(auto crew, runtime::Crew::Create({.threads = 1, .cpus = {}}));
    return std::unique_ptr<measure::OpenDevice>(
        std::make_unique<Opened>(place.number, std::move(file), std::move(crew), clock));
  }
  // Nothing that the host sees tells how long it computes.
  Status CheckWait(const measure::TimeReply&, int64_t, const measure::AnswerWait&) const override {
    return {};
  }
  bool CameLate(const measure::TimeReply&, int64_t, const measure::AnswerWait&) const override {
    return false;
  }
};

/// Linked into a program, this makes it run candidates for an abacus.
const bool kRegistered = (RegisterRunner(), true);

}  // namespace

const measure::KindRunner& Runner() {
  static const Abacus runner;
  return runner;
}

void RegisterRunner() {
  static const bool once = [] {
    measure::RunnersOfKinds().Add("abacus", &Runner());
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace hone::abacus

// hone-runner: reads jobs on standard input, writes answers to standard output, until its input
// ends. Started by RunnerClient; runs code that nobody has checked, so it gives up every right that
// it does not need before the first job, and may end at any moment without harm to anybody else.
//
//     hone-runner KIND:NUMBER THREADS [--test-hooks] [--unsafe-no-sandbox]

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/core/clock.h"
#include "base/core/status_macros.h"
#include "measure/kind_runner.h"
#include "measure/run_job.h"
#include "measure/run_test_hook.h"
#include "measure/sandbox.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

void EndWithoutMemory() {
  constexpr char kMessage[] = "hone-runner: out of memory\n";
  // Nothing can be done about a failing write here.
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) _exit(kRunnerOutOfMemory);
  _exit(kRunnerOutOfMemory);
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
  Runner(OpenDevice& device, bool test_hooks, const MonotonicClock& clock)
      : device_(device), test_hooks_(test_hooks), clock_(clock) {}

  Status Answer(const Frame& frame) {
    switch (static_cast<FrameType>(frame.type)) {
      case FrameType::kPrepareRequest: {
        HONE_ASSIGN_OR_RETURN(PrepareJob job, DecodePrepareJob(frame.payload));
        PrepareReply reply;
        reply.status = Prepare(std::move(job), &reply);
        return WriteFrame(STDOUT_FILENO, FrameType::kPrepareReply, EncodePrepareReply(reply));
      }
      case FrameType::kTimeRequest: {
        HONE_ASSIGN_OR_RETURN(const TimeJob job, DecodeTimeJob(frame.payload));
        return WriteFrame(STDOUT_FILENO, FrameType::kTimeReply, EncodeTimeReply(Time(job)));
      }
      case FrameType::kModelRequest: {
        HONE_ASSIGN_OR_RETURN(const ModelJob job, DecodeModelJob(frame.payload));
        ModelReply reply;
        auto models = device_.RunModels(job);
        reply.status = models.status();
        if (models.ok()) reply.models = *std::move(models);
        return WriteFrame(STDOUT_FILENO, FrameType::kModelReply, EncodeModelReply(reply));
      }
      default:
        return Status(StatusCode::kDataLoss, "a frame of type " + std::to_string(frame.type));
    }
  }

 private:
  Status Prepare(PrepareJob job, PrepareReply* reply) {
    const auto slot = static_cast<size_t>(job.slot);
    slots_[slot].reset();
    if (!data_key_ || *data_key_ != job.data_key) {
      for (auto& other : slots_) other.reset();
      data_key_.reset();
      HONE_RETURN_IF_ERROR(device_.MakeData(job));
      data_key_ = job.data_key;
    }
    if (test_hooks_) kill_ = job.test_hook;
    EndIfAsked(kill_, "loading");
    const std::string hook = test_hooks_ ? job.test_hook : "";
    const std::vector<ir::ArtifactBuffer> outputs = job.kernel.artifact.outputs;
    const bool whole = job.part == 1;
    HONE_ASSIGN_OR_RETURN(slots_[slot], device_.Load(std::move(job)));
    std::vector<GuardedBuffer> buffers;
    const std::vector<SharedBuffer> places = PlaceOutputs(outputs);
    for (size_t i = 0; i < places.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::MapShared(kOutputFd, places[i]));
      // What a part writes is told by the pages that it touches.
      if (whole) Poison(outputs[i].dtype, buffer.span());
      buffers.push_back(std::move(buffer));
    }
    const int64_t start_ns = clock_.NowNs();
    HONE_RETURN_IF_ERROR(slots_[slot]->RunForCheck(buffers));
    reply->run_ns = clock_.NowNs() - start_ns;
    reply->part = slots_[slot]->part_run();
    if (!hook.empty()) Misbehave(hook, buffers);
    return {};
  }

  TimeReply Time(const TimeJob& job) {
    TimeReply reply;
    LoadedCandidate* const kernel = slots_[static_cast<size_t>(job.slot)].get();
    if (kernel == nullptr) {
      reply.status = Status(StatusCode::kFailedPrecondition, "nothing is prepared in this slot");
      return reply;
    }
    EndIfAsked(kill_, "timing");
    reply.sentinel_ns = device_.SentinelNs();
    Result<Race> race = kernel->Time(job.policy);
    reply.status = race.status();
    if (!race.ok()) return reply;
    reply.samples_ns = std::move(race->samples_ns);
    reply.hopeless = race->hopeless;
    reply.runs = race->runs;
    reply.timed_ns = race->timed_ns;
    reply.part = race->part;
    reply.conditions = device_.Conditions();
    if (kill_ == "lie") SayATenThousandth(reply);
    if (kill_ == "doze") Doze();
    return reply;
  }

  OpenDevice& device_;
  const bool test_hooks_;
  const MonotonicClock& clock_;
  std::string kill_;  ///< a hook of the job that was prepared last
  std::optional<std::string> data_key_;
  std::array<std::unique_ptr<LoadedCandidate>, kMaxSlots> slots_;
};

int Fail(const Status& status) {
  std::fprintf(stderr, "hone-runner: %s\n", status.message().c_str());
  return 1;
}

/// What the words of the command line say.
struct Order {
  std::string device;
  DevicePlace place;
  bool test_hooks = false;
  bool unsafe_no_sandbox = false;
};

bool ReadOrder(int argc, char** argv, Order* order) {
  CLI::App app;
  app.set_help_flag();
  app.add_option("device", order->device)->required();
  app.add_option("threads", order->place.threads)->required();
  app.add_flag("--test-hooks", order->test_hooks);
  app.add_flag("--unsafe-no-sandbox", order->unsafe_no_sandbox);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError&) {
    return false;
  }
  const size_t colon = order->device.find(':');
  if (colon == std::string::npos) return false;
  order->place.number = std::atoi(order->device.c_str() + colon + 1);
  return order->place.threads >= 1;
}

/// The driver may lie where the loader was told to look.
std::vector<std::string> ReadsToOpen(const RunnerNeeds& needs) {
  std::vector<std::string> folders = needs.reads_to_open;
  const char* const path = folders.empty() ? nullptr : std::getenv("LD_LIBRARY_PATH");
  std::istringstream words(path == nullptr ? "" : path);
  for (std::string folder; std::getline(words, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

int Main(const Order& order) {
  std::set_new_handler(EndWithoutMemory);
  DieWithParent();
  const Result<const KindRunner*> kind = RunnerOf(order.device);
  if (!kind.ok()) return Fail(kind.status());
  const RunnerNeeds needs = (*kind)->needs();
  const auto hide = [&](std::span<const std::string> read_only) {
    const Status hidden = HideFiles(needs.folders, read_only);
    // Where the kernel cannot, its worker says so on the device's row.
    if (hidden.ok() || hidden.code() == StatusCode::kUnimplemented || order.unsafe_no_sandbox) {
      return true;
    }
    Fail(hidden);
    return false;
  };
  if (!hide(ReadsToOpen(needs))) return kRunnerNoSandbox;
  const SystemMonotonicClock clock;
  const Result<std::unique_ptr<OpenDevice>> device = (*kind)->Open(order.place, clock);
  if (!device.ok()) {
    Fail(device.status());
    return kRunnerNoDevice;
  }
  if (!needs.reads_to_open.empty() && !hide({})) return kRunnerNoSandbox;
  const Status sandboxed =
      EnterSandbox(SandboxKind::kRunner, {.more_calls = needs.system_calls,
                                          .drives_device = needs.drives_device,
                                          .may_kill_itself = order.test_hooks});
  if (!sandboxed.ok() && !order.unsafe_no_sandbox) {
    Fail(sandboxed);
    return kRunnerNoSandbox;
  }
  Runner runner(**device, order.test_hooks, clock);
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
  hone::measure::Order order;
  if (!hone::measure::ReadOrder(argc, argv, &order)) {
    std::fprintf(stderr, "hone-runner is started by Hone: hone-runner KIND:NUMBER THREADS\n");
    return 2;
  }
  return hone::measure::Main(order);
}

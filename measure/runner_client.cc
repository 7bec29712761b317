#include "measure/runner_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "fmt/core.h"

#include "base/helper_program.h"
#include "base/status.h"
#include "ir/kind_name.h"
#include "measure/kind_runner.h"
#include "measure/last_words.h"

namespace hone::measure {
namespace {

constexpr int64_t kMaxReplyBytes = int64_t{1} << 20;
constexpr int64_t kFileBytes = int64_t{1} << 28;  // code in memory files is small
constexpr int kOpenFiles = 16;  // pipes, outputs, the code of two kernels, and what loading opens
constexpr int64_t kDyingNs = 2'000'000'000;
constexpr size_t kLastWordsBytes = 1000;
constexpr int64_t kFirstRoomBytes = int64_t{1} << 20;
constexpr char kUnasked[] = "the runner said more than it was asked";
constexpr char kInterrupted[] = "the kernel was ended because its measurement was given up";
}  // namespace

struct RunnerClient::Process {
  Process(Subprocess started, int number_of_threads, const RunnerNeeds& needs)
      : child(std::move(started)),
        threads(number_of_threads),
        open_files(kOpenFiles + needs.open_files),
        has_driver(needs.drives_device) {}

  Subprocess child;
  FrameDecoder decoder{kMaxReplyBytes};
  int threads;
  int open_files;   ///< beside the code of candidates
  bool has_driver;  ///< which writes files of its own
  int jobs_done = 0;
  int most_slots = 1;  ///< of candidates, from 0 on, that may hold one
};

RunnerClient::RunnerClient(RunnerOptions options, const MonotonicClock& clock)
    : options_(std::move(options)), clock_(clock) {}

RunnerClient::~RunnerClient() {
  process_.reset();
  if (!mapped_.empty()) munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

absl::StatusOr<std::vector<std::span<const std::byte>>> RunnerClient::Prepare(
    const PrepareJob& job) {
  const std::string& target = job.kernel.artifact.target;
  if (ir::KindNameOf(target) != ir::KindNameOf(options_.device)) {
    return absl::InvalidArgumentError(
        fmt::format("a kernel for {} does not run on {}", target, options_.device));
  }
  const std::vector<SharedBuffer> places = PlaceOutputs(job.kernel.artifact.outputs);
  HONE_RETURN_IF_ERROR(MakeRoom(SharedBytes(places)));
  // Whatever an earlier candidate left behind is not this one's.
  if (process_ != nullptr && SpeaksUnasked()) process_.reset();
  // Behind the first of a comparison others may want fewer threads than the process has.
  const bool first = job.slot == 0 || job.slot == kReferenceSlot;
  if (process_ != nullptr &&
      (first ? process_->threads != job.threads || process_->jobs_done >= options_.jobs_per_process
             : process_->threads < job.threads)) {
    process_.reset();
  }
  if (process_ == nullptr) HONE_RETURN_IF_ERROR(Start(job.threads));
  LimitFilesFor(job);
  if (job.part < 1 && !places.empty() &&
      fallocate(output_file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                SharedBytes(places)) != 0) {
    return ErrnoStatus(errno, "empty the memory file of outputs");
  }
  HONE_ASSIGN_OR_RETURN(const std::string payload,
                        Call(FrameType::kPrepareRequest, EncodePrepareJob(job),
                             FrameType::kPrepareReply, options_.prepare_timeout_ns));
  const Result<PrepareReply> reply = DecodePrepareReply(payload);
  HONE_RETURN_IF_ERROR(ToAbsl(reply.status()));
  HONE_RETURN_IF_ERROR(Told(reply->status));
  run_ns_ = reply->run_ns;
  part_run_ = reply->part;
  std::vector<std::span<const std::byte>> outputs;
  for (const SharedBuffer& place : places) {
    outputs.push_back(mapped_.subspan(static_cast<size_t>(place.data_offset),
                                      static_cast<size_t>(place.data_bytes)));
  }
  return outputs;
}

std::vector<std::vector<ByteRange>> RunnerClient::Touched(const PrepareJob& job) const {
  std::vector<std::vector<ByteRange>> touched;
  for (const SharedBuffer& place : PlaceOutputs(job.kernel.artifact.outputs)) {
    std::vector<ByteRange>& ranges = touched.emplace_back();
    const int64_t end = place.data_offset + place.data_bytes;
    for (int64_t at = place.region_offset; at < end;) {
      const int64_t begin = lseek(output_file_.get(), at, SEEK_DATA);
      if (begin < 0 || begin >= end) break;  // a hole up to the end
      at = lseek(output_file_.get(), begin, SEEK_HOLE);
      if (at < 0) at = end;
      ranges.push_back({std::max(begin, place.data_offset) - place.data_offset,
                        std::min(at, end) - place.data_offset});
    }
  }
  return touched;
}

absl::StatusOr<TimeReply> RunnerClient::Time(const TimeJob& job) {
  if (process_ == nullptr) return absl::FailedPreconditionError("no runner holds this kernel");
  if (SpeaksUnasked()) {
    process_.reset();
    return absl::DataLossError(kUnasked);
  }
  HONE_ASSIGN_OR_RETURN(TimeReply reply, AskForTimes(job));
  HONE_RETURN_IF_ERROR(Told(reply.status));
  if (reply.samples_ns.empty()) return absl::DataLossError("the runner sent no times");
  device_failures_ = 0;
  return reply;
}

absl::StatusOr<TimeReply> RunnerClient::AskForTimes(const TimeJob& job) {
  HONE_ASSIGN_OR_RETURN(const std::string payload,
                        Call(FrameType::kTimeRequest, EncodeTimeJob(job), FrameType::kTimeReply,
                             options_.time_timeout_ns));
  Result<TimeReply> reply = DecodeTimeReply(payload);
  HONE_RETURN_IF_ERROR(ToAbsl(reply.status()));
  return *std::move(reply);
}

bool RunnerClient::SpeaksUnasked() const {
  // Data, or the end of its side: a process that died meanwhile is found out by the next call.
  pollfd output{.fd = process_->child.standard_output().get(), .events = POLLIN, .revents = 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLIN) != 0;
}

void RunnerClient::NoteFailure(std::string_view why, int times) {
  device_failures_ += times;
  device_failure_ = why;
}

absl::Status RunnerClient::Told(const Status& status) {
  if (status.code() == StatusCode::kUnavailable) NoteFailure(status.message());
  const bool failed =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kAborted;
  if (failed) process_.reset();
  return ToAbsl(status);
}

std::optional<CpuShare> RunnerClient::ShareCpu() const {
  if (process_ == nullptr) return std::nullopt;
  return std::optional<CpuShare>(std::in_place, process_->child.pid());
}

void RunnerClient::EndProcess() { process_.reset(); }

absl::Status RunnerClient::Ping() {
  HONE_RETURN_IF_ERROR(MakeRoom(kFirstRoomBytes));
  if (process_ == nullptr) HONE_RETURN_IF_ERROR(Start(1));
  // It says that nothing is prepared: that is an answer.
  return AskForTimes({.slot = kMaxSlots - 1, .policy = {}}).status();
}

// Nobody can change the file's size, nor seal it further: what is mapped here stays readable, and
// no candidate can use it up or close it to those behind. A job that needs more gets a new
// file, and with it a new process.
absl::Status RunnerClient::MakeRoom(int64_t bytes) {
  if (!mapped_.empty() && bytes <= static_cast<int64_t>(mapped_.size())) return absl::OkStatus();
  process_.reset();
  int64_t room = std::max(kFirstRoomBytes, static_cast<int64_t>(mapped_.size()));
  while (room < bytes) room *= 2;
  UniqueFd file(memfd_create("hone-outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return ErrnoStatus(errno, "make a memory file for outputs");
  if (ftruncate(file.get(), room) != 0) {
    return ErrnoStatus(errno, fmt::format("make {} bytes of memory for outputs", room));
  }
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, "seal the memory file of outputs");
  }
  void* address = mmap(nullptr, static_cast<size_t>(room), PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return ErrnoStatus(errno, fmt::format("map {} bytes", room));
  if (!mapped_.empty()) munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
  mapped_ = {static_cast<const std::byte*>(address), static_cast<size_t>(room)};
  output_file_ = std::move(file);
  return absl::OkStatus();
}

absl::Status RunnerClient::Start(int threads) {
  const Result<const KindRunner*> kind = RunnerOf(options_.device);
  HONE_RETURN_IF_ERROR(ToAbsl(kind.status()));
  const RunnerNeeds needs = (*kind)->needs();
  SubprocessOptions spawn;
  std::string program = options_.program;
  if (program.empty()) {
    HONE_ASSIGN_OR_RETURN(program, FindHelperProgram("hone-runner"));
  }
  spawn.argv = {program, options_.device, fmt::format("{}", threads)};
  if (options_.test_hooks) spawn.argv.push_back("--test-hooks");
  if (options_.unsafe_no_sandbox) spawn.argv.push_back("--unsafe-no-sandbox");
  spawn.environment.emplace();
  spawn.kept = needs.environment;
  spawn.inherited = {{output_file_.get(), kOutputFd}};
  if (!needs.any_address_space) {
    spawn.limits.address_space_bytes = options_.address_space_bytes;
  }
  spawn.limits.file_bytes = kFileBytes;
  spawn.limits.open_files = kOpenFiles + needs.open_files + kMaxSlots;
  spawn.on_unkillable = [this](pid_t pid) {
    NoteFailure(fmt::format("a kernel hangs, and its process {} does not end", pid), kBadDevice);
    if (options_.on_unkillable) options_.on_unkillable(pid);
  };
  spawn.kill_patience_ns = options_.kill_patience_ns;
  HONE_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Spawn(spawn));
  const int error_fd = child.standard_error().get();
  fcntl(error_fd, F_SETFL, fcntl(error_fd, F_GETFL) | O_NONBLOCK);
  process_ = std::make_unique<Process>(std::move(child), threads, needs);
  ++num_started_;
  return absl::OkStatus();
}

// What is written to memory files counts towards no limit of address space: so there are as many
// as loading needs, and none is larger than the code that it loads.
void RunnerClient::LimitFilesFor(const PrepareJob& job) {
  if (job.slot != kReferenceSlot) {
    process_->most_slots = std::max(process_->most_slots, job.slot + 1);
  }
  LimitFilesTo(process_->most_slots,
               std::max(job.kernel.shared_object.size(), job.prologue.shared_object.size()));
}

void RunnerClient::LimitFilesTo(int kernels, size_t bytes) {
  // The thread sanitizer's runtime writes a file of half a MiB as the process begins.
  LimitFiles(process_->child.pid(), process_->open_files + kernels,
             kSanitized || process_->has_driver ? kFileBytes : static_cast<int64_t>(bytes));
}

absl::StatusOr<std::vector<ModelTimes>> RunnerClient::RunModels(const ModelJob& job) {
  HONE_RETURN_IF_ERROR(MakeRoom(kFirstRoomBytes));
  process_.reset();
  HONE_RETURN_IF_ERROR(Start(job.threads));
  size_t largest = 0;
  for (const std::string& package : job.packages) largest = std::max(largest, package.size());
  LimitFilesTo(static_cast<int>(job.packages.size()), largest);
  HONE_ASSIGN_OR_RETURN(const std::string payload,
                        Call(FrameType::kModelRequest, EncodeModelJob(job), FrameType::kModelReply,
                             options_.prepare_timeout_ns + options_.time_timeout_ns + job.most_ns));
  process_.reset();
  Result<ModelReply> reply = DecodeModelReply(payload);
  HONE_RETURN_IF_ERROR(ToAbsl(reply.status()));
  HONE_RETURN_IF_ERROR(ToAbsl(reply->status));
  const std::vector<ModelTimes>& models = reply->models;
  const auto all_above_0 = [](const std::vector<int64_t>& samples) {
    return !samples.empty() && std::ranges::all_of(samples, [](int64_t ns) { return ns > 0; });
  };
  const auto fits = [&](const ModelTimes& model) {
    size_t kernel_samples = 0;
    for (const auto& [hash, ns] : model.kernel_ns) {
      kernel_samples += ns.size();
      if (!all_above_0(ns) || ns.size() > model.samples_ns.size()) return false;
    }
    return all_above_0(model.samples_ns) && kernel_samples <= kMaxKernelSamples &&
           model.samples_ns.size() == models.front().samples_ns.size();
  };
  if (models.size() != job.packages.size() || !std::ranges::all_of(models, fits)) {
    return absl::DataLossError("the runner sent times that do not fit the models");
  }
  return std::move(reply->models);
}

absl::StatusOr<std::string> RunnerClient::Call(FrameType request, std::string_view payload,
                                               FrameType reply, int64_t timeout_ns) {
  if (static_cast<int64_t>(payload.size()) > kMaxFramePayloadBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a job for the runner of {} bytes; at most {} can be sent", payload.size(),
                    kMaxFramePayloadBytes));
  }
  const WireDeadline deadline{&clock_, clock_.NowNs() + timeout_ns};
  Subprocess& child = process_->child;
  if (!switch_.Begin(child.pid())) return absl::UnavailableError(kInterrupted);
  // All threads' time counts.
  LimitCpuTime(child.pid(), static_cast<double>(timeout_ns) * 1e-9 * process_->threads);
  Status failure = WriteFrame(child.standard_input().get(), request, payload, deadline);
  // A runner that dies while it is written to may have said why: the pipe's end is read either way.
  if (failure.ok() || failure.code() == StatusCode::kUnavailable) {
    Result<Frame> frame = ReadFrame(child.standard_output().get(), process_->decoder, deadline);
    const bool asked = frame.ok() && frame->type == static_cast<uint16_t>(reply) &&
                       !process_->decoder.has_partial();
    if (asked) {
      ++process_->jobs_done;
      if (switch_.End(child.pid())) return std::move((*frame).payload);
      process_.reset();
      return absl::UnavailableError(kInterrupted);
    }
    failure = frame.ok() ? Status(StatusCode::kDataLoss, kUnasked) : frame.status();
  }
  const bool wanted = switch_.End(child.pid());
  const absl::Status explained =
      wanted ? Explain(failure, timeout_ns) : absl::UnavailableError(kInterrupted);
  process_.reset();  // kills what is left of it
  return explained;
}

absl::Status RunnerClient::Explain(const Status& failure, int64_t timeout_ns) {
  Subprocess& child = process_->child;
  if (failure.code() == StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(
        fmt::format("the kernel did not finish within {:.1f} s and its process was ended",
                    static_cast<double>(timeout_ns) * 1e-9));
  }
  // A process that broke the protocol but lives on is ended: its stream cannot be found again.
  const bool dying = StreamEnded(child.standard_output().get());
  HONE_ASSIGN_OR_RETURN(const std::optional<ExitState> exit,
                        child.Wait(clock_, dying ? kDyingNs : 0));
  const std::string last_words = ReadLastWords(child.standard_error().get(), kLastWordsBytes);
  const std::string detail = last_words.empty() ? "" : fmt::format(": {}", last_words);
  if (!exit.has_value() || exit->success()) {
    return absl::DataLossError(
        fmt::format("the runner broke off: {}{}", failure.message(), detail));
  }
  if (exit->code == kRunnerNoDevice) NoteFailure(last_words);
  if (exit->code == kRunnerNoSandbox || exit->code == kRunnerNoDevice) {
    return absl::FailedPreconditionError(last_words);
  }
  // The limit on its address space ends it otherwise: it was the machine that had no memory left.
  if (exit->signal == SIGKILL && options_.address_space_bytes.has_value()) {
    return absl::UnavailableError(
        fmt::format("the system killed the kernel's process, which was within its memory limit: "
                    "free memory, or end other programs{}",
                    detail));
  }
  if (exit->code == kRunnerOutOfMemory || exit->signal == SIGKILL) {
    return absl::ResourceExhaustedError(
        fmt::format("the kernel's process ran out of memory ({})",
                    options_.address_space_bytes.has_value()
                        ? fmt::format("it may use {} MiB", *options_.address_space_bytes >> 20)
                        : std::string("it has no limit of its own")));
  }
  if (exit->signal == SIGXCPU) {
    return absl::DeadlineExceededError("the kernel used more CPU time than a job may");
  }
  if (exit->signal == SIGSYS) {
    return absl::AbortedError("the kernel made a system call that the sandbox forbids");
  }
  return absl::AbortedError(fmt::format("the kernel crashed: {}{}", exit->ToString(), detail));
}

}  // namespace hone::measure

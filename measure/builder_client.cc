#include "measure/builder_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "base/helper_program.h"
#include "base/versions.h"
#include "measure/builder_exit.h"
#include "measure/builder_folders.h"
#include "measure/last_words.h"
#include "measure/process_load.h"

namespace hone::measure {
namespace {

constexpr size_t kLastWordsBytes = 2000;
constexpr int kErrorPipeBytes = 1 << 20;
constexpr int64_t kDyingNs = 2'000'000'000;
constexpr char kStopped[] = "the builder was ended because its job was given up";

}  // namespace

struct BuilderClient::Process {
  Process(Subprocess started, BuilderFolders own, int64_t max_reply_bytes)
      : folders(std::move(own)), child(std::move(started)), decoder(max_reply_bytes) {}

  BuilderFolders folders;  // outlive the child
  Subprocess child;
  FrameDecoder decoder;
  int jobs_done = 0;
};

BuilderClient::BuilderClient(BuilderOptions options, const MonotonicClock& clock)
    : options_(std::move(options)), clock_(clock) {
  HONE_CHECK(options_.processes > 0 && options_.jobs_per_process > 0);
  if (options_.cache == nullptr) return;
  const absl::StatusOr<std::string> program = options_.program.empty()
                                                  ? FindHelperProgram("hone-builder")
                                                  : absl::StatusOr<std::string>(options_.program);
  if (!program.ok()) return;
  builder_identity_ = FileIdentity(*program);
  if (!builder_identity_.empty()) cache_ = options_.cache.get();
}

BuilderClient::~BuilderClient() = default;

int64_t BuilderClient::num_started() const {
  const std::lock_guard lock(mutex_);
  return num_started_;
}

std::string BuilderClient::CacheKey(std::string_view what, std::string_view payload) const {
  return fmt::format("{} {} {} {} {}\n{}", what, kBuilderVersion, kTraceTextVersion, kWireVersion,
                     builder_identity_, payload);
}

absl::StatusOr<BuildReply> BuilderClient::Build(const BuildJob& job, Keep keep, KillSwitch* stop) {
  const std::string payload = EncodeBuildJob(job);
  if (cache_ == nullptr || !job.test_hook.empty()) return BuildNow(job, payload, stop);
  const std::string key = CacheKey("build", payload);
  if (const auto known = cache_->Get(CacheKind::kArtifact, key)) {
    absl::StatusOr<BuildReply> reply = DecodeBuildReply(*known);
    if (reply.ok() && reply->kernels.size() == job.kernels.size()) return reply;
  }
  absl::StatusOr<BuildReply> reply = BuildNow(job, payload, stop);
  if (keep == Keep::kNo || !reply.ok()) return reply;
  BuildReply kept = *reply;
  kept.link_ns = 0;
  for (BuiltKernel& kernel : kept.kernels) {
    // A failure may be one of memory or time: not the same the next time.
    if (!kernel.status.ok()) return reply;
    kernel.lower_ns = kernel.codegen_ns = 0;
  }
  cache_->Put(CacheKind::kArtifact, key, EncodeBuildReply(kept));
  return reply;
}

absl::StatusOr<BuildReply> BuilderClient::BuildNow(const BuildJob& job, std::string_view request,
                                                   KillSwitch* stop) {
  HONE_ASSIGN_OR_RETURN(const std::string payload,
                        Call(FrameType::kBuildRequest, request, FrameType::kBuildReply, stop));
  HONE_ASSIGN_OR_RETURN(BuildReply reply, DecodeBuildReply(payload));
  if (reply.kernels.size() != job.kernels.size()) {
    return absl::DataLossError(fmt::format("the builder answered {} kernels when asked for {}",
                                           reply.kernels.size(), job.kernels.size()));
  }
  return reply;
}

absl::StatusOr<std::string> BuilderClient::Link(const LinkJob& job) {
  const std::string request = EncodeLinkJob(job);
  const std::string key = cache_ == nullptr ? "" : CacheKey("link", request);
  if (cache_ != nullptr) {
    if (auto known = cache_->Get(CacheKind::kArtifact, key)) return *std::move(known);
  }
  HONE_ASSIGN_OR_RETURN(const std::string payload,
                        Call(FrameType::kLinkRequest, request, FrameType::kLinkReply));
  HONE_ASSIGN_OR_RETURN(LinkReply reply, DecodeLinkReply(payload));
  HONE_RETURN_IF_ERROR(reply.status);
  if (cache_ != nullptr) cache_->Put(CacheKind::kArtifact, key, reply.shared_object);
  return std::move(reply.shared_object);
}

absl::Status BuilderClient::LinkLibrary(const LibraryJob& job) {
  HONE_ASSIGN_OR_RETURN(
      const std::string payload,
      Call(FrameType::kLibraryRequest, EncodeLibraryJob(job), FrameType::kLibraryReply));
  return DecodeLibraryReply(payload);
}

absl::StatusOr<std::string> BuilderClient::Call(FrameType request, std::string_view payload,
                                                FrameType reply, KillSwitch* stop) {
  if (static_cast<int64_t>(payload.size()) > kMaxFramePayloadBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("a job for the builder of {} bytes; at most {} can be sent", payload.size(),
                    kMaxFramePayloadBytes));
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Process> process, TakeProcess());
  const pid_t pid = process->child.pid();
  if (stop != nullptr && !stop->Begin(pid)) {
    GiveBack(std::move(process));
    return absl::UnavailableError(kStopped);
  }
  bool wanted = true;
  LimitCpuTime(pid, static_cast<double>(options_.job_timeout_ns) * 1e-9);
  const WireDeadline deadline{&clock_, clock_.NowNs() + options_.job_timeout_ns};
  Status failure = WriteFrame(process->child.standard_input().get(), request, payload, deadline);
  // A builder that dies while it is written to may have said why: the pipe's end is read either
  // way.
  if (failure.ok() || failure.code() == StatusCode::kUnavailable) {
    Result<Frame> frame =
        ReadFrame(process->child.standard_output().get(), process->decoder, deadline);
    wanted = stop == nullptr || stop->End(pid);
    if (wanted && frame.ok() && frame->type == static_cast<uint16_t>(reply)) {
      ++process->jobs_done;
      std::string answer = std::move((*frame).payload);
      GiveBack(std::move(process));
      return answer;
    }
    failure =
        frame.ok() ? Status(StatusCode::kDataLoss, "an answer of another kind") : frame.status();
  } else {
    wanted = stop == nullptr || stop->End(pid);
  }
  const absl::Status explained =
      wanted ? Explain(*process, failure) : absl::UnavailableError(kStopped);
  process.reset();  // kills what is left of it, before the slot is given to another
  GiveBack(nullptr);
  return explained;
}

absl::StatusOr<std::unique_ptr<BuilderClient::Process>> BuilderClient::TakeProcess() {
  {
    std::unique_lock lock(mutex_);
    slot_free_.wait(lock, [this] { return busy_ < options_.processes; });
    ++busy_;
    if (!idle_.empty()) {
      std::unique_ptr<Process> process = std::move(idle_.back());
      idle_.pop_back();
      // What LLVM printed about an earlier job is not about this one.
      ReadLastWords(process->child.standard_error().get(), kLastWordsBytes);
      return process;
    }
    ++num_started_;
  }
  absl::StatusOr<std::unique_ptr<Process>> process = StartProcess();
  if (!process.ok()) GiveBack(nullptr);
  return process;
}

absl::StatusOr<std::unique_ptr<BuilderClient::Process>> BuilderClient::StartProcess() {
  SubprocessOptions spawn;
  std::string program = options_.program;
  if (program.empty()) {
    HONE_ASSIGN_OR_RETURN(program, FindHelperProgram("hone-builder"));
  }
  spawn.argv = {program};
  if (options_.test_hooks) spawn.argv.push_back("--test-hooks");
  if (options_.unsafe_no_sandbox) spawn.argv.push_back("--unsafe-no-sandbox");
  if (options_.named_files) spawn.argv.push_back("--named-files");
  BuilderFolders folders;
  std::call_once(swept_, [&] { SweepLeftFolders(folders); });
  for (const std::string& path : folders.paths()) spawn.argv.push_back("--folder=" + path);
  // What it compiles was written by others: it learns nothing of who started it. (A sanitizer's
  // options come that way.)
  if (!kSanitized) spawn.environment.emplace();
  spawn.limits.address_space_bytes = options_.address_space_bytes;
  spawn.on_unkillable = options_.on_unkillable;
  spawn.kill_patience_ns = options_.kill_patience_ns;
  HONE_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Spawn(spawn));
  const int error_fd = child.standard_error().get();
  fcntl(error_fd, F_SETPIPE_SZ, kErrorPipeBytes);  // smaller where not allowed
  fcntl(error_fd, F_SETFL, fcntl(error_fd, F_GETFL) | O_NONBLOCK);
  return std::make_unique<Process>(std::move(child), std::move(folders), options_.max_reply_bytes);
}

void BuilderClient::GiveBack(std::unique_ptr<Process> process) {
  // A retired process is ended outside the lock.
  if (process != nullptr && process->jobs_done >= options_.jobs_per_process) process.reset();
  {
    const std::lock_guard lock(mutex_);
    if (process != nullptr) idle_.push_back(std::move(process));
    --busy_;
  }
  slot_free_.notify_one();
}

absl::Status BuilderClient::Explain(Process& process, const Status& failure) {
  const std::string reason = failure.message();
  if (failure.code() == StatusCode::kDeadlineExceeded) {
    process.child.Kill(SIGKILL);
    return absl::DeadlineExceededError(
        fmt::format("the builder did not finish a job within {:.1f} s and was ended",
                    static_cast<double>(options_.job_timeout_ns) * 1e-9));
  }
  // A process that broke the protocol but lives on is ended: its stream cannot be found again.
  const bool dying = StreamEnded(process.child.standard_output().get());
  HONE_ASSIGN_OR_RETURN(const std::optional<ExitState> exit,
                        process.child.Wait(clock_, dying ? kDyingNs : 0));
  const std::string last_words =
      ReadLastWords(process.child.standard_error().get(), kLastWordsBytes);
  const std::string detail = last_words.empty() ? "" : fmt::format(": {}", last_words);
  if (!exit.has_value()) {
    return absl::DataLossError(fmt::format("the builder broke off: {}{}", reason, detail));
  }
  if (exit->signal == SIGXCPU) {
    return absl::DeadlineExceededError("the builder used more CPU time than a job may");
  }
  // The limit on its address space ends it otherwise: it was the machine that had no memory left.
  if (exit->signal == SIGKILL && options_.address_space_bytes.has_value()) {
    return absl::UnavailableError(
        fmt::format("the system killed the builder, which was within its memory limit: free "
                    "memory, or end other programs{}",
                    detail));
  }
  if (exit->code == kExitNoSandbox) return absl::FailedPreconditionError(last_words);
  const bool out_of_memory = exit->code == kExitOutOfMemory ||
                             last_words.find("out of memory") != std::string::npos ||
                             last_words.find("bad_alloc") != std::string::npos;
  if (out_of_memory) {
    return absl::ResourceExhaustedError(
        fmt::format("the builder ran out of memory ({})",
                    options_.address_space_bytes.has_value()
                        ? fmt::format("it may use {} MiB", *options_.address_space_bytes >> 20)
                        : std::string("it has no limit of its own")));
  }
  if (exit->success())
    return absl::DataLossError(fmt::format("the builder broke off: {}{}", reason, detail));
  return absl::AbortedError(fmt::format("the builder crashed: {}{}", exit->ToString(), detail));
}

}  // namespace hone::measure

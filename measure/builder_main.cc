// hone-builder: reads jobs on standard input, writes answers to standard output, until its input
// ends. Started by BuilderClient; LLVM lives here and may end the process without harm to anybody
// else.

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "base/core/clock.h"
#include "base/core/hash128.h"
#include "base/program_options.h"
#include "base/status.h"
#include "codegen/codegen.h"
#include "codegen/kind_code.h"
#include "codegen/link_folder.h"
#include "ir/hash.h"
#include "ir/target.h"
#include "ir/text.h"
#include "measure/build_job.h"
#include "measure/builder_exit.h"
#include "measure/sandbox.h"
#include "measure/wire.h"
#include "schedule/lower.h"
#include "schedule/trace.h"

namespace hone::measure {
namespace {

void EndWithoutMemory() {
  constexpr char kMessage[] = "hone-builder: out of memory\n";
  // Nothing can be done about a failing write here.
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) _exit(kExitOutOfMemory);
  _exit(kExitOutOfMemory);
}

// Lowers one kernel; fills in everything of `built` but its code.
absl::StatusOr<schedule::Lowered> Lower(const KernelJob& job, const ir::Target& target,
                                        BuiltKernel* built) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(job.workload));
  schedule::Trace trace;
  if (job.trace.empty()) {
    HONE_ASSIGN_OR_RETURN(trace, schedule::DefaultTrace(workload, target));
  } else {
    HONE_ASSIGN_OR_RETURN(trace, schedule::ParseTrace(job.trace));
  }
  built->trace = schedule::ToText(trace);
  HONE_ASSIGN_OR_RETURN(schedule::Lowered lowered,
                        schedule::LowerTrace(workload, trace, target, job.binding, job.prefix));
  built->artifact = lowered.artifact;
  built->artifact.workload_hash = ir::StructuralHash(workload).ToHex();
  built->artifact.trace_hash = HashBytes(built->trace).ToHex();
  const std::string binding = BindingText(job.binding);
  if (!binding.empty()) built->artifact.binding_hash = HashBytes(binding).ToHex();
  if (built->artifact.prologue_workload.empty() && !lowered.prologue.stages.empty()) {
    built->artifact.prologue_workload = ir::ToText(lowered.prologue);
  }
  return lowered;
}

class JobRunner {
 public:
  /// `bases`: where the linker may write.
  JobRunner(const MonotonicClock& clock, std::vector<std::string> bases)
      : clock_(clock), bases_(std::move(bases)) {}

  BuildReply Build(const BuildJob& job) {
    BuildReply reply;
    std::vector<std::string> objects;
    for (const KernelJob& kernel : job.kernels) {
      BuiltKernel& built = reply.kernels.emplace_back();
      built.status = BuildKernel(kernel, job, &built);
      if (!built.status.ok() || job.output != BuildOutput::kSharedObject) continue;
      objects.push_back(std::move(built.object));
      built.object.clear();
    }
    if (objects.empty()) return reply;
    const int64_t start_ns = clock_.NowNs();
    absl::StatusOr<std::string> linked = LinkAll(job.target, objects);
    reply.link_ns = clock_.NowNs() - start_ns;
    if (linked.ok()) {
      reply.shared_object = *std::move(linked);
      return reply;
    }
    absl::Status failure = Annotate(linked.status(), "linking");
    // But for objects that do not fit together it is the machine that lacks something, and says
    // nothing about the kernels.
    if (!absl::IsInvalidArgument(failure)) failure = absl::UnavailableError(failure.message());
    for (BuiltKernel& built : reply.kernels) {
      if (built.status.ok()) built.status = failure;
    }
    return reply;
  }

  LinkReply Link(const LinkJob& job) const {
    absl::StatusOr<std::string> linked = LinkAll(job.target, job.objects);
    if (!linked.ok()) return {linked.status(), ""};
    return {absl::OkStatus(), *std::move(linked)};
  }

 private:
  /// The code of the target's kind.
  static absl::StatusOr<const codegen::KindCode*> CodeFor(const std::string& text,
                                                          ir::Target* target) {
    std::string error;
    if (!ir::ParseTarget(text, target, &error)) return absl::InvalidArgumentError(error);
    const codegen::KindCode* const code = codegen::CodeOfKinds().Find(target->kind);
    if (code != nullptr) return code;
    return absl::InvalidArgumentError(fmt::format("this builder makes no code for {}", text));
  }

  absl::StatusOr<std::string> LinkAll(const std::string& target_text,
                                      const std::vector<std::string>& objects) const {
    ir::Target target;
    HONE_ASSIGN_OR_RETURN(const codegen::KindCode* code, CodeFor(target_text, &target));
    return code->Link(objects, bases_);
  }

  absl::Status BuildKernel(const KernelJob& kernel, const BuildJob& job, BuiltKernel* built) {
    ir::Target target;
    HONE_ASSIGN_OR_RETURN(const codegen::KindCode* code, CodeFor(job.target, &target));
    const int64_t start_ns = clock_.NowNs();
    HONE_ASSIGN_OR_RETURN(const schedule::Lowered lowered, Lower(kernel, target, built));
    for (size_t p = 0; p < lowered.nest.phases.size(); ++p) {
      built->artifact.phases[p].launch = code->LaunchOf(lowered.nest, lowered.nest.phases[p]);
    }
    const int64_t lowered_ns = clock_.NowNs();
    HONE_ASSIGN_OR_RETURN(built->object, job.output == BuildOutput::kAssembly
                                             ? codegen::Assembly({&lowered.nest}, target)
                                             : code->Compile({&lowered.nest}, target));
    built->lower_ns = lowered_ns - start_ns;
    built->codegen_ns = clock_.NowNs() - lowered_ns;
    return absl::OkStatus();
  }

  const MonotonicClock& clock_;
  const std::vector<std::string> bases_;
};

// Ends as the kernel would end it, for tests.
void EndIfAsked(const std::string& hook, std::string_view step) {
  if (hook != fmt::format("kill-{}", step)) return;
  fmt::print(stderr, "killed at builder.{}\n", step);
  std::fflush(stderr);
  std::raise(SIGKILL);
}

// What would have its parent killed, at once or by the next byte in a pipe.
bool CanSignalParent() {
  int on = 1;
  const rlimit none{0, 0};
  return fcntl(STDIN_FILENO, F_SETOWN, getppid()) == 0 ||
         fcntl(STDIN_FILENO, F_SETSIG, SIGKILL) == 0 ||
         fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_ASYNC) == 0 ||
         ioctl(STDIN_FILENO, FIOASYNC, &on) == 0 || kill(getppid(), SIGKILL) == 0 ||
         prlimit(getppid(), RLIMIT_CPU, &none, nullptr) == 0;
}

// Misbehaves as LLVM might, for tests.
void Misbehave(const std::string& hook) {
  if (hook == "crash") std::abort();
  if (hook == "hang") {
    for (;;) poll(nullptr, 0, -1);
  }
  if (hook == "environment" && ::environ != nullptr && *::environ != nullptr) std::abort();
  if (hook == "read" && ::open("/proc/self/exe", O_RDONLY) >= 0) std::abort();
  if (hook == "signal" && CanSignalParent()) std::abort();
  if (hook == "memory") {
    std::vector<std::string> blocks;
    for (;;) blocks.emplace_back(size_t{64} << 20, 'x');
  }
}

absl::Status Answer(const Frame& frame, JobRunner& runner, int output, bool test_hooks) {
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::kBuildRequest: {
      HONE_ASSIGN_OR_RETURN(const BuildJob job, DecodeBuildJob(frame.payload));
      const std::string hook = test_hooks ? job.test_hook : "";
      Misbehave(hook);
      EndIfAsked(hook, "compiling");
      const std::string reply = EncodeBuildReply(runner.Build(job));
      EndIfAsked(hook, "compiled");
      return ToAbsl(WriteFrame(output, FrameType::kBuildReply, reply));
    }
    case FrameType::kLinkRequest: {
      HONE_ASSIGN_OR_RETURN(const LinkJob job, DecodeLinkJob(frame.payload));
      return ToAbsl(WriteFrame(output, FrameType::kLinkReply, EncodeLinkReply(runner.Link(job))));
    }
    case FrameType::kLibraryRequest: {
      HONE_ASSIGN_OR_RETURN(const LibraryJob job, DecodeLibraryJob(frame.payload));
      const absl::Status linked =
          codegen::LinkLibrary({job.objects, job.archives, job.exported, job.soname, job.output});
      return ToAbsl(WriteFrame(output, FrameType::kLibraryReply, EncodeLibraryReply(linked)));
    }
    default: return absl::DataLossError(fmt::format("a frame of type {}", frame.type));
  }
}

/// Ends this process when nobody is left to write to it, also in the middle of a job that takes for
/// ever: whoever started it may have been killed.
void EndWithParent() {
  std::thread([] {
    pollfd input{.fd = STDIN_FILENO, .events = 0, .revents = 0};
    while (poll(&input, 1, -1) < 0 || (input.revents & (POLLHUP | POLLERR)) == 0) {
    }
    // What is half done goes nowhere; destructors would race with the job.
    _exit(0);
  }).detach();
}

struct Options {
  bool test_hooks = false, unsafe_no_sandbox = false;
  bool named_files = false;          ///< its jobs name files that it reads and writes
  std::vector<std::string> folders;  ///< its own, for what the linker writes
};

/// Gives up what no job needs, before any thread is started.
Status LockUp(const Options& options) {
  if (!options.named_files) {
    const Status hidden = HideFiles(options.folders);
    // Where the kernel cannot, its worker says so on the device's row.
    if (!hidden.ok() && hidden.code() != StatusCode::kUnimplemented && !options.unsafe_no_sandbox) {
      return hidden;
    }
  }
  return EnterSandbox(SandboxKind::kBuilder, {.may_kill_itself = options.test_hooks});
}

int Main(const Options& options) {
  std::set_new_handler(EndWithoutMemory);
  // What libraries print must not land between the frames.
  const int output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  codegen::RemoveStaleLinkFolders(codegen::LinkBases(), SystemWallClock());
  const Status sandboxed = LockUp(options);
  if (!sandboxed.ok() && !options.unsafe_no_sandbox) {
    fmt::print(stderr, "hone-builder: {}\n", sandboxed.message());
    return kExitNoSandbox;
  }
  EndWithParent();
  SystemMonotonicClock clock;
  JobRunner runner(clock, options.folders.empty() ? codegen::LinkBases() : options.folders);
  FrameDecoder decoder;
  for (;;) {
    Result<Frame> frame = ReadFrame(STDIN_FILENO, decoder);
    if (!frame.ok()) {
      if (frame.status().code() == StatusCode::kUnavailable) return 0;
      fmt::print(stderr, "hone-builder: {}\n", frame.status().message());
      return 1;
    }
    const absl::Status status = Answer(*frame, runner, output, options.test_hooks);
    if (!status.ok()) {
      fmt::print(stderr, "hone-builder: {}\n", StatusMessage(status));
      return 1;
    }
  }
}

}  // namespace
}  // namespace hone::measure

int main(int argc, char** argv) {
  using hone::OptionSpec;
  constexpr std::array kOptions = {
      OptionSpec{.name = "folder",
                 .kind = hone::ValueKind::kText,
                 .argument = "FOLDER",
                 .help = "where it may write",
                 .repeated = true},
      OptionSpec{.name = "named-files", .help = "files have names, for the linker"},
      OptionSpec{.name = "unsafe-no-sandbox", .help = "work where it cannot be locked up"},
      OptionSpec{.name = "test-hooks", .help = "take orders of tests"}};
  const auto words = hone::ReadOptions("hone-builder is started by Hone", kOptions, argc, argv);
  if (!words) return 2;
  hone::measure::Options options;
  options.folders = words->List("folder");
  options.named_files = words->Flag("named-files");
  options.unsafe_no_sandbox = words->Flag("unsafe-no-sandbox");
  options.test_hooks = words->Flag("test-hooks");
  return hone::measure::Main(options);
}

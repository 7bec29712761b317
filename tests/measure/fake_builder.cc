// Stands in for hone-builder in builder_client_test: the Trace text of a job's first kernel says
// how to behave. It shares the codec with the real one, so that only its conduct is fake.

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "measure/build_job.h"
#include "measure/builder_exit.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

[[noreturn]] void UseAllMemory() {
  std::vector<std::string> blocks;
  for (;;) {
    try {
      blocks.emplace_back(size_t{64} << 20, 'x');
    } catch (const std::bad_alloc&) {
      _exit(kExitOutOfMemory);
    }
  }
}

void WriteRaw(const std::string& bytes) {
  if (write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0) _exit(3);
}

// An answer that names the process, so that the test sees which one served it.
std::string Answer(const BuildJob& job) {
  BuildReply reply;
  reply.shared_object = "ELF of " + job.target;
  for (const KernelJob& kernel : job.kernels) {
    BuiltKernel built;
    built.artifact.target = job.target;
    built.artifact.workload_hash = std::to_string(getpid());
    built.trace = kernel.trace;
    if (kernel.trace == "refuse") built.status = absl::InvalidArgumentError("refused by request");
    reply.kernels.push_back(std::move(built));
  }
  return EncodeFrame(FrameType::kBuildReply, EncodeBuildReply(reply));
}

void Serve(const BuildJob& job) {
  const std::string& conduct = job.kernels.front().trace;
  if (conduct == "crash") {
    if (write(STDERR_FILENO, "last words\n", 11) < 0) _exit(3);
    std::abort();
  }
  if (conduct == "hang") {
    for (;;) pause();
  }
  if (conduct == "blow up") UseAllMemory();
  if (conduct == "leave") _exit(0);
  const std::string answer = Answer(job);
  if (conduct == "noise") return WriteRaw("this is no frame at all, whatever else it may be");
  if (conduct == "truncate") {
    WriteRaw(answer.substr(0, answer.size() / 2));
    _exit(0);
  }
  if (conduct == "huge") {
    std::string header = answer.substr(0, kFrameHeaderBytes);
    header[11] = '\x7f';  // claims 2 GiB
    return WriteRaw(header);
  }
  if (conduct == "flip") {
    std::string damaged = answer;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    return WriteRaw(damaged);
  }
  WriteRaw(answer);
}

int Main() {
  FrameDecoder decoder;
  for (;;) {
    Result<Frame> frame = ReadFrame(STDIN_FILENO, decoder);
    if (!frame.ok()) return 0;
    absl::StatusOr<BuildJob> job = DecodeBuildJob(frame->payload);
    if (!job.ok()) return 4;
    Serve(*job);
  }
}

}  // namespace
}  // namespace hone::measure

int main() { return hone::measure::Main(); }

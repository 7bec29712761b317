// Stands in for hone-builder on a machine that is not to be trusted: honest about everything but
// the code of candidates, of which the first of each kind is replaced by
// tests/roles/hostile_kernel.cc. What it did stands in the file `hostile.log` of the folder above
// its program's: KIND and the hashes of Workload and Trace, a line each. `key-path` there names the
// file that the kind "key" tries to read.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/core/hash128.h"
#include "base/file.h"
#include "measure/build_job.h"
#include "measure/builder_client.h"
#include "measure/wire.h"
#include "tests/test_paths.h"

namespace hone::measure {
namespace {

constexpr const char* kKinds[] = {
    "socket",      "exec",         "write",       "key",         "fork",  "memory",
    "kill-parent", "kill-self",    "forge-both",  "forge-check", "close", "sleep",
    "exit",        "signal-owner", "signal-self", "seal",        "files"};
constexpr char kPlaceholder[] = "@KEY-PATH@";

std::string HostileCode(size_t kind, const std::string& folder) {
  std::string code =
      ReadFile(hone::testing::BuildDir() + "/tests/hostile/" + kKinds[kind] + ".so").value();
  const size_t at = code.find(kPlaceholder);
  if (at == std::string::npos) return code;
  const std::string path = ReadFile(folder + "/key-path").value_or("");
  return code.replace(at, path.size() + 1, path.c_str(), path.size() + 1);
}

int Main() {
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path();
  const SystemMonotonicClock clock;
  BuilderClient honest({.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder"},
                       clock);
  std::ofstream log(folder + "/hostile.log", std::ios::app);
  size_t kind = 0;
  FrameDecoder decoder;
  for (;;) {
    const Result<Frame> frame = ReadFrame(STDIN_FILENO, decoder);
    if (!frame.ok()) return 0;
    const absl::StatusOr<BuildJob> job = DecodeBuildJob(frame->payload);
    if (!job.ok()) return 4;
    absl::StatusOr<BuildReply> reply = honest.Build(*job);
    if (!reply.ok()) return 5;
    const bool candidate = job->kernels.size() == 1 && job->kernels[0].prefix == "candidate" &&
                           !job->kernels[0].trace.empty() && !reply->shared_object.empty();
    if (candidate && kind < std::size(kKinds)) {
      log << kKinds[kind] << " " << reply->kernels[0].artifact.workload_hash << " "
          << HashBytes(job->kernels[0].trace).ToHex() << std::endl;
      reply->shared_object = HostileCode(kind++, folder);
    }
    if (!WriteFrame(STDOUT_FILENO, FrameType::kBuildReply, EncodeBuildReply(*reply)).ok()) return 6;
  }
}

}  // namespace
}  // namespace hone::measure

int main() { return hone::measure::Main(); }

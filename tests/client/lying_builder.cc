// Stands between a BuilderClient and the real hone-builder and changes every "max(" of a Workload
// into "min(": what comes back is a working kernel that computes something else.

#include <unistd.h>

#include <string>

#include "base/core/clock.h"
#include "measure/build_job.h"
#include "measure/builder_client.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

void Lie(std::string& text) {
  for (size_t at = text.find("max("); at != std::string::npos; at = text.find("max(", at)) {
    text.replace(at, 4, "min(");
  }
}

int Serve(const std::string& builder) {
  const SystemMonotonicClock clock;
  BuilderOptions options;
  options.program = builder;
  options.address_space_bytes.reset();
  BuilderClient real(options, clock);
  FrameDecoder decoder;
  while (true) {
    const auto frame = ReadFrame(STDIN_FILENO, decoder);
    if (!frame.ok()) return 0;
    std::string payload;
    FrameType type = FrameType::kBuildReply;
    if (frame->type == static_cast<uint16_t>(FrameType::kBuildRequest)) {
      auto job = DecodeBuildJob(frame->payload);
      if (!job.ok()) return 1;
      for (KernelJob& kernel : job->kernels) Lie(kernel.workload);
      const auto reply = real.Build(*job);
      if (!reply.ok()) return 1;
      payload = EncodeBuildReply(*reply);
    } else {
      const auto job = DecodeLinkJob(frame->payload);
      if (!job.ok()) return 1;
      LinkReply reply;
      const auto linked = real.Link(*job);
      if (linked.ok()) reply.shared_object = *linked;
      reply.status = linked.status();
      payload = EncodeLinkReply(reply);
      type = FrameType::kLinkReply;
    }
    if (!WriteFrame(STDOUT_FILENO, type, payload).ok()) return 1;
  }
}

}  // namespace
}  // namespace hone::measure

int main() { return hone::measure::Serve(HONE_BUILDER); }

// Stands between a BuilderClient and the real hone-builder and changes every "max(" of a Workload
// into "min(": what comes back is a working kernel that computes something else. Where a file
// hone-builder.refuses lies beside it, it changes nothing and refuses Traces with Winograd instead.

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

constexpr char kRefused[] = "winograd";

void Refuse(const BuildJob& job, BuildReply& reply) {
  for (size_t i = 0; i < job.kernels.size(); ++i) {
    if (job.kernels[i].trace.find(kRefused) == std::string::npos) continue;
    reply.kernels[i].status = absl::InvalidArgumentError("refused by lying_builder.cc");
  }
}

int Serve(const std::string& builder, bool refuses) {
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
      for (KernelJob& kernel : job->kernels) {
        if (!refuses) Lie(kernel.workload);
      }
      auto reply = real.Build(*job);
      if (!reply.ok()) return 1;
      if (refuses) Refuse(*job, *reply);
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

int main(int, char** argv) {
  const bool refuses = ::access((std::string(argv[0]) + ".refuses").c_str(), F_OK) == 0;
  return hone::measure::Serve(HONE_BUILDER, refuses);
}

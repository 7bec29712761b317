#include "measure/build_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"

namespace hone::measure {
namespace {

BuildReply ExampleReply() {
  BuildReply reply;
  reply.shared_object = std::string(
      "\x7f"
      "ELF\0\0",
      6);
  reply.link_ns = 12;
  BuiltKernel good;
  good.artifact.target = "cpu:avx2,threads=2";
  good.artifact.builder = 3;
  good.artifact.workload_hash = "00ff";
  good.artifact.trace_hash = "11";
  good.artifact.binding_hash = "22";
  good.artifact.phases = {{"k0_p0", 56, 4096, 2}, {"k0_p1", 1, 0, 1}};
  good.artifact.steps = {{0, 2, 35}};
  good.artifact.inputs = {{ir::DType::kU8, {1, 3, 8, 8}, 192}};
  good.artifact.constants = {{ir::DType::kF32, {4}, 16}};
  good.artifact.prologue = {{ir::DType::kF32, {2, 8}, 64}};
  good.artifact.outputs = {{ir::DType::kF32, {}, 4}};
  good.artifact.workspace = {{ir::DType::kBF16, {7}, 14}};
  good.artifact.prologue_workload = "workload text";
  good.artifact.prologue_inputs = {0};
  good.artifact.prologue_outputs = {0};
  good.artifact.may_alias = true;
  good.trace = "vectorize(s0.i1)";
  good.object = "object";
  good.lower_ns = 5;
  good.codegen_ns = 7;
  BuiltKernel bad;
  bad.status = absl::InvalidArgumentError("split: no axis s9.i0");
  reply.kernels = {good, bad};
  return reply;
}

BuildJob ExampleJob() {
  BuildJob job;
  job.target = "cpu:avx512,threads=1";
  job.output = BuildOutput::kObjects;
  job.kernels = {{"text", "trace", {{{{64, 1}, 3, 32}, {}}}, "k0"}, {"other", "", {}, "k1"}};
  return job;
}

TEST(BuildJobTest, JobsComeBack) {
  const std::string payload = EncodeBuildJob(ExampleJob());
  const absl::StatusOr<BuildJob> job = DecodeBuildJob(payload);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->target, "cpu:avx512,threads=1");
  EXPECT_EQ(job->output, BuildOutput::kObjects);
  ASSERT_EQ(job->kernels.size(), 2u);
  EXPECT_EQ(job->kernels[0].trace, "trace");
  ASSERT_EQ(job->kernels[0].binding.buffers.size(), 2u);
  EXPECT_THAT(job->kernels[0].binding.buffers[0].strides, testing::ElementsAre(64, 1));
  EXPECT_EQ(job->kernels[0].binding.buffers[0].offset, 3);
  EXPECT_EQ(job->kernels[0].binding.buffers[0].alignment, 32);
  EXPECT_EQ(job->kernels[1].prefix, "k1");
  EXPECT_EQ(EncodeBuildJob(*job), payload);
}

TEST(BuildJobTest, RepliesComeBack) {
  const std::string payload = EncodeBuildReply(ExampleReply());
  const absl::StatusOr<BuildReply> reply = DecodeBuildReply(payload);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->kernels.size(), 2u);
  const ir::Artifact& artifact = reply->kernels[0].artifact;
  EXPECT_EQ(artifact.phases[0].symbol, "k0_p0");
  EXPECT_EQ(artifact.phases[0].scratch_bytes, 4096);
  EXPECT_EQ(artifact.steps[0].repeats, 35);
  EXPECT_THAT(artifact.inputs[0].shape, testing::ElementsAre(1, 3, 8, 8));
  EXPECT_EQ(artifact.workspace[0].dtype, ir::DType::kBF16);
  EXPECT_TRUE(artifact.may_alias);
  EXPECT_EQ(reply->kernels[1].status, ExampleReply().kernels[1].status);
  EXPECT_EQ(EncodeBuildReply(*reply), payload);
}

TEST(BuildJobTest, LinksComeBack) {
  const absl::StatusOr<LinkJob> job =
      DecodeLinkJob(EncodeLinkJob({"cpu:avx2,threads=1", {"a", "", "ccc"}}));
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(job->objects, testing::ElementsAre("a", "", "ccc"));
  const absl::StatusOr<LinkReply> reply =
      DecodeLinkReply(EncodeLinkReply({absl::InternalError("no"), "so"}));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status, absl::InternalError("no"));
  EXPECT_EQ(reply->shared_object, "so");
}

TEST(BuildJobTest, EveryTruncationIsRefused) {
  const std::string job = EncodeBuildJob(ExampleJob());
  for (size_t size = 0; size < job.size(); ++size) {
    EXPECT_EQ(DecodeBuildJob(job.substr(0, size)).status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
  const std::string reply = EncodeBuildReply(ExampleReply());
  for (size_t size = 0; size < reply.size(); ++size) {
    EXPECT_EQ(DecodeBuildReply(reply.substr(0, size)).status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
}

TEST(BuildJobTest, DamagedPayloadsNeverCrash) {
  const uint64_t seed = 7;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Random random(seed);
  const std::string good = EncodeBuildReply(ExampleReply());
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    const absl::StatusOr<BuildReply> reply = DecodeBuildReply(bytes);
    if (!reply.ok()) {
      ++refused;
      continue;
    }
    for (const BuiltKernel& kernel : reply->kernels) {
      for (const ir::ArtifactBuffer& buffer : kernel.artifact.inputs) {
        EXPECT_LT(static_cast<int>(buffer.dtype), ir::kNumDTypes);
      }
    }
  }
  EXPECT_GT(refused, 500);  // lengths and counts: about a fifth of the bytes
}

}  // namespace
}  // namespace hone::measure

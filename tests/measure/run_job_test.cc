#include "measure/run_job.h"

#include <cmath>

#include "gtest/gtest.h"

#include "base/core/random.h"

namespace hone::measure {
namespace {

ir::ZeroPattern ExampleZeros() {
  return {.columns = 32,
          .terms = 64,
          .column_stride = 1,
          .term_stride = 32,
          .groups = {4, 4, 5, 5, 6, 6, 6, 7},
          .values = 7};
}

PrepareJob ExampleJob() {
  PrepareJob job;
  job.slot = 3;
  job.data_key = "hash/7";
  job.seed = 7;
  job.inputs = {{ir::DType::kI64, 80, 0, 10}};
  job.constants = {{ir::DType::kF32, 16, -1, 1}, {ir::DType::kF32, 8192, -1, 1, ExampleZeros()}};
  job.kernel.artifact.target = "cpu:avx2,threads=2";
  job.kernel.artifact.phases = {{"k_p0", 56, 4096, 2}, {"k_p1", 1, 0, 1}};
  job.kernel.artifact.steps = {{0, 2, 35}};
  job.kernel.artifact.outputs = {{ir::DType::kF32, {5}, 20}};
  job.kernel.shared_object = "code";
  job.prologue.artifact.phases = {{"p_p0", 1, 0, 1}};
  job.prologue.artifact.steps = {{0, 1, 1}};
  job.prologue.shared_object = "more code";
  job.prologue_arguments = {0};
  job.prologue_key = "key";
  job.threads = 2;
  job.part = 0.125;
  job.test_hook = "crash";
  return job;
}

TEST(RunJobTest, JobsAndAnswersComeBack) {
  const std::string job = EncodePrepareJob(ExampleJob());
  const Result<PrepareJob> back = DecodePrepareJob(job);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(EncodePrepareJob(*back), job);
  EXPECT_EQ(back->slot, 3);
  EXPECT_EQ(back->inputs[0].high, 10);
  EXPECT_EQ(back->constants[0].zeros.columns, 0);
  EXPECT_EQ(back->constants[1].zeros.term_stride, 32);
  EXPECT_EQ(back->constants[1].zeros.groups, ExampleZeros().groups);
  EXPECT_EQ(back->prologue_key, "key");
  EXPECT_EQ(back->threads, 2);
  EXPECT_EQ(back->part, 0.125);

  const TimeJob time{5, {.incumbent_ns = 9, .min_samples = 4, .cold_constants = false}};
  const Result<TimeJob> time_back = DecodeTimeJob(EncodeTimeJob(time));
  ASSERT_TRUE(time_back.ok());
  EXPECT_EQ(EncodeTimeJob(*time_back), EncodeTimeJob(time));
  EXPECT_EQ(time_back->policy.incumbent_ns, 9);
  EXPECT_FALSE(time_back->policy.cold_constants);

  const Result<TimeReply> reply = DecodeTimeReply(EncodeTimeReply({Status(), {5, 6, 7}, true, 11}));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->samples_ns, (std::vector<int64_t>{5, 6, 7}));
  EXPECT_TRUE(reply->hopeless);
  EXPECT_EQ(reply->sentinel_ns, 11);
  EXPECT_EQ(reply->part, 1);
  EXPECT_EQ(DecodeTimeReply(EncodeTimeReply({.samples_ns = {5}, .part = 0.25}))->part, 0.25);

  const Status lost(StatusCode::kResourceExhausted, "no memory");
  EXPECT_EQ(DecodePrepareReply(EncodePrepareReply({lost}))->status, lost);
  EXPECT_EQ(DecodePrepareReply(EncodePrepareReply({Status(), 31, 0.5}))->run_ns, 31);
}

TEST(RunJobTest, DangerousValuesAreRefused) {
  PrepareJob job = ExampleJob();
  job.slot = kMaxSlots;
  EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok());
  job = ExampleJob();
  job.kernel.artifact.steps = {{1, 2, 1}};  // phase 2 of 2
  EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok());
  job = ExampleJob();
  job.kernel.artifact.outputs[0].bytes = -1;
  EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok());
  job = ExampleJob();
  job.prologue_arguments = {2};
  EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok());
  for (const auto& spoil : std::vector<void (*)(ir::ZeroPattern*)>{
           [](ir::ZeroPattern* z) { z->terms = 65; }, [](ir::ZeroPattern* z) { z->columns = -1; },
           [](ir::ZeroPattern* z) { z->term_stride = 33; },
           [](ir::ZeroPattern* z) { z->column_stride = int64_t{1} << 62; },
           [](ir::ZeroPattern* z) { z->width = 0; }, [](ir::ZeroPattern* z) { z->groups[3] = -1; },
           [](ir::ZeroPattern* z) { z->values = 33; }}) {
    job = ExampleJob();
    spoil(&job.constants[1].zeros);
    EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok());
  }
  for (const double part : {0.0, -0.5, 1.01, std::nan("")}) {
    job = ExampleJob();
    job.part = part;
    EXPECT_FALSE(DecodePrepareJob(EncodePrepareJob(job)).ok()) << part;
    EXPECT_FALSE(DecodeTimeReply(EncodeTimeReply({.part = part})).ok()) << part;
  }
}

TEST(RunJobTest, DamagedJobsAreAnErrorOrAJob) {
  const uint64_t seed = 4;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Random random(seed);
  const std::string good = EncodePrepareJob(ExampleJob());
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    if (i % 3 == 0) bad.resize(random.Below(bad.size()));
    if (!DecodePrepareJob(bad).ok()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

TEST(RunJobTest, OutputsEndAtTheEndOfTheirPages) {
  const std::vector<SharedBuffer> places = PlaceOutputs(
      {{ir::DType::kF32, {1025}, 4100}, {ir::DType::kF32, {}, 4}, {ir::DType::kF32, {0}, 0}});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].region_bytes, 8192);
  EXPECT_EQ(places[0].data_offset, 8192 - 4160);  // 64-aligned
  EXPECT_EQ(places[0].data_bytes, 4100);
  EXPECT_EQ(places[1].region_offset, 8192);
  EXPECT_EQ(places[1].data_offset, 8192 + 4096 - 64);
  EXPECT_EQ(places[2].region_bytes, 4096);
  EXPECT_EQ(SharedBytes(places), 8192 + 4096 + 4096);
}

}  // namespace
}  // namespace hone::measure

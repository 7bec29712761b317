#include "measure/built_artifact.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/hash128.h"
#include "base/core/random.h"
#include "base/status.h"
#include "ir/text.h"
#include "measure/candidate_runner.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

// Candidates that one machine builds and another runs.
namespace hone::measure {
namespace {

using ::testing::HasSubstr;

constexpr char kTarget[] = "cpu:avx2,threads=1";

class BuiltArtifactTest : public ::testing::Test {
 protected:
  BuiltArtifactTest() : workload_(ir::ParseWorkload(kGemm).value()) {
    BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    client_ = std::make_unique<BuilderClient>(options, clock_);
  }

  BuiltArtifact Built(const std::string& trace) {
    CandidateBuilder builder(*client_, clock_, BuildFor::kAny);
    const BuiltCandidate built = builder.Build(workload_, kTarget, trace, 7, "");
    EXPECT_EQ(built.error.outcome, Outcome::kOk) << built.error.message;
    return ArtifactOf(built);
  }
  BuiltCandidate Received(const BuiltArtifact& artifact, const std::string& trace) {
    return CandidateFrom(workload_, kTarget, trace, 7, EncodeBuiltArtifact(artifact));
  }
  void ExpectRefused(const BuiltArtifact& artifact, const std::string& why) {
    const BuiltCandidate received = Received(artifact, kPacked);
    EXPECT_EQ(received.error.outcome, Outcome::kWorkerLost) << "no fault of the candidate";
    EXPECT_THAT(received.error.message, HasSubstr(why));
  }

  const SystemMonotonicClock clock_;
  const ir::Workload workload_;
  std::unique_ptr<BuilderClient> client_;
};

TEST_F(BuiltArtifactTest, WhatArrivesRunsAsWhereItWasBuilt) {
  const std::string bytes = EncodeBuiltArtifact(Built(kPacked));
  EXPECT_EQ(EncodeBuiltArtifact(DecodeBuiltArtifact(bytes).value()), bytes) << "one form";
  const std::string standard = EncodeBuiltArtifact(Built(""));
  RunnerOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-runner";
  CandidateRunner runner(
      options, {},
      [&](const MeasureInput& input) {
        return CandidateFrom(*input.workload, input.target, "", input.seed, standard);
      },
      clock_);
  MeasureInput input{.workload = std::make_shared<const ir::Workload>(workload_),
                     .target = kTarget,
                     .trace = kPacked,
                     .seed = 7};
  const AttemptError prepared =
      runner.Prepare(input, CandidateFrom(workload_, kTarget, kPacked, 7, bytes), 0, "");
  ASSERT_EQ(prepared.outcome, Outcome::kOk) << prepared.message;
  const CandidateRunner::Timed timed = runner.Time(0, {});
  EXPECT_EQ(timed.error.outcome, Outcome::kOk) << timed.error.message;
  EXPECT_FALSE(timed.reply.samples_ns.empty());
}

TEST_F(BuiltArtifactTest, OneForAnotherJobIsRefused) {
  const BuiltArtifact good = Built(kPacked);
  EXPECT_EQ(Received(good, kPacked).error.outcome, Outcome::kOk);
  BuiltArtifact bad = good;
  bad.kernel.artifact.target = "cpu:avx512,threads=1";
  ExpectRefused(bad, "target 'cpu:avx512,threads=1', not 'cpu:avx2,threads=1'");
  bad = good;
  bad.kernel.artifact.workload_hash = std::string(32, '0');
  ExpectRefused(bad, "workload '0000");
  bad = good;
  ++bad.kernel.artifact.builder;
  ExpectRefused(bad, "builder");
  bad = good;
  bad.kernel.artifact.trace_hash = HashBytes("another").ToHex();
  ExpectRefused(bad, "trace");
  ExpectRefused(Built(""), "another trace");
  bad = good;
  bad.kernel.artifact.outputs[0].bytes = int64_t{1} << 39;
  ExpectRefused(bad, "output buffers");
  bad = good;
  bad.kernel.artifact.outputs.clear();
  ExpectRefused(bad, "output buffers");
  bad = good;
  bad.kernel.artifact.inputs.push_back(bad.kernel.artifact.inputs[0]);
  ExpectRefused(bad, "input buffers");
}

TEST_F(BuiltArtifactTest, ProloguesAreSharedByTheirBytes) {
  const BuiltArtifact good = Built(kPacked);
  const std::string key = Received(good, kPacked).job.prologue_key;
  EXPECT_FALSE(key.empty());
  EXPECT_EQ(Received(good, kPacked).job.prologue_key, key);
  BuiltArtifact other = good;
  other.prologue.shared_object += "x";
  EXPECT_NE(Received(other, kPacked).job.prologue_key, key);
}

TEST_F(BuiltArtifactTest, DamagedBytesAreAnErrorOrAnArtifact) {
  const uint64_t seed = 4;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Random random(seed);
  BuiltArtifact small = Built(kPacked);
  small.kernel.shared_object = small.prologue.shared_object = "elf";
  const std::string good = EncodeBuiltArtifact(small);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    if (i % 3 == 0) bad.resize(random.Below(bad.size()));
    refused += DecodeBuiltArtifact(bad).ok() ? 0 : 1;
    CandidateFrom(workload_, kTarget, kPacked, 7, bad);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace hone::measure

#include "measure/runner_client.h"

#include <vector>

#include "gtest/gtest.h"

#include "tests/test_paths.h"

namespace hone::measure {
namespace {

class RunnerClientTest : public ::testing::Test {
 protected:
  RunnerClientTest() {
    options_.program = hone::testing::BuildDir() + "/libexec/hone/hone-runner";
    options_.on_unkillable = [this](pid_t pid) { told_.push_back(pid); };
  }

  const SystemMonotonicClock clock_;
  RunnerOptions options_;
  std::vector<pid_t> told_;
};

TEST_F(RunnerClientTest, WhoWantsToKnowHearsOfARunnerThatIsNotEndedInTime) {
  options_.kill_patience_ns = 0;
  RunnerClient client(options_, clock_);
  ASSERT_TRUE(client.Ping().ok());
  EXPECT_TRUE(told_.empty());
  client.EndProcess();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_GT(told_.front(), 0);
  // The next job gets another one.
  ASSERT_TRUE(client.Ping().ok());
  EXPECT_EQ(client.num_started(), 2);
}

TEST_F(RunnerClientTest, AnOrdinaryEndTellsNobody) {
  {
    RunnerClient client(options_, clock_);
    ASSERT_TRUE(client.Ping().ok());
    client.EndProcess();
    ASSERT_TRUE(client.Ping().ok());
  }
  EXPECT_TRUE(told_.empty());
}

TEST_F(RunnerClientTest, AKernelForAnotherKindOfDeviceIsRefused) {
  RunnerClient client(options_, clock_);
  PrepareJob job{.data_key = "none"};
  job.kernel.artifact.target = "cuda:sm_90a";
  const auto refused = client.Prepare(job);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "a kernel for cuda:sm_90a does not run on cpu:0");
  EXPECT_EQ(client.num_started(), 0);
}

TEST_F(RunnerClientTest, AKindThatNothingRunsOnIsNamed) {
  options_.device = "quipu:0";
  const absl::Status refused = RunnerClient(options_, clock_).Ping();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), "this program runs no candidates on a quipu");
}

class RunnerProcessesTest : public RunnerClientTest {
 protected:
  /// Code that no runner loads: that too is an answer, and a job done. What it runs in by now.
  int64_t StartedAfter(RunnerClient& client, int slot, int64_t output_bytes = 0) {
    PrepareJob job{.slot = slot, .data_key = "none"};
    job.kernel.artifact.target = "cpu:avx2,threads=1";
    if (output_bytes > 0) job.kernel.artifact.outputs.push_back({.bytes = output_bytes});
    const auto prepared = client.Prepare(job);
    EXPECT_EQ(prepared.status().code(), absl::StatusCode::kInvalidArgument) << prepared.status();
    return client.num_started();
  }
};

TEST_F(RunnerProcessesTest, WhereEachCandidateHasAProcessSoHasTheDefault) {
  options_.jobs_per_process = 1;
  RunnerClient client(options_, clock_);
  EXPECT_EQ(StartedAfter(client, kReferenceSlot), 1);
  EXPECT_EQ(StartedAfter(client, 0), 2);
  EXPECT_EQ(StartedAfter(client, 0), 3);
  // Another workload's: whoever ran before it shall not have touched it.
  EXPECT_EQ(StartedAfter(client, kReferenceSlot), 4);
  // Those that are compared share one.
  EXPECT_EQ(StartedAfter(client, 0), 5);
  EXPECT_EQ(StartedAfter(client, 1), 5);
}

TEST_F(RunnerProcessesTest, LargerOutputsGoToAnotherProcess) {
  RunnerClient client(options_, clock_);
  ASSERT_TRUE(client.Ping().ok());
  EXPECT_EQ(StartedAfter(client, 0, int64_t{1} << 19), 1);
  EXPECT_EQ(StartedAfter(client, 0, int64_t{5} << 20), 2) << "their file cannot grow";
  EXPECT_EQ(StartedAfter(client, 0, int64_t{5} << 20), 2);
  EXPECT_EQ(StartedAfter(client, 0), 2);
}

}  // namespace
}  // namespace hone::measure

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

}  // namespace
}  // namespace hone::measure

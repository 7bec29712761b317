#include "measure/builder_client.h"

#include <filesystem>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/test_paths.h"

namespace hone::measure {
namespace {

using ::testing::HasSubstr;

// The fake obeys the Trace text of its job (tests/measure/fake_builder.cc).
class BuilderClientTest : public ::testing::Test {
 protected:
  static BuilderOptions Options() {
    BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/tests/fake_builder";
    options.job_timeout_ns = 20'000'000'000;
    if (!kSanitized) options.address_space_bytes = int64_t{512} << 20;
    return options;
  }

  static BuildJob Job(const std::string& conduct) {
    return BuildJob{.target = "cpu:avx2,threads=1", .kernels = {{"w", conduct, {}, "k"}}};
  }

  // The process that served a job: the fake answers with its number.
  static std::string Served(BuilderClient& client) {
    const absl::StatusOr<BuildReply> reply = client.Build(Job("serve"));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->kernels[0].artifact.workload_hash : "";
  }

  // The job fails with `code`, and the next one is served as if nothing had happened.
  static void ExpectCostsOnlyItsJob(BuilderClient& client, const std::string& conduct,
                                    absl::StatusCode code, const std::string& says) {
    const absl::StatusOr<BuildReply> reply = client.Build(Job(conduct));
    ASSERT_FALSE(reply.ok()) << conduct;
    EXPECT_EQ(reply.status().code(), code) << conduct << ": " << reply.status();
    EXPECT_THAT(StatusMessage(reply.status()), HasSubstr(says)) << conduct;
    EXPECT_NE(Served(client), "");
  }

  SystemMonotonicClock clock_;
};

TEST_F(BuilderClientTest, OneProcessServesManyJobs) {
  BuilderClient client(Options(), clock_);
  const std::string first = Served(client);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Served(client), first);
  EXPECT_EQ(client.num_started(), 1);
}

TEST_F(BuilderClientTest, ProcessesAreRecycled) {
  BuilderOptions options = Options();
  options.jobs_per_process = 2;
  BuilderClient client(options, clock_);
  std::set<std::string> served;
  for (int i = 0; i < 6; ++i) served.insert(Served(client));
  EXPECT_EQ(served.size(), 3u);
  EXPECT_EQ(client.num_started(), 3);
}

TEST_F(BuilderClientTest, TheCacheAnswersWhatItHasSeen) {
  std::string folder = ::testing::TempDir() + "builder_cache.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  BuilderOptions options = Options();
  options.cache = std::make_shared<DiskCache>(DiskCacheOptions{.folder = folder});
  BuilderClient first(options, clock_);
  const std::string served = Served(first);
  EXPECT_EQ(first.num_started(), 1);
  EXPECT_EQ(first.Build(Job("refuse"))->kernels[0].status.code(),
            absl::StatusCode::kInvalidArgument);
  BuildJob another = Job("serve");
  another.kernels[0].prefix = "k2";
  EXPECT_TRUE(first.Build(another, Keep::kNo).ok());

  BuilderClient second(options, clock_);
  EXPECT_EQ(Served(second), served) << "the number of the process that built it";
  EXPECT_EQ(second.num_started(), 0);
  // Neither refusals nor what was not to be kept are known: a process is asked.
  EXPECT_TRUE(second.Build(another, Keep::kNo).ok());
  EXPECT_EQ(second.num_started(), 1);
  EXPECT_EQ(second.Build(Job("refuse"))->kernels[0].status.code(),
            absl::StatusCode::kInvalidArgument);

  // Another builder answers for itself.
  const std::string copy = folder + "/builder";
  std::filesystem::copy_file(options.program, copy);
  options.program = copy;
  BuilderClient third(options, clock_);
  EXPECT_NE(Served(third), served);
  EXPECT_EQ(third.num_started(), 1);
  std::filesystem::remove_all(folder);
}

TEST_F(BuilderClientTest, ARefusedKernelIsAnAnswer) {
  BuilderClient client(Options(), clock_);
  const absl::StatusOr<BuildReply> reply = client.Build(Job("refuse"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->kernels[0].status, absl::InvalidArgumentError("refused by request"));
  EXPECT_EQ(client.num_started(), 1);
}

TEST_F(BuilderClientTest, ACrashCostsOnlyItsJob) {
  BuilderClient client(Options(), clock_);
  ExpectCostsOnlyItsJob(client, "crash", absl::StatusCode::kAborted, "signal 6");
  ExpectCostsOnlyItsJob(client, "crash", absl::StatusCode::kAborted, "last words");
}

TEST_F(BuilderClientTest, AHangCostsOnlyItsJob) {
  BuilderOptions options = Options();
  options.job_timeout_ns = 3'000'000'000;  // of the next job too
  BuilderClient client(options, clock_);
  ExpectCostsOnlyItsJob(client, "hang", absl::StatusCode::kDeadlineExceeded, "3.0 s");
}

// The fake may or may not have begun: both are ended, and the next job has a builder at once.
TEST_F(BuilderClientTest, AJobThatNobodyWaitsForIsEnded) {
  BuilderClient client(Options(), clock_);
  const std::string first = Served(client);
  const int64_t start_ns = clock_.NowNs();
  KillSwitch stop;
  std::thread hanging([&] {
    const absl::Status ended = client.Build(Job("hang"), Keep::kYes, &stop).status();
    EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
    EXPECT_THAT(StatusMessage(ended), HasSubstr("its job was given up"));
  });
  clock_.SleepNs(20'000'000);
  stop.Pull();
  hanging.join();
  EXPECT_LT(clock_.NowNs() - start_ns, 15'000'000'000) << "its limit is 20 s";
  const std::string second = Served(client);
  EXPECT_NE(second, "");
  // What is refused from the start costs no process.
  EXPECT_EQ(client.Build(Job("serve"), Keep::kYes, &stop).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(Served(client), second);
  stop.Reset();
  EXPECT_TRUE(client.Build(Job("serve"), Keep::kYes, &stop).ok());
}

TEST_F(BuilderClientTest, WhoWantsToKnowHearsOfABuilderThatIsNotEndedInTime) {
  for (const bool patient : {false, true}) {
    std::vector<pid_t> told;
    BuilderOptions options = Options();
    options.on_unkillable = [&](pid_t pid) { told.push_back(pid); };
    if (!patient) options.kill_patience_ns = 0;
    { EXPECT_NE(Served(*std::make_unique<BuilderClient>(options, clock_)), ""); }
    EXPECT_EQ(told.size(), patient ? 0u : 1u);
  }
}

TEST_F(BuilderClientTest, RunningOutOfMemoryCostsOnlyItsJob) {
  if (!Options().address_space_bytes.has_value()) {
    GTEST_SKIP() << "address space cannot be limited under a sanitizer";
  }
  BuilderClient client(Options(), clock_);
  ExpectCostsOnlyItsJob(client, "blow up", absl::StatusCode::kResourceExhausted, "512 MiB");
}

TEST_F(BuilderClientTest, AWrongAnswerOfTheProcessCostsOnlyItsJob) {
  BuilderOptions options = Options();
  BuilderClient client(options, clock_);
  ExpectCostsOnlyItsJob(client, "noise", absl::StatusCode::kDataLoss, "no frame");
  ExpectCostsOnlyItsJob(client, "truncate", absl::StatusCode::kDataLoss, "inside a frame");
  ExpectCostsOnlyItsJob(client, "huge", absl::StatusCode::kDataLoss, "at most");
  ExpectCostsOnlyItsJob(client, "flip", absl::StatusCode::kDataLoss, "checksum");
  ExpectCostsOnlyItsJob(client, "leave", absl::StatusCode::kDataLoss, "gone");
}

TEST_F(BuilderClientTest, JobsRunSideBySideUpToTheLimit) {
  BuilderOptions options = Options();
  options.processes = 2;
  options.job_timeout_ns = 3'000'000'000;  // of the others too
  BuilderClient client(options, clock_);
  // One process hangs; three more jobs pass through the other meanwhile.
  std::thread hanging([&] {
    EXPECT_EQ(client.Build(Job("hang")).status().code(), absl::StatusCode::kDeadlineExceeded);
  });
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) others.emplace_back([&] { EXPECT_NE(Served(client), ""); });
  for (std::thread& other : others) other.join();
  hanging.join();
  EXPECT_LE(client.num_started(), 3);
}

TEST_F(BuilderClientTest, AMissingProgramIsNamed) {
  BuilderOptions options = Options();
  options.program = "/nowhere/hone-builder";
  BuilderClient client(options, clock_);
  for (int i = 0; i < 2; ++i) {  // twice: a failed start gives its slot back
    const absl::StatusOr<BuildReply> reply = client.Build(Job("serve"));
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(StatusMessage(reply.status()), HasSubstr("/nowhere/hone-builder"));
  }
}

}  // namespace
}  // namespace hone::measure

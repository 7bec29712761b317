#include "measure/local_measurer.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "ir/text.h"
#include "measure/process_load.h"
#include "measure/sandbox.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

namespace hone::measure {
namespace {

using ::testing::HasSubstr;

constexpr char kSlow[] = "parallel(s0.i0, 1)";
constexpr char kTarget[] = "cpu:avx2,threads=1";

/// The address sanitizer reports what would have been a signal, and ends the process itself.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kCrash = "exit code 1";
#else
constexpr const char* kCrash = "signal 11";
#endif

class LocalMeasurerTest : public ::testing::Test {
 protected:
  LocalMeasurerTest() {
    absl::StatusOr<ir::Workload> gemm = ir::ParseWorkload(kGemm);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    workload_ = std::make_shared<ir::Workload>(*std::move(gemm));
    const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
    options_.builder.program = programs + "hone-builder";
    options_.builder.processes = 2;
    options_.builder.test_hooks = true;
    options_.runner.program = programs + "hone-runner";
    options_.runner.test_hooks = true;
    options_.device_class = "a test's";
  }

  MeasureInput Input(int64_t id, const std::string& trace) const {
    return {.id = id, .workload = workload_, .target = kTarget, .trace = trace, .seed = 7};
  }

  // All results, by id.
  static std::map<int64_t, MeasureResult> CollectAll(Measurer& measurer) {
    std::map<int64_t, MeasureResult> results;
    while (measurer.num_in_flight() > 0) {
      for (MeasureResult& result : measurer.Collect(-1)) {
        const int64_t id = result.id;
        EXPECT_TRUE(results.emplace(id, std::move(result)).second) << "twice: " << id;
      }
    }
    return results;
  }

  MeasureResult MeasureOne(Measurer& measurer, const std::string& trace) {
    measurer.Submit(Input(1, trace));
    return CollectAll(measurer)[1];
  }

  // Candidate 2 of 4 misbehaves and ends as `outcome`; its neighbours are measured.
  void ExpectCostsOnlyItself(Outcome outcome, const std::string& says) {
    LocalMeasurer measurer(options_, clock_);
    for (int64_t id = 1; id <= 4; ++id) measurer.Submit(Input(id, id % 2 == 0 ? kPacked : ""));
    const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
    ASSERT_EQ(results.size(), 4u);
    for (const auto& [id, result] : results) {
      if (id == 2) {
        EXPECT_EQ(ToString(result.outcome), ToString(outcome)) << result.message;
        EXPECT_THAT(result.message, HasSubstr(says));
        EXPECT_TRUE(result.samples_ns.empty());
      } else {
        EXPECT_EQ(result.outcome, Outcome::kOk) << id << ": " << result.message;
      }
    }
  }

  void RunHook(const std::string& hook) {
    options_.run_hook = [hook](const MeasureInput& input) { return input.id == 2 ? hook : ""; };
  }
  void BuildHook(const std::string& hook) {
    options_.build_hook = [hook](const MeasureInput& input) { return input.id == 2 ? hook : ""; };
  }

  SystemMonotonicClock clock_;
  LocalMeasurerOptions options_;
  std::shared_ptr<const ir::Workload> workload_;
};

TEST_F(LocalMeasurerTest, MeasuresTheDefaultAndACandidateWithAPrologue) {
  LocalMeasurer measurer(options_, clock_);
  for (const char* trace : {"", kPacked}) {
    const MeasureResult result = MeasureOne(measurer, trace);
    ASSERT_EQ(result.outcome, Outcome::kOk) << result.message;
    EXPECT_GE(result.samples_ns.size(), 5u);
    for (const int64_t sample_ns : result.samples_ns) EXPECT_GT(sample_ns, 0);
    EXPECT_GT(result.build_ms, 0);
    EXPECT_GT(result.run_ms, 0);
    EXPECT_EQ(result.device, "a test's");
  }
  EXPECT_GT(measurer.reference_ns(), 0);
}

TEST_F(LocalMeasurerTest, OverlapGivesTheSameOutcomes) {
  options_.alternate = false;
  options_.built_ahead = 2;
  LocalMeasurer measurer(options_, clock_);
  for (int64_t id = 0; id < 6; ++id) measurer.Submit(Input(id, id % 2 == 0 ? kPacked : "split(q)"));
  for (const auto& [id, result] : CollectAll(measurer)) {
    EXPECT_EQ(result.outcome, id % 2 == 0 ? Outcome::kOk : Outcome::kIllegal) << result.message;
  }
}

TEST_F(LocalMeasurerTest, AnIllegalTraceIsRefusedWithItsReason) {
  LocalMeasurer measurer(options_, clock_);
  const MeasureResult result = MeasureOne(measurer, "vectorize(s9.i0)");
  EXPECT_EQ(result.outcome, Outcome::kIllegal);
  EXPECT_THAT(result.message, HasSubstr("s9"));
}

TEST_F(LocalMeasurerTest, AForeignTargetIsRefused) {
  LocalMeasurer measurer(options_, clock_);
  MeasureInput input = Input(1, "");
  input.target = "cuda:sm_90a";
  measurer.Submit(input);
  EXPECT_EQ(CollectAll(measurer)[1].outcome, Outcome::kIllegal);
}

TEST_F(LocalMeasurerTest, AHopelessCandidateGetsOneSample) {
  LocalMeasurer measurer(options_, clock_);
  MeasureInput input = Input(1, kSlow);
  input.incumbent_ns = 1;
  measurer.Submit(input);
  input.id = 2;
  input.kind = MeasureKind::kFinal;
  measurer.Submit(input);
  std::map<int64_t, MeasureResult> results = CollectAll(measurer);
  EXPECT_EQ(results[1].samples_ns.size(), 1u) << results[1].message;
  EXPECT_TRUE(results[1].hopeless);
  EXPECT_GE(results[2].samples_ns.size(), 10u) << results[2].message;
  EXPECT_FALSE(results[2].hopeless);
}

TEST_F(LocalMeasurerTest, CompareTakesTurnsAndLeavesOutWhatFails) {
  RunHook("crash");
  LocalMeasurer measurer(options_, clock_);
  const std::vector<ComparedTrace> compared =
      measurer.Compare({Input(1, ""), Input(3, kPacked), Input(2, kPacked), Input(4, kSlow)}, 5);
  ASSERT_EQ(compared.size(), 4u);
  EXPECT_EQ(compared[2].error.outcome, Outcome::kRunCrashed);
  for (const size_t i : {0, 1, 3}) {
    EXPECT_EQ(compared[i].error.outcome, Outcome::kOk) << compared[i].error.message;
    EXPECT_EQ(compared[i].samples_ns.size(), 5u);
    EXPECT_GT(compared[i].run_ms, 0);
  }
  EXPECT_LT(MedianNs(compared[1].samples_ns), MedianNs(compared[3].samples_ns));
}

// Not in one that an earlier candidate may have taken over, also where the first has no code.
TEST_F(LocalMeasurerTest, WhereEachCandidateHasAProcessAComparisonHasItsOwn) {
  std::string folder = ::testing::TempDir() + "own_process.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string starts = folder + "/starts", runner = folder + "/runner";
  std::ofstream(runner) << "#!/bin/sh\necho >> " << starts << "\nexec " << options_.runner.program
                        << " \"$@\"\n";
  std::filesystem::permissions(runner, std::filesystem::perms::owner_all);
  options_.runner.program = runner;
  options_.runner.jobs_per_process = 1;
  LocalMeasurer measurer(options_, clock_);
  EXPECT_EQ(MeasureOne(measurer, kPacked).outcome, Outcome::kOk);
  EXPECT_EQ(ReadFile(starts).value(), "\n\n") << "the default's and its own";
  const std::vector<ComparedTrace> compared =
      measurer.Compare({Input(1, "vectorize(s9.i0)"), Input(2, kPacked), Input(3, "")}, 3);
  ASSERT_EQ(compared.size(), 3u);
  EXPECT_EQ(compared[0].error.outcome, Outcome::kIllegal);
  for (const size_t i : {1, 2}) EXPECT_EQ(compared[i].samples_ns.size(), 3u) << i;
  EXPECT_EQ(ReadFile(starts).value(), "\n\n\n");
  std::filesystem::remove_all(folder);
}

// Each is loaded from a file that stays open, and of files a runner may have few.
TEST_F(LocalMeasurerTest, ManyAreComparedAtOnce) {
  LocalMeasurer measurer(options_, clock_);
  const std::vector<MeasureInput> inputs(40, Input(1, kPacked));
  for (const ComparedTrace& c : measurer.Compare(inputs, 3)) {
    EXPECT_EQ(c.error.outcome, Outcome::kOk) << c.error.message;
  }
  EXPECT_EQ(MeasureOne(measurer, kPacked).outcome, Outcome::kOk) << "with all of them loaded";
}

TEST_F(LocalMeasurerTest, AComparisonIsBuiltBeforeItHasTheDevice) {
  std::atomic<bool> held{false};
  std::atomic<int> builds{0};
  options_.before_run = [&](const std::vector<int64_t>&) { held = true; };
  options_.after_run = [&] { held = false; };
  options_.build = [&](const MeasureInput&) {
    EXPECT_FALSE(held);
    ++builds;
    BuiltCandidate built;
    built.error = {Outcome::kBuildFailed, "a test's"};
    return built;
  };
  LocalMeasurer measurer(options_, clock_);
  for (const ComparedTrace& c : measurer.Compare({Input(1, ""), Input(2, kPacked)}, 3)) {
    EXPECT_EQ(c.error.outcome, Outcome::kBuildFailed);
    EXPECT_EQ(c.run_ms, 0) << "nothing ran";
  }
  EXPECT_EQ(builds, 2);
}

TEST_F(LocalMeasurerTest, ACrashCostsOnlyItself) {
  RunHook("crash");
  ExpectCostsOnlyItself(Outcome::kRunCrashed, kCrash);
}

TEST_F(LocalMeasurerTest, RunningPastTheEndOfAnOutputCostsOnlyItself) {
  RunHook("overrun");
  ExpectCostsOnlyItself(Outcome::kRunCrashed, kCrash);
}

TEST_F(LocalMeasurerTest, AHangCostsOnlyItself) {
  RunHook("hang");
  options_.runner.prepare_timeout_ns = 3'000'000'000;  // of its neighbours too
  ExpectCostsOnlyItself(Outcome::kRunTimeout, "3.0 s");
}

// A lease that is taken back: the child that runs for it dies at once, the others are measured.
TEST_F(LocalMeasurerTest, WhatIsCancelledIsKilledOrForgotten) {
  RunHook("hang");
  std::atomic<bool> hangs = false;
  options_.before_run = [&](const std::vector<int64_t>& ids) { hangs = ids.front() == 2; };
  LocalMeasurer measurer(options_, clock_);
  measurer.Submit(Input(2, kPacked));
  while (!hangs) clock_.SleepNs(1'000'000);
  for (int64_t id = 3; id <= 5; ++id) measurer.Submit(Input(id, ""));
  const int64_t start_ns = clock_.NowNs();
  clock_.SleepNs(50'000'000);
  EXPECT_EQ(measurer.Cancel(4), 1);
  EXPECT_EQ(measurer.Cancel(2), 0) << "it runs";
  const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.at(2).outcome, Outcome::kWorkerLost) << results.at(2).message;
  EXPECT_EQ(results.at(3).outcome, Outcome::kOk) << results.at(3).message;
  EXPECT_EQ(results.at(5).outcome, Outcome::kOk) << results.at(5).message;
  EXPECT_LT(clock_.NowNs() - start_ns, 10'000'000'000) << "its limit is 15 s";

  // What is being built is dropped when it is: nobody has a lease for its run.
  std::atomic<bool> building = false, go = false, ran = false;
  options_.build = [&](const MeasureInput& input) {
    building = input.id == 6;
    while (!go) clock_.SleepNs(1'000'000);
    BuiltCandidate built;
    built.error = {Outcome::kBuildFailed, "as it shall"};
    return built;
  };
  options_.before_run = [&](const std::vector<int64_t>&) { ran = true; };
  LocalMeasurer builds(options_, clock_);
  builds.Submit(Input(6, ""));
  while (!building) clock_.SleepNs(1'000'000);
  EXPECT_EQ(builds.Cancel(6), 1);
  EXPECT_EQ(builds.num_in_flight(), 0);
  go = true;
  EXPECT_TRUE(builds.Collect(200'000'000).empty());
  EXPECT_FALSE(ran);
  // The next one of that number is another.
  builds.Submit(Input(6, ""));
  EXPECT_EQ(CollectAll(builds).at(6).outcome, Outcome::kBuildFailed);
}

TEST_F(LocalMeasurerTest, WhatIsBuiltForNobodyIsKilled) {
  options_.builder.processes = 1;
  options_.builder.job_timeout_ns = 120'000'000'000;
  std::atomic<int> hangs = 0;
  options_.build_hook = [&](const MeasureInput& input) {
    hangs += input.id == 2 ? 1 : 0;
    return input.id == 2 ? "hang" : "";
  };
  LocalMeasurer measurer(options_, clock_);
  const int64_t start_ns = clock_.NowNs();
  measurer.Submit(Input(2, kPacked));
  while (hangs < 1) clock_.SleepNs(1'000'000);
  EXPECT_EQ(measurer.Cancel(2), 1);
  EXPECT_EQ(MeasureOne(measurer, kPacked).outcome, Outcome::kOk);
  auto comparison = measurer.StartComparing({Input(2, kPacked), Input(2, "")}, 3);
  while (hangs < 2) clock_.SleepNs(1'000'000);
  EXPECT_EQ(measurer.Cancel(2), 0) << "it is no candidate";
  for (const ComparedTrace& c : comparison.get()) {
    EXPECT_EQ(c.error.outcome, Outcome::kWorkerLost) << c.error.message;
  }
  EXPECT_EQ(MeasureOne(measurer, "").outcome, Outcome::kOk);
  EXPECT_LT(clock_.NowNs() - start_ns, 60'000'000'000) << "a build's limit is 120 s";
}

// A comparison waits until nothing is built any more; its lease may end before that.
TEST_F(LocalMeasurerTest, AComparisonThatIsCancelledBeforeItRunsNeverRuns) {
  std::atomic<bool> building = false, go = false, ran = false;
  options_.build = [&](const MeasureInput& input) {
    building = building || input.id == 6;
    while (!go) clock_.SleepNs(1'000'000);
    BuiltCandidate built;
    built.error = {Outcome::kBuildFailed, "as it shall"};
    return built;
  };
  options_.before_run = [&](const std::vector<int64_t>& ids) { ran = ran || ids.front() == 7; };
  LocalMeasurer measurer(options_, clock_);
  measurer.Submit(Input(6, ""));
  while (!building) clock_.SleepNs(1'000'000);
  auto cancelled = measurer.StartComparing({Input(7, ""), Input(7, kPacked)}, 3);
  auto other = measurer.StartComparing({Input(8, "")}, 3);
  EXPECT_EQ(measurer.Cancel(7), 0) << "it is no candidate";
  ASSERT_EQ(cancelled.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  const std::vector<ComparedTrace> compared = cancelled.get();
  ASSERT_EQ(compared.size(), 2u);
  for (const ComparedTrace& c : compared) EXPECT_EQ(c.error.outcome, Outcome::kWorkerLost);
  go = true;
  EXPECT_EQ(other.get().at(0).error.outcome, Outcome::kBuildFailed) << "it is another's";
  EXPECT_FALSE(ran);
}

TEST_F(LocalMeasurerTest, AWrongAnswerCostsOnlyItself) {
  RunHook("wrong");
  ExpectCostsOnlyItself(Outcome::kWrongAnswer, "1 of 4608 elements of output 0 are wrong");
}

TEST_F(LocalMeasurerTest, RunningOutOfMemoryCostsOnlyItself) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "address space cannot be limited in this build";
  RunHook("memory");
  options_.runner.address_space_bytes = int64_t{1} << 30;
  ExpectCostsOnlyItself(Outcome::kOutOfMemory, "1024 MiB");
}

TEST_F(LocalMeasurerTest, EscapesCostOnlyThemselves) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "no allow-list of system calls in this build";
  for (const char* hook : {"socket", "exec", "fork", "write"}) {
    SCOPED_TRACE(hook);
    RunHook(hook);
    ExpectCostsOnlyItself(Outcome::kRunCrashed, "sandbox");
  }
}

TEST_F(LocalMeasurerTest, NoFileCanBeRead) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "no sandbox in this build";
  if (!CanHideFiles().ok()) GTEST_SKIP() << "this kernel has no Landlock";
  RunHook("read");
  LocalMeasurer measurer(options_, clock_);
  measurer.Submit(Input(2, kPacked));
  const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
  EXPECT_EQ(results.at(2).outcome, Outcome::kOk) << results.at(2).message;
}

TEST_F(LocalMeasurerTest, ABuilderLearnsNothingOfWhoStartedIt) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "no sandbox in this build";
  for (const char* hook : {"environment", "read"}) {
    SCOPED_TRACE(hook);
    // It sees not even its own program, so no keys either.
    if (hook == std::string("read") && !CanHideFiles().ok()) continue;
    BuildHook(hook);
    LocalMeasurer measurer(options_, clock_);
    measurer.Submit(Input(2, kPacked));
    const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
    EXPECT_EQ(results.at(2).outcome, Outcome::kOk) << results.at(2).message;
  }
}

// Were it not so this test would end by the signal.
TEST_F(LocalMeasurerTest, ABuilderCannotSignalWhoStartedIt) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "no allow-list of system calls in this build";
  BuildHook("signal");
  LocalMeasurer measurer(options_, clock_);
  measurer.Submit(Input(2, kPacked));
  const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
  EXPECT_EQ(results.at(2).outcome, Outcome::kOk) << results.at(2).message;
}

TEST_F(LocalMeasurerTest, AForgedAnswerCostsOnlyItself) {
  RunHook("forge");
  // Before its own answer, or in front of the next one: both are more than was asked for.
  ExpectCostsOnlyItself(Outcome::kRunCrashed, "more than it was asked");
}

TEST_F(LocalMeasurerTest, TimesThatTheClockCannotConfirmAreAWrongAnswer) {
  RunHook("lie");
  ExpectCostsOnlyItself(Outcome::kWrongAnswer, "but the answer took");
}

TEST_F(LocalMeasurerTest, AnAnswerThatIsLateThoughNothingRanIsTheMachinesFault) {
  if (!CpuShare(::getpid()).SinceBegun()) GTEST_SKIP() << "no schedstat in /proc here";
  RunHook("doze");
  ExpectCostsOnlyItself(Outcome::kWorkerLost, "to come, of which it ran for");
}

TEST_F(LocalMeasurerTest, ABuilderThatCrashesCostsOnlyItsCandidate) {
  BuildHook("crash");
  ExpectCostsOnlyItself(Outcome::kBuildCrashed, "signal 6");
}

TEST_F(LocalMeasurerTest, ABuilderThatHangsCostsOnlyItsCandidate) {
  BuildHook("hang");
  options_.builder.job_timeout_ns = 3'000'000'000;
  ExpectCostsOnlyItself(Outcome::kBuildTimeout, "3.0 s");
}

TEST_F(LocalMeasurerTest, ABuilderThatBlowsUpCostsOnlyItsCandidate) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "address space cannot be limited in this build";
  BuildHook("memory");
  options_.builder.address_space_bytes = int64_t{1} << 30;
  ExpectCostsOnlyItself(Outcome::kOutOfMemory, "1024 MiB");
}

// The kernel, when memory runs out, takes whom it likes: that says nothing about the candidate.
TEST_F(LocalMeasurerTest, AChildKilledFromOutsideIsNobodysFault) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "address space cannot be limited in this build";
  options_.builder.address_space_bytes = int64_t{4} << 30;
  options_.runner.address_space_bytes = int64_t{8} << 30;
  for (const char* step : {"compiling", "compiled"}) {
    SCOPED_TRACE(step);
    BuildHook(std::string("kill-") + step);
    ExpectCostsOnlyItself(Outcome::kWorkerLost, std::string("killed at builder.") + step);
  }
  options_.build_hook = nullptr;
  for (const char* step : {"loading", "ran", "timing"}) {
    SCOPED_TRACE(step);
    RunHook(std::string("kill-") + step);
    ExpectCostsOnlyItself(Outcome::kWorkerLost, std::string("killed at runner.") + step);
  }
}

TEST_F(LocalMeasurerTest, HooksAreNotHeededUnlessAskedFor) {
  RunHook("crash");
  BuildHook("crash");
  options_.runner.test_hooks = false;
  options_.builder.test_hooks = false;
  LocalMeasurer measurer(options_, clock_);
  measurer.Submit(Input(2, kPacked));
  const std::map<int64_t, MeasureResult> results = CollectAll(measurer);
  EXPECT_EQ(results.at(2).outcome, Outcome::kOk) << results.at(2).message;
}

TEST_F(LocalMeasurerTest, AMissingRunnerSaysNothingAboutTheCandidate) {
  options_.runner.program = "/nowhere/hone-runner";
  LocalMeasurer measurer(options_, clock_);
  const MeasureResult result = MeasureOne(measurer, kPacked);
  EXPECT_EQ(result.outcome, Outcome::kWorkerLost);
  EXPECT_THAT(result.message, HasSubstr("/nowhere/hone-runner"));
}

TEST_F(LocalMeasurerTest, WhatHasNotBegunCanBeDropped) {
  options_.builder.processes = 1;
  LocalMeasurer measurer(options_, clock_);
  for (int64_t id = 0; id < 40; ++id) measurer.Submit(Input(id, kPacked));
  measurer.DropWaiting();
  EXPECT_LE(measurer.num_in_flight(), 2);
  EXPECT_LE(CollectAll(measurer).size(), 2u);
  EXPECT_EQ(MeasureOne(measurer, kPacked).outcome, Outcome::kOk);
}

// What runs under WhileNotTiming never runs beside a candidate.
TEST_F(LocalMeasurerTest, TheCallersArithmeticDisturbsNoMeasurement) {
  std::atomic<bool> timing = false;
  options_.before_run = [&](const auto&) { timing = true; };
  options_.after_run = [&] { timing = false; };
  LocalMeasurer measurer(options_, clock_);
  for (int64_t id = 0; id < 6; ++id) measurer.Submit(Input(id, kPacked));
  int disturbed = 0, turns = 0;
  while (measurer.num_in_flight() > 0) {
    measurer.WhileNotTiming([&] {
      for (int i = 0; i < 20; ++i) {
        disturbed += timing.load() ? 1 : 0;
        clock_.SleepNs(100'000);
      }
    });
    ++turns;
    for (const MeasureResult& result : measurer.Collect(10'000'000))
      EXPECT_EQ(result.outcome, Outcome::kOk) << result.message;
  }
  EXPECT_EQ(disturbed, 0);
  EXPECT_GT(turns, 2);
}

TEST_F(LocalMeasurerTest, CollectDoesNotWaitForNothing) {
  LocalMeasurer measurer(options_, clock_);
  EXPECT_TRUE(measurer.Collect(-1).empty());
}

}  // namespace
}  // namespace hone::measure

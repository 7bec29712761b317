// Tuning without a device (--measure predicted), run as a program: from a model to a package for a
// GPU that this machine lacks, and what happens beside what was measured.

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "ir/target.h"
#include "tests/client/run_hone.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;

constexpr char kCuda[] = "cuda:sm_90a";

class PredictedTest : public testing::SmallTuning {
 protected:
  ProgramRun Predict(const std::vector<std::string>& more, const std::string& target = kCuda) {
    std::vector<std::string> words = {"tune",     model_, "--db",      log_,
                                      "--target", target, "--measure", "predicted"};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  }
  ProgramRun On(const std::string& command, const std::vector<std::string>& more,
                const std::string& target = kCuda) {
    std::vector<std::string> words = {command, model_, "--db", log_, "--target", target};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  }
  /// How many kernels each rung of `hone compile` answered.
  std::map<std::string, int> Compiled(const std::vector<std::string>& more,
                                      const std::string& target = kCuda) {
    std::vector<std::string> words = {"--json", "-o", package_};
    words.insert(words.end(), more.begin(), more.end());
    std::map<std::string, int> rungs;
    const json compiled = Parse(On("compile", words, target));
    for (const json& kernel : compiled["kernels"]) ++rungs[kernel["rung"]];
    return rungs;
  }
  using Rungs = std::map<std::string, int>;

  const std::string package_ = folder_.Path("small.hone");
};

TEST_F(PredictedTest, WithoutADeviceTuneSaysThatTheModelAloneCanSearch) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget(kCuda, &target, &why)) << why;
  const ProgramRun run = On("tune", {"--trials", "4"});
  EXPECT_EQ(run.exit_code, 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--measure predicted"));
  EXPECT_FALSE(std::filesystem::exists(log_));
}

TEST_F(PredictedTest, FromModelToPackageWithoutADevice) {
  const json tuned = Parse(Predict({"--json", "--trials", "24"}));
  EXPECT_EQ(tuned["measure"], "predicted");
  EXPECT_EQ(tuned["answered"], 24);
  EXPECT_TRUE(tuned["model"]["verdict"].is_null());
  EXPECT_THAT(tuned["model"]["skipped"].get<std::string>(), HasSubstr("predictions"));
  EXPECT_THAT(tuned["next"].get<std::string>(), HasSubstr(" --allow-predicted"));
  for (const json& task : tuned["tasks"]) {
    EXPECT_GT(task["best_us"], 0);
    EXPECT_LE(task["best_us"], task["default_us"]);
    EXPECT_EQ(task["compared"], false);
  }
  // Nobody allowed them: the defaults, and a line that says what there is.
  EXPECT_EQ(Compiled({}), Rungs({{"default", 3}}));
  const ProgramRun told = On("compile", {"-o", package_});
  EXPECT_THAT(told.err, HasSubstr("predicted schedules for 3 of 3 kernels; --allow-predicted"));
  const std::string by_default = *ReadFile(package_);
  EXPECT_EQ(Compiled({"--allow-predicted"}), Rungs({{"predicted", 3}}));
  const ProgramRun taken = On("compile", {"--allow-predicted", "-o", package_});
  EXPECT_THAT(taken.out, HasSubstr("3 kernels (3 predicted)"));
  EXPECT_THAT(taken.err,
              HasSubstr("3 of 3 kernels have schedules that the analytic model predicted"));
  EXPECT_NE(*ReadFile(package_), by_default);
  // Which is not what was asked for here.
  const ProgramRun exact =
      On("compile", {"--allow-predicted", "--require", "exact", "-o", package_});
  EXPECT_EQ(exact.exit_code, 4) << exact.err;
}

TEST_F(PredictedTest, EveryCommandSaysThatNothingWasMeasured) {
  const ProgramRun tuned = Predict({"--trials", "12"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("all times are predictions of the analytic model"));
  const json asked = Parse(On("query", {"--json"}));
  EXPECT_EQ(asked["kernels"].size(), 3U);
  for (const json& kernel : asked["kernels"]) {
    EXPECT_EQ(kernel["rung"], "default");
    EXPECT_TRUE(kernel["rigor"].is_null());
    EXPECT_THAT(kernel["why"].get<std::string>(), HasSubstr("--allow-predicted"));
  }
  const json allowed = Parse(On("query", {"--json", "--allow-predicted"}));
  for (const json& kernel : allowed["kernels"]) {
    EXPECT_EQ(kernel["rung"], "predicted");
    EXPECT_EQ(kernel["rigor"], "predicted");
  }
  EXPECT_THAT(On("query", {"--allow-predicted"}).out, HasSubstr("(predicted)"));
  const json explained = Parse(On("explain", {"--json"}));
  for (const json& task : explained["tasks"]) EXPECT_EQ(task["best"][0]["rigor"], "predicted");
  EXPECT_THAT(On("explain", {}).out, HasSubstr("], predicted"));
  const json best = Parse(RunHone({"db", "best", log_, "--json"}));
  for (const json& record : best["records"]) {
    EXPECT_EQ(record["rigor"], "predicted");
    EXPECT_EQ(record["measurement_policy"], 0);
  }
  EXPECT_EQ(Parse(RunHone({"db", "stats", log_, "--json"}))["records_by_rigor"]["predicted"], 12);
  const std::string page = folder_.Path("report.html");
  const json report = Parse(RunHone({"report", "--db", log_, "-o", page, "--json"}));
  EXPECT_EQ(report["tasks"][0]["rigor"], "predicted");
  EXPECT_TRUE(report["verdict"].is_null());
  EXPECT_THAT(*ReadFile(page), HasSubstr("all times are predictions of the analytic model"));
  EXPECT_THAT(RunHone({"report", "--db", log_, "-o", page}).out, HasSubstr("both predicted"));
}

TEST_F(PredictedTest, GoesOnAfterAnInterruptionAndMergesAsWhatItIs) {
  const json first = Parse(Predict({"--json", "--trials", "10"}));
  EXPECT_EQ(first["resumed"], false);
  EXPECT_EQ(Parse(Predict({"--dry-run", "--json"}))["tasks_with_records"], 3);
  // Another request: from where the log stands.
  const json second = Parse(Predict({"--json", "--trials", "11"}));
  EXPECT_EQ(second["resumed"], false);
  EXPECT_GT(second["proposers"]["transplant"]["candidates"], 0);
  const std::string other = folder_.Path("other.db");
  ASSERT_EQ(RunHone({"db", "merge", other, log_}).exit_code, 0);
  ASSERT_EQ(RunHone({"db", "verify", other}).exit_code, 0);
  std::filesystem::rename(other, log_);
  EXPECT_EQ(Compiled({}), Rungs({{"default", 3}}));
  EXPECT_EQ(Compiled({"--allow-predicted"}), Rungs({{"predicted", 3}}));
}

TEST_F(PredictedTest, WhatIsMeasuredLaterCountsMoreAndStartsFromPredictions) {
  constexpr char kCpu[] = "cpu:avx2,threads=1";
  ASSERT_EQ(Predict({"--trials", "12"}, kCpu).exit_code, 0);
  EXPECT_EQ(Compiled({"--allow-predicted"}, kCpu), Rungs({{"predicted", 3}}));
  const json measured = Parse(Tune({"--trials", "9", "--json"}));
  EXPECT_EQ(measured["measure"], "measured");
  EXPECT_GT(measured["proposers"]["transplant"]["candidates"], 0);
  EXPECT_EQ(Compiled({"--allow-predicted", "--require", "exact"}, kCpu), Compiled({}, kCpu));
}

TEST_F(PredictedTest, BadWordsAreRefused) {
  const ProgramRun how = On("tune", {"--measure", "guessed"});
  EXPECT_EQ(how.exit_code, 2);
  EXPECT_THAT(how.err, HasSubstr("measured"));
  const ProgramRun farm =
      RunHone({"tune", model_, "--server", "h:1", "--insecure-loopback", "--measure", "predicted"});
  EXPECT_EQ(farm.exit_code, 2);
  EXPECT_THAT(farm.err, HasSubstr("--server excludes --measure"));
  const ProgramRun asked = RunHone(
      {"compile", model_, "--server", "127.0.0.1:1", "--insecure-loopback", "--allow-predicted"});
  EXPECT_EQ(asked.exit_code, 2) << asked.err;
  EXPECT_THAT(asked.err, HasSubstr("--server excludes --allow-predicted"));
}

}  // namespace
}  // namespace hone::client

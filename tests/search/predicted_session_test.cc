// Sessions that measure nothing: what they write, and what a session that measures takes from them.

#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "costmodel/features.h"
#include "db/memory_database.h"
#include "db/prediction.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

class PredictedSessionTest : public ::testing::Test {
 protected:
  SessionOptions Predicted(int64_t trials) {
    SessionOptions options = Options(trials);
    options.request = R"({"model":"m","measure":"predicted"})";
    options.device = db::PredictedDevice(TestTarget().text);
    options.predicted = true;
    return options;
  }

  /// Runs one to its end; the Measurer's times are the landscape's and must not count.
  void Predict(int64_t trials) {
    FakeMeasurer measurer(1, {.fail = 0.1});
    TuningSession session(log_, measurer, clock_, clock_, Predicted(trials));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
    for (const TaskVerdict& verdict : session.verdicts()) EXPECT_FALSE(verdict.compared);
  }

  std::vector<db::TuningRecord> Records() {
    std::vector<db::TuningRecord> records;
    EXPECT_TRUE(log_.ScanRecords({},
                                 [&](const db::RankedRecord& r) {
                                   records.push_back(r.record);
                                   return absl::OkStatus();
                                 })
                    .ok());
    return records;
  }

  FakeClock clock_;
  db::MemoryDatabase log_;
};

TEST_F(PredictedSessionTest, WritesTheAnalyticModelsTimesUnderAKeyOfTheirOwn) {
  Predict(100);
  const std::vector<TuningTask> tasks = TwoTasks();
  const std::vector<db::TuningRecord> records = Records();
  ASSERT_GT(records.size(), 20U);
  for (const db::TuningRecord& record : records) {
    EXPECT_EQ(record.rigor, db::Rigor::kPredicted);
    EXPECT_EQ(record.key.device_class, "predicted-1:cpu");
    EXPECT_EQ(record.key.measurement_policy, kNotMeasured);
    EXPECT_TRUE(record.samples_ns.empty());
    for (const TuningTask& task : tasks) {
      if (task.hash != record.key.workload) continue;
      const schedule::Space space(*task.workload, TestTarget(), ir::AccuracyClass::kDefault);
      const auto id = space.Locate(record.trace);
      ASSERT_TRUE(id.has_value());
      EXPECT_DOUBLE_EQ(record.median_ns,
                       1e9 * costmodel::FeatureExtractor(space).AnalyticSeconds(*id));
    }
  }
  EXPECT_EQ(log_.Stats()->blobs, 0) << "a model was trained on predictions";
}

TEST_F(PredictedSessionTest, EndsSoonAfterTheBestOfTheModelWasBuilt) {
  Predict(0);
  EXPECT_LT(log_.Stats()->attempts, 2 * 64);
}

TEST_F(PredictedSessionTest, GoesOnWhereItWasKilled) {
  {
    FakeMeasurer measurer(1, {});
    int left = 9;
    measurer.on_answer = [&left] {
      if (--left == 0) throw Killed();
    };
    TuningSession session(log_, measurer, clock_, clock_, Predicted(40));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    EXPECT_THROW((void)session.Run(nullptr), Killed);
  }
  FakeMeasurer measurer(1, {});
  TuningSession session(log_, measurer, clock_, clock_, Predicted(40));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  EXPECT_TRUE(session.resumed());
  ASSERT_TRUE(session.Run(nullptr).ok());
  std::set<std::pair<std::string, std::string>> met;
  ASSERT_TRUE(log_.ScanAttempts({},
                                [&](const db::Attempt& a) {
                                  EXPECT_TRUE(met.emplace(a.key.workload.ToHex(), a.trace).second)
                                      << "twice";
                                  return absl::OkStatus();
                                })
                  .ok());
}

TEST_F(PredictedSessionTest, ASessionThatMeasuresTriesTheirBestFirstAndTakesNoTimeFromThem) {
  Predict(60);
  std::map<Hash128, std::string> best;
  for (const TuningTask& task : TwoTasks()) {
    const db::RecordKey key = {task.hash, TestTarget().text};
    const auto record = log_.BestRecord({.key = db::PredictedKey(key)});
    ASSERT_TRUE(record.ok() && record->has_value());
    best[task.hash] = (*record)->record.trace;
  }
  FakeMeasurer measurer(1, {});
  TuningSession session(log_, measurer, clock_, clock_, Options(24));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  // Nothing of them is known but that they are worth a trial.
  EXPECT_EQ(session.tuner().training_rows(), 0);
  ASSERT_TRUE(session.Run(nullptr).ok());
  std::set<std::string> tried;
  ASSERT_TRUE(log_.ScanAttempts({.device_class = "class"},
                                [&](const db::Attempt& a) {
                                  if (a.proposer == "transplant" || a.proposer == "default")
                                    tried.insert(a.trace);
                                  return absl::OkStatus();
                                })
                  .ok());
  for (const auto& [workload, trace] : best) EXPECT_TRUE(tried.contains(trace)) << trace;
  for (const TuningTask& task : TwoTasks()) {
    const auto found =
        log_.BestRecord({.key = {task.hash, TestTarget().text, "class", ir::AccuracyClass::kDefault,
                                 kCpuVersions.measurement_policy}});
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_NE((*found)->rigor, db::Rigor::kPredicted);
  }
}

}  // namespace
}  // namespace hone::search

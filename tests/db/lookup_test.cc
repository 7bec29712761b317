#include "db/lookup.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "db/memory_database.h"
#include "db/prediction.h"
#include "facts.h"

namespace hone::db {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kBuilder[] = "1+22.1";

class LookupTest : public ::testing::Test {
 protected:
  LookupTest() { Add(TestGround()); }

  void Add(const Batch& batch) { ASSERT_TRUE(database_.Append(batch).ok()); }
  void AddRecord(TuningRecord record) {
    const Device device = TestDevice(record.key.device_class);
    record.device = DeviceId(device);
    Add({.devices = {device}, .records = {record}});
  }

  /// Looks up Workload 0 for TestKey; traces in `broken_` do not replay.
  LookupAnswer Find(Predictions predictions = Predictions::kIgnored) {
    Lookup lookup(database_, kBuilder, std::nullopt, predictions);
    absl::StatusOr<LookupAnswer> answer =
        lookup.Find(TestKey(), TestWorkload(0).text, [this](const TuningRecord& record) {
          return broken_.contains(record.id) ? absl::InvalidArgumentError("stage s7 does not exist")
                                             : absl::OkStatus();
        });
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : LookupAnswer{};
  }

  /// A record of the analytic model, of Workload 0.
  static TuningRecord Prediction(int number) {
    TuningRecord record = TestRecord(number);
    record.rigor = Rigor::kPredicted;
    record.key = PredictedKey(record.key);
    return record;
  }

  MemoryDatabase database_;
  std::set<Hash128> broken_;
};

TEST_F(LookupTest, APredictionAnswersOnlyWhoTakesThemAndOnlyWhereNothingWasMeasured) {
  AddRecord(Prediction(2));
  AddRecord(Prediction(1));
  EXPECT_EQ(Find().rung, Rung::kDefault);
  EXPECT_FALSE(Find().predicted);
  const LookupAnswer told = Find(Predictions::kTold);
  EXPECT_EQ(told.rung, Rung::kDefault);
  EXPECT_TRUE(told.predicted);
  EXPECT_THAT(told.why, HasSubstr("--allow-predicted"));
  const LookupAnswer taken = Find(Predictions::kTaken);
  ASSERT_EQ(taken.rung, Rung::kPredicted);
  EXPECT_EQ(taken.record->record.id, TestId("record", 1));
  EXPECT_EQ(taken.record->rigor, Rigor::kPredicted);
  EXPECT_THAT(taken.why, HasSubstr("(predicted)"));
  broken_ = {TestId("record", 1)};
  EXPECT_EQ(Find(Predictions::kTaken).record->record.id, TestId("record", 2));

  // The slowest time that was measured, whatever with, counts more.
  TuningRecord slow = TestRecord(900'000);
  slow.key.target = "cpu:avx512,threads=8";
  AddRecord(slow);
  EXPECT_EQ(Find(Predictions::kTaken).rung, Rung::kThreads);
  slow = TestRecord(900'001);
  AddRecord(slow);
  EXPECT_EQ(Find(Predictions::kTaken).rung, Rung::kExact);
}

TEST_F(LookupTest, AMergedPredictionStaysOne) {
  const TuningRecord record = Prediction(1);
  const Device device = TestDevice(record.key.device_class);
  Batch batch{.devices = {device}, .records = {record}};
  batch.records[0].device = DeviceId(device);
  ASSERT_TRUE(database_.Append(batch, Origin::kMerged).ok());
  const LookupAnswer taken = Find(Predictions::kTaken);
  ASSERT_EQ(taken.rung, Rung::kPredicted);
  EXPECT_EQ(taken.record->rigor, Rigor::kPredicted);
  EXPECT_THAT(taken.why, HasSubstr("(predicted, merged from another log)"));
}

TEST_F(LookupTest, AnEmptyLogAnswersDefault) {
  const LookupAnswer answer = Find();
  EXPECT_EQ(answer.rung, Rung::kDefault);
  EXPECT_EQ(answer.record, std::nullopt);
  EXPECT_THAT(answer.why, HasSubstr("no record of workload " + TestWorkload(0).hash.ToHex()));
}

TEST_F(LookupTest, ExactAnswersBeforeAllOthers) {
  TuningRecord faster = TestRecord(1);
  faster.key.target = "cpu:avx512,threads=8";
  faster.rigor = Rigor::kConfirmed;
  AddRecord(faster);
  AddRecord(TestRecord(5));
  const LookupAnswer answer = Find();
  EXPECT_EQ(answer.rung, Rung::kExact);
  EXPECT_EQ(answer.record->record.id, TestId("record", 5));
  EXPECT_EQ(answer.record->content, ContentHash(TestRecord(5)));
  EXPECT_THAT(answer.why, HasSubstr(TestId("record", 5).ToHex() + " (screened)"));
}

TEST_F(LookupTest, ARecordOfAnOlderBuilderAnswersAsScreenedAndSaysSo) {
  TuningRecord old = TestRecord(1);
  old.builder_version = "0+21.1";
  old.rigor = Rigor::kConfirmed;
  AddRecord(old);
  const LookupAnswer answer = Find();
  EXPECT_EQ(answer.rung, Rung::kExact);
  EXPECT_EQ(answer.record->rigor, Rigor::kScreened);
  EXPECT_THAT(answer.why, HasSubstr("(screened, made with builder 0+21.1)"));
}

TEST_F(LookupTest, ARecordThatDoesNotReplayIsStaleAndTheNextAnswers) {
  AddRecord(TestRecord(1));
  AddRecord(TestRecord(2));
  broken_ = {TestId("record", 1)};
  const LookupAnswer answer = Find();
  EXPECT_EQ(answer.record->record.id, TestId("record", 2));
  EXPECT_EQ(
      answer.stale,
      (std::vector<StaleRecord>{{.id = TestId("record", 1), .why = "stage s7 does not exist"}}));
  EXPECT_THAT(answer.why, HasSubstr("1 stale, e.g. " + TestId("record", 1).ToHex()));
}

TEST_F(LookupTest, OtherThreadsOfThisDeviceAnswerBeforeOtherDevices) {
  const auto add = [this](int number, const std::string& target, const std::string& device) {
    TuningRecord record = TestRecord(number);
    record.key.target = target;
    record.key.device_class = device;
    AddRecord(record);
  };
  const std::string here = TestDevice().device_class;
  add(1, "cpu:avx512,threads=2", "cpu/other");
  add(2, "cpu:avx512,threads=64", here);
  add(3, "cpu:avx512,threads=4", here);
  add(4, "cpu:avx2,threads=2", here);
  std::vector<Hash128> order;
  for (int i = 0; i < 3; ++i) {
    const LookupAnswer answer = Find();
    ASSERT_EQ(answer.rung, Rung::kThreads);
    EXPECT_THAT(answer.why, HasSubstr("none of cpu:avx512,threads=2 on " + here));
    order.push_back(answer.record->record.id);
    broken_.insert(order.back());
  }
  EXPECT_EQ(order,
            (std::vector<Hash128>{TestId("record", 3), TestId("record", 2), TestId("record", 1)}));
  EXPECT_EQ(Find().rung, Rung::kDefault);
  EXPECT_THAT(Find().stale, SizeIs(3));
}

TEST_F(LookupTest, FewerThreadsAreThoseOfTheSameTraceOnTheSameDevicesThatWereAsFast) {
  constexpr char kEight[] = "cpu:avx512,threads=8";
  TuningRecord answered = TestRecord(1);
  answered.key.target = kEight;
  answered.median_ns = 1000;
  const auto threads = [&] {
    Lookup lookup(database_, kBuilder);
    const auto found = lookup.ThreadsOf({.record = answered});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(0);
  };
  const auto make = [&](int number, int fewer, double median_ns) {
    TuningRecord other = answered;
    other.id = TestId("record", number);
    other.key.target = WithThreads(kEight, fewer);
    other.median_ns = other.low_ns = other.high_ns = median_ns;
    return other;
  };
  EXPECT_EQ(threads(), 8);
  AddRecord(make(2, 4, 1020));
  EXPECT_EQ(threads(), 4);
  AddRecord(make(3, 1, 3000));  // somebody tuned for one thread
  EXPECT_EQ(threads(), 4);
  TuningRecord other = make(4, 2, 900);
  other.trace += "parallel(s0.i0)\n";  // the best with two threads, but another one
  AddRecord(other);
  EXPECT_EQ(threads(), 4);
  other = make(5, 2, 900);
  other.key.device_class = "cpu/other";
  AddRecord(other);
  EXPECT_EQ(threads(), 4);
  AddRecord(make(6, 2, 1020));
  EXPECT_EQ(threads(), 2);
  answered.median_ns = 1e6;
  EXPECT_EQ(threads(), 8) << "threads pay for what takes so long";
}

// What other programs disturbed is slower than it is: no time of another hour says that fewer
// threads are as fast.
TEST_F(LookupTest, ANoisyRecordLosesThreadsToThoseOfItsOwnSessionAlone) {
  TuningRecord answered = TestRecord(1);
  answered.key.target = "cpu:avx512,threads=2";
  answered.noisy = true;
  TuningRecord fewer = answered;
  fewer.id = TestId("record", 2);
  fewer.key.target = "cpu:avx512,threads=1";
  fewer.noisy = false;
  AddRecord(fewer);
  Lookup lookup(database_, kBuilder);
  answered.session = TestId("session", 2);
  EXPECT_EQ(*lookup.ThreadsOf({.record = answered}), 2);
  answered.noisy = false;
  EXPECT_EQ(*lookup.ThreadsOf({.record = answered}), 1);
  answered.noisy = true;
  answered.session = fewer.session;
  EXPECT_EQ(*lookup.ThreadsOf({.record = answered}), 1) << "they were compared in turns";
}

TEST_F(LookupTest, NearestWorkloadsOfTheSameFormAreCandidatesNearestFirst) {
  WorkloadRow other = TestWorkload(3);
  other.text.replace(other.text.find("* x1"), 1, "+");  // another form
  other.hash = HashBytes(other.text);
  Add({.workloads = {TestWorkload(90), other}});
  int number = 10;
  for (const Hash128& workload :
       {TestWorkload(2).hash, TestWorkload(90).hash, TestWorkload(1).hash, other.hash}) {
    TuningRecord record = TestRecord(number++);
    record.key.workload = workload;
    AddRecord(record);
  }
  TuningRecord faster = TestRecord(1);  // of workload 2, but for other threads
  faster.key.workload = TestWorkload(2).hash;
  faster.key.target = "cpu:avx512,threads=64";
  AddRecord(faster);

  const LookupAnswer answer = Find();
  EXPECT_EQ(answer.rung, Rung::kNearest);
  EXPECT_EQ(answer.record, std::nullopt);
  ASSERT_THAT(answer.candidates, SizeIs(3));
  EXPECT_EQ(answer.candidates[0].workload, TestWorkload(1));
  EXPECT_EQ(answer.candidates[1].workload, TestWorkload(2));
  EXPECT_EQ(answer.candidates[1].record.record.id, TestId("record", 10));
  EXPECT_EQ(answer.candidates[2].workload, TestWorkload(90));
  EXPECT_LT(answer.candidates[0].distance, answer.candidates[1].distance);
  EXPECT_THAT(answer.why, HasSubstr("of workload " + TestWorkload(1).hash.ToHex()));
}

TEST_F(LookupTest, ALaxerAccuracyClassServesOnNoRung) {
  TuningRecord near = TestRecord(1);
  near.key.accuracy = ir::AccuracyClass::kFast;
  AddRecord(near);
  near = TestRecord(2);
  near.key.accuracy = ir::AccuracyClass::kFast;
  near.key.workload = TestWorkload(1).hash;
  AddRecord(near);
  EXPECT_EQ(Find().rung, Rung::kDefault);
  EXPECT_THAT(Find().candidates, IsEmpty());
}

TEST(RungTest, NamesReadBack) {
  for (const Rung rung :
       {Rung::kExact, Rung::kThreads, Rung::kPredicted, Rung::kNearest, Rung::kDefault}) {
    EXPECT_EQ(ParseRung(RungName(rung)), rung);
  }
  EXPECT_EQ(ParseRung("closest"), std::nullopt);
}

TEST(WorkloadDistanceTest, CountsDoublingsAndSeesOtherForms) {
  const auto distance = [](const char* a, const char* b) {
    return WorkloadDistance(FormOf(a), FormOf(b));
  };
  EXPECT_EQ(FormOf("f32[8,160]"),
            (WorkloadForm{.skeleton = "f#[#,#]", .logs = {5, 3, std::log2(160)}}));
  EXPECT_EQ(distance("f32[8,160]", "f32[8,160]"), 0);
  EXPECT_NEAR(*distance("f32[8,160]", "f32[16,40]"), 3, 1e-12);
  EXPECT_NEAR(*distance("f32[16,40]", "f32[8,160]"), 3, 1e-12);
  EXPECT_EQ(distance("i0 + 0", "i0 + 1"), 1);
  EXPECT_EQ(distance("f32[8]", "f32[8,1]"), std::nullopt);
  EXPECT_TRUE(distance("0.12345678901234567890123456789", "0.1").has_value());
}

}  // namespace
}  // namespace hone::db

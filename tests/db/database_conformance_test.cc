#include "database_conformance.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"

#include "db/prediction.h"
#include "db/recheck.h"

namespace hone::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<double> Latencies(const std::vector<RankedRecord>& records) {
  std::vector<double> latencies;
  for (const RankedRecord& record : records) latencies.push_back(record.record.median_ns);
  return latencies;
}

TuningRecord WithoutSamples(TuningRecord record) {
  record.samples_ns.clear();
  return record;
}

}  // namespace

Appended DatabaseConformance::Add(const Batch& batch, Origin origin) {
  absl::StatusOr<Appended> appended = database().Append(batch, origin);
  EXPECT_TRUE(appended.ok()) << appended.status();
  return appended.ok() ? *appended : Appended{};
}

std::string MakerName(const ::testing::TestParamInfo<DatabaseMaker>& info) {
  return info.param.name;
}

TEST_P(DatabaseConformance, EmptyLogAnswersNothing) {
  EXPECT_EQ(database().BestRecord({.key = TestKey()}).value(), std::nullopt);
  EXPECT_THAT(database().TopRecords({.key = TestKey()}, 5).value(), IsEmpty());
  EXPECT_THAT(database().SameIsaRecords({.key = TestKey()}).value(), IsEmpty());
  EXPECT_THAT(database().MeasuredWorkloads("cpu:avx512", 1).value(), IsEmpty());
  EXPECT_EQ(database().FindRecord(TestId("record", 1)).value(), std::nullopt);
  EXPECT_EQ(database().FindWorkload(TestId("workload", 1)).value(), std::nullopt);
  EXPECT_EQ(database().FindSession(TestId("session", 1)).value(), std::nullopt);
  EXPECT_EQ(database().FindBlob(std::string(64, '0')).value(), std::nullopt);
  EXPECT_THAT(database().Sessions().value(), IsEmpty());
  EXPECT_EQ(database().Stats().value().records, 0);
}

TEST_P(DatabaseConformance, EveryFieldComesBack) {
  Batch batch = TestGround();
  TuningRecord record = TestRecord(3);
  record.key.accuracy = ir::AccuracyClass::kStrict;
  record.rigor = Rigor::kConfirmed;
  record.seed = 0xfedc'ba98'7654'3210;
  record.median_ns = 1003.1;  // no short binary form
  batch.records = {record};
  Attempt failed = TestAttempt(4);
  failed.outcome = Outcome::kRunCrashed;
  failed.record = {};
  failed.message = "signal 11 \"at\" \n\xff";
  batch.attempts = {TestAttempt(3), failed};
  batch.events = {TestEvent(1), {.id = TestId("event", 2), .type = "tick"}};
  batch.blobs = {TestBlob(std::string("\0model", 6)), TestBlob("")};
  EXPECT_EQ(Add(batch).added, 3 + 1 + 1 + 1 + 2 + 2 + 2);

  const RankedRecord stored = database().FindRecord(record.id).value().value();
  EXPECT_EQ(stored.record, record);
  EXPECT_EQ(stored.content, ContentHash(record));
  EXPECT_FALSE(stored.merged);
  EXPECT_EQ(database().BestRecord({.key = TestKey()}).value().value().record,
            WithoutSamples(record));
  EXPECT_EQ(database().FindWorkload(TestWorkload(2).hash).value(), TestWorkload(2));
  EXPECT_EQ(database().FindSession(TestId("session", 0)).value(), TestSession(0));
  EXPECT_EQ(database().FindBlob(batch.blobs[0].digest).value(), std::string("\0model", 6));
  EXPECT_EQ(database().FindBlob(batch.blobs[1].digest).value(), "");

  std::vector<Attempt> attempts;
  ASSERT_TRUE(database()
                  .ScanAttempts({},
                                [&](const Attempt& attempt) {
                                  attempts.push_back(attempt);
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_EQ(attempts, batch.attempts);
  const std::vector<Event> events = database().EventsOf(TestId("session", 0)).value();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].payload, batch.events[0].payload);
  const LogStats stats = database().Stats().value();
  EXPECT_EQ(stats.traces, 2);
  EXPECT_EQ(stats.by_rigor[2], 1);
  EXPECT_EQ(stats.by_outcome[static_cast<size_t>(Outcome::kRunCrashed)], 1);
  EXPECT_EQ(stats.events, 2);
  EXPECT_EQ(stats.blobs, 2);
}

TEST_P(DatabaseConformance, ATraceIsWrittenFromItsFirstValues) {
  Add(TestGround());
  Add(TestStep(1));
  TraceValues again = TestValues(1);
  again.text = "of another Hone rows=2";
  TraceValues other = TestValues(2);
  other.workload = TestWorkload(1).hash;
  TuningRecord record = TestRecord(2);
  record.key.workload = other.workload;
  const Appended appended = Add({.records = {record}, .values = {again, other}});
  EXPECT_EQ(appended.added, 2);
  EXPECT_EQ(appended.known, 1);
  std::vector<TraceValues> all, of_other;
  const auto into = [](std::vector<TraceValues>& list) {
    return [&list](const TraceValues& values) {
      list.push_back(values);
      return absl::OkStatus();
    };
  };
  ASSERT_TRUE(database().ScanValues({}, into(all)).ok());
  EXPECT_THAT(all, ElementsAre(TestValues(1), other));
  ASSERT_TRUE(database().ScanValues({.workload = other.workload}, into(of_other)).ok());
  EXPECT_THAT(of_other, ElementsAre(other));
  EXPECT_EQ(database().Append({.values = {TestValues(3)}}).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "nothing was measured with that Trace";
}

TEST_P(DatabaseConformance, LookUpOrdersByRigorThenLowerBoundThenId) {
  Add(TestGround());
  TuningRecord fast = TestRecord(1);
  TuningRecord verified = TestRecord(500);
  verified.rigor = Rigor::kVerified;
  TuningRecord wide = TestRecord(2);  // slower median, lower bound below all
  wide.low_ns = 1;
  TuningRecord twin_a = TestRecord(3);
  TuningRecord twin_b = TestRecord(4);
  for (TuningRecord* twin : {&twin_a, &twin_b}) {
    twin->median_ns = twin->low_ns = twin->high_ns = 2000;
  }
  Add({.records = {twin_b, fast, twin_a, verified, wide}});
  const std::vector<RankedRecord> top = database().TopRecords({.key = TestKey()}, 10).value();
  EXPECT_THAT(Latencies(top), ElementsAre(1500, 1002, 1001, 2000, 2000));
  EXPECT_LT(top[3].record.id, top[4].record.id);
  EXPECT_THAT(Latencies(database().TopRecords({.key = TestKey()}, 2).value()),
              ElementsAre(1500, 1002));
}

// A log of before verdicts: what a model put back there is a confirmed record of the default. It
// answers, for every model, before all that was not confirmed; a faster confirmed one before it.
TEST_P(DatabaseConformance, AConfirmedRecordIsNoVerdict) {
  const auto with = [](int number, double low_ns, Rigor rigor) {
    TuningRecord record = TestRecord(number);
    record.rigor = rigor;
    record.low_ns = low_ns;
    return record;
  };
  Add(TestGround());
  Add({.records = {with(3, 50, Rigor::kVerified), with(2, 900, Rigor::kConfirmed)}});
  const auto top = [&] { return Latencies(database().TopRecords({.key = TestKey()}, 10).value()); };
  EXPECT_THAT(top(), ElementsAre(1002, 1003));
  Add({.records = {with(1, 100, Rigor::kConfirmed)}});
  EXPECT_THAT(top(), ElementsAre(1001, 1002, 1003));
}

TEST_P(DatabaseConformance, VerdictsAreFoundByTheirModelNewestFirst) {
  Add(TestGround());
  Add({.sessions = {TestSession(1)}});
  const Hash128 model = ModelHash({{TestWorkload(0).hash, 3}});
  // Another model, whose ids lie among this one's.
  const Hash128 neighbour = {model.high, model.low + 1};
  ModelVerdict first{.model = model,
                     .target = TestKey().target,
                     .device_class = "cpu of many words",
                     .accuracy = ir::AccuracyClass::kStrict,
                     .measurement_policy = 1,
                     .keeps_defaults = true,
                     .default_ns = 1000,
                     .tuned_ns = 1020.5,
                     .ratio = 0.98,
                     .ratio_low = 0.96,
                     .ratio_high = 0.99,
                     .rounds = 20,
                     .tuned = {TestWorkload(0).hash, TestWorkload(1).hash},
                     .session = TestId("session", 0)};
  ModelVerdict second = first, elsewhere = first, other = first;
  second.keeps_defaults = false;
  second.put_back = {TestWorkload(0).hash};
  second.tuned = {};
  second.session = elsewhere.session = TestId("session", 1);
  other.model = neighbour;
  Event stranger = EventOf(first);
  stranger.type = "model";
  stranger.id.low ^= 1;
  Event newer = EventOf(first);  // of a Hone that says it in other words
  newer.payload = "v2 " + newer.payload;
  newer.id.low ^= 2;
  Add({.events = {EventOf(first), stranger, newer, EventOf(other)}});
  Add({.events = {EventOf(second)}});
  Add({.events = {EventOf(elsewhere)}}, Origin::kMerged);
  elsewhere.merged = true;
  EXPECT_THAT(database().ModelVerdicts(model).value(), ElementsAre(elsewhere, second, first));
  EXPECT_THAT(database().ModelVerdicts(neighbour).value(), ElementsAre(other));
  EXPECT_THAT(database().ModelVerdicts(TestId("model", 1)).value(), IsEmpty());
}

// What was measured anew answers, not what it was before; in scans all facts stay.
TEST_P(DatabaseConformance, ReplacedRecordsAnswerNothing) {
  Add(TestGround());
  Add({.records = {TestRecord(1), TestRecord(2), TestRecord(3)}});
  TuningRecord again = TestRecord(7);
  again.trace = TestRecord(1).trace;
  const auto top = [&](int limit) {
    return Latencies(database().TopRecords({.key = TestKey()}, limit).value());
  };
  ASSERT_THAT(top(10), ElementsAre(1001, 1002, 1003));
  Event stranger = EventOf(Recheck{TestKey().workload, {TestRecord(3).id}, TestSession(0).id});
  stranger.payload += " and more";
  const Recheck other{TestWorkload(1).hash, {}, TestSession(0).id};
  // Another log's, which measured none of these.
  Add({.events = {EventOf(Recheck{TestKey().workload, {TestRecord(3).id}, TestSession(0).id})}},
      Origin::kMerged);
  Add({.records = {again},
       .events = {
           stranger, EventOf(other),
           EventOf(Recheck{
               TestKey().workload, {TestRecord(1).id, TestRecord(2).id}, TestSession(0).id})}});
  EXPECT_THAT(top(10), ElementsAre(1003, 1007));
  EXPECT_THAT(top(1), ElementsAre(1003));
  RecordKey elsewhere = TestKey();
  elsewhere.device_class = "another";
  EXPECT_THAT(Latencies(database().SameIsaRecords({.key = elsewhere}).value()), ElementsAre(1003));
  int scanned = 0;
  EXPECT_TRUE(database()
                  .ScanRecords({},
                               [&](const RankedRecord&) {
                                 ++scanned;
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(scanned, 4);
}

TEST_P(DatabaseConformance, EachTraceAnswersOnceByItsBestRecord) {
  Add(TestGround());
  TuningRecord again = TestRecord(9);
  again.trace = TestRecord(1).trace;
  Add({.records = {again, TestRecord(1), TestRecord(2)}});
  EXPECT_THAT(Latencies(database().TopRecords({.key = TestKey()}, 10).value()),
              ElementsAre(1001, 1002));
}

TEST_P(DatabaseConformance, KeyFieldsSeparateRecordsAndStricterAccuracyServes) {
  Batch batch = TestGround();
  const Device other = TestDevice("cpu/other");
  batch.devices.push_back(other);
  std::vector<TuningRecord> records(7);
  for (int i = 0; i < 7; ++i) records[static_cast<size_t>(i)] = TestRecord(i);
  records[1].key.workload = TestWorkload(1).hash;
  records[2].key.target = "cpu:avx512,threads=4";
  records[3].key.device_class = other.device_class;
  records[3].device = DeviceId(other);
  records[4].key.measurement_policy = 2;
  records[5].key.accuracy = ir::AccuracyClass::kStrict;
  records[6].key.accuracy = ir::AccuracyClass::kFast;
  batch.records = records;
  Add(batch);

  EXPECT_THAT(Latencies(database().TopRecords({.key = TestKey()}, 10).value()),
              ElementsAre(1000, 1005));
  RecordKey strict = TestKey();
  strict.accuracy = ir::AccuracyClass::kStrict;
  EXPECT_THAT(Latencies(database().TopRecords({.key = strict}, 10).value()), ElementsAre(1005));
  RecordKey fast = TestKey();
  fast.accuracy = ir::AccuracyClass::kFast;
  EXPECT_THAT(Latencies(database().TopRecords({.key = fast}, 10).value()),
              ElementsAre(1000, 1005, 1006));
  for (size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(database().BestRecord({.key = records[i].key}).value()->record.id, records[i].id);
  }
  EXPECT_THAT(Latencies(database().SameIsaRecords({.key = TestKey()}).value()),
              ElementsAre(1002, 1003));
}

TEST_P(DatabaseConformance, SameIsaTakesTheBestOfEachTargetAndLeavesOtherIsas) {
  Batch batch = TestGround();
  for (int i = 0; i < 4; ++i) batch.records.push_back(TestRecord(i));
  batch.records[0].key.target = batch.records[1].key.target = "cpu:avx512,threads=8";
  batch.records[2].key.target = "cpu:avx512+vnni,threads=2";
  batch.records[3].key.target = "cpu:avx2,threads=2";
  Add(batch);
  EXPECT_THAT(Latencies(database().SameIsaRecords({.key = TestKey()}).value()), ElementsAre(1000));
}

TEST_P(DatabaseConformance, MeasuredWorkloadsAreThoseWithRecordsOfTheIsaAndPolicy) {
  Batch batch = TestGround();
  for (int i = 0; i < 4; ++i) batch.records.push_back(TestRecord(i));
  batch.records[1].key.workload = TestWorkload(1).hash;
  batch.records[2].key.workload = TestWorkload(2).hash;
  batch.records[2].key.target = "cpu:avx2,threads=2";
  batch.records[3].key.workload = TestWorkload(2).hash;
  batch.records[3].key.measurement_policy = 2;
  Add(batch);
  std::vector<WorkloadRow> expected = {TestWorkload(0), TestWorkload(1)};
  std::sort(expected.begin(), expected.end(),
            [](const WorkloadRow& a, const WorkloadRow& b) { return a.hash < b.hash; });
  EXPECT_EQ(database().MeasuredWorkloads("cpu:avx512", 1).value(), expected);
  EXPECT_EQ(database().MeasuredWorkloads("cpu:avx2", 1).value(),
            std::vector<WorkloadRow>{TestWorkload(2)});
}

TEST_P(DatabaseConformance, MergedRecordsAndOtherBuildersCountAsScreened) {
  Add(TestGround());
  TuningRecord confirmed = TestRecord(1);
  confirmed.rigor = Rigor::kConfirmed;
  TuningRecord old = TestRecord(2);
  old.rigor = Rigor::kVerified;
  old.builder_version = "0+21.0";
  TuningRecord verified = TestRecord(3);
  verified.rigor = Rigor::kVerified;
  Add({.records = {confirmed}}, Origin::kMerged);
  Add({.records = {old, verified}});
  const std::vector<RankedRecord> top =
      database().TopRecords({.key = TestKey(), .builder_version = "1+22.1"}, 10).value();
  EXPECT_THAT(Latencies(top), ElementsAre(1003, 1001, 1002));
  EXPECT_TRUE(top[1].merged);
  EXPECT_EQ(top[1].rigor, Rigor::kScreened);
  EXPECT_EQ(top[1].record.rigor, Rigor::kConfirmed);
  EXPECT_TRUE(top[2].other_builder);
  EXPECT_THAT(Latencies(database().TopRecords({.key = TestKey()}, 10).value()),
              ElementsAre(1002, 1003, 1001));
}

TEST_P(DatabaseConformance, PredictionsStandApartFromWhatWasMeasured) {
  Add(TestGround());
  TuningRecord prediction = TestRecord(1);
  prediction.rigor = Rigor::kPredicted;
  prediction.key = PredictedKey(prediction.key);
  prediction.device = DeviceId(PredictedDevice(prediction.key.target));
  Add({.devices = {PredictedDevice(prediction.key.target)}, .records = {prediction}});
  EXPECT_TRUE(database().TopRecords({.key = TestKey()}, 10).value().empty());
  EXPECT_TRUE(database().SameIsaRecords({.key = TestKey()}).value().empty());
  EXPECT_TRUE(database().MeasuredWorkloads("cpu:avx512", 1).value().empty());
  const auto top = database().TopRecords({.key = PredictedKey(TestKey())}, 10).value();
  ASSERT_EQ(top.size(), 1U);
  EXPECT_EQ(top[0].rigor, Rigor::kPredicted);
  EXPECT_EQ(database().Stats().value().by_rigor[3], 1);
  EXPECT_EQ(EffectiveRigor(prediction, true, true), Rigor::kPredicted);
}

TEST_P(DatabaseConformance, EventsKeepTheirOrderAndContinue) {
  Add(TestGround());
  Add({.sessions = {TestSession(1)}});
  int64_t after_two = 0;
  for (int i = 0; i < 4; ++i) {
    const Appended appended = Add({.events = {TestEvent(i, i % 2), TestEvent(10 + i, 0)}});
    if (i == 1) after_two = appended.last_sequence;
  }
  const auto payloads = [&](const Hash128& session, int64_t after) {
    std::vector<Hash128> ids;
    const std::vector<Event> events = database().EventsOf(session, after).value();
    for (const Event& event : events) ids.push_back(event.id);
    EXPECT_TRUE(std::is_sorted(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.sequence < b.sequence;
    }));
    return ids;
  };
  EXPECT_THAT(payloads(TestId("session", 1), 0),
              ElementsAre(TestId("event", 1), TestId("event", 3)));
  EXPECT_THAT(payloads(TestId("session", 0), after_two),
              ElementsAre(TestId("event", 2), TestId("event", 12), TestId("event", 13)));
}

TEST_P(DatabaseConformance, ScansFilter) {
  Add(TestGround());
  Add({.sessions = {TestSession(1)}});
  TuningRecord other = TestRecord(2);
  other.key.workload = TestWorkload(1).hash;
  Add({.records = {TestRecord(0, 0), TestRecord(1, 1), other}});
  Add({.records = {TestRecord(4)}}, Origin::kMerged);
  const auto scan = [&](const FactFilter& filter) {
    std::vector<double> latencies;
    EXPECT_TRUE(database()
                    .ScanRecords(filter,
                                 [&](const RankedRecord& record) {
                                   latencies.push_back(record.record.median_ns);
                                   return absl::OkStatus();
                                 })
                    .ok());
    return latencies;
  };
  EXPECT_THAT(scan({}), ElementsAre(1000, 1001, 1002, 1004));
  EXPECT_THAT(scan({.session = TestId("session", 1)}), ElementsAre(1001));
  EXPECT_THAT(scan({.workload = TestWorkload(1).hash}), ElementsAre(1002));
  EXPECT_THAT(scan({.device_class = "cpu/other"}), IsEmpty());
  EXPECT_THAT(scan({.device_class = TestDevice().device_class, .local_only = true}),
              ElementsAre(1000, 1001, 1002));
  int visited = 0;
  EXPECT_EQ(database().ScanRecords({},
                                   [&](const RankedRecord&) {
                                     ++visited;
                                     return absl::CancelledError("enough");
                                   }),
            absl::CancelledError("enough"));
  EXPECT_EQ(visited, 1);
}

TEST_P(DatabaseConformance, AppendingAgainAddsNothing) {
  Batch batch = TestGround();
  batch.records = {TestRecord(1)};
  batch.attempts = {TestAttempt(1)};
  batch.events = {TestEvent(1)};
  const Appended first = Add(batch);
  EXPECT_EQ(first.known, 0);
  const LogStats stats = database().Stats().value();
  const Appended second = Add(batch);
  EXPECT_EQ(second.added, 0);
  EXPECT_EQ(second.known, first.added);
  EXPECT_EQ(second.last_sequence, first.last_sequence);
  const LogStats again = database().Stats().value();
  EXPECT_EQ(again.records, stats.records);
  EXPECT_EQ(again.events, stats.events);
}

TEST_P(DatabaseConformance, OtherContentUnderAnIdIsRefusedWithTheWholeBatch) {
  Add(TestGround());
  Add(TestStep(1));
  TuningRecord forged = TestRecord(1);
  forged.median_ns = forged.low_ns = 1;
  const absl::StatusOr<Appended> refused =
      database().Append({.records = {TestRecord(2), forged}, .events = {TestEvent(2)}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(refused.status().ToString().find(forged.id.ToHex()), std::string::npos);
  EXPECT_EQ(database().FindRecord(TestId("record", 2)).value(), std::nullopt);
  EXPECT_EQ(database().FindRecord(forged.id).value()->record, TestRecord(1));
  EXPECT_THAT(database().EventsOf(TestId("session", 0)).value(), SizeIs(1));
}

TEST_P(DatabaseConformance, MergingListsConflictsAndTakesTheRest) {
  Add(TestGround());
  Add(TestStep(1));
  TuningRecord forged = TestRecord(1);
  forged.median_ns = forged.low_ns = 1;
  const Appended merged = Add({.records = {forged, TestRecord(2)}}, Origin::kMerged);
  EXPECT_EQ(merged.added, 1);
  EXPECT_THAT(merged.conflicts, ElementsAre(Conflict{.kind = "record", .id = forged.id}));
  EXPECT_EQ(database().FindRecord(forged.id).value()->record, TestRecord(1));
}

TEST_P(DatabaseConformance, FactsThatNameWhatIsMissingAreRefused) {
  Add(TestGround());
  TuningRecord record = TestRecord(1);
  record.key.workload = TestId("workload", 99);
  EXPECT_EQ(database().Append({.records = {record}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  record = TestRecord(1);
  record.session = TestId("session", 99);
  EXPECT_EQ(database().Append({.records = {record}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  record = TestRecord(1);
  record.device = TestId("device", 99);
  EXPECT_EQ(database().Append({.records = {record}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<Appended> attempt = database().Append({.attempts = {TestAttempt(1)}});
  EXPECT_EQ(attempt.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(attempt.status().ToString().find(TestId("attempt", 1).ToHex()), std::string::npos);
  EXPECT_EQ(database().Append({.events = {TestEvent(1, 99)}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(DatabaseConformance, AReadScopeShowsOneStateAndHoldsAppendsBack) {
  Add(TestGround());
  Add(TestStep(1));
  {
    const auto scope = database().BeginRead();
    ASSERT_TRUE(scope.ok());
    EXPECT_EQ(database().BeginRead().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(database().Append(TestStep(2)).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(database().BestRecord({.key = TestKey()}).value()->record.median_ns, 1001);
  }
  EXPECT_TRUE(database().Append(TestStep(2)).ok());
}

}  // namespace hone::db

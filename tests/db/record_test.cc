#include "db/record.h"

#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

#include "db/prediction.h"
#include "facts.h"

namespace hone::db {
namespace {

TEST(ContentHash, PublishedVectorHolds) {
  // docs/formats/log.md; computed there by another program. Packages and other people's logs hold
  // such hashes: a change needs a new form name.
  EXPECT_EQ(ContentHash(TestRecord(1)).ToHex(), "6bed873b3cf45506285d60ac2be2afc0");
}

TEST(ContentHash, EveryFieldOfARecordCountsButSamples) {
  using Change = std::function<void(TuningRecord&)>;
  const std::vector<Change> changes = {[](auto& r) { r.id.low ^= 1; },
                                       [](auto& r) { r.key.workload.high ^= 1; },
                                       [](auto& r) { r.key.target += "0"; },
                                       [](auto& r) { r.key.device_class += "x"; },
                                       [](auto& r) { r.key.accuracy = ir::AccuracyClass::kFast; },
                                       [](auto& r) { ++r.key.measurement_policy; },
                                       [](auto& r) { r.device.low ^= 1; },
                                       [](auto& r) { r.trace += " "; },
                                       [](auto& r) { ++r.trace_version; },
                                       [](auto& r) { r.builder_version += "x"; },
                                       [](auto& r) { r.rigor = Rigor::kVerified; },
                                       [](auto& r) { r.median_ns += 0.125; },
                                       [](auto& r) { r.low_ns -= 0.125; },
                                       [](auto& r) { r.high_ns += 0.125; },
                                       [](auto& r) { r.noisy = !r.noisy; },
                                       [](auto& r) { r.session.low ^= 1; },
                                       [](auto& r) { ++r.seed; },
                                       [](auto& r) { ++r.created_ms; }};
  const TuningRecord record = TestRecord(1);
  for (size_t i = 0; i < changes.size(); ++i) {
    TuningRecord changed = record;
    changes[i](changed);
    EXPECT_NE(ContentHash(changed), ContentHash(record)) << "change " << i;
  }
  TuningRecord folded = record;
  folded.samples_ns.clear();
  EXPECT_EQ(ContentHash(folded), ContentHash(record));
}

TEST(CheckFact, RefusesRecordsThatCannotBe) {
  EXPECT_TRUE(CheckFact(TestRecord(1)).ok());
  using Change = std::function<void(TuningRecord&)>;
  const std::vector<Change> changes = {
      [](auto& r) { r.id = {}; },
      [](auto& r) { r.session = {}; },
      [](auto& r) { r.device = {}; },
      [](auto& r) { r.key.workload = {}; },
      [](auto& r) { r.key.target = ""; },
      [](auto& r) { r.key.target = "cpu:native,threads=2"; },
      [](auto& r) { r.key.device_class = ""; },
      [](auto& r) { r.builder_version = ""; },
      [](auto& r) { r.low_ns = 0; },
      [](auto& r) { r.low_ns = r.median_ns + 1; },
      [](auto& r) { r.high_ns = r.median_ns - 1; },
      [](auto& r) { r.high_ns = std::numeric_limits<double>::infinity(); },
      [](auto& r) { r.median_ns = std::numeric_limits<double>::quiet_NaN(); },
      [](auto& r) { r.samples_ns.push_back(std::numeric_limits<double>::quiet_NaN()); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    TuningRecord changed = TestRecord(1);
    changes[i](changed);
    EXPECT_EQ(CheckFact(changed).code(), absl::StatusCode::kInvalidArgument) << "change " << i;
  }
}

TEST(CheckFact, WhatWasPredictedIsUnderNoPolicyOfMeasurement) {
  TuningRecord record = TestRecord(1);
  record.rigor = Rigor::kPredicted;
  EXPECT_EQ(CheckFact(record).code(), absl::StatusCode::kInvalidArgument);
  record.key = PredictedKey(record.key);
  EXPECT_TRUE(CheckFact(record).ok()) << CheckFact(record);
  EXPECT_EQ(record.key.device_class, "predicted-1:cpu");
  record.rigor = Rigor::kScreened;
  EXPECT_EQ(CheckFact(record).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckFact, RefusesTextsUnderTheWrongHash) {
  WorkloadRow workload = TestWorkload(0);
  EXPECT_TRUE(CheckFact(workload).ok());
  workload.text += " ";
  EXPECT_FALSE(CheckFact(workload).ok());
  Blob blob = TestBlob("model");
  EXPECT_TRUE(CheckFact(blob).ok());
  blob.bytes += " ";
  EXPECT_FALSE(CheckFact(blob).ok());
}

TEST(CheckFact, AFailedAttemptGivesNoRecord) {
  Attempt attempt = TestAttempt(1);
  EXPECT_TRUE(CheckFact(attempt).ok());
  attempt.outcome = Outcome::kWrongAnswer;
  EXPECT_FALSE(CheckFact(attempt).ok());
  attempt.record = {};
  EXPECT_TRUE(CheckFact(attempt).ok());
}

}  // namespace
}  // namespace hone::db

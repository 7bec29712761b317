#include "tests/sim/fault_vfs.h"

#include <set>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "db/sqlite_migrate.h"
#include "db/sqlite_open.h"

// Power cuts: what was acknowledged is there afterwards, and the log is sound.
namespace hone::sim {
namespace {

constexpr char kPath[] = "/sim/cut.db";
const Hash128 kSession = HashBytes("s");

db::Batch EventBatch(int number) {
  db::Batch batch;
  // Again and again: the same row is the same fact.
  db::Session row;
  row.id = kSession;
  row.request = row.versions = "{}";
  batch.sessions.push_back(row);
  db::Event event;
  event.id = HashBytes(std::to_string(number));
  event.session = kSession;
  event.type = "n";
  event.payload = std::to_string(number) + std::string(static_cast<size_t>(number % 7) * 900, '.');
  batch.events.push_back(std::move(event));
  return batch;
}

/// Appends until the power fails, again and again; empty, or what was lost.
std::string Lives(uint64_t seed, const char* pragma) {
  Random random(seed);
  FaultDisk disk;
  EXPECT_TRUE(db::FillNewLog(kPath, db::kMigrations).ok());
  std::set<std::string> acknowledged;
  int number = 0;
  for (int life = 0; life < 12; ++life) {
    auto log = db::OpenWriter(kPath, std::nullopt, true);
    if (!log.ok()) return StatusMessage(log.status());
    EXPECT_TRUE((*log)->connection().Execute(pragma).ok());
    std::set<std::string> found;
    const auto events = (*log)->EventsOf(kSession);
    if (!events.ok()) return StatusMessage(events.status());
    for (const db::Event& event : *events) found.insert(event.payload);
    for (const std::string& payload : acknowledged) {
      if (!found.contains(payload)) return "acknowledged and lost: " + payload.substr(0, 9);
    }
    disk.CutAfter(random.Between(1, 400));
    while (!disk.off()) {
      const db::Batch batch = EventBatch(number++);
      if ((*log)->Append(batch, db::Origin::kHere).ok())
        acknowledged.insert(batch.events[0].payload);
    }
    log->reset();
    disk.PowerOn(random);
  }
  return acknowledged.size() > 20 ? "" : "too little was written";
}

TEST(FaultDiskTest, WhatIsAcknowledgedSurvivesEveryCut) {
  for (uint64_t seed = 1; seed <= 60; ++seed) EXPECT_EQ(Lives(seed, ""), "") << seed;
}

TEST(FaultDiskTest, WithLessSyncingItDoesNot) {
  for (const char* pragma : {"PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF"}) {
    int lost = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) lost += !Lives(seed, pragma).empty();
    EXPECT_GT(lost, 5) << pragma;
  }
}

TEST(FaultDiskTest, AFullDiskRefusesAndGoesOnWhenThereIsSpace) {
  FaultDisk disk;
  ASSERT_TRUE(db::FillNewLog(kPath, db::kMigrations).ok());
  const auto log = db::OpenWriter(kPath, std::nullopt, true).value();
  ASSERT_TRUE(log->Append(EventBatch(1), db::Origin::kHere).ok());
  disk.SetFull(true);
  absl::Status refused;
  for (int i = 2; i < 50 && refused.ok(); ++i)
    refused = log->Append(EventBatch(i), db::Origin::kHere).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  disk.SetFull(false);
  EXPECT_TRUE(log->Append(EventBatch(99), db::Origin::kHere).ok());
  EXPECT_TRUE(log->Verify().value().problems.empty());
}

}  // namespace
}  // namespace hone::sim

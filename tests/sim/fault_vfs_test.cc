#include "tests/sim/fault_vfs.h"

#include <set>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "db/farm_store.h"
#include "db/sqlite_migrate.h"
#include "db/sqlite_open.h"

// Power cuts: what was acknowledged is there afterwards, and the log is sound.
namespace hone::sim {
namespace {

constexpr char kPath[] = "/sim/cut.db";
const Hash128 kSession = HashBytes("s");
const std::string kLost = "acknowledged and lost: ";

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
  for (int life = 0;; ++life) {
    auto log = db::OpenWriter(kPath, std::nullopt, true);
    if (!log.ok()) return StatusMessage(log.status());
    EXPECT_TRUE((*log)->connection().Execute(pragma).ok());
    std::set<std::string> found;
    const auto events = (*log)->EventsOf(kSession);
    if (!events.ok()) return StatusMessage(events.status());
    for (const db::Event& event : *events) found.insert(event.payload);
    for (const std::string& payload : acknowledged) {
      if (!found.contains(payload)) return kLost + payload.substr(0, 9);
    }
    if (life == 12) break;
    disk.CutAfter(random.Between(1, 400));
    while (!disk.off()) {
      const db::Batch batch = EventBatch(number++);
      if ((*log)->Append(batch, db::Origin::kHere).ok())
        acknowledged.insert(batch.events[0].payload);
    }
    log->reset();
    disk.PowerOn(random);
  }
  EXPECT_GT(acknowledged.size(), 20u);
  return "";
}

/// A unit as honed commits it: a lease and a fact, which stand or fall together.
db::FarmUnit LeaseUnit(int number) {
  db::FarmUnit unit;
  unit.changes.push_back(db::AddFarmLease{{.token = {7, static_cast<uint64_t>(number)},
                                           .session = kSession,
                                           .attempt = number,
                                           .worker = "w",
                                           .device = "cpu:0"}});
  unit.facts = EventBatch(number);
  return unit;
}

/// What is in the log: leases and facts by number. Not ok: it is damaged, or holds half a unit.
absl::StatusOr<std::set<int>> WholeUnits(db::LogFile& log, db::FarmStore& store) {
  HONE_ASSIGN_OR_RETURN(const db::VerifyReport report, log.Verify());
  if (!report.problems.empty()) return absl::DataLossError(report.problems.front());
  std::set<int> leases, facts;
  HONE_ASSIGN_OR_RETURN(const auto rows, store.LeasesOf(kSession));
  for (const db::FarmLease& lease : rows) leases.insert(static_cast<int>(lease.attempt));
  HONE_ASSIGN_OR_RETURN(const auto events, log.EventsOf(kSession));
  for (const db::Event& event : events) facts.insert(std::stoi(event.payload));
  if (leases != facts) return absl::DataLossError("half a unit");
  return leases;
}

/// Commits groups of units until the power fails, again and again; empty, or what was lost.
std::string LivesOfUnits(uint64_t seed, const char* pragma) {
  Random random(seed);
  FaultDisk disk;
  EXPECT_TRUE(db::FillNewLog(kPath, db::kMigrations).ok());
  std::set<int> acknowledged;
  int number = 0;
  for (int life = 0;; ++life) {
    auto log = db::OpenWriter(kPath, std::nullopt, true);
    if (!log.ok()) return StatusMessage(log.status());
    EXPECT_TRUE((*log)->connection().Execute(pragma).ok());
    auto store = db::FarmStore::Open(**log);
    if (!store.ok()) return StatusMessage(store.status());
    if (life == 0) {
      db::FarmUnit begin;
      begin.changes.push_back(db::AddFarmSession{{.id = kSession, .owner = "alice"}});
      EXPECT_TRUE((*store)->Commit({&begin}).ok());
    }
    const auto found = WholeUnits(**log, **store);
    if (!found.ok()) return StatusMessage(found.status());
    for (const int unit : acknowledged) {
      if (!found->contains(unit)) return kLost + std::to_string(unit);
    }
    if (life == 10) break;
    disk.CutAfter(random.Between(1, 250));
    while (!disk.off()) {
      std::vector<db::FarmUnit> units;
      for (int64_t n = random.Between(1, 4); n > 0; --n) units.push_back(LeaseUnit(number++));
      std::vector<const db::FarmUnit*> group;
      for (const db::FarmUnit& unit : units) group.push_back(&unit);
      const auto committed = (*store)->Commit(group);
      if (!committed.ok()) continue;
      for (size_t i = 0; i < units.size(); ++i) {
        EXPECT_TRUE((*committed)[i].ok()) << (*committed)[i];
        acknowledged.insert(number - static_cast<int>(units.size() - i));
      }
    }
    store->reset();
    log->reset();
    disk.PowerOn(random);
  }
  EXPECT_GT(acknowledged.size(), 20u);
  return "";
}

TEST(FaultDiskTest, WhatIsAcknowledgedSurvivesEveryCut) {
  for (uint64_t seed = 1; seed <= 60; ++seed) EXPECT_EQ(Lives(seed, ""), "") << seed;
}

TEST(FaultDiskTest, AFarmsUnitsAreWholeAndWhatWasAcknowledgedIsThereAfterEveryCut) {
  for (uint64_t seed = 1; seed <= 60; ++seed) EXPECT_EQ(LivesOfUnits(seed, ""), "") << seed;
}

/// Under how many of 20 seeds something is lost; what is damaged does not count.
int Losses(std::string (*lives)(uint64_t, const char*), const char* pragma) {
  int lost = 0, damaged = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string wrong = lives(seed, pragma);
    const bool is_loss = wrong.rfind(kLost, 0) == 0;
    lost += is_loss;
    damaged += !is_loss && !wrong.empty();
  }
  std::printf("%s: %d lost, %d damaged\n", pragma, lost, damaged);
  return lost;
}

TEST(FaultDiskTest, WithLessSyncingItDoesNot) {
  for (const char* pragma : {"PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF"}) {
    EXPECT_GT(Losses(Lives, pragma), 5) << pragma;
    EXPECT_GT(Losses(LivesOfUnits, pragma), 5) << pragma;
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

#include "server/session_driver.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "db/log_file.h"
#include "ir/text.h"
#include "tests/server/farm_harness.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

// How a session's row and its driver agree on its end.
namespace hone::server {
namespace {

constexpr Hash128 kSession{4, 4};
constexpr char kWorkload[] =
    "workload 1\n"
    "x0: f32[8,16] input range(-1,1)\n"
    "x1: f32[16,4] constant\n"
    "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";

class WatchingSink final : public FarmSink {
 public:
  void Send(StreamId, const proto::ServerMessage&) override {}
  void Close(StreamId, const absl::Status&) override {}
  void Deliver(const Delivery&) override { ++delivered; }
  void Changed() override { changed(); }
  std::function<void()> changed = [] {};
  std::atomic<int> delivered{0};
};

class SessionDriverTest : public ::testing::Test {
 protected:
  void Begin() {
    sink_.changed = [this] {
      // First what a watcher asks, then what is durable.
      const SessionDriver* const driver = driver_.load();
      const bool ended = driver != nullptr && driver->ended();
      const auto row = store_->FindFarmSession(kSession).value();
      if (!row || row->state < SessionState::kFinished) return;
      end_shown_ = ended;
      over_ = true;
    };
    loop_.Start();
  }
  void Do(const db::FarmChange& change) {
    ASSERT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
                                unit.changes.push_back(change);
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
  }
  /// The log's row of the session.
  void Store(SessionState state) {
    db::FarmSession row = row_;
    row.state = state;
    Do(db::AddFarmSession{row});
  }
  void CountFault(const Hash128& session, int faults) {
    Do(db::PutFarmSuspect{{.session = session, .attempt = db::kSpacesOfSession, .losses = faults}});
  }
  void ConnectDevice() {
    loop_.Post([](Farm& farm, int64_t now_ns) {
      proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
      hello.device = {.name = "cpu:0",
                      .device_class = "class",
                      .fingerprint = "f",
                      .target = FarmHarness::kTarget,
                      .cores = 1};
      farm.OnHello(1, "w1", hello, now_ns);
    });
  }
  SessionState Await() {
    for (int i = 0; i < 1000 && !over_.load(); ++i) clock_.SleepNs(10'000'000);
    return store_row().state;
  }
  db::FarmSession store_row() {
    db::FarmSession row;
    EXPECT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
                                row = store.FindFarmSession(kSession).value().value();
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
    return row;
  }

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  SystemWallClock wall_clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  std::unique_ptr<db::FarmStore> store_ = db::FarmStore::Open(*log_).value();
  std::unique_ptr<SharedReader> reader_ = SharedReader::Open(folder_ / "t.db").value();
  NoLeases leases_;
  WatchingSink sink_;
  Farm farm_{{}, {.protocol = 1, .builder = "b"}, 1, leases_};
  FarmLoop loop_{farm_, *store_, sink_, clock_};
  search::SharedTuners tuners_;
  SpaceTurns turns_;
  const DriverContext context_{loop_, *reader_, clock_, wall_clock_, "b", "{}", &tuners_, &turns_};
  const db::FarmSession row_{.id = kSession, .owner = "alice", .project = "p"};
  std::atomic<const SessionDriver*> driver_{nullptr};
  std::atomic<bool> over_{false}, end_shown_{false};
};

TEST_F(SessionDriverTest, ACancelThatIsDurableIsNotUndoneByItsBegin) {
  Begin();
  // The client was answered; the driver was just about to begin.
  Store(SessionState::kCancelling);
  SessionDriver driver(context_, row_, {.target = FarmHarness::kTarget});
  driver_ = &driver;
  ConnectDevice();
  EXPECT_EQ(Await(), SessionState::kCancelled);
  EXPECT_TRUE(driver.ended());
  driver_ = nullptr;
}

TEST_F(SessionDriverTest, ACancelThatIsDurableIsNotUndoneByItsEnd) {
  Begin();
  db::FarmSession row = row_;
  row.state = SessionState::kCancelling;
  row.reason = "cancelled by bob";
  Do(db::AddFarmSession{row});
  // Its driver has not heard of that, and its date is over.
  SessionDriver driver(context_, row_, {.target = FarmHarness::kTarget, .until_unix_ms = 1});
  driver_ = &driver;
  EXPECT_EQ(Await(), SessionState::kCancelled);
  EXPECT_EQ(store_row().reason, "cancelled by bob");
  driver.Stop();
  EXPECT_EQ(driver.Info().reason, "cancelled by bob");
  driver_ = nullptr;
}

TEST_F(SessionDriverTest, AnEndWaitsForWhatBecomesOfACancelOfItsCommit) {
  for (const bool durable : {false, true}) {
    SCOPED_TRACE(durable);
    if (!durable) Begin();
    db::FarmSession row = row_;
    row.id = durable ? Hash128{4, 5} : kSession;
    Do(db::AddFarmSession{row});
    constexpr int64_t kDateMs = 1'000'000;
    FakeClock calendar(0, (kDateMs - 1) * 1'000'000);
    const DriverContext context{loop_, *reader_, clock_, calendar, "b", "{}", &tuners_, &turns_};
    SessionDriver driver(context, row, {.target = FarmHarness::kTarget, .until_unix_ms = kDateMs});
    const auto prepared = [&](bool value) {
      loop_.Post([&driver, value](Farm&, int64_t) { driver.SetCancelPrepared(value); });
    };
    prepared(true);
    calendar.JumpWallNs(1'000'000);
    clock_.SleepNs(300'000'000);
    EXPECT_FALSE(driver.ended());
    if (durable) Do(db::SetFarmSession{.id = row.id, .state = SessionState::kCancelling});
    prepared(false);
    for (int i = 0; i < 1000 && !driver.ended(); ++i) clock_.SleepNs(10'000'000);
    driver.Stop();
    EXPECT_EQ(driver.Info().state, durable ? SessionState::kCancelled : SessionState::kFailed);
  }
}

TEST_F(SessionDriverTest, WhoseItIsStaysInItsPlaceWhileItsRowChanges) {
  // Whoever forgets ended sessions reads it while the thread still writes the end down.
  db::FarmSession row = row_;
  row.owner = std::string(100, 'o');
  row.digest = std::string(100, 'd');
  Begin();
  Store(SessionState::kWaiting);
  // Its date is over: its row changes once, so that no buffer comes back to where it was.
  SessionDriver driver(context_, row, {.target = FarmHarness::kTarget, .until_unix_ms = 1});
  const char* const owner = driver.owner().data();
  const char* const digest = driver.digest().data();
  driver_ = &driver;
  EXPECT_EQ(Await(), SessionState::kFailed);
  driver.Stop();
  EXPECT_EQ(driver.owner().data(), owner);
  EXPECT_EQ(driver.digest().data(), digest);
  EXPECT_EQ(driver.owner(), row.owner);
  EXPECT_EQ(driver.Info().state, SessionState::kFailed);
  driver_ = nullptr;
}

TEST_F(SessionDriverTest, WhatWaitsForADeviceEndsAtItsDate) {
  Begin();
  Store(SessionState::kWaiting);
  constexpr int64_t kDateMs = 1'000'000;
  FakeClock calendar(0, (kDateMs - 1) * 1'000'000);
  const DriverContext context{loop_, *reader_, clock_, calendar, "b", "{}", &tuners_, &turns_};
  SessionDriver driver(context, row_, {.target = FarmHarness::kTarget, .until_unix_ms = kDateMs});
  driver_ = &driver;
  clock_.SleepNs(300'000'000);
  EXPECT_EQ(store_row().state, SessionState::kWaiting);
  calendar.JumpWallNs(1'000'000);
  EXPECT_EQ(Await(), SessionState::kFailed);
  EXPECT_EQ(store_row().reason, "no device came before its --until");
  driver_ = nullptr;
}

// The farm's deadline is on honed's own clock; the date is where the wall clock has it now.
TEST_F(SessionDriverTest, AWallClockThatIsSetNeitherEndsItEarlyNorLate) {
  Begin();
  Store(SessionState::kWaiting);
  constexpr int64_t kLeftMs = 4000;
  constexpr int64_t kDateMs = 1'000'000;
  // It stands still, as one that is set back ever again.
  FakeClock calendar(0, (kDateMs - kLeftMs) * 1'000'000);
  const DriverContext context{loop_, *reader_, clock_, calendar, "b", "{}", &tuners_, &turns_};
  SessionDriver driver(context, row_,
                       {.tasks = {{kWorkload, "w", 1, 1e6, 0}},
                        .target = FarmHarness::kTarget,
                        .until_unix_ms = kDateMs});
  driver_ = &driver;
  ConnectDevice();
  // What it submits waits: the device asks for nothing.
  const int64_t start_ns = clock_.NowNs();
  while (clock_.NowNs() - start_ns < (kLeftMs + 1500) * 1'000'000 && !over_ &&
         sink_.delivered == 0) {
    clock_.SleepNs(10'000'000);
  }
  EXPECT_EQ(sink_.delivered, 0) << "answered as if its date had come";
  EXPECT_EQ(store_row().state, SessionState::kRunning) << store_row().reason;
  calendar.JumpWallNs(kLeftMs * 1'000'000);
  EXPECT_EQ(Await(), SessionState::kFinished);
  EXPECT_EQ(store_row().reason, "date reached");
  driver_ = nullptr;
}

// An older Hone could write the end of a session without its leaving; nobody measures what such a
// member left open.
TEST_F(SessionDriverTest, OneThatHadFinishedLeavesItsSearch) {
  const Hash128 stream{7, 7};
  const std::string request = "{\"farm_search\":\"s\"}";
  search::SharedTuners::Request search{.text = request, .versions = "{}"};
  std::string error;
  ASSERT_TRUE(ir::ParseTarget(FarmHarness::kTarget, &search.target, &error)) << error;
  search::Tuner tuner(search.target, {});
  const auto tasks =
      TasksOf({.tasks = {{kWorkload, "w", 1, 1e6, 0}}, .target = FarmHarness::kTarget});
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  db::Batch batch;
  batch.workloads.push_back({(*tasks)[0].hash, ir::ToText(*(*tasks)[0].workload), 1, 1});
  for (const Hash128& id : {stream, kSession}) {
    db::Session row;
    row.id = id;
    row.request = id == stream ? request : "{}";
    row.versions = "{}";
    batch.sessions.push_back(row);
  }
  for (const Hash128& member : {kSession, Hash128{5, 5}}) {
    tuner.Join({.member = member, .tasks = *tasks});
    batch.events.push_back(search::StreamEvent(stream, tuner.EventOf(member)));
  }
  batch.events.push_back(search::StreamEvent(kSession, search::FinishedEvent{"trials used up"}));
  ASSERT_TRUE(log_->Append(batch).ok());
  tuners_.GoOn({kSession, {5, 5}});
  Begin();
  Store(SessionState::kRunning);
  db::FarmSession row = row_;
  row.state = SessionState::kRunning;
  SessionDriver driver(context_, row, {.target = FarmHarness::kTarget});
  driver_ = &driver;
  EXPECT_EQ(Await(), SessionState::kFinished);
  EXPECT_EQ(store_row().reason, "trials used up");
  driver_ = nullptr;
  driver.Stop();
  SessionLog log(*reader_, loop_);
  const auto opened = tuners_.Get(log, search);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->tuner.Members(), (std::vector<Hash128>{{5, 5}}));
}

TEST_F(SessionDriverTest, WhatNoDeviceCanRunWaitsForItsSecondsAndEnds) {
  Begin();
  Store(SessionState::kWaiting);
  ConnectDevice();  // of another class
  SessionDriver driver(
      context_, row_,
      {.target = FarmHarness::kTarget, .device_class = "nosuch", .seconds = 3, .trials = 9});
  driver_ = &driver;
  EXPECT_EQ(driver.Info().reason, "waiting for a device of class 'nosuch' that can run it");
  clock_.SleepNs(200'000'000);
  EXPECT_EQ(store_row().state, SessionState::kWaiting);
  EXPECT_EQ(Await(), SessionState::kFailed);
  EXPECT_THAT(store_row().reason, ::testing::HasSubstr("came within its 3 s: device class nosuch"));
  driver_ = nullptr;
}

TEST_F(SessionDriverTest, AnEndIsKnownBeforeWatchersAreToldToLook) {
  Begin();
  Store(SessionState::kWaiting);
  // Without tasks: it begins and fails.
  proto::SessionSpec spec{.target = FarmHarness::kTarget};
  spec.tasks.push_back({.workload = "no workload"});
  SessionDriver driver(context_, row_, spec);
  driver_ = &driver;
  ConnectDevice();
  EXPECT_EQ(Await(), SessionState::kFailed);
  EXPECT_TRUE(end_shown_.load()) << "a watcher looked and would wait for ever";
  driver_ = nullptr;
}

TEST_F(SessionDriverTest, WhatEndedHonedAgainAndAgainFailsAlone) {
  Begin();
  Store(SessionState::kRunning);
  CountFault(kSession, SpaceTurns::kMostFaults);
  db::FarmSession row = row_;
  row.state = SessionState::kRunning;
  row.device_class = "class";
  row.fingerprint = "f";
  SessionDriver driver(context_, row, {.target = FarmHarness::kTarget});
  driver_ = &driver;
  EXPECT_EQ(Await(), SessionState::kFailed);
  EXPECT_THAT(store_row().reason, ::testing::HasSubstr("honed has ended 3 times"));
  driver_ = nullptr;
}

// Whoever comes first replays what all of a search's members asked for.
TEST_F(SessionDriverTest, IsStruckForItsOwnSpacesAndNotForTheSearchThatItJoins) {
  std::atomic<bool> counted{false}, began_before{false};
  sink_.changed = [&] {
    if (counted || !store_->FindSuspect(kSession, db::kSpacesOfSession).value()) return;
    const std::vector<db::StoredSession> sessions = log_->Sessions().value();
    for (const db::StoredSession& s : sessions) {
      if (s.session.request.find("farm_search") != std::string::npos) began_before = true;
    }
    counted = true;
  };
  loop_.Start();
  Store(SessionState::kWaiting);
  auto driver = std::make_unique<SessionDriver>(
      context_, row_,
      proto::SessionSpec{.tasks = {{kWorkload, "w", 1, 1e6, 0}}, .target = FarmHarness::kTarget});
  ConnectDevice();
  for (int i = 0; i < 1000 && !counted; ++i) clock_.SleepNs(10'000'000);
  EXPECT_TRUE(counted);
  EXPECT_TRUE(began_before) << "the search was opened under this session's fault";
  driver.reset();
  loop_.Stop();
}

TEST_F(SessionDriverTest, WhoWaitsForItsTurnEndsAtItsDate) {
  Begin();
  Store(SessionState::kRunning);
  constexpr Hash128 kOther{5, 5};
  Do(db::AddFarmSession{{.id = kOther, .owner = "alice", .project = "p"}});
  for (const Hash128& id : {kSession, kOther}) CountFault(id, 1);
  constexpr int64_t kDateMs = 1'000'000;
  FakeClock calendar(0, (kDateMs - 1) * 1'000'000);
  const DriverContext context{loop_, *reader_, clock_, calendar, "b", "{}", &tuners_, &turns_};
  db::FarmSession row = row_;
  row.state = SessionState::kRunning;
  row.device_class = "class";
  row.fingerprint = "f";
  const auto goes = [] { return absl::OkStatus(); };
  const absl::Status other = turns_.Run(loop_, kOther, goes, [&](const auto&) {
    SessionDriver driver(context, row,
                         {.tasks = {{kWorkload, "w", 1, 1e6, 0}},
                          .target = FarmHarness::kTarget,
                          .until_unix_ms = kDateMs});
    driver_ = &driver;
    clock_.SleepNs(300'000'000);
    EXPECT_EQ(store_row().state, SessionState::kRunning);
    calendar.JumpWallNs(1'000'000);
    EXPECT_EQ(Await(), SessionState::kFailed);
    EXPECT_THAT(store_row().reason, ::testing::HasSubstr("its --until passed while"));
    driver_ = nullptr;
    return absl::OkStatus();
  });
  EXPECT_TRUE(other.ok()) << other;
}

}  // namespace
}  // namespace hone::server

#include "server/farm_loop.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/thread_name.h"
#include "base/versions.h"
#include "db/log_file.h"
#include "tests/server/fullable_store.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

// What a loop does whose log cannot be written: who only asked is told, who waits for a commit
// waits, and an end of honed is none the less an end.
namespace hone::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The machine's, which a test sets forward: as after a pause of all its threads.
class JumpingClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override { return clock_.NowNs() + ahead_ns_.load(); }
  void SleepNs(int64_t duration_ns) const override { clock_.SleepNs(duration_ns); }
  void Jump(int64_t ns) { ahead_ns_.fetch_add(ns); }

 private:
  SystemMonotonicClock clock_;
  std::atomic<int64_t> ahead_ns_{0};
};

class FarmLoopTest : public ::testing::Test {
 protected:
  FarmLoopTest() { loop_.Start(); }

  static absl::Status Change(Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
    unit.changes.push_back(db::FarmAudit{.actor = "a", .action = "x"});
    return absl::OkStatus();
  }
  static absl::Status Read(Farm&, db::FarmStore&, db::FarmUnit&, int64_t) {
    return absl::OkStatus();
  }
  /// Keeps the loop from its next works until Go.
  void Hold() {
    std::promise<void> held;
    auto go = std::make_shared<std::future<void>>(go_.get_future());
    loop_.Post({.prepare =
                    [&held, go](Farm&, db::FarmStore&, db::FarmUnit&, int64_t) {
                      held.set_value();
                      go->wait();
                      return absl::OkStatus();
                    },
                .done = {}});
    held.get_future().wait();
  }
  std::future<absl::Status> Ask(decltype(&Read) prepare) {
    auto asked = std::async(std::launch::async, [this, prepare] {
      return loop_.Ask({.prepare = prepare, .done = {}});
    });
    clock_.SleepNs(20'000'000);  // it is in the queue
    return asked;
  }
  std::future<absl::Status> Run(decltype(&Read) prepare) {
    return std::async(std::launch::async,
                      [this, prepare] { return loop_.Run({.prepare = prepare, .done = {}}); });
  }
  void AwaitTrouble() {
    for (int i = 0; i < 10'000 && loop_.trouble().empty(); ++i) clock_.SleepNs(1'000'000);
    EXPECT_FALSE(loop_.trouble().empty());
  }

  TemporaryFolder folder_;
  JumpingClock clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  FullableStore store_{db::FarmStore::Open(*log_).value()};
  NoLeases leases_;
  NoSink sink_;
  Farm farm_{{}, {.protocol = 1}, 1, leases_};
  std::promise<void> go_;
  FarmLoop loop_{farm_, store_, sink_, clock_};
};

// A thousand workers wait for its turns, and it sleeps in each sync.
TEST_F(FarmLoopTest, ItsThreadGoesFirstWhereThatIsAllowed) {
  const int usual = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  int nice = 0;
  ASSERT_TRUE(loop_
                  .Run({.prepare =
                            [&nice](Farm&, db::FarmStore&, db::FarmUnit&, int64_t) {
                              nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
                              return absl::OkStatus();
                            },
                        .done = {}})
                  .ok());
  int raised = 0;
  std::thread([&raised] {
    RaiseThisThread();
    raised = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  }).join();
  EXPECT_EQ(nice, raised);
  if (raised == usual) GTEST_SKIP() << "no thread may be raised here (it takes CAP_SYS_NICE)";
}

TEST_F(FarmLoopTest, WhoAskedBeforeTheDiskFilledIsToldAtOnce) {
  Hold();
  auto change = Run(Change);
  clock_.SleepNs(20'000'000);
  // In the batch whose commit fails.
  auto read = Ask(Read);
  auto write = Ask(Change);
  store_.SetFull(true);
  go_.set_value();
  ASSERT_EQ(read.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(read.get().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(write.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(write.get().code(), absl::StatusCode::kResourceExhausted);
  // Whose change is kept learns what becomes of it.
  EXPECT_EQ(change.wait_for(milliseconds(300)), std::future_status::timeout);
  store_.SetFull(false);
  EXPECT_TRUE(change.get().ok());
  EXPECT_EQ(store_.Audit(10).value().size(), 1u) << "what was refused has no effect";
}

TEST_F(FarmLoopTest, ACallOfAnIdleFarmThatMeetsAFullDiskIsRefusedAndNotTriedAgain) {
  store_.SetFull(true);
  auto write = Ask(Change);
  ASSERT_EQ(write.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(write.get().code(), absl::StatusCode::kResourceExhausted);
  // Nothing is left to be written, and yet everybody is told until there is space.
  const int64_t refused = store_.refused();
  while (store_.refused() < refused + 2) clock_.SleepNs(1'000'000);
  EXPECT_FALSE(loop_.trouble().empty());
  EXPECT_EQ(Ask(Change).get().code(), absl::StatusCode::kResourceExhausted);
  store_.SetFull(false);
  while (!loop_.trouble().empty()) clock_.SleepNs(1'000'000);
  EXPECT_TRUE(store_.Audit(10).value().empty());
  EXPECT_TRUE(Ask(Change).get().ok());
  EXPECT_EQ(store_.Audit(10).value().size(), 1u);
}

// Memory and store say the same of a device whatever becomes of a call.
TEST_F(FarmLoopTest, WhatACallDidToTheFarmIsTakenBack) {
  const db::FarmDevice out{"w", "cpu:0", DeviceState::kQuarantined, "two failed"};
  loop_.Post([&](Farm& farm, int64_t now_ns) {
    db::FarmState state;
    state.devices = {out};
    farm.Restore(state, now_ns);
  });
  std::function<void(Farm&)> before;
  bool refuse = false;
  const auto ask = [&](DeviceTrigger event) {
    return loop_.Ask({.prepare = [&](Farm& farm, db::FarmStore&, db::FarmUnit& unit,
                                     int64_t now_ns) -> absl::Status {
                        before = farm.Remember("w", "cpu:0");
                        // A second row of this name is what the store refuses.
                        if (refuse)
                          unit.changes.assign(2, db::FarmRequest{.caller = "c", .id = "1"});
                        return farm.SetDevice("w", "cpu:0", event, "by b", now_ns);
                      },
                      .done = {},
                      .undo = [&](Farm& farm) { before(farm); }});
  };
  store_.SetFull(true);
  EXPECT_EQ(ask(DeviceTrigger::kUndrain).code(), absl::StatusCode::kResourceExhausted);
  store_.SetFull(false);
  while (!loop_.trouble().empty()) clock_.SleepNs(1'000'000);
  EXPECT_EQ(ask(DeviceTrigger::kDrain).code(), absl::StatusCode::kFailedPrecondition)
      << "it is in quarantine still";
  refuse = true;
  EXPECT_EQ(ask(DeviceTrigger::kUndrain).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ask(DeviceTrigger::kDrain).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(store_.Load().value().devices.empty());
  refuse = false;
  EXPECT_TRUE(ask(DeviceTrigger::kUndrain).ok());
  EXPECT_TRUE(ask(DeviceTrigger::kDrain).ok());
}

TEST_F(FarmLoopTest, WhoAskedWhileTheCommitFailedIsToldAtOnce) {
  store_.SetFull(true);
  auto change = Run(Change);
  AwaitTrouble();
  // As one that had looked just before: Ask itself refuses from here on.
  EXPECT_EQ(Ask(Change).get().code(), absl::StatusCode::kResourceExhausted);
  std::promise<absl::Status> late;
  loop_.Post({.prepare = Change,
              .done = [&](Farm&, const absl::Status& status, int64_t) { late.set_value(status); },
              .asked = true});
  auto answer = late.get_future();
  ASSERT_EQ(answer.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(answer.get().code(), absl::StatusCode::kResourceExhausted);
  // Who does not ask, waits.
  auto patient = Run(Read);
  EXPECT_EQ(patient.wait_for(milliseconds(300)), std::future_status::timeout);
  store_.SetFull(false);
  EXPECT_TRUE(patient.get().ok());
  EXPECT_TRUE(change.get().ok());
  EXPECT_EQ(store_.Audit(10).value().size(), 1u) << "what was refused has no effect";
}

TEST_F(FarmLoopTest, AnIdleFarmTellsThatItsLogIsGoneAndGoesOnWhenItIsBack) {
  ASSERT_TRUE(Ask(Change).get().ok());
  std::filesystem::rename(folder_ / "t.db", folder_ / "aside.db");
  AwaitTrouble();
  EXPECT_NE(loop_.trouble().find("was moved or removed"), std::string::npos) << loop_.trouble();
  EXPECT_EQ(Ask(Change).get().code(), absl::StatusCode::kResourceExhausted);
  auto change = Run(Change);
  EXPECT_EQ(change.wait_for(milliseconds(300)), std::future_status::timeout);
  std::filesystem::rename(folder_ / "aside.db", folder_ / "t.db");
  EXPECT_TRUE(change.get().ok());
  EXPECT_TRUE(loop_.trouble().empty());
  EXPECT_EQ(store_.Audit(10).value().size(), 2u) << "what was refused has no effect";
}

TEST_F(FarmLoopTest, AFarmTellsThatAnotherLogWasCopiedOntoItsOwn) {
  ASSERT_TRUE(Ask(Change).get().ok());
  const std::string other = folder_ / "other.db";
  ASSERT_TRUE(db::OpenLog(other, {.mode = db::OpenMode::kWrite}).ok());
  std::ofstream(folder_ / "t.db", std::ios::binary | std::ios::trunc)
      << std::ifstream(other, std::ios::binary).rdbuf() << "and more than the farm's has";
  AwaitTrouble();
  EXPECT_NE(loop_.trouble().find("t.db' was overwritten"), std::string::npos) << loop_.trouble();
  EXPECT_EQ(Ask(Change).get().code(), absl::StatusCode::kResourceExhausted);
}

// However short a time ago the loop looked.
TEST_F(FarmLoopTest, WhoAsksAFarmWhoseLogIsGoneIsToldAtOnce) {
  for (int turn = 0; turn < 5; ++turn) {
    ASSERT_TRUE(loop_.Run({.prepare = Read, .done = {}}).ok());
    std::filesystem::rename(folder_ / "t.db", folder_ / "aside.db");
    EXPECT_EQ(loop_.Ask({.prepare = Read, .done = {}}).code(), absl::StatusCode::kResourceExhausted)
        << turn;
    std::filesystem::rename(folder_ / "aside.db", folder_ / "t.db");
    ASSERT_TRUE(loop_.Run({.prepare = Change, .done = {}}).ok());
  }
}

TEST_F(FarmLoopTest, AnEndDoesNotWaitForSpace) {
  store_.SetFull(true);
  auto change = Run(Change);
  AwaitTrouble();
  auto behind = Run(Change);
  loop_.StopWhenStuck();
  for (auto* waiting : {&change, &behind}) {
    ASSERT_EQ(waiting->wait_for(seconds(10)), std::future_status::ready);
    EXPECT_EQ(waiting->get().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(Run(Change).get().code(), absl::StatusCode::kCancelled);
  loop_.Stop();
}

TEST_F(FarmLoopTest, AnEndWithSpaceCommitsWhatComesUntilTheDiskFills) {
  loop_.StopWhenStuck();
  EXPECT_TRUE(Run(Change).get().ok()) << "the last commits of sessions";
  store_.SetFull(true);
  auto change = Run(Change);
  ASSERT_EQ(change.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(change.get().code(), absl::StatusCode::kCancelled);
}

// A stopped process or a paused machine: what workers said lies in sockets.
TEST_F(FarmLoopTest, APauseOfHonedLosesNoWorker) {
  const auto connected = [&] {
    std::vector<proto::DeviceInfo> devices;
    EXPECT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm& farm, db::FarmStore&, db::FarmUnit&, int64_t) {
                                devices = farm.Devices();
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
    return devices.size() == 1 && devices[0].connected;
  };
  loop_.Post([](Farm& farm, int64_t now_ns) {
    proto::Hello hello{.protocol = 1, .measurement_policy = kCpuVersions.measurement_policy};
    hello.device = {.name = "cpu:0", .device_class = "class", .target = "cpu:avx2,threads=1"};
    farm.OnHello(1, "w", hello, now_ns);
  });
  ASSERT_TRUE(connected());
  for (int pause = 0; pause < 2; ++pause) {
    clock_.Jump(60'000'000'000);
    clock_.SleepNs(250'000'000);  // two ticks
    EXPECT_TRUE(connected());
  }
}

}  // namespace
}  // namespace hone::server

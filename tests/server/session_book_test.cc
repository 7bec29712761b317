#include "server/session_book.h"

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "db/log_file.h"
#include "ir/workload_cost.h"
#include "measure/device_probe.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/session_driver.h"
#include "tests/server/fullable_store.h"
#include "tests/server/held_loop.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

// Which requests become sessions, whose they are, and what a start of honed does with stored ones.
namespace hone::server {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] =
    "workload 1\n"
    "x0: f32[8,16] input range(-1,1)\n"
    "x1: f32[16,4] constant\n"
    "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";

class SessionBookTest : public ::testing::Test {
 protected:
  SessionBookTest() { loop_.Start(); }
  ~SessionBookTest() override {
    book_.StopAll();
    loop_.Stop();
  }

  static proto::SessionSpec Spec(const std::string& model) {
    proto::SessionSpec spec{.model = model};
    spec.tasks = {{kWorkload, "w", 1, 1e6, 0}};
    spec.target = "cpu:avx2,threads=1";
    spec.trials = 10;
    return spec;
  }
  absl::Status Put(db::FarmSession row) {
    return loop_.Run({.prepare =
                          [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
                            unit.changes.push_back(db::AddFarmSession{row});
                            return absl::OkStatus();
                          },
                      .done = [](Farm&, const absl::Status&, int64_t) {}});
  }

  std::optional<db::FarmSession> Stored(const Hash128& id) {
    std::optional<db::FarmSession> row;
    const absl::Status found =
        loop_.Run({.prepare = [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
          row = store.FindFarmSession(id).value();
          return absl::OkStatus();
        }});
    EXPECT_TRUE(found.ok()) << found;
    return row;
  }

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  SystemWallClock wall_clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  FullableStore store_{db::FarmStore::Open(*log_).value()};
  std::unique_ptr<SharedReader> reader_ = SharedReader::Open(folder_ / "t.db").value();
  NoLeases leases_;
  NoSink sink_;
  Farm farm_{{}, {.protocol = 1}, 1, leases_};
  FarmLoop loop_{farm_, store_, sink_, clock_};
  SessionBook book_{DriverContext{loop_, *reader_, clock_, wall_clock_, "b", "{}"}};
};

TEST_F(SessionBookTest, AnEqualRequestJoinsAndARetryHasTheFirstAnswer) {
  const auto first = book_.Start({"alice", "1"}, Spec("a"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->joined);
  for (const char* id : {"1", "2", "2", "1"}) {
    const auto again = book_.Start({"alice", id}, Spec("a"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->id, first->id);
    EXPECT_EQ(again->joined, std::string_view(id) == "2") << "as it was answered first";
  }
  EXPECT_NE(book_.Start({"bob", "1"}, Spec("a"))->id, first->id) << "another's is another";
  EXPECT_EQ(book_.Start({"alice", "1"}, Spec("b")).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(SessionBookTest, WhoLooksAtOneThatWaitsSeesWhatFor) {
  const Hash128 id = book_.Start({"alice", "1"}, Spec("a"))->id;
  const std::string waits = "waiting for a device that can run it";
  EXPECT_EQ(book_.Find(id, "alice")->reason, waits);
  EXPECT_EQ(book_.List(10, "alice")->at(0).reason, waits);
}

TEST_F(SessionBookTest, NobodyJoinsWhatIsBeingCancelled) {
  const auto first = book_.Start({"alice", "1"}, Spec("a"));
  ASSERT_TRUE(first.ok()) << first.status();
  book_.StopAll();  // so that nothing empties it
  ASSERT_TRUE(book_.Cancel({"alice", "2"}, first->id, false, "alice").ok());
  ASSERT_EQ(Stored(first->id)->state, db::SessionState::kCancelling);
  const auto again = book_.Start({"alice", "3"}, Spec("a"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->joined);
  EXPECT_NE(again->id, first->id);
}

TEST_F(SessionBookTest, WhoCancelledStaysTheReason) {
  const Hash128 id = book_.Start({"alice", "1"}, Spec("a"))->id;
  ASSERT_TRUE(book_.Cancel({"admin/bob", "2"}, id, true, "x").ok());
  while (Stored(id)->state == db::SessionState::kCancelling) clock_.SleepNs(10'000'000);
  EXPECT_EQ(Stored(id)->state, db::SessionState::kCancelled);
  EXPECT_EQ(Stored(id)->reason, "cancelled by admin/bob");
  EXPECT_EQ(book_.Find(id, "alice")->reason, "cancelled by admin/bob");
}

// Whoever joins a session that was accepted a moment ago can cancel it: its driver is there as soon
// as anybody can know of it. One that came later would wait for a device, cancelled or not.
TEST_F(SessionBookTest, OneThatCanBeJoinedHasItsDriver) {
  for (size_t round = 1; round <= 20; ++round) {
    const std::string number = std::to_string(round);
    std::promise<std::string> first_seen;
    const std::function<void()> look = [&] {
      loop_.Post([&](Farm&, int64_t) {
        const auto listed = book_.List(100, "alice");
        if (!listed.ok() || listed->size() < round) return look();
        first_seen.set_value(listed->front().reason);
      });
    };
    look();
    auto starting = std::async(std::launch::async, [&] {
      return book_.Start({"alice", number}, Spec(number));
    });
    EXPECT_EQ(first_seen.get_future().get(), "waiting for a device that can run it") << round;
    ASSERT_TRUE(starting.get().ok());
  }
}

TEST_F(SessionBookTest, ACancelOfWhatIsOverIsNotInTheAudit) {
  const Hash128 id = book_.Start({"alice", "1"}, Spec("a"))->id;
  for (const char* request : {"2", "3"}) {
    ASSERT_TRUE(book_.Cancel({"alice", request}, id, false, "x").ok());
    while (Stored(id)->state == db::SessionState::kCancelling) clock_.SleepNs(10'000'000);
  }
  std::vector<db::FarmAudit> audit;
  const absl::Status read =
      loop_.Run({.prepare = [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
        audit = store.Audit(10).value();
        return absl::OkStatus();
      }});
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(audit.size(), 1u) << "once it was cancelled, and once there was nothing to cancel";
}

TEST_F(SessionBookTest, ARequestNamesEachWorkloadOnce) {
  proto::SessionSpec spec = Spec("a");
  spec.tasks.push_back(spec.tasks.front());
  spec.tasks.back().name = "another name";
  const auto refused = book_.Start({"alice", "1"}, spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(refused.status()),
              HasSubstr("tasks[1].workload: the same as tasks[0]"));
}

TEST_F(SessionBookTest, OneRequestIdNamesOneSpecToTheLastName) {
  proto::SessionSpec spec = Spec("a");
  ASSERT_TRUE(book_.Start({"alice", "1"}, spec).ok());
  ASSERT_TRUE(book_.Start({"alice", "1"}, spec).ok());
  spec.tasks[0].name = "another name";
  EXPECT_EQ(book_.Start({"alice", "1"}, spec).status().code(), absl::StatusCode::kAlreadyExists);
}

// What tasks are chosen by is the same as on one machine, whatever the client says.
TEST_F(SessionBookTest, WhatATaskCostsIsCountedHere) {
  for (const char* text : {"cpu:avx2,threads=1", "cuda:sm_90a"}) {
    proto::SessionSpec spec = Spec("a");
    spec.target = text;
    spec.tasks[0] = {kWorkload, "w", 3, /*flop=*/1, /*bound_ns=*/1e9};
    const auto tasks = TasksOf(spec);
    ASSERT_TRUE(tasks.ok()) << tasks.status();
    ir::Target target;
    std::string why;
    ASSERT_TRUE(ir::ParseTarget(spec.target, &target, &why)) << why;
    const search::TuningTask local = search::TaskOf((*tasks)[0].workload, target);
    EXPECT_GT(local.flop, 0);
    EXPECT_GT(local.bound_ns, 0);
    EXPECT_EQ((*tasks)[0].flop, local.flop);
    EXPECT_EQ((*tasks)[0].bound_ns, local.bound_ns) << text;
    const auto nominal = measure::ProbesOfKinds().Of(target).Nominal(target);
    EXPECT_EQ(nominal.has_value(), target.kind == "cuda");
    if (nominal) {
      EXPECT_EQ(local.bound_ns, nominal->BoundNs(ir::CostOf(*local.workload)));
    }
    EXPECT_EQ((*tasks)[0].hash, local.hash);
    EXPECT_EQ((*tasks)[0].count, 3);
  }
}

// What a Space costs grows with the square of the Stages, and no kernel of a model has so many.
TEST_F(SessionBookTest, AWorkloadOfTooManyStagesIsRefused) {
  const auto chain = [](size_t stages) {
    std::string text = "workload 1\nx0: f32[1,8] input range(0,1)\n";
    for (size_t i = 0; i < stages; ++i) {
      text += fmt::format("s{}: f32[1,8]{} = {}[i0, i1] + x0[i0, i1]\n", i,
                          i + 1 == stages ? " output" : "",
                          i == 0 ? "x0" : "s" + std::to_string(i - 1));
    }
    return text;
  };
  proto::SessionSpec spec = Spec("a");
  spec.tasks[0].workload = chain(proto::kMaxStages);
  EXPECT_TRUE(TasksOf(spec).ok()) << TasksOf(spec).status();
  spec.tasks[0].workload = chain(proto::kMaxStages + 1);
  const auto refused = book_.Start({"alice", "1"}, spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(refused.status()), HasSubstr("it has 257 Stages, 256 are possible"));
}

// Thousands of specs of megabytes: whoever lists them shall not hold the farm up.
TEST_F(SessionBookTest, ListsAreReadBesideTheLoop) {
  const Hash128 running = book_.Start({"alice", "1"}, Spec("running"))->id;
  db::FarmSession ended{.id = {1, 1}, .owner = "alice", .project = "p", .digest = "d"};
  ended.spec = proto::EncodeSpec(Spec("ended"));
  ended.state = db::SessionState::kFinished;
  ASSERT_TRUE(Put(ended).ok());
  HeldLoop held(loop_);
  auto listing = std::async(std::launch::async, [&] {
    (void)book_.List(10, "alice");
    return std::pair(book_.List(10, "alice"), book_.Find(ended.id, "alice"));
  });
  const bool answered = listing.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  held.Release();
  EXPECT_TRUE(answered) << "it waits for the loop";
  const auto [listed, found] = listing.get();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->at(0).model, "ended");
  EXPECT_EQ(listed->at(0).target, "cpu:avx2,threads=1");
  EXPECT_EQ(listed->at(0).tasks, 1);
  EXPECT_EQ(listed->at(0).state, db::SessionState::kFinished);
  EXPECT_EQ(listed->at(1).id, running);
  EXPECT_EQ(listed->at(1).model, "running");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->model, "ended");
  const auto rows = store_.LatestSessions(10, "", {});
  for (const db::FarmSession& row : *rows) {
    EXPECT_EQ(row.spec, "") << "megabytes for a line of a list";
  }
}

// Two requests under one id in one group commit: the second is refused, and is no session that
// anybody could join.
TEST_F(SessionBookTest, WhatWasRefusedIsJoinedByNobody) {
  HeldLoop held(loop_);
  std::vector<std::future<absl::StatusOr<SessionBook::Started>>> calls;
  for (const char* model : {"a", "b", "c"}) {
    calls.push_back(std::async(std::launch::async, [&, model] {
      return book_.Start({"alice", "1"}, Spec(model));
    }));
  }
  clock_.SleepNs(200'000'000);  // they wait in the queue for one group commit
  held.Release();
  int accepted = 0;
  for (auto& call : calls) accepted += call.get().ok() ? 1 : 0;
  EXPECT_EQ(accepted, 1);
  for (const char* model : {"a", "b", "c"}) {
    const auto started = book_.Start({"alice", std::string("2") + model}, Spec(model));
    ASSERT_TRUE(started.ok()) << started.status();
    EXPECT_TRUE(Stored(started->id).has_value()) << model << " joined what is nowhere";
  }
  EXPECT_EQ(book_.List(10, "alice")->size(), 3u);
}

TEST_F(SessionBookTest, WhatMeetsAFullDiskIsRefusedAtOnceAndHasNoEffect) {
  const auto mine = book_.Start({"alice", "1"}, Spec("a"));
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_THAT(book_.Find(mine->id, "alice")->reason, HasSubstr("waiting for a device"));
  const auto await_space = [&] {
    store_.SetFull(false);
    while (!loop_.trouble().empty()) clock_.SleepNs(1'000'000);
  };
  store_.SetFull(true);
  EXPECT_EQ(book_.Start({"alice", "2"}, Spec("b")).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(book_.Find(mine->id, "alice")->reason, HasSubstr("the disk is full"));
  await_space();
  EXPECT_EQ(book_.List(10, "alice")->size(), 1u);
  store_.SetFull(true);
  EXPECT_EQ(book_.Cancel({"alice", "3"}, mine->id, false, "alice").code(),
            absl::StatusCode::kResourceExhausted);
  await_space();
  const auto again = book_.Start({"alice", "4"}, Spec("a"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->joined);
  EXPECT_EQ(again->id, mine->id);
}

TEST_F(SessionBookTest, ListAndCancelAreTheOwnersAlone) {
  const Hash128 mine = book_.Start({"bob", "1"}, Spec("mine"))->id;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(
        book_.Start({"publish/bob", std::to_string(i)}, Spec("m" + std::to_string(i))).ok());
  }
  // The newest of all are another's: its own are found all the same.
  const auto listed = book_.List(2, "bob");
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().id, mine);
  EXPECT_EQ(book_.List(2, "")->size(), 2u);
  EXPECT_EQ(book_.Find(mine, "publish/bob").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(book_.Cancel({"publish/bob", "9"}, mine, false, "x").code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(book_.Cancel({"bob", "9"}, mine, false, "x").ok());
}

TEST_F(SessionBookTest, AStoredSessionThatCannotBeReadFailsAlone) {
  db::FarmSession bad{.id = {1, 1}, .owner = "alice", .project = "p", .digest = "d"};
  bad.spec = "of another version";
  db::FarmSession cancelling = bad;
  cancelling.id = {1, 2};
  cancelling.state = db::SessionState::kCancelling;
  db::FarmSession good = bad;
  good.id = {1, 3};
  good.spec = proto::EncodeSpec(Spec("good"));
  for (const db::FarmSession& row : {bad, cancelling, good}) ASSERT_TRUE(Put(row).ok());
  const absl::Status resumed = book_.Resume({bad, cancelling, good});
  EXPECT_TRUE(resumed.ok()) << resumed;
  EXPECT_EQ(Stored(bad.id)->state, db::SessionState::kFailed);
  EXPECT_THAT(Stored(bad.id)->reason, HasSubstr("its request cannot be read"));
  EXPECT_EQ(Stored(cancelling.id)->state, db::SessionState::kCancelled);
  EXPECT_LT(Stored(good.id)->state, db::SessionState::kFinished);
}

}  // namespace
}  // namespace hone::server

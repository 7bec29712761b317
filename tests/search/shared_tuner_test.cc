#include "search/shared_tuner.h"

#include <set>

#include "gtest/gtest.h"

#include "base/sha256.h"
#include "base/status.h"
#include "costmodel/features.h"
#include "costmodel/xgboost_model.h"
#include "db/memory_database.h"
#include "ir/text.h"
#include "tests/search/fake_measurer.h"

// Sessions that share searches: members of one Tuner.
namespace hone::search {
namespace {

constexpr Hash128 kFirst{1, 1}, kSecond{2, 2}, kThird{3, 3};

Tuner::Joining Join(const Hash128& member, std::vector<TuningTask> tasks, int64_t trials = 0) {
  return {.member = member, .trials = trials, .seed = member.low, .tasks = std::move(tasks)};
}

void Answer(Tuner& tuner, const std::vector<Tuner::Proposal>& batch) {
  for (const auto& p : batch)
    EXPECT_TRUE(tuner.Result(p.attempt, measure::Outcome::kOk, LandscapeNs(p.trace), 0.01));
}

TEST(MemberTest, OneWorkloadIsOneSearchWhoeverAsks) {
  Tuner tuner(TestTarget(), {.seed = 1});
  const auto tasks = TwoTasks();
  const std::vector<int> first = tuner.Join(Join(kFirst, tasks));
  const std::vector<int> second = tuner.Join(Join(kSecond, {tasks[1], TallerProduct()}));
  EXPECT_EQ(first, (std::vector<int>{0, 1}));
  EXPECT_EQ(second, (std::vector<int>{1, 2}));
  EXPECT_EQ(tuner.task(1).count, 2 * tasks[1].count);
  std::set<std::pair<int, uint64_t>> seen;
  for (int round = 0; round < 8; ++round) {
    for (const Hash128& member : {kFirst, kSecond}) {
      const auto batch = tuner.Propose(5, member);
      for (const auto& p : batch) {
        EXPECT_TRUE(seen.insert({p.task, p.id}).second) << "proposed to both";
        EXPECT_EQ(p.member, member);
        EXPECT_NE(p.task, member == kFirst ? 2 : 0) << "not this member's";
      }
      Answer(tuner, batch);
    }
  }
  EXPECT_GT(tuner.search(1).trials(), 0);
}

TEST(MemberTest, APriorityIsTheSumOfItsMembersGains) {
  const auto tasks = TwoTasks();
  Tuner alone(TestTarget(), {.seed = 1});
  Tuner both(TestTarget(), {.seed = 1});
  for (Tuner* tuner : {&alone, &both}) {
    tuner->Join(Join(kFirst, {tasks[0]}));
    for (int i = 0; i < 4; ++i) Answer(*tuner, tuner->Propose(4, kFirst));
  }
  const double before = both.ExpectedGain(0);
  EXPECT_EQ(before, alone.ExpectedGain(0));
  TuningTask often = tasks[0];
  often.count = 3 * tasks[0].count;
  both.Join(Join(kSecond, {often}));
  EXPECT_DOUBLE_EQ(both.ExpectedGain(0), 4 * before);
  both.Leave(kSecond);
  EXPECT_DOUBLE_EQ(both.ExpectedGain(0), before);
}

TEST(MemberTest, ASearchGoesOnUntilItsLastMemberLeaves) {
  Tuner tuner(TestTarget(), {.seed = 1});
  tuner.Join(Join(kFirst, TwoTasks()));
  tuner.Join(Join(kSecond, {TwoTasks()[0]}));
  const auto open = tuner.Propose(6, kFirst);
  tuner.Leave(kFirst);
  EXPECT_TRUE(tuner.searching(0));
  EXPECT_FALSE(tuner.searching(1));
  EXPECT_FALSE(tuner.Result(open[0].attempt, measure::Outcome::kOk, 1, 1)) << "nobody asks for it";
  // What it left open may be proposed again, by whatever decisions.
  std::set<std::string> again;
  for (int i = 0; i < 100; ++i) {
    for (const auto& p : tuner.Propose(8, kSecond)) again.insert(p.trace);
  }
  for (const auto& p : open) {
    EXPECT_TRUE(p.task != 0 || again.contains(p.trace));
  }
  EXPECT_TRUE(tuner.Propose(1, kFirst).empty()) << "it has left";
  tuner.Leave(kSecond);
  EXPECT_FALSE(tuner.searching(0));
  EXPECT_EQ(tuner.Join(Join(kThird, {TwoTasks()[0]})), std::vector<int>{2}) << "a new number";
}

TEST(MemberTest, EachBudgetIsReservedAtProposalAndWhatIsLostComesBack) {
  Tuner tuner(TestTarget(), {.seed = 1});
  tuner.Join(Join(kFirst, TwoTasks(), 5));
  tuner.Join(Join(kSecond, TwoTasks(), 30));
  const auto first = tuner.Propose(20, kFirst);
  EXPECT_EQ(first.size(), 5u);
  EXPECT_EQ(tuner.reason(), StopReason::kTrials);
  EXPECT_EQ(tuner.Propose(20, kSecond).size(), 20u);
  EXPECT_TRUE(tuner.Propose(1, kFirst).empty());
  tuner.Result(first[0].attempt, measure::Outcome::kWorkerLost, 0, 0);
  tuner.Result(first[1].attempt, measure::Outcome::kWrongAnswer, 0, 0);
  EXPECT_EQ(tuner.charged(kFirst), 4);
  EXPECT_EQ(tuner.Propose(20, kFirst).size(), 1u);
  EXPECT_EQ(tuner.charged(kFirst), 5);
}

TEST(MemberTest, WhatWasChargedInASearchOfBeforeStaysCharged) {
  Tuner tuner(TestTarget(), {.seed = 1}), replayed(TestTarget(), {.seed = 1});
  Tuner::Joining joining = Join(kFirst, TwoTasks(), 10);
  joining.charged = 7;
  tuner.Join(joining);
  tuner.UndoJoin(kFirst);
  tuner.Join(joining);
  EXPECT_EQ(tuner.charged(kFirst), 7);
  const auto workload_of =
      [](const Hash128& hash) -> absl::StatusOr<std::shared_ptr<const ir::Workload>> {
    for (const TuningTask& t : TwoTasks()) {
      if (t.hash == hash) return t.workload;
    }
    return absl::NotFoundError("no such workload");
  };
  const MemberEvent event = tuner.EventOf(kFirst);
  ASSERT_TRUE(replayed.Replay(event, workload_of).ok());
  EXPECT_EQ(replayed.TasksOf(kFirst), tuner.TasksOf(kFirst));
  EXPECT_EQ(replayed.charged(kFirst), 7);
  EXPECT_EQ(replayed.EventOf(kFirst), event);
  for (Tuner* t : {&tuner, &replayed}) {
    EXPECT_EQ(t->Propose(20, kFirst).size(), 3u);
    EXPECT_EQ(t->reason(), StopReason::kTrials);
  }
  // One who has used up everything gets nothing; without a limit is something else.
  joining.member = kSecond;
  joining.charged = 10;
  tuner.Join(joining);
  EXPECT_TRUE(tuner.Propose(1, kSecond).empty());
  EXPECT_EQ(tuner.reason(), StopReason::kTrials);
}

// As an earlier Hone wrote it, and as this one does where nothing was charged before.
TEST(MemberTest, AnEventWithoutAChargeMeansNone) {
  Tuner tuner(TestTarget(), {.seed = 1});
  tuner.Join(Join(kFirst, TwoTasks(), 10));
  const std::string event = tuner.EventOf(kFirst).Text();
  EXPECT_EQ(event.substr(0, event.find('\n')), kFirst.ToHex() + " 10 1 0");
}

/// A shared Tuner whose every step is written to a log, as sessions write it.
class Written {
 public:
  explicit Written(uint64_t seed) : shared_(TestTarget(), {.seed = seed}), random_(seed) {
    shared_.stream = {seed, 77};
    db::Batch batch;
    db::Session row;
    row.id = shared_.stream;
    row.request = row.versions = "{}";
    batch.sessions.push_back(row);
    tasks_ = TwoTasks();
    tasks_.push_back(TallerProduct());
    for (const TuningTask& t : tasks_)
      batch.workloads.push_back({t.hash, ir::ToText(*t.workload), 1, 1});
    EXPECT_TRUE(log_.Append(batch).ok());
  }

  void Step() {
    Tuner& tuner = shared_.tuner;
    const Hash128 member{1 + random_.Below(3), 9};
    const double dice = random_.Uniform();
    if (!tuner.HasMember(member)) {
      std::vector<TuningTask> some;
      for (const TuningTask& t : tasks_) {
        if (some.empty() || random_.Chance(0.6)) some.push_back(t);
      }
      tuner.Join(Join(member, some, random_.Chance(0.5) ? 40 : 0));
      Write(tuner.EventOf(member));
    } else if (dice < 0.05) {
      tuner.Leave(member);
      Write(LeaveEvent{member});
    } else if (dice < 0.4) {
      for (const auto& p : tuner.Propose(1 + static_cast<int>(random_.Below(9)), member)) {
        open_.push_back(p);
        Write(Tuner::EventOf(p));
      }
    } else if (dice < 0.45 && tuner.training_rows() > 10) {
      Train();
    } else if (dice < 0.5) {
      const int task = tuner.TasksOf(member).front();
      const uint64_t id = random_.Below(tuner.search(task).space().product());
      tuner.Import(task, id);
      Write(ImportedEvent{task, id});
    } else {
      AnswerOne();
    }
  }

  /// Both give the same proposals from here on.
  void ExpectTheRestartIsNone() {
    SharedTuner restarted(TestTarget(), {.seed = shared_.stream.high});
    restarted.stream = shared_.stream;
    const absl::Status replayed =
        ReplayStream(log_, log_.EventsOf(shared_.stream).value(), restarted);
    ASSERT_TRUE(replayed.ok()) << replayed;
    ASSERT_EQ(restarted.tuner.Members(), shared_.tuner.Members());
    for (int round = 0; round < 6; ++round) {
      for (const Hash128& member : shared_.tuner.Members()) {
        EXPECT_EQ(restarted.tuner.charged(member), shared_.tuner.charged(member));
        const auto a = shared_.tuner.Propose(7, member);
        const auto b = restarted.tuner.Propose(7, member);
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          ASSERT_EQ(Tuner::EventOf(a[i]), Tuner::EventOf(b[i]));
          ASSERT_EQ(a[i].trace, b[i].trace);
        }
        Answer(shared_.tuner, a);
        Answer(restarted.tuner, b);
      }
    }
  }

 private:
  void Write(const SearchEvent& event) {
    db::Batch batch;
    batch.events.push_back(StreamEvent(shared_.stream, event));
    EXPECT_TRUE(log_.Append(batch).ok());
  }

  void AnswerOne() {
    if (open_.empty()) return;
    const size_t i = random_.Below(open_.size());
    const Tuner::Proposal p = open_[i];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    const auto outcome = random_.Chance(0.1)   ? measure::Outcome::kWorkerLost
                         : random_.Chance(0.1) ? measure::Outcome::kRunCrashed
                                               : measure::Outcome::kOk;
    const double ns = outcome == measure::Outcome::kOk ? LandscapeNs(p.trace) / 3 : 0;
    const double cost = random_.Uniform();
    if (!shared_.tuner.Result(p.attempt, outcome, ns, cost)) return;  // its member has left
    Write(ResultEvent{p.attempt, outcome, ns, cost});
    if (random_.Chance(0.03)) {
      shared_.tuner.Compared(p.task, 1000.0 / 7, 500.0 / 7);
      Write(ComparedEvent{p.task, 1000.0 / 7, 500.0 / 7});
    }
  }

  void Train() {
    const auto trained = costmodel::XgboostModel::Train(shared_.tuner.TrainingRows(), 1);
    if (!trained.ok()) return;
    const std::string& bytes = *trained;
    auto model = costmodel::XgboostModel::Load(bytes);
    ASSERT_TRUE(model.ok()) << model.status();
    db::Batch batch;
    batch.blobs.push_back({Sha256Hex(bytes), bytes});
    batch.events.push_back(StreamEvent(shared_.stream, ModelEvent{batch.blobs[0].digest, 10}));
    ASSERT_TRUE(log_.Append(batch).ok());
    shared_.tuner.SetModel(*std::move(model));
  }

  SharedTuner shared_;
  Random random_;
  db::MemoryDatabase log_;
  std::vector<TuningTask> tasks_;
  std::vector<Tuner::Proposal> open_;
};

TEST(SharedTunerTest, ARestartEqualsNoRestartWhateverHappenedBefore) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Written written(seed);
    for (uint64_t step = 0; step < 60 + 20 * seed; ++step) written.Step();
    written.ExpectTheRestartIsNone();
  }
}

// Every kind has its own columns: the CPU's would not fit.
TEST(SharedTunerTest, AModelOfAnotherKindOfDeviceOutlivesARestart) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cuda:sm_90a", &target, &why)) << why;
  const size_t columns = costmodel::FeaturesOfKinds().Of(target).columns().size();
  costmodel::TrainingTask task;
  for (int i = 0; i < 32; ++i) {
    task.features.push_back(costmodel::FeatureVector(columns, static_cast<float>(i)));
    task.labels.push_back(1 / static_cast<float>(1 + i));
  }
  const auto bytes = costmodel::XgboostModel::Train({task}, 1, target.text);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  db::MemoryDatabase log;
  db::Batch batch;
  batch.blobs.push_back({Sha256Hex(*bytes), *bytes});
  ASSERT_TRUE(log.Append(batch).ok());
  SharedTuner shared(target, {.seed = 1});
  ASSERT_TRUE(
      ReplayStream(log, {StreamEvent(shared.stream, ModelEvent{batch.blobs[0].digest, 10})}, shared)
          .ok());
  EXPECT_NE(shared.tuner.model(), nullptr);
}

}  // namespace
}  // namespace hone::search

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/fake_clock.h"
#include "db/memory_database.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

// Members of a shared search whose results do not wait for their proposals.
namespace hone::search {
namespace {

constexpr Hash128 kFirst{1, 1}, kSecond{2, 2};

Tuner TunerWithOneOpen(int64_t* attempt) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  *attempt = tuner.Propose(1).front().attempt;
  return tuner;
}

TunerQueue::Apply Count(std::vector<int>& applied, int number) {
  return [&applied, number](Tuner&) { applied.push_back(number); };
}

TEST(TunerQueueTest, AppliesInOrderWhatIsDurable) {
  int64_t attempt = 0;
  Tuner tuner = TunerWithOneOpen(&attempt);
  TunerQueue queue;
  std::vector<TunerQueue::Done> dones;
  std::vector<int> applied;
  const auto begin = [&](TunerQueue::Done done) { dones.push_back(std::move(done)); };
  for (int i = 0; i < 4; ++i) queue.Post(begin, Count(applied, i));
  dones[1](absl::OkStatus());
  queue.ApplyTo(tuner);
  EXPECT_TRUE(applied.empty()) << "the one before is not durable yet";
  dones[0](absl::OkStatus());
  dones[2](absl::ResourceExhaustedError("refused"));
  queue.ApplyTo(tuner);
  EXPECT_EQ(applied, (std::vector<int>{0, 1})) << "what was refused never happened";
  std::thread late([&] { dones[3](absl::OkStatus()); });
  {
    const auto nobody_posts = queue.Hold();
    queue.ApplyTo(tuner);
    EXPECT_EQ(applied, (std::vector<int>{0, 1, 3}));
  }
  late.join();
  // One that is told after its search has gone.
  auto gone = std::make_unique<TunerQueue>();
  gone->Post(begin, Count(applied, 4));
  gone.reset();
  dones[4](absl::OkStatus());
  EXPECT_EQ(applied.size(), 3u);
}

/// A log for several threads, each call of which has it alone; results are appended by a thread of
/// its own, in the order in which they were begun, as by a farm's loop.
class ThreadedLog final : public db::Database {
 public:
  ThreadedLog() : thread_([this] { Loop(); }) {}
  ~ThreadedLog() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  enum class Fault { kNone, kReads, kAppends, kDies };
  /// What fails from now on.
  void Fail(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
  }
  void Begin(db::Batch batch, TunerQueue::Done done) {
    const std::lock_guard lock(mutex_);
    begun_.emplace_back(std::move(batch), std::move(done));
    changed_.notify_all();
  }

  absl::StatusOr<db::Appended> Append(const db::Batch& batch, db::Origin origin) override {
    EXPECT_EQ(origin, db::Origin::kHere);
    struct Answer {
      absl::Status status;
      bool told = false;
    } answer;
    Begin(batch, [&](const absl::Status& status) { answer = {status, true}; });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answer.told; });
    if (!answer.status.ok()) return answer.status;
    return db::Appended{};
  }
  absl::StatusOr<std::unique_ptr<ReadScope>> BeginRead() override {
    const std::lock_guard lock(mutex_);
    return log_.BeginRead();
  }
  absl::StatusOr<std::vector<db::RankedRecord>> TopRecords(const db::RecordQuery& query,
                                                           int limit) override {
    const std::lock_guard lock(mutex_);
    return log_.TopRecords(query, limit);
  }
  absl::StatusOr<std::vector<db::RankedRecord>> SameIsaRecords(
      const db::RecordQuery& query) override {
    const std::lock_guard lock(mutex_);
    if (fault_ == Fault::kReads) return absl::DataLossError("a page cannot be read");
    return log_.SameIsaRecords(query);
  }
  absl::StatusOr<std::vector<db::WorkloadRow>> MeasuredWorkloads(const std::string& isa,
                                                                 int policy) override {
    const std::lock_guard lock(mutex_);
    return log_.MeasuredWorkloads(isa, policy);
  }
  absl::StatusOr<std::vector<db::ModelVerdict>> ModelVerdicts(const Hash128& model) override {
    const std::lock_guard lock(mutex_);
    return log_.ModelVerdicts(model);
  }
  absl::StatusOr<std::optional<db::WorkloadRow>> FindWorkload(const Hash128& hash) override {
    const std::lock_guard lock(mutex_);
    if (fault_ == Fault::kDies) throw std::runtime_error("honed died");
    return log_.FindWorkload(hash);
  }
  absl::StatusOr<std::optional<db::RankedRecord>> FindRecord(const Hash128& id) override {
    const std::lock_guard lock(mutex_);
    return log_.FindRecord(id);
  }
  absl::StatusOr<std::optional<db::Session>> FindSession(const Hash128& id) override {
    const std::lock_guard lock(mutex_);
    return log_.FindSession(id);
  }
  absl::StatusOr<std::optional<std::string>> FindBlob(const std::string& digest) override {
    const std::lock_guard lock(mutex_);
    return log_.FindBlob(digest);
  }
  absl::Status ScanWorkloads(const Visit<db::WorkloadRow>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanWorkloads(visit);
  }
  absl::Status ScanDevices(const Visit<db::Device>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanDevices(visit);
  }
  absl::Status ScanSessions(const Visit<db::StoredSession>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanSessions(visit);
  }
  absl::Status ScanBlobs(const Visit<db::Blob>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanBlobs(visit);
  }
  absl::Status ScanRecords(const db::FactFilter& filter,
                           const Visit<db::RankedRecord>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanRecords(filter, visit);
  }
  absl::Status ScanAttempts(const db::FactFilter& filter,
                            const Visit<db::Attempt>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanAttempts(filter, visit);
  }
  absl::Status ScanValues(const db::FactFilter& filter,
                          const Visit<db::TraceValues>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanValues(filter, visit);
  }
  absl::Status ScanEvents(const db::FactFilter& filter, const Visit<db::Event>& visit) override {
    const std::lock_guard lock(mutex_);
    return log_.ScanEvents(filter, visit);
  }
  absl::StatusOr<db::LogStats> Stats() override {
    const std::lock_guard lock(mutex_);
    return log_.Stats();
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !begun_.empty(); });
      if (begun_.empty()) return;
      auto [batch, done] = std::move(begun_.front());
      begun_.pop_front();
      const absl::Status status = fault_ == Fault::kAppends
                                      ? absl::ResourceExhaustedError("no space is left")
                                      : log_.Append(batch, db::Origin::kHere).status();
      done(status);
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  db::MemoryDatabase log_;
  std::deque<std::pair<db::Batch, TunerQueue::Done>> begun_;
  bool ending_ = false;
  Fault fault_ = Fault::kNone;
  std::thread thread_;
};

/// A FakeMeasurer for two threads.
class ThreadedMeasurer final : public measure::Measurer {
 public:
  explicit ThreadedMeasurer(uint64_t seed) : fake_(seed, {.reorder = true, .delay = 3}) {}
  void Submit(measure::MeasureInput input) override {
    const std::lock_guard lock(mutex_);
    fake_.Submit(std::move(input));
  }
  std::vector<measure::MeasureResult> Collect(int64_t timeout_ns) override {
    const std::lock_guard lock(mutex_);
    return fake_.Collect(timeout_ns);
  }
  std::vector<measure::ComparedTrace> Compare(const std::vector<measure::MeasureInput>& inputs,
                                              int rounds) override {
    const std::lock_guard lock(mutex_);
    return fake_.Compare(inputs, rounds);
  }
  void DropWaiting() override {
    const std::lock_guard lock(mutex_);
    fake_.DropWaiting();
  }
  int64_t num_in_flight() const override {
    const std::lock_guard lock(mutex_);
    return fake_.num_in_flight();
  }
  int capacity() const override { return 8; }

 private:
  mutable std::mutex mutex_;
  FakeMeasurer fake_;
};

/// A ThreadedMeasurer that is stopped while the Tuner is asked: from then on it answers at once
/// that it has nothing.
class StoppedMeasurer final : public measure::Measurer {
 public:
  explicit StoppedMeasurer(std::atomic<bool>& interrupted) : interrupted_(interrupted) {}
  void Submit(measure::MeasureInput input) override { threaded_.Submit(std::move(input)); }
  std::vector<measure::MeasureResult> Collect(int64_t timeout_ns) override {
    if (!interrupted_) return threaded_.Collect(timeout_ns);
    ++asked_;
    return {};
  }
  std::vector<measure::ComparedTrace> Compare(const std::vector<measure::MeasureInput>& inputs,
                                              int rounds) override {
    return threaded_.Compare(inputs, rounds);
  }
  void WhileNotTiming(const std::function<void()>& work) override {
    work();
    if (++rounds_ != 3) return;
    interrupted_ = true;
    // A large Space takes so long.
    SystemMonotonicClock().SleepNs(200'000'000);
  }
  int64_t num_in_flight() const override { return interrupted_ ? 0 : threaded_.num_in_flight(); }
  int capacity() const override { return 8; }
  /// How often since it was stopped.
  int asked() const { return asked_; }

 private:
  ThreadedMeasurer threaded_{1};
  std::atomic<bool>& interrupted_;
  std::atomic<int> asked_{0}, rounds_{0};
};

class SessionThreadsTest : public ::testing::Test {
 protected:
  SessionOptions Options(const Hash128& id, int64_t trials) {
    SessionOptions o = search::Options(trials);
    o.id = id;
    o.request = "{\"farm_session\":\"" + id.ToHex() + "\"}";
    o.join = [this] { return Shared(); };
    o.begin_results = [this](db::Batch batch, TunerQueue::Done done) {
      log_.Begin(std::move(batch), std::move(done));
    };
    o.begin_append = o.begin_results;
    return o;
  }
  absl::StatusOr<std::shared_ptr<SharedTuner>> Shared() {
    return tuners_->Get(
        log_,
        {.text = "{\"farm_search\":\"s\"}", .versions = "{}", .seed = 3, .target = TestTarget()});
  }
  int64_t AttemptsOnce() {
    std::set<std::pair<std::string, std::string>> met;
    EXPECT_TRUE(
        log_.ScanAttempts({},
                          [&](const db::Attempt& a) {
                            EXPECT_TRUE(met.insert({a.key.workload.ToHex(), a.trace}).second);
                            return absl::OkStatus();
                          })
            .ok());
    return static_cast<int64_t>(met.size());
  }

  FakeClock clock_;
  ThreadedLog log_;
  std::optional<SharedTuners> tuners_{std::in_place};  ///< of one start
};

TEST_F(SessionThreadsTest, TwoMembersMeasureEachCandidateOnceAndEnd) {
  ThreadedMeasurer first_measurer(1), second_measurer(2);
  TuningSession first(log_, first_measurer, clock_, clock_, Options(kFirst, 60));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  TuningSession second(log_, second_measurer, clock_, clock_, Options(kSecond, 40));
  ASSERT_TRUE(second.Start({TwoTasks()[1], TallerProduct()}).ok());
  std::thread other([&] { EXPECT_TRUE(second.Run(nullptr).ok()); });
  EXPECT_TRUE(first.Run(nullptr).ok());
  other.join();
  EXPECT_EQ(first.reason(), StopReason::kTrials);
  EXPECT_EQ(second.reason(), StopReason::kTrials);
  EXPECT_EQ(AttemptsOnce(), 100);
  EXPECT_TRUE(first.verdicts()[0].compared);
  EXPECT_TRUE((*Shared())->tuner.Members().empty());
}

// Spaces are made before the member joins, one after the other: nobody waits for them, and who is
// asked to end need not make them all.
TEST_F(SessionThreadsTest, WhoIsInterruptedBeforeItsSpacesAreMadeNeverJoins) {
  ThreadedMeasurer first_measurer(1), second_measurer(2);
  TuningSession first(log_, first_measurer, clock_, clock_, Options(kFirst, 10));
  ASSERT_TRUE(first.Start({TwoTasks()[0]}).ok());
  const std::shared_ptr<SharedTuner> live = *Shared();
  const schedule::Space* const made = live->tuner.search(0).shared_space().get();
  std::atomic<bool> interrupted = true;
  SessionOptions options = Options(kSecond, 10);
  options.interrupted = &interrupted;
  TuningSession second(log_, second_measurer, clock_, clock_, std::move(options));
  EXPECT_TRUE(absl::IsCancelled(second.Start(TwoTasks())));
  EXPECT_EQ(live->tuner.Members(), std::vector<Hash128>{kFirst});
  EXPECT_EQ(live->tuner.num_tasks(), 1);
  // What the search has is not made again.
  TuningSession third(log_, second_measurer, clock_, clock_, Options({3, 3}, 10));
  ASSERT_TRUE(third.Start(TwoTasks()).ok());
  EXPECT_EQ(live->tuner.num_tasks(), 2);
  EXPECT_EQ(live->tuner.search(0).shared_space().get(), made);
}

TEST_F(SessionThreadsTest, AMemberThatTheLogDoesNotKnowIsNone) {
  constexpr Hash128 kThird{3, 3};
  for (const auto fault : {ThreadedLog::Fault::kReads, ThreadedLog::Fault::kAppends}) {
    SCOPED_TRACE(static_cast<int>(fault));
    ThreadedMeasurer first_measurer(1), other_measurer(2);
    TuningSession first(log_, first_measurer, clock_, clock_, Options(kFirst, 30));
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    const std::shared_ptr<SharedTuner> live = *Shared();
    const int count = live->tuner.task(1).count;
    log_.Fail(fault);
    {
      TuningSession second(log_, other_measurer, clock_, clock_, Options(kSecond, 20));
      EXPECT_FALSE(second.Start({TwoTasks()[1], TallerProduct()}).ok());
    }
    log_.Fail(ThreadedLog::Fault::kNone);
    EXPECT_FALSE(live->tuner.HasMember(kSecond));
    EXPECT_EQ(live->tuner.num_tasks(), 2);
    EXPECT_EQ(live->tuner.task(1).count, count);
    // Who comes next has the numbers of tasks that a restart gives them.
    TuningSession third(log_, other_measurer, clock_, clock_, Options(kThird, 20));
    ASSERT_TRUE(third.Start({TallerProduct()}).ok());
    SharedTuner again(TestTarget(), {.seed = 3});
    ASSERT_TRUE(ReplayStream(log_, log_.EventsOf(live->stream).value(), again).ok());
    EXPECT_EQ(again.tuner.Members(), live->tuner.Members());
    EXPECT_EQ(again.tuner.TasksOf(kThird), live->tuner.TasksOf(kThird));
    EXPECT_EQ(again.tuner.Fingerprint(), live->tuner.Fingerprint());
    std::thread other([&] { EXPECT_TRUE(third.Run(nullptr).ok()); });
    EXPECT_TRUE(first.Run(nullptr).ok());
    other.join();
    // Both have left: the next pair begins a search of its own.
    EXPECT_TRUE(live->over);
  }
}

TEST_F(SessionThreadsTest, WhoIsInterruptedWaitsForItsProposalsWithoutAsking) {
  std::atomic<bool> interrupted{false};
  StoppedMeasurer measurer(interrupted);
  SessionOptions options = Options(kFirst, 400);
  options.interrupted = &interrupted;
  TuningSession session(log_, measurer, clock_, clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kInterrupted);
  EXPECT_LE(measurer.asked(), 1) << "of what was just beginning";
}

TEST_F(SessionThreadsTest, TheStreamGivesTheSameSearchAgain) {
  std::atomic<bool> interrupted{false};
  std::atomic<int> answers{0};
  ThreadedMeasurer first_measurer(1), second_measurer(2);
  SessionOptions options = Options(kFirst, 400);
  options.interrupted = &interrupted;
  TuningSession first(log_, first_measurer, clock_, clock_, options);
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  options = Options(kSecond, 400);
  options.interrupted = &interrupted;
  TuningSession second(log_, second_measurer, clock_, clock_, options);
  ASSERT_TRUE(second.Start({TwoTasks()[1], TallerProduct()}).ok());
  const std::shared_ptr<SharedTuner> live = *Shared();
  const auto stop = [&](const TuningSession&) {
    if (++answers >= 60) interrupted = true;
  };
  std::thread other([&] { EXPECT_TRUE(second.Run(stop).ok()); });
  EXPECT_TRUE(first.Run(stop).ok());
  other.join();
  SharedTuner again(TestTarget(), {.seed = 3});
  again.stream = live->stream;
  ASSERT_TRUE(ReplayStream(log_, log_.EventsOf(live->stream).value(), again).ok());
  const auto all = live->LockAll();
  EXPECT_EQ(live->tuner.answered(), again.tuner.answered());
  EXPECT_GT(again.tuner.answered(), 30);
  ASSERT_EQ(live->tuner.Members().size(), 2u);
  for (const Hash128& member : {kFirst, kSecond}) {
    const auto expected = live->tuner.Propose(12, member), found = again.tuner.Propose(12, member);
    ASSERT_EQ(expected.size(), found.size());
    ASSERT_FALSE(found.empty());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(Tuner::EventOf(expected[i]), Tuner::EventOf(found[i]));
    }
  }
}

// Whoever comes first replays what all members asked for, also those that have ended.
TEST_F(SessionThreadsTest, ASearchWhoseReplayEndsHonedAgainIsBegunAnew) {
  Hash128 stream;
  {
    ThreadedMeasurer measurer(1);
    TuningSession session(log_, measurer, clock_, clock_, Options(kFirst, 10));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    stream = (*Shared())->stream;
  }
  const auto start = [&](ThreadedLog::Fault fault) {
    log_.Fail(fault);
    tuners_.emplace();
    tuners_->GoOn({kFirst});
    return (*Shared())->stream;
  };
  EXPECT_THROW(start(ThreadedLog::Fault::kDies), std::runtime_error);
  EXPECT_EQ(start(ThreadedLog::Fault::kNone), stream) << "it may have been anything";
  EXPECT_EQ(log_.EventsOf(stream)->back().type, "opened");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(start(ThreadedLog::Fault::kDies), std::runtime_error);
    EXPECT_EQ(log_.EventsOf(stream)->back().type, "opening") << "durable before";
  }
  const Hash128 anew = start(ThreadedLog::Fault::kDies);
  EXPECT_NE(anew, stream) << "and without what ended it";
  EXPECT_EQ(log_.EventsOf(stream)->back().type, "finished");
  EXPECT_EQ(start(ThreadedLog::Fault::kNone), anew);
}

TEST_F(SessionThreadsTest, ALogThatRefusesResultsEndsTheSession) {
  ThreadedMeasurer measurer(1);
  SessionOptions options = Options(kFirst, 60);
  options.begin_results = [](const db::Batch&, const TunerQueue::Done& done) {
    done(absl::DataLossError("the log is damaged"));
  };
  TuningSession session(log_, measurer, clock_, clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  EXPECT_EQ(session.Run(nullptr).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(AttemptsOnce(), 0);
}

}  // namespace
}  // namespace hone::search

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <functional>
#include <sstream>

#include "base/core/random.h"
#include "base/core/sanitizer.h"
#include "tests/farm/tuned_farm.h"

// Every step at which a program of the farm can die with something on its way: it is killed there,
// started again, and killed at the next one. The labels are those of --test-kill in the two
// daemons' main.cc, all of them; one that is not reached fails the test.
namespace hone::farm {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

/// How often each label comes up.
constexpr int kRounds = 2;
const std::vector<std::string> kHonedSteps = {
    "honed.recovered", "honed.resumed",  "honed.accepted", "honed.committing", "honed.committed",
    "honed.granted",   "honed.answered", "honed.finished", "honed.copied",     "honed.sending"};
const std::vector<std::string> kWorkerSteps = {"worker.granted", "worker.started",
                                               "worker.ran",     "worker.sending",
                                               "worker.sent",    "worker.answered"};
const std::vector<std::string> kChildSteps = {"builder.compiling", "builder.compiled",
                                              "runner.loading", "runner.ran", "runner.timing"};

size_t CountOf(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

/// The labels that a program knows, as it lists them to whoever names another one; sorted.
std::vector<std::string> StepsOf(const std::vector<std::string>& argv) {
  std::vector<std::string> words = argv;
  words.insert(words.end(), {"--test-kill", "x:1"});
  const Ran refused = RunToEnd(words);
  EXPECT_EQ(refused.code, 2) << refused.err;
  std::vector<std::string> steps;
  std::istringstream said(refused.err);
  for (std::string word; said >> word;) {
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back()))) word.pop_back();
    if (word.find('.') != std::string::npos) steps.push_back(word);
  }
  std::ranges::sort(steps);
  return steps;
}

/// A daemon that dies at one step after another.
class Victim {
 public:
  /// `plan`: "LABEL:N", of this program; `children`: of its children, in its first life.
  Victim(Daemon& daemon, std::vector<std::string> plan, std::vector<std::string> children = {})
      : daemon_(daemon), plan_(plan.begin(), plan.end()), children_(std::move(children)) {}

  /// `progress` counts what was done; a life that did nothing is followed by one that does, and is
  /// killed then. For a honed, which gives a search up that it dies of again and again.
  void RestAfterNothing(std::function<size_t()> progress) { progress_ = std::move(progress); }

  void Start() {
    std::vector<std::string> words;
    if (ChildrenLeft() > 0) {
      for (const std::string& point : children_) words.insert(words.end(), {"--test-kill", point});
    } else if (!plan_.empty() && !resting_) {
      words = {"--test-kill", plan_.front()};
    }
    if (progress_) done_before_ = progress_();
    daemon_.Start(words);
  }

  /// Starts it again where it died, which must have been where it was meant to.
  void Look(int64_t now_ns) {
    if (since_ns_ == 0) since_ns_ = now_ns;
    if (!children_.empty()) {
      if (ChildrenLeft() > 0) return Wait(now_ns, "its children");
      kills_ += children_.size();
      children_.clear();
      since_ns_ = now_ns;
      // Not gently: it would wait for a honed that may be dead just now.
      daemon_.Kill();
      ++own_deaths_;
      Start();
    }
    if (resting_) {
      if (progress_() == done_before_) return Wait(now_ns, "anything new");
      resting_ = false;
      since_ns_ = now_ns;
      if (plan_.empty()) return;
      daemon_.Kill();
      ++own_deaths_;
      return Start();
    }
    if (plan_.empty()) return;
    const std::optional<int> code = daemon_.Ended();
    if (!code) return Wait(now_ns, plan_.front());
    const std::string label = plan_.front().substr(0, plan_.front().find(':'));
    ++deaths_[label];
    ++own_deaths_;
    ++kills_;
    EXPECT_EQ(CountOf(daemon_.Said(), "killed at " + label + "\n"), deaths_[label])
        << daemon_.name() << " ended with " << *code << ": " << daemon_.Said();
    plan_.pop_front();
    since_ns_ = now_ns;
    resting_ = progress_ && progress_() == done_before_;
    Start();
  }

  bool done() const {
    return (plan_.empty() && children_.empty() && !resting_) || ::testing::Test::HasFailure();
  }
  /// What it dies at next; empty: nothing.
  std::string next() const { return plan_.empty() ? "" : plan_.front(); }
  size_t kills() const { return kills_; }
  /// Deaths of the program itself, not of its children.
  size_t own_deaths() const { return own_deaths_; }

 private:
  size_t ChildrenLeft() const {
    const std::string said = daemon_.Said();
    size_t left = 0;
    std::map<std::string, size_t> wanted;
    for (const std::string& point : children_) ++wanted[point.substr(0, point.find(':'))];
    for (const auto& [label, count] : wanted) {
      const size_t died = CountOf(said, "killed at " + label);
      left += died < count ? count - died : 0;
    }
    return left;
  }
  void Wait(int64_t now_ns, const std::string& what) {
    EXPECT_LT(now_ns - since_ns_, (kSanitized ? 240 : 40) * kNsPerSecond)
        << daemon_.name() << " did not come to " << what << ": " << daemon_.Said();
  }

  Daemon& daemon_;
  std::deque<std::string> plan_;
  std::vector<std::string> children_;
  std::map<std::string, size_t> deaths_;
  size_t kills_ = 0, own_deaths_ = 0;
  int64_t since_ns_ = 0;
  std::function<size_t()> progress_;
  size_t done_before_ = 0;  ///< this life
  bool resting_ = false;    ///< lives without a step to die at
};

class LabelledKillTest : public TunedFarm {
 protected:
  LabelledKillTest() : TunedFarm({"w1", "w2"}), random_(seed_) {}

  /// Every step, in an order of its own, each at its first to `most`-th time.
  std::vector<std::string> Plan(const std::vector<std::string>& steps, int64_t most) {
    const std::set<std::string> once = {"honed.recovered", "honed.resumed", "honed.accepted",
                                        "honed.finished",  "honed.copied",  "honed.sending"};
    std::vector<std::string> plan;
    for (int round = 0; round < kRounds; ++round) {
      for (const std::string& step : steps) {
        const int64_t time = once.contains(step) ? 1 : random_.Between(1, most);
        plan.push_back(step + ":" + std::to_string(time));
      }
    }
    random_.Shuffle(plan);
    return plan;
  }
  /// The same for children, all in one life of their worker: no step twice at the same time. None
  /// in a sanitizer's build: without a limit of address space a child that SIGKILL ends is out of
  /// memory by its own fault, an outcome, and its worker says nothing of where it died.
  std::vector<std::string> ChildrensPlan(int64_t most) {
    std::vector<std::string> plan;
    if (kSanitized) return plan;
    for (int round = 0; round < kRounds; ++round) {
      for (const std::string& step : kChildSteps) {
        plan.push_back(step + ":" + std::to_string(round * most + random_.Between(1, most)));
      }
    }
    return plan;
  }

  /// Brings about what this step needs, where that is not what happens all the time.
  void Provoke(const std::string& step, int64_t now_ns) {
    if (step == provoked_ && now_ns - provoked_ns_ < 5 * kNsPerSecond) return;
    provoked_ = step;
    provoked_ns_ = now_ns;
    if (step.rfind("honed.accepted", 0) == 0 && client_->running()) {
      // The same command again joins, which is accepted too.
      client_->Kill();
      client_->Start();
    }
    if (step.rfind("honed.copied", 0) != 0 && step.rfind("honed.sending", 0) != 0) return;
    if (snapshot_.running() && !snapshot_.Ended().has_value()) return;
    std::filesystem::remove(farm_.Path("torn.db"));  // of before: none is replaced
    snapshot_.Start();
  }

  Random random_;
  std::string provoked_;
  int64_t provoked_ns_ = 0;
  Daemon snapshot_{"snapshot", Hone({"db", "snapshot", "-o", farm_.Path("torn.db")}),
                   farm_.Path("snapshot.log")};
};

TEST_F(LabelledKillTest, NoStepOfTheProgramsIsMissing) {
  std::vector<std::string> honed = kHonedSteps, worker = kWorkerSteps;
  worker.insert(worker.end(), kChildSteps.begin(), kChildSteps.end());
  std::ranges::sort(honed);
  std::ranges::sort(worker);
  EXPECT_EQ(StepsOf(farm_.HonedArgv()), honed);
  EXPECT_EQ(StepsOf(farm_.WorkerArgv("w1")), worker);
}

TEST_F(LabelledKillTest, EveryStepMayBeTheLast) {
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon w1("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  Daemon w2("w2", farm_.WorkerArgv("w2"), farm_.Path("w2.log"));
  Victim coordinator(honed, Plan(kHonedSteps, 12));
  coordinator.RestAfterNothing([this] { return Answered(); });
  Victim first(w1, Plan(kWorkerSteps, 4));
  Victim second(w2, Plan(kWorkerSteps, 4), ChildrensPlan(4));
  for (Victim* victim : {&coordinator, &first, &second}) victim->Start();
  ASSERT_TRUE(KeepTuning());
  while (!coordinator.done() || !first.done() || !second.done()) {
    clock_.SleepNs(20'000'000);
    const int64_t now_ns = clock_.NowNs();
    for (Victim* victim : {&coordinator, &first, &second}) victim->Look(now_ns);
    if (HasFailure() || !KeepTuning()) break;
    LetBack(honed);
    Provoke(coordinator.next(), now_ns);
  }
  const size_t kills = coordinator.kills() + first.kills() + second.kills();
  std::printf("%zu labelled kills, %d sessions\n", kills, sessions_);
  ASSERT_FALSE(HasFailure()) << honed.Said();
  EXPECT_GE(kills, 40u);
  (void)snapshot_.Terminate();
  AwaitSession();
  CheckPackages(honed, {&w1, &w2});
  CheckLog(first.own_deaths() + second.own_deaths());
  // What a killed copy left behind is gone since the next start.
  for (const auto& entry : std::filesystem::directory_iterator(farm_.Path(""))) {
    EXPECT_EQ(entry.path().filename().string().find("tune.db.snapshot."), std::string::npos);
  }
}

}  // namespace
}  // namespace hone::farm

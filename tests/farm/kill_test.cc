#include "base/core/random.h"
#include "tests/farm/tuned_farm.h"

// honed, two workers and a client over mutual TLS tune `mlp`, again and again with another seed;
// each is killed with SIGKILL at random. Afterwards the log equals what the workers and the client
// wrote down of every acknowledgement that they received.
namespace hone::farm {
namespace {

constexpr int kKillsEach = 10;
constexpr int64_t kNsPerMs = 1'000'000;

class KillTest : public TunedFarm {
 protected:
  KillTest() : TunedFarm({"w1", "w2"}) {}
};

TEST_F(KillTest, NothingAcknowledgedIsLostAndNothingIsCountedTwice) {
  Random random(seed_);
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon w1("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  Daemon w2("w2", farm_.WorkerArgv("w2"), farm_.Path("w2.log"));
  for (Daemon* daemon : {&honed, &w1, &w2}) daemon->Start();
  ASSERT_TRUE(KeepTuning());
  int client_kills = 0;
  size_t answered = 0;  // when honed was last started
  bool barren = false;  // its last life: nothing came of it

  std::vector<int> victims;
  for (int i = 0; i < kKillsEach; ++i) {
    for (int who = 0; who < 4; ++who) victims.push_back(who);
  }
  random.Shuffle(victims);
  for (const int victim : victims) {
    clock_.SleepNs(random.Between(20, 400) * kNsPerMs);
    ASSERT_TRUE(KeepTuning());
    LetBack(honed);
    if (victim == 0) {
      // It gives a search up that it dies of again and again before anything came of it.
      const auto lived = [&] {
        LetBack(honed);
        return !KeepTuning() || Answered() > answered;
      };
      ASSERT_TRUE(!barren || Eventually(lived)) << honed.Said();
      barren = Answered() == answered;
    }
    Daemon* const daemon = victim == 0 ? &honed : victim == 1 ? &w1 : victim == 2 ? &w2 : &*client_;
    ASSERT_TRUE(daemon->running()) << daemon->name() << " ended: " << daemon->Said();
    ASSERT_FALSE(daemon != &*client_ && daemon->Ended().has_value())
        << daemon->name() << " ended: " << daemon->Said();
    if (daemon == &*client_) ++client_kills;
    daemon->Kill();
    clock_.SleepNs(random.Between(0, 150) * kNsPerMs);
    if (victim == 0) answered = Answered();
    daemon->Start();
  }
  EXPECT_EQ(honed.kills() + w1.kills() + w2.kills() + client_kills, 4 * kKillsEach);
  AwaitSession();
  std::printf("%d sessions, %d kills\n", sessions_, 4 * kKillsEach);
  CheckPackages(honed, {&w1, &w2});
  CheckLog(2 * kKillsEach);
}

}  // namespace
}  // namespace hone::farm

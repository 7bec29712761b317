#include "gmock/gmock.h"

#include "base/core/random.h"
#include "tests/farm/tcp_proxy.h"
#include "tests/farm/tuned_farm.h"

// Links that are slow, cut, silent or nearly so: a farm whose worker and client speak through them
// tunes to the end, and its log equals their journals.
namespace hone::farm {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

class BadLinkTest : public TunedFarm {
 protected:
  BadLinkTest()
      : TunedFarm({"w1", "w2"}, "squeezenet"),
        proxy_(farm_.port()),
        honed_("honed", farm_.HonedArgv(), farm_.Path("honed.log")),
        w1_("w1", farm_.WorkerArgv("w1", proxy_.address()), farm_.Path("w1.log")),
        w2_("w2", farm_.WorkerArgv("w2"), farm_.Path("w2.log")) {}

  /// When honed gives a silent worker up, and the worker a silent connection.
  void Begin(int lost_after_s, int silent_s) {
    honed_.Start({"--lost-after-seconds", std::to_string(lost_after_s)});
    w1_.Start({"--silent-seconds", std::to_string(silent_s)});
    ASSERT_TRUE(KeepTuning());
  }
  /// Acknowledgements that a worker has written down.
  size_t Answers(const std::string& worker) const {
    size_t answers = 0;
    for (const auto& words : LinesOf(farm_.Journal(worker))) answers += words[0] == "ack";
    return answers;
  }
  /// A session that ends meanwhile is followed by another: else nothing would be left to answer.
  bool AwaitAnswers(const std::string& worker, size_t count) {
    return Eventually([&] { return KeepTuning() && Answers(worker) >= count; },
                      40 * kNsPerSecond);
  }
  size_t Told(const std::string& words) const {
    const std::string said = honed_.Said();
    size_t count = 0;
    for (size_t at = said.find(words); at != std::string::npos; at = said.find(words, at + 1)) {
      ++count;
    }
    return count;
  }
  /// The session ends, everybody ends, and the log is as it must be: nobody died, so every
  /// acknowledgement was heard.
  void End() {
    AwaitSession(90 * kNsPerSecond);
    std::vector<Daemon*> workers = {&w1_};
    if (w2_.running()) workers.push_back(&w2_);
    CheckPackages(honed_, workers);
    CheckLog(0);
    EXPECT_EQ(Told("event=attempt_condemned"), 0u) << honed_.Said();
    std::printf("%lld connections, %lld bytes\n", static_cast<long long>(proxy_.accepted()),
                static_cast<long long>(proxy_.bytes()));
  }

  TcpProxy proxy_;
  Daemon honed_, w1_, w2_;
};

TEST_F(BadLinkTest, ASlowLinkIsGoodEnough) {
  farm_.ReachThrough(proxy_.address());
  proxy_.SetDelay(120 * kNsPerMs);
  Begin(20, 30);
  End();
  EXPECT_EQ(Told("event=lease_ended"), 0u) << honed_.Said();
  EXPECT_EQ(Told("event=worker_connected"), 1u) << honed_.Said();
}

TEST_F(BadLinkTest, CutLinksCostNoLease) {
  farm_.ReachThrough(proxy_.address());
  trials_ = 80;
  Random random(seed_);
  Begin(20, 30);
  int cuts = 0;
  for (; cuts < 8; ++cuts) {
    // Each time there is a link to cut, and something to lose.
    ASSERT_TRUE(Eventually(
        [&] { return Told("event=worker_connected") > static_cast<size_t>(cuts); }))
        << w1_.Said();
    ASSERT_TRUE(AwaitAnswers("w1", Answers("w1") + 1)) << w1_.Said();
    clock_.SleepNs(random.Between(0, 300) * kNsPerMs);
    ASSERT_TRUE(KeepTuning());
    proxy_.Reset();
  }
  // Also where nothing is left to do: the worker comes back.
  EXPECT_TRUE(Eventually([&] { return Told("event=worker_connected") > 8u; })) << w1_.Said();
  End();
  EXPECT_GT(proxy_.accepted(), 16) << "the worker and the client";
  EXPECT_EQ(Told("event=lease_ended"), 0u) << honed_.Said();
  EXPECT_EQ(Told("event=worker_lost"), 0u);
}

TEST_F(BadLinkTest, AWorkerThatNoticesAHalfOpenLinkFirstKeepsItsLeases) {
  farm_.ReachThrough(proxy_.address());
  trials_ = 100;
  Begin(20, 4);
  ASSERT_TRUE(AwaitAnswers("w1", 3)) << w1_.Said();
  // A silence that is shorter than either end's patience costs nothing.
  proxy_.Freeze();
  clock_.SleepNs(kNsPerSecond);
  proxy_.Thaw();
  ASSERT_TRUE(AwaitAnswers("w1", Answers("w1") + 2)) << w1_.Said();
  EXPECT_EQ(Told("event=worker_connected"), 1u);

  proxy_.Freeze();
  ASSERT_TRUE(Eventually([&] { return Told("event=worker_connected") > 1; })) << w1_.Said();
  EXPECT_NE(w1_.Said().find("no connection to honed"), std::string::npos) << w1_.Said();
  // The client's watch is half-open too; it asks again and sees the end.
  End();
  EXPECT_EQ(Told("event=worker_lost"), 0u) << honed_.Said();
  EXPECT_EQ(Told("event=lease_ended"), 0u) << honed_.Said();
}

TEST_F(BadLinkTest, AWorkerThatIsSilentForTooLongIsLostAndComesBack) {
  trials_ = 100;
  Begin(3, 10);
  ASSERT_TRUE(AwaitAnswers("w1", 3)) << w1_.Said();
  const size_t before = Answers("w1");
  proxy_.Freeze();
  ASSERT_TRUE(Eventually([&] { return Told("event=worker_lost") > 0; })) << honed_.Said();
  EXPECT_THAT(honed_.Said(),
              ::testing::ContainsRegex(
                  "ts=[^ ]+ level=info event=lease_ended session=[0-9a-f]{32} attempt=[0-9]+ "
                  "lease=[0-9a-f]{32} worker=w1/cpu:0 state=lost why=\"[^\"]+\""));
  // It dials in anew and gets others; what it measured meanwhile is told to be stale.
  ASSERT_TRUE(Eventually([&] { return Told("event=worker_connected") > 1; })) << w1_.Said();
  ASSERT_TRUE(AwaitAnswers("w1", before + 3)) << w1_.Said() << honed_.Said();
  End();
}

TEST_F(BadLinkTest, ALinkThatTricklesIsGivenUpAndTheOthersGoOn) {
  trials_ = 60;
  Begin(4, 4);
  ASSERT_TRUE(AwaitAnswers("w1", 2)) << w1_.Said();
  proxy_.SetTrickle(5);
  w2_.Start();
  ASSERT_TRUE(Eventually([&] { return Told("event=worker_lost") > 0; })) << honed_.Said();
  AwaitSession();
  EXPECT_GT(Answers("w2"), 0u);
  // Its link is well again: it works again, and what it measured meanwhile was not counted.
  proxy_.SetTrickle(0);
  const size_t before = Answers("w1");
  ASSERT_TRUE(
      Eventually([&] { return KeepTuning() && Answers("w1") > before + 2; }, 60 * kNsPerSecond))
      << w1_.Said();
  End();
}

}  // namespace
}  // namespace hone::farm

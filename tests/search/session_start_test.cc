#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

class SessionStartTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeClock& wall_clock_ = clock_;
  db::MemoryDatabase log_;
};

/// Kills whoever looks at it so many times.
class KillingClock final : public MonotonicClock {
 public:
  explicit KillingClock(int looks) : looks_(looks) {}
  int64_t NowNs() const override {
    if (--looks_ < 0) throw Killed();
    return 1;
  }
  void SleepNs(int64_t) const override {}

 private:
  mutable int looks_;
};

// However early the first run is killed, what the log knows of its tasks is tried as soon.
TEST_F(SessionStartTest, ASessionKilledWhileItBeginsIsAsWarmAsAnother) {
  SessionOptions options = Options(30);
  options.seconds = 1000;
  {
    FakeMeasurer measurer(1, {});
    TuningSession session(log_, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
  }
  const auto measured_in = [&](db::MemoryDatabase& log) {
    FakeMeasurer measurer(1, {});
    TuningSession session(log, measurer, clock_, wall_clock_, options);
    EXPECT_TRUE(session.Start(TwoTasks()).ok());
    EXPECT_TRUE(session.Run(nullptr).ok());
    return measurer.measured();
  };
  db::MemoryDatabase other = log_;
  const std::vector<std::string> whole = measured_in(other);
  int kills = 0;
  for (bool killed = true; killed; ++kills) {
    SCOPED_TRACE(kills);
    db::MemoryDatabase log = log_;
    const KillingClock clock(kills);
    FakeMeasurer measurer(1, {});
    TuningSession session(log, measurer, clock, wall_clock_, options);
    try {
      ASSERT_TRUE(session.Start(TwoTasks()).ok());
      killed = false;
    } catch (const Killed&) {
    }
    EXPECT_EQ(measured_in(log), whole);
  }
  EXPECT_GE(kills, 4) << "no kill while records were looked for";
}

}  // namespace
}  // namespace hone::search

#include "client/import_progress.h"

#include <sstream>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"

namespace hone::client {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

TEST(ImportProgressTest, ALongImportTellsHowFarItIsAndHowLongItTakes) {
  FakeClock clock;
  std::ostringstream err;
  ImportProgress progress(clock, err, false);
  progress.Show("rollout", 0, 500);
  for (int64_t done = 1; done <= 4; ++done) {
    clock.AdvanceNs(kSecondNs);
    progress.Show("rollout", done, 500);
  }
  EXPECT_EQ(err.str(), "unrolling loop rollout: 2 of 500 iterations, at most 498 s left\n");
  clock.AdvanceNs(8 * kSecondNs);
  progress.Show("rollout", 300, -1);
  EXPECT_NE(err.str().find("unrolling loop rollout: 300 iterations so far\n"), std::string::npos);
}

TEST(ImportProgressTest, AShortOneTellsNothingAndATerminalsLineIsTakenAway) {
  FakeClock clock;
  std::ostringstream err;
  {
    ImportProgress progress(clock, err, true);
    for (int64_t done = 0; done < 1000; ++done) progress.Show("l", done, 1000);
    EXPECT_EQ(err.str(), "");
    clock.AdvanceNs(3 * kSecondNs);
    progress.Show("l", 1000, 1000);
    EXPECT_NE(err.str().find("1000 of 1000 iterations"), std::string::npos);
  }
  EXPECT_TRUE(err.str().ends_with("\x1b[1F\x1b[J")) << err.str();
}

}  // namespace
}  // namespace hone::client

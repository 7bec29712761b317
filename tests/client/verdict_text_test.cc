#include "client/verdict_text.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(VerdictText, IsOneLineWithTimesRatioAndInterval) {
  db::ModelVerdict v{.default_ns = 15.528e6,
                     .tuned_ns = 8.443e6,
                     .ratio = 1.85,
                     .ratio_low = 1.83,
                     .ratio_high = 1.854};
  EXPECT_EQ(VerdictLine(v), "model: 15.5 → 8.44 ms, 1.85 × faster [1.83, 1.85]");
  EXPECT_EQ(VerdictWord(v), "won");
  v = {.keeps_defaults = true,
       .default_ns = 123'400,
       .tuned_ns = 125'900,
       .ratio = 0.98,
       .ratio_low = 0.96,
       .ratio_high = 0.99};
  EXPECT_EQ(VerdictLine(v),
            "model: 123 → 126 us, 0.98 × [0.96, 0.99]: not surely faster, so this model keeps its "
            "defaults");
  EXPECT_EQ(VerdictWord(v), "keeps_defaults");
}

TEST(VerdictText, ABoundNearOneSaysOnWhichSideItIs) {
  db::ModelVerdict v{.default_ns = 2.5e9,
                     .tuned_ns = 2.49e9,
                     .ratio = 1.004,
                     .ratio_low = 1.0002,
                     .ratio_high = 1.006};
  EXPECT_EQ(VerdictLine(v), "model: 2.50 → 2.49 s, 1.00 × faster [1.0002, 1.01]");
  v.keeps_defaults = true;
  v.ratio_low = 0.9996;
  EXPECT_EQ(VerdictLine(v),
            "model: 2.50 → 2.49 s, 1.00 × [0.9996, 1.01]: not surely faster, so this model keeps "
            "its defaults");
}

}  // namespace
}  // namespace hone::client

#include "base/core/random_id.h"

#include <set>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(RandomId, NeverRepeatsAndUsesAllItsBits) {
  std::set<Hash128> ids;
  Hash128 ones;
  Hash128 zeros{.high = ~uint64_t{0}, .low = ~uint64_t{0}};
  for (int i = 0; i < 1'000; ++i) {
    const Hash128 id = RandomId();
    ids.insert(id);
    ones = {.high = ones.high | id.high, .low = ones.low | id.low};
    zeros = {.high = zeros.high & id.high, .low = zeros.low & id.low};
  }
  EXPECT_EQ(ids.size(), 1'000u);
  EXPECT_EQ(ones, (Hash128{.high = ~uint64_t{0}, .low = ~uint64_t{0}}));
  EXPECT_EQ(zeros, Hash128{});
}

}  // namespace
}  // namespace hone

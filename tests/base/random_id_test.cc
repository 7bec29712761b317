#include "base/core/random_id.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

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

TEST(FactId, NeverRepeatsAcrossThreadsAndGrowsAtOnePlace) {
  constexpr int kThreads = 4, kEach = 10'000;
  std::vector<std::vector<Hash128>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (auto& ids : drawn) {
    threads.emplace_back([&ids] {
      for (int i = 0; i < kEach; ++i) ids.push_back(FactId());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<Hash128> all;
  for (const auto& ids : drawn) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), size_t{kThreads} * kEach);
  const Hash128 first = drawn[0][0];
  for (const Hash128& id : all) {
    EXPECT_EQ(id.high, first.high);
    // Modulo 2^64: the counter may pass the end.
    EXPECT_LT(std::min(id.low - first.low, first.low - id.low), uint64_t{kThreads} * kEach);
  }
  EXPECT_NE(first.high, RandomId().high);
}

}  // namespace
}  // namespace hone

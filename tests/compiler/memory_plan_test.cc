#include "compiler/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/status.h"

namespace hone::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A step that makes `output` from `inputs`.
MemoryStep Make(int output, std::vector<int> inputs) {
  return MemoryStep{.reads = std::move(inputs), .writes = {output}};
}

std::vector<MemoryTensor> Sizes(const std::vector<int64_t>& bytes) {
  std::vector<MemoryTensor> tensors;
  for (const int64_t size : bytes) tensors.push_back({.bytes = size});
  return tensors;
}

// Runs the plan on a byte array: every step checks that what it reads still holds what its writer
// left there. This is the property itself, told without lifetimes or overlaps.
void ExpectNothingIsOverwritten(const MemoryProblem& problem, const MemoryPlan& plan,
                                const std::vector<int>& order) {
  std::vector<int> arena(static_cast<size_t>(plan.arena_bytes), -1);
  std::vector<std::vector<int>> external(problem.tensors.size());
  const auto root_of = [&](int tensor, int64_t* offset) {
    *offset = 0;
    while (problem.tensors[tensor].alias_of >= 0) {
      *offset += problem.tensors[tensor].alias_offset_bytes;
      tensor = problem.tensors[tensor].alias_of;
    }
    return tensor;
  };
  const auto memory = [&](int tensor) -> int* {
    int64_t offset = 0;
    const int root = root_of(tensor, &offset);
    if (problem.tensors[root].external) {
      external[root].resize(static_cast<size_t>(problem.tensors[root].bytes), -1);
      return external[root].data() + offset;
    }
    EXPECT_EQ((plan.offset_bytes[tensor] - offset) % kArenaAlignmentBytes, 0);
    EXPECT_GE(plan.offset_bytes[tensor], 0);
    EXPECT_LE(plan.offset_bytes[tensor] + problem.tensors[tensor].bytes, plan.arena_bytes);
    return arena.data() + plan.offset_bytes[tensor];
  };

  // Byte b of a root is labelled by the root and b, so that views of it agree.
  const auto label = [&](int tensor, int64_t byte) {
    int64_t offset = 0;
    const int root = root_of(tensor, &offset);
    return static_cast<int>(root * 100'000 + offset + byte);
  };
  std::set<int> steps(plan.order.begin(), plan.order.end());
  ASSERT_EQ(steps.size(), problem.steps.size());
  ASSERT_EQ(plan.order.size(), problem.steps.size());
  for (const int step : order) {
    for (const int tensor : problem.steps[step].writes) {
      int* bytes = memory(tensor);
      for (int64_t b = 0; b < problem.tensors[tensor].bytes; ++b) bytes[b] = label(tensor, b);
    }
    // After the writes, because outputs may not overlap the inputs of their own step.
    for (const int tensor : problem.steps[step].reads) {
      const int* bytes = memory(tensor);
      for (int64_t b = 0; b < problem.tensors[tensor].bytes; ++b) {
        ASSERT_EQ(bytes[b], label(tensor, b)) << "step " << step << " tensor " << tensor;
      }
    }
  }
}

void ExpectNothingIsOverwritten(const MemoryProblem& problem, const MemoryPlan& plan) {
  ExpectNothingIsOverwritten(problem, plan, plan.order);
}

// One of the orders in which the steps of forks may come.
std::vector<int> Interleaved(const MemoryPlan& plan, Random& random) {
  std::vector<int> order = plan.order;
  for (const ir::PlanFork& fork : plan.forks) {
    std::vector<size_t> next, end;
    size_t at = static_cast<size_t>(fork.first);
    for (const int32_t count : fork.counts) {
      next.push_back(at);
      end.push_back(at += static_cast<size_t>(count));
    }
    for (size_t i = static_cast<size_t>(fork.first); i < end.back();) {
      const size_t branch = random.Below(next.size());
      if (next[branch] < end[branch]) order[i++] = plan.order[next[branch]++];
    }
  }
  return order;
}

TEST(MemoryPlanTest, AChainNeedsTwoBuffers) {
  MemoryProblem problem{Sizes({640, 640, 640, 640}),
                        {Make(0, {}), Make(1, {0}), Make(2, {1}), Make(3, {2})}};
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 1280);
  EXPECT_EQ(plan->lower_bound_bytes, 1280);
  EXPECT_EQ(plan->sum_bytes, 2560);
  EXPECT_THAT(plan->order, ElementsAre(0, 1, 2, 3));
  ExpectNothingIsOverwritten(problem, *plan);
}

TEST(MemoryPlanTest, OffsetsAreAligned) {
  MemoryProblem problem{Sizes({1, 65, 3}), {Make(0, {}), Make(1, {0}), Make(2, {0, 1})}};
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 64 + 128 + 64);
  ExpectNothingIsOverwritten(problem, *plan);
}

TEST(MemoryPlanTest, ReorderingLowersThePeak) {
  // Three branches, each big then small, joined at the end. Breadth first keeps three big ones;
  // depth first one.
  MemoryProblem problem{Sizes({6400, 6400, 6400, 64, 64, 64, 64}),
                        {Make(0, {}), Make(1, {}), Make(2, {}), Make(3, {0}), Make(4, {1}),
                         Make(5, {2}), Make(6, {3, 4, 5})}};
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 6400 + 3 * 64);
  EXPECT_EQ(plan->live_peak_bytes, 6400 + 3 * 64);
  ExpectNothingIsOverwritten(problem, *plan);
}

TEST(MemoryPlanTest, ReshapesShareTheirMemory) {
  MemoryProblem problem{Sizes({256, 256, 256}), {Make(0, {}), Make(2, {1})}};
  problem.tensors[1].alias_of = 0;
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->offset_bytes[0], plan->offset_bytes[1]);
  EXPECT_EQ(plan->arena_bytes, 512);
  ExpectNothingIsOverwritten(problem, *plan);
}

TEST(MemoryPlanTest, PartsOfAConcatLieInTheirWhole) {
  MemoryProblem problem{Sizes({128, 64, 64, 64}), {Make(1, {}), Make(2, {}), Make(3, {0})}};
  problem.tensors[1].alias_of = 0;
  problem.tensors[2].alias_of = 0;
  problem.tensors[2].alias_offset_bytes = 64;
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->offset_bytes[2] - plan->offset_bytes[1], 64);
  EXPECT_EQ(plan->arena_bytes, 192);
  ExpectNothingIsOverwritten(problem, *plan);
}

TEST(MemoryPlanTest, PartsDependOnTheirOwnWritersOnly) {
  // 0 is made of 1 and 2, strided: step 1 reads part 1 before step 2 writes part 2 from it.
  MemoryProblem problem{Sizes({128, 64, 64, 64, 64}),
                        {Make(1, {}), Make(3, {1}), Make(2, {3}), Make(4, {0})}};
  problem.tensors[1].alias_of = 0;
  problem.tensors[2].alias_of = 0;
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->order, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(plan->arena_bytes, 128 + 64);

  // A view of the whole waits for both parts.
  problem.tensors.push_back({.bytes = 32, .alias_of = 0});
  problem.steps[1].reads = {5};
  EXPECT_EQ(PlanMemory(problem).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MemoryPlanTest, ExternalTensorsTakeNoArena) {
  MemoryProblem problem{Sizes({640, 64, 640}), {Make(1, {0}), Make(2, {1})}};
  problem.tensors[0].external = true;
  problem.tensors[2].external = true;
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 64);
  EXPECT_EQ(plan->sum_bytes, 64);
}

TEST(MemoryPlanTest, BadProblemsAreNamed) {
  const auto message = [](const MemoryProblem& problem) {
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return StatusMessage(plan.status());
  };
  EXPECT_THAT(message({Sizes({8}), {Make(1, {})}}), HasSubstr("tensor 1 of 1"));
  EXPECT_THAT(message({Sizes({8, 8}), {Make(0, {1}), Make(1, {})}}), HasSubstr("reads tensor 1"));
  EXPECT_THAT(message({Sizes({8, 8}), {Make(0, {1})}}), HasSubstr("which no step writes"));
  MemoryProblem loop{Sizes({8, 8}), {}};
  loop.tensors[0].alias_of = 1;
  loop.tensors[1].alias_of = 0;
  EXPECT_THAT(message(loop), HasSubstr("alias of itself"));
  MemoryProblem outside{Sizes({8, 8}), {}};
  outside.tensors[1].alias_of = 0;
  outside.tensors[1].alias_offset_bytes = 4;
  EXPECT_THAT(message(outside), HasSubstr("reaches out of"));
}

// A random graph of steps with skip connections, workspaces, aliases and external ends.
MemoryProblem RandomProblem(Random& random) {
  MemoryProblem problem;
  const int steps = static_cast<int>(random.Between(1, 24));
  std::vector<int> readable;
  for (int s = 0; s < steps; ++s) {
    MemoryStep step;
    for (int64_t r = random.Between(0, 3); r > 0 && !readable.empty(); --r) {
      // Mostly the newest values, now and then an old one.
      const size_t back = random.Chance(0.8) ? random.Below(std::min<size_t>(readable.size(), 4))
                                             : random.Below(readable.size());
      step.reads.push_back(readable[readable.size() - 1 - back]);
    }
    const int outputs = static_cast<int>(random.Between(1, 2));
    for (int o = 0; o < outputs; ++o) {
      const int id = static_cast<int>(problem.tensors.size());
      problem.tensors.push_back({.bytes = random.Chance(0.05) ? 0 : random.Between(1, 2000),
                                 .external = random.Chance(0.1)});
      step.writes.push_back(id);
      readable.push_back(id);
    }
    if (random.Chance(0.3)) {  // workspace
      step.writes.push_back(static_cast<int>(problem.tensors.size()));
      problem.tensors.push_back({.bytes = random.Between(1, 3000)});
    }
    problem.steps.push_back(std::move(step));
    if (random.Chance(0.3)) {  // a view of something readable
      const int whole = random.Pick(readable);
      const int64_t bytes = problem.tensors[whole].bytes;
      const int64_t offset = random.Between(0, bytes);
      readable.push_back(static_cast<int>(problem.tensors.size()));
      problem.tensors.push_back({.bytes = random.Between(0, bytes - offset),
                                 .alias_of = whole,
                                 .alias_offset_bytes = offset});
    }
  }
  return problem;
}

TEST(MemoryPlanTest, RandomPlansKeepWhatIsAliveAndStayBetweenTheirBounds) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const MemoryProblem problem = RandomProblem(random);
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectNothingIsOverwritten(problem, *plan);
    EXPECT_LE(plan->lower_bound_bytes, plan->live_peak_bytes);
    EXPECT_LE(plan->live_peak_bytes, plan->arena_bytes);
    EXPECT_LE(plan->arena_bytes, plan->sum_bytes);
    const absl::StatusOr<MemoryPlan> again = PlanMemory(problem);
    EXPECT_EQ(again->order, plan->order);
    EXPECT_EQ(again->offset_bytes, plan->offset_bytes);
    if (HasFatalFailure()) return;
  }
}

// Peak of an order, counted in the plainest way.
int64_t PeakOf(const MemoryProblem& problem, const std::vector<int>& order) {
  std::map<int, std::pair<int, int>> lives;
  for (size_t p = 0; p < order.size(); ++p) {
    for (const auto* list : {&problem.steps[order[p]].reads, &problem.steps[order[p]].writes}) {
      for (const int t : *list) {
        auto [it, fresh] = lives.try_emplace(t, static_cast<int>(p), static_cast<int>(p));
        if (!fresh) it->second.second = static_cast<int>(p);
      }
    }
  }
  int64_t peak = 0;
  for (size_t p = 0; p < order.size(); ++p) {
    int64_t live = 0;
    for (const auto& [tensor, life] : lives) {
      const bool alive = life.first <= static_cast<int>(p) && static_cast<int>(p) <= life.second;
      if (alive) live += (problem.tensors[tensor].bytes + 63) / 64 * 64;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(MemoryPlanTest, SmallGraphsGetTheBestOrder) {
  int tried = 0;
  for (uint64_t seed = 1000; tried < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    MemoryProblem problem = RandomProblem(random);
    const auto plain = [](const MemoryTensor& t) { return t.alias_of < 0; };
    if (problem.steps.size() > 7 ||
        !std::all_of(problem.tensors.begin(), problem.tensors.end(), plain)) {
      continue;
    }
    for (MemoryTensor& tensor : problem.tensors) tensor.external = false;
    ++tried;
    std::map<int, int> writer;
    for (size_t s = 0; s < problem.steps.size(); ++s) {
      for (const int t : problem.steps[s].writes) writer[t] = static_cast<int>(s);
    }
    std::vector<int> order(problem.steps.size());
    std::iota(order.begin(), order.end(), 0);
    int64_t best = PeakOf(problem, order);
    do {
      std::vector<int> position(order.size());
      for (size_t p = 0; p < order.size(); ++p) position[order[p]] = static_cast<int>(p);
      bool legal = true;
      for (size_t s = 0; s < problem.steps.size(); ++s) {
        for (const int t : problem.steps[s].reads)
          legal = legal && position[writer[t]] < position[s];
      }
      if (legal) best = std::min(best, PeakOf(problem, order));
    } while (std::next_permutation(order.begin(), order.end()));
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->live_peak_bytes, PeakOf(problem, plan->order));
    EXPECT_EQ(plan->live_peak_bytes, best);
  }
}

TEST(MemoryPlanTest, BranchesShareNoMemory) {
  // 0 is read by two chains, which meet in 7.
  MemoryProblem problem{Sizes({64, 640, 640, 64, 640, 640, 64, 64, 3200}),
                        {Make(0, {}), Make(1, {0}), Make(2, {1}), Make(3, {2}), Make(4, {0}),
                         Make(5, {4}), Make(6, {5}), Make(7, {3, 6}), Make(8, {7})}};
  const absl::StatusOr<MemoryPlan> in_turn = PlanMemory(problem);
  ASSERT_TRUE(in_turn.ok()) << in_turn.status();
  EXPECT_TRUE(in_turn->forks.empty());
  problem.forks = {{{{4, 5, 6}, {1, 2, 3}}}};
  const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->forks.size(), 1U);
  EXPECT_EQ(plan->forks[0].first, 1);
  EXPECT_THAT(plan->forks[0].counts, ElementsAre(3, 3));
  EXPECT_THAT(plan->order, ElementsAre(0, 4, 5, 6, 1, 2, 3, 7, 8));
  EXPECT_LE(plan->arena_bytes, in_turn->arena_bytes) << "the last step takes more than all";
  for (const int a : {1, 2, 3}) {
    for (const int b : {4, 5, 6}) {
      const int64_t a_begin = plan->offset_bytes[a], b_begin = plan->offset_bytes[b];
      EXPECT_TRUE(a_begin + problem.tensors[a].bytes <= b_begin ||
                  b_begin + problem.tensors[b].bytes <= a_begin)
          << a << " and " << b;
    }
  }
  ExpectNothingIsOverwritten(problem, *plan);
  // Where nothing else takes as much, they run in turn.
  problem.tensors[8].bytes = 64;
  const absl::StatusOr<MemoryPlan> small = PlanMemory(problem);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_TRUE(small->forks.empty());
  EXPECT_EQ(small->arena_bytes, 64 + 2 * 640 + 64);
}

/// Blocks of towers, each of which takes what the one before gives, and joins its ends as parts of
/// a whole or in a step.
MemoryProblem Towers(Random& random) {
  MemoryProblem problem;
  const auto add = [&](int64_t bytes) {
    problem.tensors.push_back({.bytes = bytes});
    return static_cast<int>(problem.tensors.size()) - 1;
  };
  const auto make = [&](int output, std::vector<int> inputs) {
    problem.steps.push_back(Make(output, std::move(inputs)));
    return static_cast<int>(problem.steps.size()) - 1;
  };
  int before = add(64 * random.Between(1, 20));
  make(before, {});
  for (int64_t block = random.Between(1, 4); block > 0; --block) {
    const auto towers = static_cast<int>(random.Between(2, 4));
    const int whole = add(64 * towers);
    const bool parts = random.Chance(0.5);
    MemoryFork fork;
    std::vector<int> ends;
    for (int t = 0; t < towers; ++t) {
      fork.branches.emplace_back();
      int last = before;
      for (int64_t length = random.Between(1, 3); length > 0; --length) {
        const int next = add(length == 1 ? 64 : 64 * random.Between(1, 20));
        if (length == 1 && parts) {
          problem.tensors[next].alias_of = whole;
          problem.tensors[next].alias_offset_bytes = 64 * t;
        }
        fork.branches.back().push_back(make(next, {last}));
        last = next;
      }
      ends.push_back(last);
    }
    if (!parts) make(whole, ends);
    before = add(64 * random.Between(1, 60));
    make(before, {whole});
    problem.forks.push_back(std::move(fork));
  }
  return problem;
}

TEST(MemoryPlanTest, NoOrderOfBranchesOverwritesWhatIsAliveAndThePeakGrowsByATenth) {
  constexpr uint64_t kSeed = 37;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  size_t asked = 0, kept = 0;
  for (int round = 0; round < 200; ++round) {
    MemoryProblem problem = Towers(random);
    const absl::StatusOr<MemoryPlan> plan = PlanMemory(problem);
    ASSERT_TRUE(plan.ok()) << plan.status();
    asked += problem.forks.size();
    kept += plan->forks.size();
    for (int i = 0; i < 5; ++i) {
      ExpectNothingIsOverwritten(problem, *plan, Interleaved(*plan, random));
      ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
    }
    problem.forks.clear();
    const absl::StatusOr<MemoryPlan> in_turn = PlanMemory(problem);
    ASSERT_TRUE(in_turn.ok()) << in_turn.status();
    EXPECT_LE(static_cast<double>(plan->arena_bytes),
              kMostForkedArena * static_cast<double>(in_turn->arena_bytes));
  }
  EXPECT_GT(kept, asked / 4);
  EXPECT_LT(kept, asked);
}

}  // namespace
}  // namespace hone::compiler

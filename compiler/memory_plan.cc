#include "compiler/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "compiler/step_order.h"

namespace hone::compiler {
namespace {

// A piece of the arena and the positions [first, last] in the order between which it is in use.
struct Block {
  int root = -1;
  int64_t bytes = 0;
  int first = -1;
  int last = -1;
  int64_t offset = 0;
  // The fork and the branch of the first and the last of them; kNone: outside, kSeveral: of that
  // fork several branches touch it.
  int first_fork = kNone, first_branch = kNone;
  int last_fork = kNone, last_branch = kNone;

  static constexpr int kNone = -1, kSeveral = -2;
};

bool InUseTogether(const Block& a, const Block& b) {
  if (a.first <= b.last && b.first <= a.last) return true;
  const Block& before = a.last < b.first ? a : b;
  const Block& after = a.last < b.first ? b : a;
  if (before.last_fork == Block::kNone || before.last_fork != after.first_fork) return false;
  return before.last_branch != after.first_branch || before.last_branch == Block::kSeveral;
}

/// Fork and branch of each position in an order.
std::vector<std::pair<int, int>> PlacesOf(const std::vector<ir::PlanFork>& forks, size_t steps) {
  std::vector<std::pair<int, int>> places(steps, {Block::kNone, Block::kNone});
  for (size_t f = 0; f < forks.size(); ++f) {
    auto position = static_cast<size_t>(forks[f].first);
    for (size_t b = 0; b < forks[f].counts.size(); ++b) {
      for (int i = 0; i < forks[f].counts[b]; ++i)
        places[position++] = {static_cast<int>(f), static_cast<int>(b)};
    }
  }
  return places;
}

std::vector<Block> Lifetimes(const StepGraph& steps, const std::vector<int>& order,
                             const std::vector<ir::PlanFork>& forks) {
  const std::vector<std::pair<int, int>> places = PlacesOf(forks, order.size());
  std::map<int, Block> blocks;  // by root, so that the result is ordered
  for (size_t position = 0; position < order.size(); ++position) {
    const auto [fork, branch] = places[position];
    for (const int root : steps.touched[order[position]]) {
      Block& block = blocks[root];
      if (block.root < 0) {
        block.root = root;
        block.bytes = steps.root_bytes[root];
        block.first = static_cast<int>(position);
        block.first_fork = fork;
        block.first_branch = branch;
      }
      if (fork != Block::kNone && fork == block.first_fork && branch != block.first_branch)
        block.first_branch = Block::kSeveral;
      const bool same_fork = fork != Block::kNone && fork == block.last_fork;
      block.last_branch = same_fork && branch != block.last_branch ? Block::kSeveral : branch;
      block.last_fork = fork;
      block.last = static_cast<int>(position);
    }
  }
  std::vector<Block> result;
  for (const auto& [root, block] : blocks) {
    if (block.bytes > 0) result.push_back(block);
  }
  return result;
}

// The smallest gap between the placed blocks in use at the same time that takes `block`, or the
// end.
int64_t BestFit(const Block& block, const std::vector<Block>& placed) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
  for (const Block& other : placed) {
    if (InUseTogether(block, other)) taken.emplace_back(other.offset, other.offset + other.bytes);
  }
  std::sort(taken.begin(), taken.end());
  int64_t end = 0;
  int64_t best = -1;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  for (const auto& [begin, next_end] : taken) {
    const int64_t gap = begin - end;
    if (gap >= block.bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, next_end);
  }
  return best >= 0 ? best : end;
}

int64_t PlaceInOrder(std::vector<Block>& blocks) {
  std::vector<Block> placed;
  int64_t arena = 0;
  for (Block& block : blocks) {
    block.offset = BestFit(block, placed);
    arena = std::max(arena, block.offset + block.bytes);
    placed.push_back(block);
  }
  return arena;
}

// Tries several orders of placing; leaves the offsets of the best in `blocks` and gives its arena.
int64_t Place(std::vector<Block>& blocks) {
  const auto area = [](const Block& b) { return b.bytes * (b.last - b.first + 1); };
  using Key = std::tuple<int64_t, int64_t, int>;
  const auto by_size = [](const Block& b) { return Key(-b.bytes, b.first, b.root); };
  const auto by_area = [&](const Block& b) { return Key(-area(b), -b.bytes, b.root); };
  const auto by_start = [](const Block& b) { return Key(b.first, -b.bytes, b.root); };
  const auto by_length = [](const Block& b) { return Key(b.first - b.last, -b.bytes, b.root); };

  std::optional<int64_t> best;
  std::vector<Block> best_blocks;
  const auto attempt = [&](const auto& key) {
    std::vector<Block> candidate = blocks;
    std::sort(candidate.begin(), candidate.end(),
              [&](const Block& a, const Block& b) { return key(a) < key(b); });
    const int64_t arena = PlaceInOrder(candidate);
    if (best.has_value() && arena >= *best) return;
    best = arena;
    best_blocks = std::move(candidate);
  };
  attempt(by_size);
  attempt(by_area);
  attempt(by_start);
  attempt(by_length);
  blocks = std::move(best_blocks);
  return best.value_or(0);
}

/// An order and the arena that it takes.
struct Placed {
  ForkedOrder order;
  std::vector<Block> blocks;
  int64_t arena_bytes = 0;
};

Placed PlaceForks(const StepGraph& steps, const std::vector<int>& order,
                  const std::vector<MemoryFork>& forks) {
  Placed placed{.order = GatherForks(steps, order, forks)};
  placed.blocks = Lifetimes(steps, placed.order.steps, placed.order.forks);
  placed.arena_bytes = Place(placed.blocks);
  return placed;
}

/// All forks if they fit, else those that do, one after the other.
Placed PlaceWhatFits(const StepGraph& steps, const std::vector<int>& order,
                     const std::vector<MemoryFork>& forks) {
  Placed best = PlaceForks(steps, order, {});
  if (forks.empty()) return best;
  const double most = kMostForkedArena * static_cast<double>(best.arena_bytes);
  const auto fits = [&](const Placed& placed) {
    return static_cast<double>(placed.arena_bytes) <= most;
  };
  if (Placed all = PlaceForks(steps, order, forks); fits(all)) return all;
  std::vector<MemoryFork> kept;
  for (const MemoryFork& fork : forks) {
    kept.push_back(fork);
    if (Placed more = PlaceForks(steps, order, kept); fits(more)) {
      best = std::move(more);
    } else {
      kept.pop_back();
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const MemoryProblem& problem) {
  HONE_ASSIGN_OR_RETURN(const StepGraph steps, MakeStepGraph(problem));
  MemoryPlan plan;
  Placed placed = PlaceWhatFits(steps, OrderForLowPeak(steps), problem.forks);
  plan.order = std::move(placed.order.steps);
  plan.forks = std::move(placed.order.forks);
  plan.arena_bytes = placed.arena_bytes;
  plan.live_peak_bytes = LivePeak(steps, plan.order);
  for (const std::vector<int>& touched : steps.touched) {
    int64_t bytes = 0;
    for (const int root : touched) bytes += steps.root_bytes[root];
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, bytes);
  }

  std::vector<int64_t> root_offset(problem.tensors.size(), 0);
  for (const Block& block : placed.blocks) {
    root_offset[block.root] = block.offset;
    plan.sum_bytes += block.bytes;
  }
  plan.offset_bytes.resize(problem.tensors.size(), 0);
  for (size_t i = 0; i < problem.tensors.size(); ++i) {
    const int root = steps.root[i];
    if (!problem.tensors[i].external) {
      plan.offset_bytes[i] = root_offset[root] + steps.offset_in_root_bytes[i];
    }
  }
  return plan;
}

}  // namespace hone::compiler

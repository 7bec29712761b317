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
  int first = std::numeric_limits<int>::max();
  int last = -1;
  int64_t offset = 0;
};

bool InUseTogether(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::vector<Block> Lifetimes(const StepGraph& steps, const std::vector<int>& order) {
  std::map<int, Block> blocks;  // by root, so that the result is ordered
  for (size_t position = 0; position < order.size(); ++position) {
    for (const int root : steps.touched[order[position]]) {
      Block& block = blocks[root];
      block.root = root;
      block.bytes = steps.root_bytes[root];
      block.first = std::min(block.first, static_cast<int>(position));
      block.last = std::max(block.last, static_cast<int>(position));
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

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const MemoryProblem& problem) {
  HONE_ASSIGN_OR_RETURN(const StepGraph steps, MakeStepGraph(problem));
  MemoryPlan plan;
  plan.order = OrderForLowPeak(steps);
  plan.live_peak_bytes = LivePeak(steps, plan.order);
  for (const std::vector<int>& touched : steps.touched) {
    int64_t bytes = 0;
    for (const int root : touched) bytes += steps.root_bytes[root];
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, bytes);
  }

  std::vector<Block> blocks = Lifetimes(steps, plan.order);
  plan.arena_bytes = Place(blocks);
  std::vector<int64_t> root_offset(problem.tensors.size(), 0);
  for (const Block& block : blocks) {
    root_offset[block.root] = block.offset;
    plan.sum_bytes += block.bytes;
  }
  plan.offset_bytes.resize(problem.tensors.size(), 0);
  for (size_t i = 0; i < problem.tensors.size(); ++i) {
    const int root = steps.root[i];
    if (!problem.tensors[root].external) {
      plan.offset_bytes[i] = root_offset[root] + steps.offset_in_root_bytes[i];
    }
  }
  return plan;
}

}  // namespace hone::compiler

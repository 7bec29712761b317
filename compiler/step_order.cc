#include "compiler/step_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "fmt/core.h"

#include "base/status.h"

namespace hone::compiler {
namespace {

constexpr size_t kWidth = 16;
constexpr size_t kMostSteps = 4000;  // beyond, the search would take seconds

int64_t AlignUp(int64_t bytes) {
  return (bytes + kArenaAlignmentBytes - 1) / kArenaAlignmentBytes * kArenaAlignmentBytes;
}

absl::Status Invalid(const std::string& message) {
  return absl::InvalidArgumentError("memory plan: " + message);
}

absl::Status ResolveAliases(const MemoryProblem& problem, StepGraph& steps) {
  const int count = static_cast<int>(problem.tensors.size());
  for (int i = 0; i < count; ++i) {
    int root = i;
    int64_t offset = 0;
    for (int hops = 0; problem.tensors[root].alias_of >= 0; ++hops) {
      if (hops > count) return Invalid(fmt::format("tensor {} is an alias of itself", i));
      offset += problem.tensors[root].alias_offset_bytes;
      root = problem.tensors[root].alias_of;
      if (root >= count) return Invalid(fmt::format("tensor {} is an alias of none ({})", i, root));
    }
    if (offset < 0 || offset + problem.tensors[i].bytes > problem.tensors[root].bytes) {
      return Invalid(fmt::format("tensor {} ({} bytes at {}) reaches out of tensor {} ({} bytes)",
                                 i, problem.tensors[i].bytes, offset, root,
                                 problem.tensors[root].bytes));
    }
    steps.root.push_back(root);
    steps.offset_in_root_bytes.push_back(offset);
    const bool placed = root == i && !problem.tensors[i].external;
    steps.root_bytes.push_back(placed ? AlignUp(problem.tensors[i].bytes) : 0);
  }
  return absl::OkStatus();
}

// Which tensors a step that reads one must wait for: the tree of parts, read both ways.
class PartTree {
 public:
  explicit PartTree(const MemoryProblem& problem) : problem_(problem) {
    has_writer_.resize(problem.tensors.size(), 0);
    for (const MemoryStep& step : problem.steps) {
      for (const int written : step.writes) {
        for (int t = written; t >= 0; t = problem.tensors[t].alias_of) has_writer_[t] = 1;
      }
    }
  }

  // Whether what is written through `written` can be seen through `read`.
  bool Shares(int read, int written) const {
    // A view that nothing is written through shows its whole, made of whatever parts.
    while (!has_writer_[read] && problem_.tensors[read].alias_of >= 0) {
      read = problem_.tensors[read].alias_of;
    }
    return IsPart(read, written) || IsPart(written, read);
  }

 private:
  bool IsPart(int part, int whole) const {
    while (part >= 0 && part != whole) part = problem_.tensors[part].alias_of;
    return part == whole;
  }

  const MemoryProblem& problem_;
  std::vector<char> has_writer_;  // the tensor or a part of it
};

// Edges from the writers of what a step reads to that step.
absl::Status AddDependences(const MemoryProblem& problem, StepGraph& steps) {
  struct Write {
    int step;
    int tensor;
  };
  std::map<int, std::vector<Write>> writes;  // by root
  for (size_t s = 0; s < problem.steps.size(); ++s) {
    for (const int tensor : problem.steps[s].writes) {
      writes[steps.root[tensor]].push_back({static_cast<int>(s), tensor});
    }
  }
  const PartTree parts(problem);
  steps.successors.resize(problem.steps.size());
  steps.num_predecessors.resize(problem.steps.size(), 0);
  for (size_t s = 0; s < problem.steps.size(); ++s) {
    std::set<int> before;
    for (const int tensor : problem.steps[s].reads) {
      for (const Write& write : writes[steps.root[tensor]]) {
        if (!parts.Shares(tensor, write.tensor)) continue;
        if (write.step >= static_cast<int>(s)) {
          return Invalid(
              fmt::format("step {} reads tensor {}, which step {} writes", s, tensor, write.step));
        }
        before.insert(write.step);
      }
      if (writes[steps.root[tensor]].empty() && !problem.tensors[steps.root[tensor]].external) {
        return Invalid(fmt::format("step {} reads tensor {}, which no step writes", s, tensor));
      }
    }
    for (const int step : before) steps.successors[step].push_back(static_cast<int>(s));
    steps.num_predecessors[s] = static_cast<int>(before.size());
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const MemoryProblem& problem) {
  for (size_t s = 0; s < problem.steps.size(); ++s) {
    for (const auto* list : {&problem.steps[s].reads, &problem.steps[s].writes}) {
      for (const int tensor : *list) {
        if (tensor < 0 || tensor >= static_cast<int>(problem.tensors.size())) {
          return Invalid(
              fmt::format("step {} names tensor {} of {}", s, tensor, problem.tensors.size()));
        }
      }
    }
  }
  for (const MemoryTensor& tensor : problem.tensors) {
    if (tensor.bytes < 0) return Invalid("a tensor of negative size");
  }
  return absl::OkStatus();
}

// A prefix of an order, shared by the states that continue it.
struct Prefix {
  int step;
  std::shared_ptr<const Prefix> before;
};

struct State {
  std::vector<char> done;    // by step
  std::vector<int> waiting;  // by step: predecessors not done
  std::vector<int> touches;  // by root: touching steps done so far
  int64_t live_bytes = 0;    // of what is alive between two steps
  int64_t peak_bytes = 0;
  int64_t displacement = 0;  // how far the order has moved from the given one
  std::shared_ptr<const Prefix> order;

  auto Cost() const { return std::tuple(peak_bytes, live_bytes, displacement); }
};

// What running `step` next would cost, without copying the state.
struct Move {
  size_t state;
  int step;
  int64_t peak_bytes;
  int64_t live_bytes;
  int64_t displacement;
  auto Cost() const { return std::tuple(peak_bytes, live_bytes, displacement, state, step); }
};

Move Evaluate(const StepGraph& steps, const State& state, size_t state_index, int step,
              int position) {
  int64_t during = state.live_bytes;
  int64_t freed = 0;
  for (const int root : steps.touched[step]) {
    if (state.touches[root] == 0) during += steps.root_bytes[root];
    if (state.touches[root] + 1 == steps.num_touching[root]) freed += steps.root_bytes[root];
  }
  return {state_index, step, std::max(state.peak_bytes, during), during - freed,
          state.displacement + std::abs(step - position)};
}

State Apply(const StepGraph& steps, const State& from, const Move& move) {
  State next = from;
  next.done[move.step] = 1;
  for (const int later : steps.successors[move.step]) --next.waiting[later];
  for (const int root : steps.touched[move.step]) ++next.touches[root];
  next.live_bytes = move.live_bytes;
  next.peak_bytes = move.peak_bytes;
  next.displacement = move.displacement;
  next.order = std::make_shared<const Prefix>(Prefix{move.step, from.order});
  return next;
}

// The best continuations of the beam by one step; of states with the same finished steps only one
// stays.
std::vector<State> Advance(const StepGraph& steps, const std::vector<State>& beam, int position) {
  std::vector<Move> moves;
  for (size_t b = 0; b < beam.size(); ++b) {
    for (size_t s = 0; s < steps.touched.size(); ++s) {
      if (beam[b].done[s] || beam[b].waiting[s] > 0) continue;
      moves.push_back(Evaluate(steps, beam[b], b, static_cast<int>(s), position));
    }
  }
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.Cost() < b.Cost(); });
  std::vector<State> next;
  std::set<std::vector<char>> seen;
  for (const Move& move : moves) {
    if (next.size() == kWidth) break;
    State state = Apply(steps, beam[move.state], move);
    if (seen.insert(state.done).second) next.push_back(std::move(state));
  }
  return next;
}

}  // namespace

absl::StatusOr<StepGraph> MakeStepGraph(const MemoryProblem& problem) {
  HONE_RETURN_IF_ERROR(CheckIds(problem));
  StepGraph steps;
  HONE_RETURN_IF_ERROR(ResolveAliases(problem, steps));
  HONE_RETURN_IF_ERROR(AddDependences(problem, steps));
  steps.num_touching.resize(problem.tensors.size(), 0);
  for (const MemoryStep& step : problem.steps) {
    std::set<int> touched;
    for (const auto* list : {&step.reads, &step.writes}) {
      for (const int tensor : *list) {
        const int root = steps.root[tensor];
        if (steps.root_bytes[root] > 0) touched.insert(root);
      }
    }
    for (const int root : touched) ++steps.num_touching[root];
    steps.touched.emplace_back(touched.begin(), touched.end());
  }
  return steps;
}

int64_t LivePeak(const StepGraph& steps, const std::vector<int>& order) {
  std::vector<int> touches(steps.root.size(), 0);
  int64_t live = 0;
  int64_t peak = 0;
  for (const int step : order) {
    for (const int root : steps.touched[step]) {
      if (touches[root]++ == 0) live += steps.root_bytes[root];
    }
    peak = std::max(peak, live);
    for (const int root : steps.touched[step]) {
      if (touches[root] == steps.num_touching[root]) live -= steps.root_bytes[root];
    }
  }
  return peak;
}

std::vector<int> OrderForLowPeak(const StepGraph& steps) {
  const size_t count = steps.touched.size();
  std::vector<int> given(count);
  std::iota(given.begin(), given.end(), 0);
  if (count > kMostSteps) return given;

  State start;
  start.done.resize(count, 0);
  start.waiting = steps.num_predecessors;
  start.touches.resize(steps.root.size(), 0);
  std::vector<State> beam = {start};
  for (size_t position = 0; position < count; ++position) {
    beam = Advance(steps, beam, static_cast<int>(position));
  }
  std::vector<int> found;
  for (const Prefix* p = beam.front().order.get(); p != nullptr; p = p->before.get()) {
    found.push_back(p->step);
  }
  std::reverse(found.begin(), found.end());
  return LivePeak(steps, found) < LivePeak(steps, given) ? found : given;
}

ForkedOrder GatherForks(const StepGraph& steps, const std::vector<int>& order,
                        const std::vector<MemoryFork>& forks) {
  const size_t count = order.size();
  // Forks are one place each, numbered behind the steps.
  std::vector<size_t> place_of(count);
  std::iota(place_of.begin(), place_of.end(), size_t{0});
  for (size_t f = 0; f < forks.size(); ++f) {
    for (const std::vector<int>& branch : forks[f].branches) {
      for (const int step : branch) place_of[step] = count + f;
    }
  }
  std::vector<std::set<size_t>> after(count + forks.size());
  std::vector<int> waiting(count + forks.size(), 0);
  for (size_t s = 0; s < count; ++s) {
    for (const int next : steps.successors[s]) {
      const size_t from = place_of[s], to = place_of[next];
      if (from != to && after[from].insert(to).second) ++waiting[to];
    }
  }
  std::vector<size_t> position(count + forks.size(), count);
  for (size_t i = 0; i < count; ++i) {
    size_t& at = position[place_of[order[i]]];
    at = std::min(at, i);
  }
  std::set<std::pair<size_t, size_t>> ready;  // by position
  for (size_t p = 0; p < position.size(); ++p) {
    if (waiting[p] == 0 && position[p] < count) ready.emplace(position[p], p);
  }
  ForkedOrder gathered;
  while (!ready.empty()) {
    const size_t place = ready.begin()->second;
    ready.erase(ready.begin());
    if (place < count) {
      gathered.steps.push_back(static_cast<int>(place));
    } else {
      ir::PlanFork fork{.first = static_cast<int32_t>(gathered.steps.size())};
      for (const std::vector<int>& branch : forks[place - count].branches) {
        fork.counts.push_back(static_cast<int32_t>(branch.size()));
        gathered.steps.insert(gathered.steps.end(), branch.begin(), branch.end());
      }
      gathered.forks.push_back(std::move(fork));
    }
    for (const size_t next : after[place]) {
      if (--waiting[next] == 0) ready.emplace(position[next], next);
    }
  }
  if (gathered.steps.size() != count) return {.steps = order, .forks = {}};
  return gathered;
}

}  // namespace hone::compiler

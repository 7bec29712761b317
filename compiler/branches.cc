#include "compiler/branches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace hone::compiler {
namespace {

constexpr size_t kMostSteps = 4000;
/// Handing a step's parts to other threads and waiting for them; and of a fork's.
constexpr double kHandNs = 1000, kForkNs = 2000;
constexpr double kLeastGain = 0.03;

/// The steps' dependences with a vertex before all and one after all, and one between steps and
/// those that all follow all of them, such as the ends of one block and the starts of the next:
/// each is a place where branches meet. Vertices are numbered from first to last.
class Flow {
 public:
  explicit Flow(const StepGraph& steps) {
    const size_t count = steps.successors.size();
    std::vector<std::vector<int>> before(count);
    for (size_t s = 0; s < count; ++s) {
      for (const int after : steps.successors[s])
        before[static_cast<size_t>(after)].push_back(static_cast<int>(s));
    }
    std::map<std::vector<int>, int> users;
    for (std::vector<int>& each : before) {
      std::ranges::sort(each);
      ++users[each];
    }
    std::map<std::vector<int>, int> meetings;
    std::vector<int> vertex_of(count);
    Add(kNoStep);
    for (size_t s = 0; s < count; ++s) {
      const std::vector<int>& each = before[s];
      if (each.size() > 1 && users[each] > 1 && !meetings.contains(each)) {
        meetings[each] = Add(kNoStep);
        for (const int from : each) Connect(vertex_of[static_cast<size_t>(from)], meetings[each]);
      }
      vertex_of[s] = Add(static_cast<int>(s));
      if (each.empty()) Connect(0, vertex_of[s]);
      if (const auto meeting = meetings.find(each); meeting != meetings.end()) {
        Connect(meeting->second, vertex_of[s]);
        continue;
      }
      for (const int from : each) Connect(vertex_of[static_cast<size_t>(from)], vertex_of[s]);
    }
    const int last = Add(kNoStep);
    for (int v = 0; v < last; ++v) {
      if (after(v).empty()) Connect(v, last);
    }
    FindMeetings();
  }

  static constexpr int kNoStep = -1;
  int size() const { return static_cast<int>(after_.size()); }
  int step(int vertex) const { return step_[static_cast<size_t>(vertex)]; }
  const std::vector<int>& after(int vertex) const { return after_[static_cast<size_t>(vertex)]; }
  /// The first vertex that all paths from this one to the last go through.
  int meeting(int vertex) const { return meeting_[static_cast<size_t>(vertex)]; }

 private:
  int Add(int step) {
    step_.push_back(step);
    after_.emplace_back();
    return size() - 1;
  }
  void Connect(int from, int to) { after_[static_cast<size_t>(from)].push_back(to); }

  // Immediate postdominators of a graph without cycles, in one pass from its end (Cooper, Harvey
  // and Kennedy, "A simple, fast dominance algorithm", 2001, on the reversed graph).
  void FindMeetings() {
    meeting_.resize(after_.size());
    meeting_.back() = size() - 1;
    for (int v = size() - 2; v >= 0; --v) {
      int meeting = after(v).front();
      for (const int other : after(v)) meeting = Common(meeting, other);
      meeting_[static_cast<size_t>(v)] = meeting;
    }
  }
  int Common(int a, int b) const {
    while (a != b) {
      if (a < b)
        a = meeting(a);
      else
        b = meeting(b);
    }
    return a;
  }

  std::vector<int> step_;
  std::vector<std::vector<int>> after_;
  std::vector<int> meeting_;
};

/// The steps between a vertex and its meeting, by piece.
std::vector<std::vector<int>> PiecesFrom(const Flow& flow, int vertex) {
  const int end = flow.meeting(vertex);
  std::vector<int> piece(static_cast<size_t>(end - vertex), -1);  // by vertex: a union-find
  const auto at = [&](int v) -> int& { return piece[static_cast<size_t>(v - vertex)]; };
  const auto root = [&](int v) {
    while (at(v) != v) v = at(v) = at(at(v));
    return v;
  };
  for (int v = vertex; v < end; ++v) {
    if (v != vertex && at(v) < 0) continue;
    for (const int next : flow.after(v)) {
      if (next == end) continue;
      if (at(next) < 0) at(next) = next;
      if (v != vertex) at(root(next)) = root(v);
    }
  }
  std::map<int, std::vector<int>> pieces;
  for (int v = vertex + 1; v < end; ++v) {
    if (at(v) >= 0 && flow.step(v) != Flow::kNoStep) pieces[root(v)].push_back(flow.step(v));
  }
  std::vector<std::vector<int>> branches;
  for (auto& [first, steps] : pieces) branches.push_back(std::move(steps));
  return branches;
}

struct Candidate {
  MemoryFork fork;
  double gain_ns = 0;
};

Candidate Consider(std::vector<std::vector<int>> branches, const std::vector<StepTime>& times,
                   int threads) {
  double all_ns = 0, in_turn_ns = 0, longest_ns = 0;
  std::vector<std::pair<double, size_t>> order;  // longest first
  for (size_t b = 0; b < branches.size(); ++b) {
    double alone_ns = 0, turn_ns = 0;
    for (const int step : branches[b]) {
      const StepTime& time = times[static_cast<size_t>(step)];
      const int share = std::clamp(time.threads, 1, threads);
      alone_ns += time.alone_ns;
      turn_ns += time.alone_ns / share + (share > 1 ? kHandNs : 0);
    }
    order.emplace_back(-alone_ns, b);
    all_ns += alone_ns;
    in_turn_ns += turn_ns;
    longest_ns = std::max(longest_ns, std::min(turn_ns, alone_ns));
  }
  std::ranges::sort(order);
  Candidate candidate;
  for (const auto& [alone, b] : order) candidate.fork.branches.push_back(std::move(branches[b]));
  const double beside_ns = std::max(all_ns / threads, longest_ns) + kForkNs;
  if (beside_ns < (1 - kLeastGain) * in_turn_ns) candidate.gain_ns = in_turn_ns - beside_ns;
  return candidate;
}

}  // namespace

std::vector<MemoryFork> FindBranches(const StepGraph& steps, const std::vector<StepTime>& times,
                                     int threads) {
  if (threads < 2 || times.size() > kMostSteps || times.empty()) return {};
  const Flow flow(steps);
  std::vector<Candidate> candidates;
  for (int v = 0; v + 1 < flow.size(); ++v) {
    if (flow.after(v).size() < 2) continue;
    std::vector<std::vector<int>> branches = PiecesFrom(flow, v);
    if (branches.size() < 2) continue;
    candidates.push_back(Consider(std::move(branches), times, threads));
  }
  std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::gain_ns);
  std::vector<char> taken(times.size(), 0);
  std::vector<MemoryFork> forks;
  for (Candidate& candidate : candidates) {
    if (candidate.gain_ns <= 0) break;
    std::vector<int> all;
    for (const std::vector<int>& branch : candidate.fork.branches)
      all.insert(all.end(), branch.begin(), branch.end());
    const auto is_taken = [&](int step) { return taken[static_cast<size_t>(step)] != 0; };
    if (std::ranges::any_of(all, is_taken)) continue;
    for (const int step : all) taken[static_cast<size_t>(step)] = 1;
    forks.push_back(std::move(candidate.fork));
  }
  return forks;
}

}  // namespace hone::compiler

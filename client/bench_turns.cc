#include "client/bench_turns.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"

namespace hone::client {
namespace {

constexpr size_t kLeastTurns = 5;
constexpr size_t kMostRuns = 200'000;  // of a subject; their times are kept
constexpr int64_t kShortestTurnNs = 1'000'000, kLongestTurnNs = 100'000'000;
/// Idle threads of thread pools spin for so long at most (ONNX Runtime's about 20 ms).
constexpr int64_t kPauseNs = 30'000'000;

struct Turn {
  BenchSubject* subject = nullptr;
  BenchTimes* times = nullptr;
  int runs = 1;  ///< counted ones
  int64_t spent_ns = 0;
};

/// Gives how many runs make a turn.
absl::StatusOr<int> WarmUp(BenchSubject& subject, int64_t warm_ns, int64_t turn_ns) {
  std::vector<int64_t> run_ns;
  int64_t spent_ns = 0;
  do {
    HONE_RETURN_IF_ERROR(subject.Run(1, run_ns));
    spent_ns += run_ns.back();
  } while (spent_ns < warm_ns);
  // The first may have touched memory for the first time, any may have been interrupted.
  const auto middle = run_ns.begin() + static_cast<std::ptrdiff_t>(run_ns.size() / 2);
  std::ranges::nth_element(run_ns, middle);
  return static_cast<int>(std::max<int64_t>(turn_ns / std::max<int64_t>(*middle, 1), 1));
}

absl::Status TakeTurn(Turn& turn, bool drop_first) {
  std::vector<int64_t> run_ns;
  HONE_RETURN_IF_ERROR(turn.subject->Run(turn.runs + (drop_first ? 1 : 0), run_ns));
  if (drop_first) run_ns.erase(run_ns.begin());
  const int64_t ns = std::accumulate(run_ns.begin(), run_ns.end(), int64_t{0});
  turn.spent_ns += ns;
  turn.times->turn_ns.push_back(ns / turn.runs);
  turn.times->run_ns.insert(turn.times->run_ns.end(), run_ns.begin(), run_ns.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<BenchTimes>> RunBenchTurns(const std::vector<BenchSubject*>& subjects,
                                                      double seconds, const MonotonicClock& clock) {
  const auto budget_ns = static_cast<int64_t>(seconds * 1e9);
  const int64_t turn_ns = std::clamp(budget_ns / 20, kShortestTurnNs, kLongestTurnNs);
  std::vector<BenchTimes> times(subjects.size());
  std::vector<Turn> turns;
  for (size_t i = 0; i < subjects.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const int runs, WarmUp(*subjects[i], budget_ns / 10, turn_ns));
    turns.push_back({subjects[i], &times[i], runs});
  }
  const bool several = subjects.size() > 1;
  const bool spins = std::ranges::any_of(subjects, &BenchSubject::spins);
  const auto done = [&](const Turn& turn) {
    const BenchTimes& so_far = *turn.times;
    return so_far.turn_ns.size() >= kLeastTurns &&
           (turn.spent_ns >= budget_ns || so_far.run_ns.size() >= kMostRuns);
  };
  while (!std::ranges::all_of(turns, done)) {
    for (Turn& turn : turns) {
      if (several && spins) clock.SleepNs(kPauseNs);
      HONE_RETURN_IF_ERROR(TakeTurn(turn, several && turn.runs > 1));
    }
    // The second one finds the caches as the first left them: each is second as often.
    std::ranges::reverse(turns);
  }
  return times;
}

}  // namespace hone::client

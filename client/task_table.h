#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/live_lines.h"
#include "client/tune_budget.h"
#include "measure/outcome.h"

namespace hone::client {

/// How the search for one kernel stands, with a server or without.
struct TaskRow {
  std::string name;
  int count = 1;                                     ///< in the model; 0: run the other way
  double default_ns = 0, best_ns = 0, bound_ns = 0;  ///< 0: unknown
  bool compared = false;  ///< default and best ran in turns: their ratio means something
  int64_t trials = 0;
  int64_t space = 0;  ///< points; 0: unknown, or not told
  std::map<measure::Outcome, int64_t> failures;
};

/// What a table has room for; names are cut between words and shorter tasks are summed up to suit.
struct TableForm {
  size_t cells = SIZE_MAX, rows = SIZE_MAX;
};

/// Whether a table so wide tells the points of Spaces: they are the first to go, and take a walk
/// through the Space to count.
bool TellsSpace(size_t cells);

/// Longest in the model first, under a header: best time, gain over the default where both were
/// compared, share of the roofline, trials, points of the Space where all are known and there is
/// room, name, failures.
std::vector<std::string> TaskTable(std::vector<TaskRow> rows, const TableForm& form);

/// How all of it stands, most wanted first; no part is longer than a narrow terminal is wide.
struct TuneState {
  std::vector<std::string> parts;
  std::map<measure::Outcome, int64_t> failures;

  /// "failed: 3 wrong, 1 crashed" of them, in parts.
  std::vector<std::string> FailedParts() const;
  /// All on one line.
  std::string Line() const;
};

/// "0:12, 4:48 left  123 candidates of 400".
std::string ProgressText(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock);
/// "kernels 2.345 ms by default, 1.234 ms now (sum of 3 of 21 kernels)": of those that have a time.
std::string KernelsText(const std::vector<TaskRow>& rows);

/// Tasks and state as lines that a screen has room for.
std::vector<std::string> LiveTable(std::vector<TaskRow> rows, const TuneState& state,
                                   const ScreenSize& screen);

}  // namespace hone::client

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "client/arguments.h"

namespace hone::client {

/// When a tuning ends at the latest; what is 0 does not limit.
struct TuneBudget {
  double seconds = 0;
  int64_t trials = 0;
  int64_t until_unix_ns = 0;
};

/// --seconds or --minutes, --trials, --until; ten minutes where none is given. Usage errors: both
/// of the first two, a date that is none or has passed.
absl::StatusOr<TuneBudget> ReadBudget(const Arguments& arguments, const WallClock& clock);

/// A local time of day (HH:MM, today or else tomorrow) or date with time (YYYY-MM-DDTHH:MM[:SS], a
/// space for the T is allowed too), as ns since 1970. A usage error where the text is neither or
/// has passed.
absl::StatusOr<int64_t> ReadUntil(const std::string& text, const WallClock& clock);

/// "0:59", "1:02:03".
std::string Duration(double seconds);

/// "10:00", "10:00, 64 trials", "until 2030-01-02 03:04:05".
std::string BudgetText(const TuneBudget& budget);

/// How far a tuning has come, earlier runs of its session included.
struct TuneSoFar {
  double seconds = 0;
  int64_t answered = 0;  ///< candidates
};

/// Seconds until a limit in time; negative: there is none.
double SecondsLeft(const TuneBudget& budget, double used_seconds, const WallClock& clock);

/// Until it ends.
struct TimeLeft {
  double seconds = 0;
  /// By the number of candidates left and the rate so far (a usual one before it is known), not by
  /// a limit in time.
  bool estimated = false;
};
/// The limit, or what the candidates will take if that is sooner.
TimeLeft TimeLeftOf(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock);

/// When it ends, local time: "14:03:20", with the date when that is another day. By the limit in
/// time where there is one, else by the candidates.
std::string ExpectedEnd(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock);

/// "ends 14:03:20 at the latest", "ends about 14:03:20, at 20 candidates a second".
std::string EndText(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock);

}  // namespace hone::client

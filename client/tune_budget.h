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

/// When it ends at the latest, local time: "14:03:20", with the date when that is another day;
/// "when 64 trials are done" without a limit in time.
std::string ExpectedEnd(const TuneBudget& budget, double used_seconds, const WallClock& clock);

/// Seconds until the end; negative: no limit in time.
double SecondsLeft(const TuneBudget& budget, double used_seconds, const WallClock& clock);

}  // namespace hone::client

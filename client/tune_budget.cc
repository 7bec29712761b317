#include "client/tune_budget.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "client/exit_code.h"

namespace hone::client {
namespace {

constexpr double kDefaultSeconds = 600;
constexpr int64_t kSecondNs = 1'000'000'000;
/// What two cores build, check and measure of a middling network's tasks (`bench/search`).
constexpr double kUsualRate = 20;
constexpr int64_t kEnoughForARate = 8;

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

std::tm LocalTime(int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / kSecondNs);
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  return local;
}

std::string DateText(const std::tm& t) {
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

/// The moment of a local date; -1 for one that the calendar does not have.
int64_t UnixNsOf(std::tm t) {
  const std::tm wanted = t;
  t.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&t);
  const bool same = t.tm_mday == wanted.tm_mday && t.tm_mon == wanted.tm_mon &&
                    t.tm_min == wanted.tm_min && t.tm_sec == wanted.tm_sec;
  return same ? static_cast<int64_t>(seconds) * kSecondNs : -1;
}

/// Numbers of at most so many digits, each followed by the next separator but the last one; as many
/// as there are in `text`, the rest stays.
std::vector<int> NumbersIn(std::string_view* text, std::string_view separators, size_t digits) {
  std::vector<int> numbers;
  for (size_t k = 0;; ++k) {
    int number = 0;
    const char* const end = text->data() + std::min(digits, text->size());
    const auto [stop, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || number < 0) return numbers;
    text->remove_prefix(static_cast<size_t>(stop - text->data()));
    numbers.push_back(number);
    if (k == separators.size() || !text->starts_with(separators[k])) return numbers;
    text->remove_prefix(1);
    digits = 2;
  }
}

bool IsTimeOfDay(const std::vector<int>& time) {
  return time[0] < 24 && time[1] < 60 && (time.size() < 3 || time[2] < 60);
}

/// 18:30
bool ReadTimeOfDay(std::string_view text, std::tm* t) {
  const std::vector<int> time = NumbersIn(&text, ":", 2);
  if (time.size() != 2 || !text.empty() || !IsTimeOfDay(time)) return false;
  t->tm_hour = time[0];
  t->tm_min = time[1];
  return true;
}

/// 2030-01-31T18:30, with a blank for the T and with seconds if wanted.
bool ReadDate(std::string_view text, std::tm* t) {
  const std::vector<int> date = NumbersIn(&text, "--", 4);
  if (date.size() != 3 || (!text.starts_with('T') && !text.starts_with(' '))) return false;
  text.remove_prefix(1);
  const std::vector<int> time = NumbersIn(&text, "::", 2);
  if (time.size() < 2 || !text.empty() || !IsTimeOfDay(time)) return false;
  t->tm_year = date[0] - 1900;
  t->tm_mon = date[1] - 1;
  t->tm_mday = date[2];
  t->tm_hour = time[0];
  t->tm_min = time[1];
  t->tm_sec = time.size() > 2 ? time[2] : 0;
  return true;
}

bool RateIsKnown(const TuneSoFar& so_far) {
  return so_far.answered >= kEnoughForARate && so_far.seconds > 0;
}

double CandidatesPerSecond(const TuneSoFar& so_far) {
  return RateIsKnown(so_far) ? static_cast<double>(so_far.answered) / so_far.seconds : kUsualRate;
}

}  // namespace

absl::StatusOr<int64_t> ReadUntil(const std::string& text, const WallClock& clock) {
  const int64_t now_ns = clock.UnixNs();
  std::tm t = LocalTime(now_ns);
  t.tm_sec = 0;
  int64_t end_ns = -1;
  if (ReadTimeOfDay(text, &t)) {
    end_ns = UnixNsOf(t);
    if (end_ns >= 0 && end_ns <= now_ns) {
      t = LocalTime(now_ns + int64_t{24} * 3600 * kSecondNs);
      t.tm_sec = 0;
      ReadTimeOfDay(text, &t);
      end_ns = UnixNsOf(t);
    }
  } else if (ReadDate(text, &t)) {
    end_ns = UnixNsOf(t);
  }
  if (end_ns < 0) {
    return Usage(fmt::format(
        "--until: \"{}\" is neither a time of day like 18:30 nor a date like 2030-01-31T18:30",
        text));
  }
  if (end_ns <= now_ns) {
    return Usage(fmt::format("--until: {} has passed", DateText(LocalTime(end_ns))));
  }
  return end_ns;
}

absl::StatusOr<TuneBudget> ReadBudget(const Arguments& arguments, const WallClock& clock) {
  TuneBudget budget;
  if (arguments.Given("seconds") && arguments.Given("minutes")) {
    return Usage("--seconds and --minutes exclude each other");
  }
  if (arguments.Given("trials")) budget.trials = arguments.Integer("trials");
  if (arguments.Given("until")) {
    HONE_ASSIGN_OR_RETURN(budget.until_unix_ns, ReadUntil(arguments.Text("until"), clock));
  }
  if (arguments.Given("seconds")) {
    budget.seconds = arguments.Number("seconds");
  } else if (arguments.Given("minutes")) {
    budget.seconds = arguments.Number("minutes") * 60;
  } else if (budget.trials == 0 && budget.until_unix_ns == 0) {
    budget.seconds = kDefaultSeconds;
  }
  return budget;
}

std::string Duration(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string BudgetText(const TuneBudget& budget) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (budget.seconds > 0) add(Duration(budget.seconds));
  if (budget.trials > 0) add(fmt::format("{} trials", budget.trials));
  if (budget.until_unix_ns > 0) add("until " + DateText(LocalTime(budget.until_unix_ns)));
  return text;
}

double SecondsLeft(const TuneBudget& budget, double used_seconds, const WallClock& clock) {
  double left = -1;
  if (budget.seconds > 0) left = std::max(0.0, budget.seconds - used_seconds);
  if (budget.until_unix_ns > 0) {
    const double until = static_cast<double>(budget.until_unix_ns - clock.UnixNs()) * 1e-9;
    left = left < 0 ? std::max(0.0, until) : std::clamp(until, 0.0, left);
  }
  return left;
}

TimeLeft TimeLeftOf(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock) {
  const double limit = SecondsLeft(budget, so_far.seconds, clock);
  // Before the rate is known a limit says more.
  if (budget.trials == 0 || (limit >= 0 && !RateIsKnown(so_far))) return {std::max(0.0, limit)};
  const int64_t trials = std::max<int64_t>(0, budget.trials - so_far.answered);
  const double estimate = static_cast<double>(trials) / CandidatesPerSecond(so_far);
  return limit >= 0 && limit <= estimate ? TimeLeft{limit} : TimeLeft{estimate, true};
}

std::string ExpectedEnd(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock) {
  const double limit = SecondsLeft(budget, so_far.seconds, clock);
  const double left = limit >= 0 ? limit : TimeLeftOf(budget, so_far, clock).seconds;
  const int64_t now_ns = clock.UnixNs();
  const std::tm now = LocalTime(now_ns);
  const std::tm end = LocalTime(now_ns + static_cast<int64_t>(left * 1e9) + kSecondNs / 2);
  const std::string text = DateText(end);
  return now.tm_year == end.tm_year && now.tm_yday == end.tm_yday ? text.substr(11) : text;
}

std::string EndText(const TuneBudget& budget, const TuneSoFar& so_far, const WallClock& clock) {
  const std::string end = ExpectedEnd(budget, so_far, clock);
  if (SecondsLeft(budget, so_far.seconds, clock) >= 0)
    return fmt::format("ends {} at the latest", end);
  return fmt::format("ends about {}, at {:.2g} candidates a second", end,
                     CandidatesPerSecond(so_far));
}

}  // namespace hone::client

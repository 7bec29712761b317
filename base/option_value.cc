// Checking values and words against option tables.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/option_spec.h"
#include "base/status.h"

namespace hone {
namespace {

std::string RangeText(const OptionSpec& option) {
  const bool low = option.low > -std::numeric_limits<double>::infinity();
  const bool high = option.high < std::numeric_limits<double>::infinity();
  if (low && high) return fmt::format(" from {} to {}", option.low, option.high);
  if (low) return fmt::format(", at least {}", option.low);
  if (high) return fmt::format(", at most {}", option.high);
  return "";
}

absl::Status CheckRange(const OptionSpec& option, double number, const std::string& value,
                        std::string_view noun) {
  if (number >= option.low && number <= option.high) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is out of range; give {}{}",
                                                option.name, value, noun, RangeText(option)));
}

/// Insertions, deletions, replacements and exchanges of neighbours (Damerau 1964, each letter
/// edited once).
int EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> rows(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int& least = rows[i][j];
      least = static_cast<int>(i + j);  // right where one of them is 0
      if (i == 0 || j == 0) continue;
      least = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1,
                        rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least = std::min(least, rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

/// Whether `word` is `name` with letters left out, the first one kept.
bool Abbreviates(std::string_view word, std::string_view name) {
  constexpr size_t kFewest = 3;
  if (word.size() < kFewest || word.front() != name.front()) return false;
  for (const char c : name) {
    if (!word.empty() && word.front() == c) word.remove_prefix(1);
  }
  return word.empty();
}

/// How far `word` is from a name, in the order of Nearest; kFar and more: not meant.
constexpr int kFar = 6;
int Remoteness(std::string_view word, const Suggestion& choice) {
  const std::vector<std::string> others = SplitChoices(choice.meant);
  if (std::find(others.begin(), others.end(), word) != others.end()) return 0;
  const int distance = EditDistance(word, choice.name);
  if (distance >= static_cast<int>(choice.name.size())) return kFar;
  const bool begins = choice.name.starts_with(word);
  if (distance <= 1) return begins ? 1 : 2;  // "tun" is tune before it is run
  if (begins || (choice.name.size() > 2 && word.starts_with(choice.name))) return 3;
  if (Abbreviates(word, choice.name)) return 4;
  return distance == 2 ? 5 : kFar;
}

}  // namespace

absl::Status CheckValue(const OptionSpec& option, const std::string& value) {
  const char* end = value.data() + value.size();
  switch (option.kind) {
    case ValueKind::kFlag:
      if (value == "true" || value == "false") return absl::OkStatus();
      return absl::InvalidArgumentError(
          fmt::format("--{}: \"{}\" is neither true nor false", option.name, value));
    case ValueKind::kInteger: {
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc() || stop != end) {
        return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is not a whole number{}",
                                                      option.name, value, RangeText(option)));
      }
      return CheckRange(option, static_cast<double>(number), value, "a whole number");
    }
    case ValueKind::kNumber: {
      double number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc() || stop != end) {
        return absl::InvalidArgumentError(
            fmt::format("--{}: \"{}\" is not a number{}", option.name, value, RangeText(option)));
      }
      return CheckRange(option, number, value, "a number");
    }
    case ValueKind::kDuration: {
      const std::optional<double> seconds = ParseSeconds(value);
      if (!seconds) {
        return absl::InvalidArgumentError(fmt::format(
            "--{}: \"{}\" is no time; give seconds, or 90s, 1.5m, 2h30m, 1d", option.name, value));
      }
      return CheckRange(option, *seconds, value, "seconds");
    }
    case ValueKind::kChoice: {
      const std::vector<std::string> choices = SplitChoices(option.choices);
      if (std::find(choices.begin(), choices.end(), value) != choices.end())
        return absl::OkStatus();
      return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is not one of {}", option.name,
                                                    value, fmt::join(choices, ", ")));
    }
    case ValueKind::kText:
    case ValueKind::kFile:
      if (!value.empty()) return absl::OkStatus();
      return absl::InvalidArgumentError(fmt::format("--{}: the value is empty", option.name));
  }
  HONE_UNREACHABLE();
}

std::optional<double> ParseSeconds(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  double seconds = 0, last_unit = std::numeric_limits<double>::infinity();
  do {
    double number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    if (stop == end && at == text.data()) return number;
    const char* unit_end = stop;
    while (unit_end != end && std::isalpha(static_cast<unsigned char>(*unit_end)) != 0) ++unit_end;
    const std::string_view name(stop, static_cast<size_t>(unit_end - stop));
    static constexpr std::pair<std::string_view, double> kUnits[] = {
        {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    const auto* const unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](auto u) { return u.first == name; });
    // From the longest to the shortest, each once: what else stands there is a typing error.
    if (unit == std::end(kUnits) || unit->second >= last_unit || number < 0) return std::nullopt;
    last_unit = unit->second;
    seconds += number * unit->second;
    at = unit_end;
  } while (at != end);
  return seconds;
}

std::string_view Nearest(std::string_view word, std::span<const Suggestion> choices) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  if (word.empty()) return {};
  std::string_view best;
  int least = kFar;
  for (const Suggestion& choice : choices) {
    const int remoteness = Remoteness(word, choice);
    if (remoteness > least || remoteness == kFar) continue;
    // Where several begin so, the shortest adds least.
    if (remoteness < least || choice.name.size() < best.size()) best = choice.name;
    least = remoteness;
  }
  return best;
}

std::vector<std::string> SplitChoices(std::string_view choices) {
  std::vector<std::string> list;
  while (!choices.empty()) {
    const size_t bar = choices.find('|');
    list.emplace_back(choices.substr(0, bar));
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return list;
}

}  // namespace hone

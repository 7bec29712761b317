// Checking values and words against the option table.

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"
#include "client/option_table.h"

namespace hone::client {
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

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
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

std::string Nearest(std::string_view word, std::span<const std::string> choices) {
  std::string best;
  int best_distance = 3;
  for (const std::string& choice : choices) {
    const int distance = EditDistance(word, choice);
    if (distance < best_distance && distance < static_cast<int>(choice.size())) {
      best = choice;
      best_distance = distance;
    }
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

}  // namespace hone::client

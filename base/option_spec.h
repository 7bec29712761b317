#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

// Options as every program's table has them. What a table says lives as long as the program.
namespace hone {

enum class ValueKind {
  kFlag,
  kText,
  kInteger,
  kNumber,
  kDuration,  ///< seconds, or numbers with units: 90, 1.5m, 2h30m; ParseSeconds gives seconds
  kFile,
  kChoice,  ///< one of `choices`
};

/// `--name ARGUMENT` of a program or a command; `name` is also its key in the config file.
struct OptionSpec {
  std::string_view name;
  char letter = '\0';  ///< -o, or none
  ValueKind kind = ValueKind::kFlag;
  std::string_view argument;       ///< placeholder in help; empty for a flag
  std::string_view help;           ///< one sentence, no full stop; empty: not listed (for tests)
  std::string_view default_text;   ///< the value when absent, in the option's syntax; empty: none
  std::string_view default_words;  ///< said instead of default_text where the value is computed
  std::string_view choices;        ///< kChoice: separated by '|'
  bool required = false;
  bool repeated = false;
  bool of_server = false;  ///< only matters with --server: stands in a group of its own
  /// A repeated one of pairs: in a file a table, `[name]` and then `key = value` a line.
  bool pairs = false;
  bool line_only = false;  ///< names a file to write: what one command makes, no key of config.toml
  /// kInteger, kNumber, kDuration: smallest and largest allowed
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string_view meant;  ///< what people type for it elsewhere, separated by '|': for suggestions
};

/// Whether `value` suits the option; the message says what is accepted. Used for command line and
/// config file alike.
absl::Status CheckValue(const OptionSpec& option, const std::string& value);

/// Seconds of a kDuration; nothing when it is none.
std::optional<double> ParseSeconds(std::string_view text);

/// A name, and other words for it, separated by '|'.
struct Suggestion {
  std::string_view name;
  std::string_view meant;
};

/// The name that `word` most likely stands for, or empty: another word for it, else one edit away,
/// else what `word` begins or abbreviates ("secs": seconds), else two edits away. Dashes in front
/// of `word` do not count.
std::string_view Nearest(std::string_view word, std::span<const Suggestion> choices);

/// "a|b" as {"a", "b"}.
std::vector<std::string> SplitChoices(std::string_view choices);

}  // namespace hone

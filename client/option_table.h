#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

// Every command and option of `hone`, once: command line, help, config file, completion and man
// pages are all made from this table. Everything in it lives as long as the program; thread-safe to
// read.
namespace hone::client {

enum class ValueKind {
  kFlag,
  kText,
  kInteger,
  kNumber,
  kFile,
  kChoice,  ///< one of `choices`
};

/// `--name ARGUMENT`; `name` is also its key in the config file.
struct OptionSpec {
  std::string_view name;
  char letter = '\0';  ///< -o, or none
  ValueKind kind = ValueKind::kFlag;
  std::string_view argument;       ///< placeholder in help; empty for a flag
  std::string_view help;           ///< one sentence, no full stop
  std::string_view default_text;   ///< the value when absent, in the option's syntax; empty: none
  std::string_view default_words;  ///< said instead of default_text where the value is computed
  std::string_view choices;        ///< kChoice: separated by '|'
  bool required = false;
  bool repeated = false;
  bool line_only = false;  ///< names a file to write: what one command makes, no key of config.toml
  double low = -std::numeric_limits<double>::infinity();  ///< kInteger, kNumber: smallest allowed
  double high = std::numeric_limits<double>::infinity();
};

/// An argument without a name.
struct PositionalSpec {
  std::string_view name;
  ValueKind kind = ValueKind::kFile;
  std::string_view help;
  std::string_view choices;
  bool required = true;
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;      ///< one line, imperative, no full stop
  std::string_view description;  ///< paragraphs separated by an empty line
  std::span<const PositionalSpec> positionals;
  std::span<const OptionSpec> options;
  std::string_view example;  ///< one command line

  const OptionSpec* FindOption(std::string_view option) const;
};

/// In the order of the help text.
std::span<const CommandSpec> Commands();
const CommandSpec* FindCommand(std::string_view name);

/// --help and --json: every command has them.
std::span<const OptionSpec> CommonOptions();

/// Whether `value` suits the option; the message says what is accepted. Used for command line and
/// config file alike.
absl::Status CheckValue(const OptionSpec& option, const std::string& value);

/// The entry of `choices` ("a|b|c") nearest to `word`, at most two edits away, or empty.
std::string Nearest(std::string_view word, std::span<const std::string> choices);

/// "a|b" as {"a", "b"}.
std::vector<std::string> SplitChoices(std::string_view choices);

}  // namespace hone::client

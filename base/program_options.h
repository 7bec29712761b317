#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/option_spec.h"

namespace hone {

/// A text option of a daemon, or without `argument` a flag. `meant`: as in OptionSpec.
constexpr OptionSpec DaemonOption(std::string_view name, std::string_view value,
                                  std::string_view argument, std::string_view help,
                                  bool repeated = false, bool pairs = false,
                                  std::string_view meant = {}) {
  return {.name = name,
          .letter = name == "help" ? 'h' : '\0',
          .kind = argument.empty() ? ValueKind::kFlag : ValueKind::kText,
          .argument = argument,
          .help = help,
          .default_text = value,
          .repeated = repeated,
          .pairs = pairs,
          .meant = meant};
}

/// Values by name, of a program without commands; from the command line, else the config file, else
/// the table.
class ProgramOptions {
 public:
  /// `words` follow the program's name; those that are no option are returned by words(). A config
  /// file is read when --config names one, or when `default_config` exists. kInvalidArgument: an
  /// unknown option or key (help, version, config and check-config are no keys), a value that does
  /// not suit its option, none; the message names file and line.
  static absl::StatusOr<ProgramOptions> Parse(const std::vector<std::string>& words,
                                              std::span<const OptionSpec> table,
                                              const std::string& default_config);

  std::string Text(std::string_view name) const;
  std::vector<std::string> List(std::string_view name) const;
  bool Flag(std::string_view name) const { return Text(name) == "true"; }
  bool Given(std::string_view name) const { return !Text(name).empty(); }
  /// The option is such a number, and has a value or a default.
  int64_t Integer(std::string_view name) const;
  double Number(std::string_view name) const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;
};

/// "usage: …" and a line an option.
std::string ProgramHelp(std::string_view usage, std::span<const OptionSpec> table);

/// The options of a program without a config file, whose table need not have help. Nothing after it
/// has said what is wrong, and how the program is used, or when that was asked for: end with 2.
std::optional<ProgramOptions> ReadOptions(std::string_view usage, std::span<const OptionSpec> table,
                                          int argc, char** argv);

/// A manual page of section 8, in man(7) format: `version` is the program's.
std::string DaemonManPage(std::string_view name, std::string_view summary, std::string_view usage,
                          std::span<const OptionSpec> table);

}  // namespace hone

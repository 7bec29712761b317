#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

/// An option of a daemon: `--name VALUE` on its command line, `name = "VALUE"` in its config file.
struct DaemonOption {
  std::string_view name;
  std::string_view value;     ///< its default; empty: none
  std::string_view argument;  ///< placeholder in help; empty: a flag, whose value is "true"
  std::string_view help;      ///< empty: not listed (for tests)
  bool repeated = false;
  /// A repeated option of pairs: in the file a table, `[name]` and then `key = value` a line.
  bool table = false;
};

/// Values by name; from the command line, else the config file, else the table.
class DaemonOptions {
 public:
  /// `words` follow the program's name; those that are no option are returned by words(). A config
  /// file is read when --config names one, or when `default_config` exists. kInvalidArgument: an
  /// unknown option or key (help, version, config and check-config are no keys), a missing value;
  /// the message names file and line.
  static absl::StatusOr<DaemonOptions> Parse(const std::vector<std::string>& words,
                                             std::span<const DaemonOption> table,
                                             const std::string& default_config);

  std::string Text(std::string_view name) const;
  std::vector<std::string> List(std::string_view name) const;
  bool Flag(std::string_view name) const { return Text(name) == "true"; }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;
};

/// "usage: …" and a line an option.
std::string DaemonHelp(std::string_view usage, std::span<const DaemonOption> table);

/// A manual page of section 8, in man(7) format: `version` is the program's.
std::string DaemonManPage(std::string_view name, std::string_view summary, std::string_view usage,
                          std::span<const DaemonOption> table);

}  // namespace hone

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::client {

/// Options from config.toml. Keys before the first table hold for every command that has an option
/// of that name, those in `[COMMAND]` for one command and win.
struct ConfigFile {
  std::string path;  ///< for messages; empty when there is no file
  std::map<std::string, std::vector<std::string>> general;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_command;

  /// The values for an option of a command, or null.
  const std::vector<std::string>* Find(std::string_view command, std::string_view option) const;
};

/// Reads TOML whose keys are names of options, whose tables are commands, and whose values
/// (strings, numbers, true, false and arrays of them) suit the option; everything else is
/// InvalidArgument with file and line.
absl::StatusOr<ConfigFile> ParseConfig(std::string_view text, const std::string& path);

/// An absent file is an empty one.
absl::StatusOr<ConfigFile> ReadConfig(const std::string& path);

}  // namespace hone::client

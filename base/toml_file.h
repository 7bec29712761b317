#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

/// `key = value` of a TOML file, as text.
struct TomlEntry {
  std::string table;  ///< the `[table]` that it is in; empty before the first one
  std::string key;    ///< empty for a table itself, which stands before what is in it
  /// A text, number (in decimal), true or false; an array's are several.
  std::vector<std::string> values;
  bool array = false;
  std::string where;  ///< "honed.toml:3", for messages
};

/// The entries of a file in their order, by toml++. `path` is for messages, "PATH:LINE: ...", of
/// the kInvalidArgument that tells of what is no TOML, of a table in a table, and of a value that
/// no option has (a date, an array of arrays).
absl::StatusOr<std::vector<TomlEntry>> ParseToml(std::string_view text, const std::string& path);

}  // namespace hone

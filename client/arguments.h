#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/option_table.h"

namespace hone::client {

/// What the user asked of one command: values from the command line, else the config file, else the
/// table's defaults. Already checked against the table. Asking for a name that the command does not
/// have, or for a value that is absent, is a programmer error.
class Arguments {
 public:
  /// Belongs to no command: no name is known.
  Arguments() = default;
  explicit Arguments(const CommandSpec& command) : command_(&command) {}

  /// Null only for a default-made object.
  const CommandSpec* command() const { return command_; }

  enum class Source { kLine, kConfig };

  /// Sets the values of an option or positional, replacing earlier ones.
  void Set(std::string_view name, std::vector<std::string> values, Source source = Source::kLine);

  /// True when given by the user (not by a default).
  bool Given(std::string_view name) const;
  /// Given for this very command, not for all by the config file.
  bool GivenOnLine(std::string_view name) const;
  /// What config.toml says and the line does not.
  const std::set<std::string, std::less<>>& configured() const { return configured_; }
  bool Flag(std::string_view name) const;
  /// Given, or has a default.
  bool Has(std::string_view name) const;
  std::string Text(std::string_view name) const;
  std::string TextOr(std::string_view name, std::string_view otherwise) const;
  int64_t Integer(std::string_view name) const;
  /// Seconds, for a duration.
  double Number(std::string_view name) const;
  std::vector<std::string> List(std::string_view name) const;

 private:
  const OptionSpec* CheckKnown(std::string_view name) const;

  const CommandSpec* command_ = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string, std::less<>> configured_;
};

}  // namespace hone::client

#pragma once

#include <span>
#include <string_view>

#include "base/option_spec.h"

// Every command and option of `hone`, once: command line, help, config file, completion and man
// pages are all made from this table. Everything in it lives as long as the program; thread-safe to
// read.
namespace hone::client {

/// An argument without a name.
struct PositionalSpec {
  std::string_view name;
  ValueKind kind = ValueKind::kFile;
  std::string_view help;
  std::string_view choices;
  bool required = true;
  bool repeated = false;  ///< the last one of a command only
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;      ///< one line, imperative, no full stop
  std::string_view description;  ///< paragraphs separated by an empty line
  std::span<const PositionalSpec> positionals;
  std::span<const OptionSpec> options;
  std::string_view example;  ///< one command line
  std::string_view meant;    ///< as of an option

  const OptionSpec* FindOption(std::string_view option) const;
};

/// In the order of the help text.
std::span<const CommandSpec> Commands();
const CommandSpec* FindCommand(std::string_view name);

/// --help, --quiet and --json: every command has them.
std::span<const OptionSpec> CommonOptions();

}  // namespace hone::client

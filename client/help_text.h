#pragma once

#include <string>

#include "client/option_table.h"

// Texts made from the option table, for people: help and manual pages.
namespace hone::client {

/// `hone --help`: every command with its summary.
std::string ProgramHelp();

/// `hone` alone: what it is, the first commands, where to read on.
std::string FirstHelp();

/// `hone COMMAND --help`, at most 100 columns.
std::string CommandHelp(const CommandSpec& command);

/// The page hone(1), or hone-COMMAND(1) when `command` is not null, in man(7) format.
std::string ManPage(const CommandSpec* command);

}  // namespace hone::client

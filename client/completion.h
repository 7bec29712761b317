#pragma once

#include <string>

// Shell scripts made from the option table.
namespace hone::client {

/// Completes commands, options, choices and file names in bash 4 or later.
std::string BashCompletion();

/// The same for zsh (a function _hone for $fpath).
std::string ZshCompletion();

/// The same for fish 3 or later.
std::string FishCompletion();

}  // namespace hone::client

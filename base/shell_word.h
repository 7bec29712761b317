#pragma once

#include <string>
#include <string_view>

namespace hone {

/// A word as a POSIX shell reads it back: as it is, or in single quotes where it has to be.
std::string ShellWord(std::string_view word);

}  // namespace hone

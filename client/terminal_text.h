#pragma once

#include <string>
#include <string_view>

namespace hone::client {

/// Makes text from others (workers, clients, a log from elsewhere) safe to print in a line: control
/// characters, which could move the cursor or begin a line, become \xNN.
std::string TerminalText(std::string_view text);

}  // namespace hone::client

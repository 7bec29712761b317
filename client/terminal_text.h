#pragma once

#include <string>
#include <string_view>

namespace hone::client {

/// Text that others wrote (workers, clients, a log from elsewhere) as part of a line for a person:
/// whatever would steer the terminal or begin another line is shown as \xNN.
std::string TerminalText(std::string_view text);

}  // namespace hone::client

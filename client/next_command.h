#pragma once

#include <string>

#include "client/arguments.h"
#include "ir/target.h"

namespace hone::client {

/// The command line that compiles the model which was tuned with these arguments, ready to paste.
/// `from`: the words that name the log or the server ("--db tune.db"); empty: none are needed.
std::string CompileLine(const Arguments& arguments, const ir::Target& target,
                        const std::string& from);

}  // namespace hone::client

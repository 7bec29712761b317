#pragma once

#include <cstddef>
#include <string>

// What is known of a helper process that dies.
namespace hone::measure {

/// What the child has written to `fd`, which does not block, since the last call: the end of it, at
/// most `most_bytes`, without trailing newlines and spaces.
std::string ReadLastWords(int fd, size_t most_bytes);

/// Whether the process has closed its end of a pipe, which it does first when it dies.
bool StreamEnded(int fd);

}  // namespace hone::measure

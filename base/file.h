#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

// Whole files. Never use these on a tuning log: only SQLite may open one.
namespace hone {

/// The bytes of a file. Errors name the path and the reason (codes: ErrnoStatus); a directory is
/// kInvalidArgument.
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// For a file that a user named and that cannot be read: "cannot read 'PATH': REASON; WHAT TO DO".
/// Codes: ErrnoStatus.
absl::Status UnreadableFile(int error_number, const std::string& path);

/// Replaces or makes `path` so that a reader, or a machine after a power cut, sees either the old
/// file or the whole new one: written beside it, fsync, rename, fsync of the folder. What is not a
/// regular file (a pipe, /dev/stdout) is written in place. On error nothing is left behind.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

/// Makes a folder and its parents; ok if it exists.
absl::Status MakeDirectories(const std::string& path);

}  // namespace hone

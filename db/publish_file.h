#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone::db {

/// Gives a finished file its name: fsync, rename over `path`, fsync of the folder. A reader, or a
/// machine after a power cut, sees the old file or the whole new one. `temporary` must lie in the
/// same folder and be open nowhere. kInvalidArgument: something that is no file has that name (a
/// device, a pipe), and would be gone.
absl::Status PublishFile(const std::string& temporary, const std::string& path);

/// Removes a database file and what SQLite keeps beside it; what is not there is fine.
void RemoveDatabaseFiles(const std::string& path);

/// Size of a file; 0 where there is none. Opens nothing.
int64_t FileSize(const std::string& path);

/// The folder that a path lies in.
std::string FolderOf(const std::string& path);

}  // namespace hone::db

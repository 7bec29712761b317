#pragma once

#include <cstdint>
#include <string>

namespace hone {

/// Bytes that this user may still write where `path` (a file or folder) lies. The largest number
/// where that cannot be told: some file systems have no size, and who asks goes on as if there were
/// room and meets the error of writing.
int64_t FreeBytes(const std::string& path);

}  // namespace hone

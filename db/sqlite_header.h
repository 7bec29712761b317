#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "db/sqlite_connection.h"

namespace hone::db {

/// "HONE": the application id in the header of every log.
inline constexpr uint32_t kApplicationId = 0x484f4e45;

/// What the first 100 bytes of a log say, read without a lock and without changing anything.
struct LogHeader {
  uint32_t schema_version = 0;  ///< may be older than what stands in the WAL
  bool live = false;            ///< WAL format; otherwise a snapshot (rollback format)
};

/// The header of an existing file. kNotFound; kInvalidArgument for what is no log of Hone;
/// kPermissionDenied.
absl::StatusOr<LogHeader> ReadLogHeader(const std::string& path);

/// SHA-256 of the whole file that a connection has open.
absl::StatusOr<std::string> FileSha256(Connection& connection);

}  // namespace hone::db

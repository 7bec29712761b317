#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

#include "db/database.h"

namespace hone::db {

/// Takes one line of JSON, without its end of line.
using WriteLine = std::function<absl::Status(const std::string& line)>;

/// Writes every fact of a log as one JSON object a line, in an order that never names what comes
/// later; `kind` says what it is (docs/formats/log.md). 64-bit seeds are strings. Texts that are
/// not UTF-8 appear as hexadecimal under their name with "_hex" added; blobs appear by digest and
/// size.
absl::Status ExportLog(Database& database, const WriteLine& write);

}  // namespace hone::db

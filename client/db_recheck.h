#pragma once

#include "absl/status/status.h"

#include "client/command.h"
#include "db/log_file.h"

namespace hone::client {

/// `hone db recheck`: measures the best Traces of the log's keys of this machine's devices again,
/// in turns with the default schedule; what is found answers in the place of what was known. A key
/// at a time, each durable by itself. Errors of the log as LogError's, kFailedPrecondition where
/// nothing can be measured here.
absl::Status RecheckLog(CommandContext& context, db::LogFile& log);

}  // namespace hone::client

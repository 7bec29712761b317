#pragma once

#include "absl/status/status.h"

#include "client/command.h"

namespace hone::client {

/// `hone tune MODEL --server ADDRESS`: imports the model and cuts it here, has its Workloads tuned
/// there and shows how it goes. Ctrl-C leaves the session running and says how to come back; the
/// same command joins it again.
absl::Status TuneOnServer(CommandContext& context);

}  // namespace hone::client

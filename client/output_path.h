#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "client/arguments.h"

namespace hone::client {

/// The files that the command line names for reading: the model, what --inputs, --input, --bind,
/// --expect, --db and --snapshot name, and the inputs beside the model. Not all need exist.
std::vector<std::string> InputFiles(const Arguments& arguments);

/// Whether a file can be written at `path`, as far as that can be told without trying: asked before
/// work that would be lost. Usage errors: what stands there is one of `inputs` (by device and
/// inode) or a tuning log, which nothing but its own writer may replace. kNotFound: there is no
/// such folder; kPermissionDenied: nothing may be made in it; kInvalidArgument: `path` is a folder.
/// What stands there and is no regular file (a pipe, a device) is not looked at.
absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs);

/// The same for a snapshot of a log, which replaces nothing: something may be pinned to what is
/// there.
absl::Status CheckSnapshotOutput(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace hone::client

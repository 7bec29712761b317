#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "client/arguments.h"
#include "client/trace_choice.h"

namespace hone::client {

/// "TARGET: FILE FILE" as Make and Ninja read it.
std::string DependencyText(const std::string& target, const std::vector<std::string>& files);

/// Whether --depfile, where given, has a place of its own beside the package `target`: asked before
/// work that would be lost. Errors of CheckOutput.
absl::Status CheckDependencyFile(const Arguments& arguments, const std::string& target,
                                 const std::vector<std::string>& inputs);

/// Writes --depfile: `target` (what was written) and what it was made from, which is MODEL, the
/// files of its external data (`data_files`), those of --bind, and where its schedules came from: a
/// log or snapshot, or a folder with its Traces. Errors of writing.
absl::Status WriteDependencyFile(const Arguments& arguments, const std::string& target,
                                 const TraceChoice& traces,
                                 const std::vector<std::string>& data_files);

}  // namespace hone::client

#pragma once

#include <string>

#include "base/status.h"

namespace hone {

/// The path of one of Hone's own helper programs ("hone-builder", "hone-runner"):
/// ../libexec/hone/NAME beside the folder of the running program, in build tree and install tree
/// alike. kNotFound if it is not there.
absl::StatusOr<std::string> FindHelperProgram(const std::string& name);

/// The path of another of Hone's programs ("hone-worker"), in the folder of the running one.
/// kNotFound if it is not there.
absl::StatusOr<std::string> FindSiblingProgram(const std::string& name);

}  // namespace hone

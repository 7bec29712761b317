#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

// Labelled steps at which a test lets a daemon die as the kernel would kill it. A step that nobody
// asked for costs one load; nothing but the hidden option --test-kill asks.
namespace hone {

/// Each of `points` is "LABEL:N": this process ends by SIGKILL the N-th time (from 1) that it comes
/// to that step, and says so on standard error ("killed at LABEL"). Before any other thread runs.
/// kInvalidArgument: not of that form, or a label that is not among `labels`.
absl::Status SetKillPoints(const std::vector<std::string>& points,
                           std::span<const std::string_view> labels);

/// A step of this program. Thread-safe.
void KillPoint(std::string_view label);

/// The same for a step of a child program: true the N-th time that it comes, so that the caller
/// asks the child to end there.
bool KillChildAt(std::string_view label);

}  // namespace hone

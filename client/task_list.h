#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "search/tuner.h"

namespace hone::client {

/// What a tuning will work on, most arithmetic first: a line a task ("  x2   conv 3x3 + relu
/// 1x32x14x14  12.3 MFLOP"), at most `most_lines`, the last of which then counts the rest.
std::string TaskListText(const std::vector<search::TuningTask>& tasks, size_t most_lines);

}  // namespace hone::client

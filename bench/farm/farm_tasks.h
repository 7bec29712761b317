#pragma once

#include <vector>

#include "proto/farm_messages.h"

namespace hone::bench {

/// Targets that the simulated devices run; each is a search of its own.
std::vector<std::string> FarmTargets();

/// Products and convolutions as the compiler makes them inside models, of `count` different
/// extents: so many that their spaces last for a long run.
std::vector<proto::TaskSpec> FarmTasks(int count);

}  // namespace hone::bench

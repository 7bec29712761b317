#pragma once

#include <string>

#include "base/identity.h"
#include "tests/farm/farm_processes.h"

namespace hone::farm {

/// Makes credentials of this farm's authority that are over since a minute ago; their folder.
std::string IssueExpired(const FarmFolder& farm, CallerRole role, const std::string& name);

}  // namespace hone::farm

#pragma once

#include <optional>
#include <string>

#include "ir/target.h"
#include "proto/farm_messages.h"

namespace hone::server {

/// Whether code for `target` runs on the device: its kind, its instructions, its cores. A text that
/// is no target runs nowhere.
bool CanRun(const proto::DeviceFacts& device, const std::string& target);

/// The same of a device of so many cores whose best target is `best`.
bool CanRun(const ir::Target& best, int cores, const ir::Target& target);
std::optional<ir::Target> TargetOf(const std::string& text);

}  // namespace hone::server

#pragma once

#include <string>

#include "proto/farm_messages.h"

namespace hone::server {

/// Whether code for `target` runs on the device: its ISA, its extensions, its cores. A text that is
/// no target runs nowhere.
bool CanRun(const proto::DeviceFacts& device, const std::string& target);

}  // namespace hone::server

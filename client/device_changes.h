#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "measure/device.h"

namespace hone::client {

/// What has changed about a device since a log's records of it were measured, a line each: another
/// driver, a limit of its power that is off by more than 5 %. Empty: nothing, or the log does not
/// know it. Devices are told apart by the UUID in their fingerprints. Errors of the log.
absl::StatusOr<std::string> DeviceChangesText(db::Database& log, const measure::HostDevice& device);

}  // namespace hone::client

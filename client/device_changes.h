#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "measure/device.h"

namespace hone::client {

/// What has changed about a device since a log's records of it were measured, a line each: another
/// driver, a limit of its power that is off by more than 5 %. Empty: nothing, or the log does not
/// know it. Devices are told apart by the UUID in their fingerprints. Errors of the log.
absl::StatusOr<std::string> DeviceChangesText(db::Database& log, const measure::HostDevice& device);

/// Whether two fingerprints of one class may be one device at different times: they do not have
/// different UUIDs.
bool SameDevice(std::string_view fingerprint, std::string_view other);

}  // namespace hone::client

#include "client/device_changes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::client {
namespace {

/// The value of a line `name: value`; empty: there is none.
std::string_view FactOf(std::string_view fingerprint, std::string_view name) {
  while (!fingerprint.empty()) {
    const std::string_view line = fingerprint.substr(0, fingerprint.find('\n'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    fingerprint.remove_prefix(std::min(line.size() + 1, fingerprint.size()));
  }
  return "";
}

/// "700 W"; 0: unknown.
double WattsOf(std::string_view text) { return std::atof(std::string(text).c_str()); }

}  // namespace

bool SameDevice(std::string_view fingerprint, std::string_view other) {
  return FactOf(fingerprint, "uuid") == FactOf(other, "uuid");
}

absl::StatusOr<std::string> DeviceChangesText(db::Database& log,
                                              const measure::HostDevice& device) {
  constexpr double kDrift = 0.05;
  const std::string_view uuid = FactOf(device.fingerprint, "uuid");
  if (uuid.empty()) return "";
  std::set<std::string> lines;
  const auto driver = FactOf(device.fingerprint, "driver");
  const auto limit = FactOf(device.fingerprint, "power limit");
  const auto look = [&](const db::Device& known) {
    if (FactOf(known.fingerprint, "uuid") != uuid) return absl::OkStatus();
    const std::string_view old_driver = FactOf(known.fingerprint, "driver");
    if (old_driver != driver) {
      lines.insert(
          fmt::format("note: the log has times of this GPU that were measured with driver '{}'; "
                      "its driver is '{}' now\n",
                      old_driver, driver));
    }
    const double old_watts = WattsOf(FactOf(known.fingerprint, "power limit"));
    const double watts = WattsOf(limit);
    if (old_watts > 0 && watts > 0 && std::abs(watts / old_watts - 1) > kDrift) {
      lines.insert(
          fmt::format("note: the log has times of this GPU that were measured with a power limit "
                      "of {} W; its limit is {} W now\n",
                      old_watts, watts));
    }
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(log.ScanDevices(look));
  std::string text;
  for (const std::string& line : lines) text += line;
  if (!text.empty()) text += "note: `hone db recheck` measures the best of those again\n";
  return text;
}

}  // namespace hone::client

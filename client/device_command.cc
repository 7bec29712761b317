#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/server_connection.h"
#include "client/server_options.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"active", "draining", "drained", "quarantined", "lost"};

ordered_json DeviceJson(const proto::DeviceInfo& d) {
  return {{"worker", d.worker},
          {"device", d.device.name},
          {"device_class", d.device.device_class},
          {"target", d.device.target},
          {"cores", d.device.cores},
          {"state", std::string(kStates[static_cast<size_t>(d.state)])},
          {"reason", d.reason},
          {"connected", d.connected},
          {"sandboxed", d.sandboxed},
          {"leases", d.leases},
          {"busy_seconds", static_cast<double>(d.busy_ns) * 1e-9},
          {"results", d.results}};
}

std::string DeviceText(const proto::DeviceInfo& d) {
  return fmt::format(
      "{}/{}  {:<12} {:<9} {:>4} leases {:>7} results {:>8.1f} s busy  {}{}{}\n", d.worker,
      d.device.name, kStates[static_cast<size_t>(d.state)], d.connected ? "connected" : "away",
      d.leases, d.results, static_cast<double>(d.busy_ns) * 1e-9, d.device.device_class,
      d.sandboxed ? "" : "  without sandbox", d.reason.empty() ? "" : "  " + d.reason);
}

}  // namespace

absl::Status RunDevice(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  const std::string action = arguments.Text("ACTION");
  if (action != "list") {
    const std::string name = arguments.TextOr("DEVICE", "");
    const size_t slash = name.find('/');
    if (slash == std::string::npos) {
      return WithExitCode(absl::InvalidArgumentError(
                              fmt::format("name the device: hone device {} WORKER/DEVICE", action)),
                          ExitCode::kUsage);
    }
    const proto::DeviceAction what = action == "drain"     ? proto::DeviceAction::kDrain
                                     : action == "undrain" ? proto::DeviceAction::kUndrain
                                                           : proto::DeviceAction::kProbe;
    HONE_RETURN_IF_ERROR(server->SetDevice(name.substr(0, slash), name.substr(slash + 1), what));
  }
  HONE_ASSIGN_OR_RETURN(const auto devices, server->ListDevices());
  auto list = ordered_json::array();
  for (const proto::DeviceInfo& device : devices) {
    list.push_back(DeviceJson(device));
    if (!context.json()) context.out << DeviceText(device);
  }
  context.json_result = ordered_json({{"devices", std::move(list)}})
                            .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return absl::OkStatus();
}

}  // namespace hone::client

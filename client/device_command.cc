#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/server_connection.h"
#include "client/server_options.h"
#include "client/text_table.h"
#include "proto/field_check.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"active", "draining", "drained", "quarantined", "lost"};

ordered_json ProbesJson(const std::optional<proto::Probes>& probes) {
  if (!probes) return {};
  return {{"gflops_per_core", probes->flop_per_second * 1e-9},
          {"dot_i8_gops_per_core", probes->dot_i8_per_second * 1e-9},
          {"dot_bf16_gops_per_core", probes->dot_bf16_per_second * 1e-9},
          {"memory_gb_per_second", probes->memory_bytes_per_second * 1e-9},
          {"noise", probes->noise},
          {"number", probes->number}};
}

ordered_json DeviceJson(const proto::DeviceInfo& d) {
  return {{"worker", d.worker},
          {"device", d.device.name},
          {"device_class", d.device.device_class},
          {"target", d.device.target},
          {"cores", d.device.cores},
          {"state", std::string(kStates[static_cast<size_t>(d.state)])},
          {"reason", d.reason},
          {"connected", d.connected},
          {"since_seconds", static_cast<double>(d.since_ms) * 1e-3},
          {"role", std::string(proto::NameOf(d.role))},
          {"sandboxed", d.sandboxed},
          {"leases", d.leases},
          {"busy_seconds", static_cast<double>(d.busy_ns) * 1e-9},
          {"results", d.results},
          {"version", d.program_version},
          {"driver", d.device.driver},
          {"labels", d.labels},
          {"probes", ProbesJson(d.probes)}};
}

std::string LabelsText(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}

std::string ListText(const std::vector<proto::DeviceInfo>& devices, bool wide) {
  std::vector<std::string> header = {"DEVICE", "STATE",   "LINK",   "AGE",  "ROLE",
                                     "LEASES", "RESULTS", "BUSY S", "CLASS"};
  if (wide) {
    header.insert(header.end(), {"VERSION", "CORES", "GFLOP/S A CORE", "GB/S", "NOISE", "TARGET"});
  }
  header.insert(header.end(), {"LABELS", "REMARK"});
  TextTable table(std::move(header));
  for (const proto::DeviceInfo& d : devices) {
    std::vector<std::string> row = {fmt::format("{}/{}", d.worker, d.device.name),
                                    std::string(kStates[static_cast<size_t>(d.state)]),
                                    d.connected ? "connected" : "away",
                                    AgeText(d.since_ms, 0),
                                    std::string(proto::NameOf(d.role)),
                                    fmt::format("{}", d.leases),
                                    fmt::format("{}", d.results),
                                    fmt::format("{:.1f}", static_cast<double>(d.busy_ns) * 1e-9),
                                    d.device.device_class};
    if (wide) {
      const auto probed = [&](double value, const char* unit) {
        return d.probes ? fmt::format("{:.1f}{}", value, unit) : std::string("-");
      };
      const proto::Probes probes = d.probes.value_or(proto::Probes{});
      row.insert(row.end(), {d.program_version, fmt::format("{}", d.device.cores),
                             probed(probes.flop_per_second * 1e-9, ""),
                             probed(probes.memory_bytes_per_second * 1e-9, ""),
                             probed(100 * probes.noise, " %"), d.device.target});
    }
    row.push_back(LabelsText(d.labels));
    row.push_back(d.sandboxed
                      ? d.reason
                      : fmt::format("without sandbox{}{}", d.reason.empty() ? "" : "; ", d.reason));
    table.Add(std::move(row));
  }
  return table.Text();
}

struct DeviceName {
  std::string worker, device;
};

/// How often the device's worker has probed it; 0: never, or there is no such device.
absl::StatusOr<int64_t> ProbesOf(ServerConnection& server, const DeviceName& name) {
  HONE_ASSIGN_OR_RETURN(const auto devices, server.ListDevices());
  for (const proto::DeviceInfo& d : devices) {
    if (d.worker == name.worker && d.device.name == name.device) {
      return d.probes ? d.probes->number : 0;
    }
  }
  return 0;
}

/// Until the worker has answered: what it measures just then comes first.
absl::Status AwaitProbe(ServerConnection& server, const DeviceName& name, int64_t before,
                        const MonotonicClock& clock) {
  constexpr int64_t kPatienceNs = 30'000'000'000, kPauseNs = 100'000'000;
  for (const int64_t until_ns = clock.NowNs() + kPatienceNs; clock.NowNs() < until_ns;) {
    HONE_ASSIGN_OR_RETURN(const int64_t number, ProbesOf(server, name));
    if (number != before) return absl::OkStatus();
    clock.SleepNs(kPauseNs);
  }
  return WithExitCode(absl::DeadlineExceededError(
                          fmt::format("{}/{} was asked to probe itself and has not answered "
                                      "for 30 s; see hone device list",
                                      name.worker, name.device)),
                      ExitCode::kServer);
}

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// The device whose WORKER/DEVICE, as `list` shows it, is or begins with what was typed.
absl::StatusOr<DeviceName> FindDevice(ServerConnection& server, const Arguments& arguments,
                                      const std::string& action) {
  const std::string begin = arguments.TextOr("DEVICE", "");
  const std::string how =
      fmt::format("name the device as hone device list does: hone device {} WORKER/DEVICE", action);
  if (begin.empty() || begin.starts_with('/')) return Usage(how);
  const size_t slash = begin.find('/');
  const auto worker = proto::Name(begin.substr(0, slash), "worker");
  if (!worker.ok()) return Usage(StatusMessage(worker.status()));
  const bool has_device = slash != std::string::npos && slash + 1 < begin.size();
  if (has_device) {
    const auto device = proto::Name(begin.substr(slash + 1), "device");
    if (!device.ok()) return Usage(StatusMessage(device.status()));
  }
  HONE_ASSIGN_OR_RETURN(const auto devices, server.ListDevices());
  std::vector<DeviceName> found;
  for (const proto::DeviceInfo& d : devices) {
    const std::string name = fmt::format("{}/{}", d.worker, d.device.name);
    if (name == begin) return DeviceName{d.worker, d.device.name};
    if (name.starts_with(begin)) found.push_back({d.worker, d.device.name});
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    // honed says what it knows of one that is not listed.
    if (has_device) return DeviceName{begin.substr(0, slash), begin.substr(slash + 1)};
    return Usage(fmt::format("no device begins with \"{}\"; {}", begin, how));
  }
  return Usage(fmt::format("{} devices begin with \"{}\"; {}", found.size(), begin, how));
}

}  // namespace

absl::Status RunDevice(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const std::string action = arguments.Text("ACTION");
  if (action == "list" && arguments.Has("DEVICE")) {
    return Usage(fmt::format("\"{}\" is one argument too many: list shows every device",
                             arguments.Text("DEVICE")));
  }
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  if (action != "list") {
    HONE_ASSIGN_OR_RETURN(const DeviceName asked, FindDevice(*server, arguments, action));
    const proto::DeviceAction what = action == "drain"     ? proto::DeviceAction::kDrain
                                     : action == "undrain" ? proto::DeviceAction::kUndrain
                                                           : proto::DeviceAction::kProbe;
    int64_t probed = 0;
    if (what == proto::DeviceAction::kProbe) {
      HONE_ASSIGN_OR_RETURN(probed, ProbesOf(*server, asked));
    }
    HONE_RETURN_IF_ERROR(server->SetDevice(asked.worker, asked.device, what));
    if (what == proto::DeviceAction::kProbe) {
      HONE_RETURN_IF_ERROR(AwaitProbe(*server, asked, probed, *context.environment.clock));
    }
  }
  HONE_ASSIGN_OR_RETURN(const auto devices, server->ListDevices());
  auto list = ordered_json::array();
  for (const proto::DeviceInfo& device : devices) list.push_back(DeviceJson(device));
  if (!context.json()) context.out << ListText(devices, arguments.Text("format") == "wide");
  context.json_result = JsonText(ordered_json({{"devices", std::move(list)}}));
  return absl::OkStatus();
}

}  // namespace hone::client

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/log.h"
#include "base/status.h"
#include "server/farm.h"

// What a Farm's devices can do at most, by their own probes, and how far these are believed. A
// class's peak is the best probe among its devices, but of those alone that are at most
// unlike_ratio over the class's median (of two the lower one). So a worker that overstates loosens
// the rule by that ratio and no more while most of its class are honest. One that understates
// changes nothing while most are; against a single other it has results measured twice that need
// not be, and these count all the same.
namespace hone::server {
namespace {

constexpr double kGiga = 1e9;

}  // namespace

absl::Status Farm::AskProbe(const std::string& name, const std::string& device,
                            const std::string& reason) {
  const auto known = workers_.find(name + "/" + device);
  if (known == workers_.end()) {
    return absl::NotFoundError(fmt::format("no worker '{}' with device {} was seen", name, device));
  }
  Worker& worker = known->second;
  if (!worker.stream) {
    return absl::FailedPreconditionError(
        fmt::format("the worker of device {} of '{}' is not connected; start it first, or let the "
                    "device back with undrain",
                    device, name));
  }
  HONE_RETURN_IF_ERROR(MayComeBack(worker));
  worker.probe_asked = true;
  Send(worker, proto::Probe{reason});
  return absl::OkStatus();
}

void Farm::CompareProbes(const std::string& device_class) {
  std::vector<std::pair<double, Worker*>> probed;
  for (auto& [key, worker] : workers_) {
    if (worker.hello.device.device_class != device_class) continue;
    worker.unlike.clear();
    const bool working =
        worker.device != DeviceState::kQuarantined && worker.device != DeviceState::kLost;
    if (worker.stream && working && worker.hello.probes) {
      probed.emplace_back(worker.hello.probes->flop_per_second, &worker);
    }
  }
  if (probed.empty()) {
    peaks_.erase(device_class);
    return;
  }
  std::ranges::sort(probed);
  const double median = probed[(probed.size() - 1) / 2].first;
  double& peak = peaks_[device_class];
  peak = median;
  for (const auto& [flop, worker] : probed) {
    const double ratio = flop / median;
    if (ratio <= policy_.unlike_ratio) peak = std::max(peak, flop);
    if (ratio <= policy_.unlike_ratio && ratio >= 1 / policy_.unlike_ratio) continue;
    worker->unlike =
        fmt::format("its probe says {:.1f} GFLOP/s a core, {:.2f} × its class's median{}",
                    flop / kGiga, ratio, ratio > 1 ? ": not believed" : "");
  }
}

double Farm::FastestNs(const std::string& key, const Hints& hints) const {
  const auto peak = peaks_.find(ClassOf(key, workers_.at(key)));
  if (peak == peaks_.end() || hints.flop <= 0) return hints.fastest_ns;
  return 1e9 * hints.flop / (peak->second * std::max(hints.threads, 1));
}

void Farm::OnProbes(Worker& worker, const proto::Probes& probes) {
  const std::string key = worker.name + "/" + worker.hello.device.name;
  worker.hello.probes = probes;
  LogEvent(LogLevel::kInfo, "device_probed",
           {{"worker", worker.name},
            {"device", worker.hello.device.name},
            {"gflops_a_core", fmt::format("{:.1f}", probes.flop_per_second / kGiga)},
            {"memory_gb_s", fmt::format("{:.1f}", probes.memory_bytes_per_second / kGiga)},
            {"noise", fmt::format("{:.4f}", probes.noise)}});
  CompareProbes(worker.hello.device.device_class);
  const bool asked = std::exchange(worker.probe_asked, false);
  if (!asked || !Next(worker.device, DeviceTrigger::kProbed)) return;
  // Not among those compared while it was out; now it must be like them.
  const auto peak = peaks_.find(worker.hello.device.device_class);
  const double ratio = peak == peaks_.end() ? 1 : probes.flop_per_second / peak->second;
  if (ratio > policy_.unlike_ratio || ratio < 1 / policy_.unlike_ratio) {
    worker.reason = fmt::format("probed, and kept out: {:.1f} GFLOP/s a core is {:.2f} × its class",
                                probes.flop_per_second / kGiga, ratio);
  } else {
    Move(worker.device, DeviceTrigger::kProbed);
    worker.failed_candidates.clear();
    worker.lost_in_row.clear();
    worker.reason.clear();
    AddAudit("probed", key,
             fmt::format("{:.1f} GFLOP/s a core, gets work again", probes.flop_per_second / kGiga));
  }
  const db::FarmDevice row{worker.name, worker.hello.device.name, worker.device, worker.reason};
  known_devices_[key] = row;
  step_.changes.push_back(db::PutFarmDevice{row});
  CompareProbes(worker.hello.device.device_class);
}

}  // namespace hone::server

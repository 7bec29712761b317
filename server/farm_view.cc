#include "server/farm_view.h"

#include <algorithm>

#include "server/farm.h"

namespace hone::server {

std::string Farm::WhyWaits(const Session& session) const {
  if (AnyWorker(proto::WorkerRole::kBoth, &session)) return "";
  if (!AnyWorker(proto::WorkerRole::kRun, &session)) {
    return "waiting for a device that can run it";
  }
  return AnyWorker(proto::WorkerRole::kBuild, nullptr) ? "" : "waiting for a worker that builds";
}

FarmView Farm::View(int64_t now_ns) const {
  FarmView view{.taken_ns = now_ns, .counters = counters_};
  std::vector<proto::DeviceInfo> infos = Devices();
  auto info = infos.begin();
  for (const auto& [key, worker] : workers_) {
    DeviceView& device = view.devices.emplace_back();
    device.info = std::move(*info++);
    device.busy_share = worker.meter.BusyShare(now_ns);
    device.noise = worker.meter.noise();
    device.noisy_results = worker.meter.noisy_results();
    device.quiet_ns = now_ns - worker.heard_ns;
    device.started = static_cast<int>(std::ranges::count_if(worker.leases, [&](const auto& token) {
      return leases_.at(token).state == LeaseState::kStarted;
    }));
    view.started_leases += device.started;
  }
  for (const auto& [name, project] : projects_) {
    view.projects.push_back({name, project.share, project.charged_ns, project.leased});
  }
  for (const auto& [id, session] : sessions_) {
    if (session.begun) {
      OpenSessionView& open = view.sessions[id];
      open.waits = WhyWaits(session);
      if (session.deadline_ns != INT64_MAX) {
        open.left_ns = std::max<int64_t>(0, session.deadline_ns - now_ns);
      }
    }
    view.waiting += static_cast<int64_t>(session.waiting.size());
    for (const int64_t number : session.waiting) {
      const int64_t since_ns = session.attempts.at(number).waiting_since_ns;
      view.oldest_waiting_ns = std::max(view.oldest_waiting_ns, now_ns - since_ns);
    }
  }
  view.open_leases = open_leases();
  return view;
}

}  // namespace hone::server

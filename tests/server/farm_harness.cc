#include "tests/server/farm_harness.h"

#include <algorithm>

#include "fmt/format.h"

namespace hone::server {

FarmPolicy FarmHarness::Policy() {
  FarmPolicy policy;
  policy.start_by_ns = 120 * kSecond;
  policy.run_by_ns = 10 * kSecond;
  return policy;
}

FarmHarness::FarmHarness(std::vector<db::FarmProject> projects, FarmPolicy policy)
    : farm(policy, {.protocol = 1, .builder = "b"}, 7, *this) {
  db::FarmState state;
  state.projects = std::move(projects);
  farm.Restore(state, 0);
}

FarmHarness::Device& FarmHarness::AddDevice(const std::string& name,
                                            const std::string& device_class) {
  Device& device = devices.emplace_back();
  device.name = name;
  device.stream = static_cast<StreamId>(devices.size());
  device.run = [](const proto::Grant&) {
    proto::WorkResult result{.outcome = measure::Outcome::kOk};
    result.samples_ns = {1000};
    return std::pair{50 * kMs, result};
  };
  proto::Hello& hello = device.hello;
  hello = {.protocol = 1, .builder_version = "b", .measurement_policy = 1};
  hello.instance = {9, static_cast<uint64_t>(devices.size())};
  hello.device = {.name = "cpu:0",
                  .device_class = device_class,
                  .fingerprint = "f",
                  .target = kTarget,
                  .cores = 1};
  farm.OnHello(device.stream, name, hello, now_ns);
  Offer(device);
  Settle();
  return device;
}

DeviceState FarmHarness::StateOf(const std::string& worker) const {
  for (const proto::DeviceInfo& info : farm.Devices()) {
    if (info.worker == worker) return info.state;
  }
  return DeviceState::kLost;
}

FarmHarness::Asker& FarmHarness::AddSession(const std::string& name, const std::string& project,
                                            int backlog, const std::string& device_class) {
  Asker& asker = askers.emplace_back();
  asker.id = HashBytes(name);
  asker.backlog = backlog;
  farm.BeginSession(
      {.id = asker.id, .project = project, .target = kTarget, .device_class = device_class});
  Settle();
  return asker;
}

void FarmHarness::Heartbeat(Device& device, int64_t sentinel_ns) {
  farm.OnMessage(device.stream, proto::Heartbeat{.sentinel_ns = sentinel_ns}, now_ns);
  Settle();
}

void FarmHarness::Probe(Device& device, double flop_per_second) {
  farm.OnMessage(
      device.stream,
      proto::Probes{
          .flop_per_second = flop_per_second, .memory_bytes_per_second = 1e10, .number = 1},
      now_ns);
  Settle();
}

void FarmHarness::Return(Device& device, const std::string& reason) {
  farm.OnMessage(device.stream, proto::Returned{device.running->token, reason}, now_ns);
  device.running.reset();
  device.result.reset();
  Offer(device);
  Settle();
}

void FarmHarness::Crash(Device& device, bool stays) {
  farm.OnGone(device.stream, now_ns);
  device.queue.clear();
  device.running.reset();
  device.result.reset();
  device.granted_before = device.granted;
  ++device.hello.instance.high;
  farm.OnHello(device.stream, device.name, device.hello, now_ns);
  Offer(device);
  if (!stays) farm.OnGone(device.stream, now_ns);
  Settle();
}

FarmHarness::Device* FarmHarness::AwaitRun(int64_t attempt, int64_t ns) {
  for (const int64_t until_ns = now_ns + ns; now_ns < until_ns; RunFor(10 * kMs)) {
    for (Device& device : devices) {
      if (device.running && device.running->attempt == attempt) return &device;
    }
  }
  return nullptr;
}

void FarmHarness::Offer(Device& device) {
  const int64_t held = static_cast<int64_t>(device.queue.size()) + (device.running ? 1 : 0);
  farm.OnMessage(device.stream,
                 proto::WorkerCredit{device.granted - device.granted_before + 4 - held}, now_ns);
}

void FarmHarness::StepDevice(Device& device) {
  if (device.running && now_ns >= device.end_ns) {
    device.result->token = device.running->token;
    const proto::WorkResult result = *std::exchange(device.result, std::nullopt);
    device.running.reset();
    farm.OnMessage(device.stream, result, now_ns);
    Offer(device);
  }
  if (device.running || device.queue.empty()) return;
  device.running = std::move(device.queue.front());
  device.queue.pop_front();
  farm.OnMessage(device.stream, proto::Started{device.running->token}, now_ns);
  auto [run_ns, result] = device.run(*device.running);
  result.run_ns = run_ns;
  device.result = std::move(result);
  device.end_ns = now_ns + run_ns;
  device.busy_ns[device.running->session] += run_ns;
}

void FarmHarness::Settle() {
  for (;;) {
    for (Asker& asker : askers) {
      for (; asker.open < asker.backlog; ++asker.open) {
        const int64_t number = asker.next++;
        farm.Submit(asker.id, number,
                    {.workload = asker.id.ToHex(),
                     .target = kTarget,
                     .traces = {fmt::format("{}", number)}},
                    {.fastest_ns = asker.fastest_ns, .flop = asker.flop}, now_ns);
      }
    }
    const FarmStep step = farm.Take();
    changes.insert(changes.end(), step.changes.begin(), step.changes.end());
    for (const Outgoing& out : step.messages) {
      Device& device = devices.at(static_cast<size_t>(out.stream) - 1);
      if (const auto* grant = std::get_if<proto::Grant>(&out.message)) {
        ++device.granted;
        device.queue.push_back(*grant);
        for (Asker& asker : askers) {
          if (asker.id == grant->session && asker.first_grant_ns < 0) asker.first_grant_ns = now_ns;
        }
      } else if (const auto* revoke = std::get_if<proto::Revoke>(&out.message)) {
        std::erase_if(device.queue, [&](const auto& g) { return g.token == revoke->token; });
        if (device.running && device.running->token == revoke->token) {
          // Its child is killed.
          device.busy_ns[device.running->session] -= device.end_ns - now_ns;
          device.running.reset();
          ++device.killed;
        }
        Offer(device);
      } else if (std::holds_alternative<proto::Probe>(out.message)) {
        ++device.probes_asked;
      }
    }
    for (const Delivery& delivery : step.deliveries) {
      for (Asker& asker : askers) {
        if (asker.id != delivery.session) continue;
        asker.results.emplace_back(delivery.attempt, delivery.result);
        --asker.open;
        // Its time is over: whatever it asked for would come back so.
        if (delivery.result.outcome == measure::Outcome::kWorkerLost) asker.backlog = 0;
        for (db::FarmChange& change : farm.EndsOf(asker.id, {delivery.attempt})) {
          changes.push_back(std::move(change));
        }
        farm.OnCommitted(asker.id, {delivery.attempt}, now_ns);
      }
    }
    if (step.messages.empty() && step.deliveries.empty()) return;
  }
}

void FarmHarness::RunFor(int64_t ns) {
  constexpr int64_t kStep = 10 * kMs;
  for (const int64_t until_ns = now_ns + ns; now_ns < until_ns; now_ns += kStep) {
    for (Device& device : devices) {
      StepDevice(device);
      if (now_ns % kSecond == 0) farm.OnMessage(device.stream, proto::Heartbeat{}, now_ns);
      Settle();
    }
    if (now_ns % (100 * kMs) != 0) continue;
    farm.Tick(now_ns);
    Settle();
  }
}

int64_t FarmHarness::BusyNs(const Asker& asker) const {
  int64_t busy_ns = 0;
  for (const Device& device : devices) {
    const auto found = device.busy_ns.find(asker.id);
    if (found != device.busy_ns.end()) busy_ns += found->second;
  }
  return busy_ns;
}

}  // namespace hone::server

#include "tests/sim/simulated_operator.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "tests/sim/farm_simulation.h"

// Operators revoke certificates, drain devices and cancel sessions while work is in flight; what a
// worker said on a stream that it has given up comes after its next one's words.
namespace hone::sim {
namespace {

constexpr int64_t kMs = 1'000'000;

}  // namespace

void FarmSimulation::RestoreActs(db::FarmState& state) {
  acts_.revoked = {state.revoked.begin(), state.revoked.end()};
  acts_.drained.clear();
  for (const db::FarmDevice& device : state.devices) {
    if (device.state == db::DeviceState::kDraining || device.state == db::DeviceState::kDrained)
      acts_.drained.insert(device.worker);
  }
  acts_.late.clear();
  if (options_.mistake == Mistake::kForgetRevoked) state.revoked.clear();
  if (options_.mistake == Mistake::kForgetDrained) state.devices.clear();
  // What was refused and is not durable is forgotten, as its operator was told.
  acts_.refused = {state.revoked.begin(), state.revoked.end()};
}

void FarmSimulation::StepOperator() {
  if (!options_.operators) return;
  SimWorker& w = workers_[static_cast<size_t>(random_.Below(workers_.size()))];
  if (random_.Chance(0.002) && acts_.refused.insert(w.name).second) {
    ++counts_.revoked;
    Gather({});
    farm_->RevokeWorker(w.name, FarmNs());
    Held held{.revokes = w.name};
    held.unit.changes.push_back(db::RevokeFarmIdentity{w.name, 0});
    Gather(std::move(held));
  }
  if (random_.Chance(0.004) && !acts_.drained.contains(w.name)) {
    Gather({});
    const absl::Status done =
        farm_->SetDevice(w.name, "cpu:0", server::DeviceTrigger::kDrain, "repair", FarmNs());
    if (done.ok()) ++counts_.drained, Gather({.drains = w.name});
  }
  if (random_.Chance(0.02) && acts_.drained.contains(w.name) &&
      farm_->SetDevice(w.name, "cpu:0", server::DeviceTrigger::kUndrain, "", FarmNs()).ok()) {
    acts_.drained.erase(w.name);
  }
  // Whose name is refused gets another one, sooner or later.
  if (random_.Chance(0.02) && acts_.refused.contains(w.name) && !w.stream) {
    w.said.clear();
    w.name = fmt::format("{}'{}", w.name.substr(0, w.name.find('\'')), ++acts_.names);
    CrashWorker(w);
  }
  // The first one always has its poisonous attempt.
  SimSession& s = sessions_[static_cast<size_t>(random_.Below(sessions_.size()))];
  if (random_.Chance(0.0005) && &s != &sessions_.front() && s.created && !s.ended) {
    counts_.cancelled += std::exchange(s.cancelled, true) ? 0 : 1;
  }
}

void FarmSimulation::CheckGrant(const SimWorker& w) {
  if (acts_.revoked.contains(w.name)) wrong_ = "a worker got work whose certificate was revoked";
  if (acts_.drained.contains(w.name)) wrong_ = "a device got work that was drained";
}

void FarmSimulation::KeepLate(const SimWorker& w) {
  if (!options_.operators) return;
  const int64_t late_ns = random_.Between(0, 3'000) * kMs;
  for (const auto& [arrives_ns, message] : w.to_honed) {
    acts_.late.push_back({std::max(arrives_ns, now_ns_) + late_ns, *w.stream, w.name, message});
  }
}

void FarmSimulation::HearLate() {
  std::deque<OperatorActs::Late> late;
  late.swap(acts_.late);
  for (OperatorActs::Late& l : late) {
    // A stream's end comes behind all that was said on it.
    const bool open = std::ranges::any_of(workers_, [&](const SimWorker& w) {
      return std::ranges::any_of(w.ghosts, [&](const auto& g) { return g.first == l.stream; });
    });
    if (!open || acts_.refused.contains(l.worker)) continue;
    if (l.arrives_ns > now_ns_) {
      acts_.late.push_back(std::move(l));
      continue;
    }
    ++counts_.late;
    if (const auto* hello = std::get_if<proto::Hello>(&l.message)) {
      farm_->OnHello(l.stream, l.worker, *hello, FarmNs());
    } else {
      farm_->OnMessage(l.stream, l.message, FarmNs());
    }
  }
}

}  // namespace hone::sim

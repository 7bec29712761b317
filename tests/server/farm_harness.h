#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/farm.h"

// A Farm whose devices work one after another on a clock that a test turns; every commit succeeds
// at once. For rules of scheduling and faults; tests/sim has crashes, networks and the store.
namespace hone::server {

class FarmHarness final : public LeaseReader {
 public:
  static constexpr int64_t kMs = 1'000'000;
  static constexpr int64_t kSecond = 1'000 * kMs;
  static constexpr char kTarget[] = "cpu:avx2,threads=1";

  struct Device {
    std::string name;
    StreamId stream = 0;
    proto::Hello hello;
    int64_t granted_before = 0;  ///< on earlier streams
    /// How long a job runs here, and what comes of it; run_ns is filled in.
    std::function<std::pair<int64_t, proto::WorkResult>(const proto::Grant&)> run;
    std::deque<proto::Grant> queue;
    std::optional<proto::Grant> running;
    std::optional<proto::WorkResult> result;
    int64_t end_ns = 0, granted = 0, killed = 0, probes_asked = 0;
    std::map<Hash128, int64_t> busy_ns;  ///< by session
  };
  struct Asker {
    Hash128 id;
    int64_t next = 0;
    int backlog = 0;  ///< attempts kept waiting or under way
    int64_t open = 0;
    int64_t first_grant_ns = -1;
    double fastest_ns = 0, flop = 0;
    std::vector<std::pair<int64_t, proto::WorkResult>> results;
  };

  explicit FarmHarness(std::vector<db::FarmProject> projects = {}, FarmPolicy policy = Policy());

  Device& AddDevice(const std::string& name, const std::string& device_class = "class");
  DeviceState StateOf(const std::string& worker) const;
  /// Keeps so many attempts of a session asked for.
  Asker& AddSession(const std::string& name, const std::string& project, int backlog,
                    const std::string& device_class = "class");
  /// Its worker's process dies with what it has; another one dials in at once, and stays or not.
  void Crash(Device& device, bool stays = true);
  /// Its worker gives what runs back.
  void Return(Device& device, const std::string& reason);
  /// The device that runs this attempt, waited for at most `ns`; null: none did.
  Device* AwaitRun(int64_t attempt, int64_t ns);
  void Heartbeat(Device& device, int64_t sentinel_ns);
  /// Its worker says what one core of it can do.
  void Probe(Device& device, double flop_per_second);
  void RunFor(int64_t ns);
  int64_t BusyNs(const Asker& asker) const;
  std::optional<db::FarmLease> FindLease(const Hash128&) override { return std::nullopt; }

  Farm farm;
  int64_t now_ns = 0;
  std::deque<Device> devices;
  std::deque<Asker> askers;
  std::vector<db::FarmChange> changes;  ///< everything that became durable

  static FarmPolicy Policy();

 private:
  void StepDevice(Device& device);
  void Offer(Device& device);
  void Settle();
};

}  // namespace hone::server

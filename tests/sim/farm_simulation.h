#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "db/farm_store.h"
#include "server/farm.h"
#include "tests/server/temporary_folder.h"
#include "worker/lease_desk.h"

// A farm under one seed: the real Farm, the real LeaseDesk of workers and the real SQL, with a
// simulated clock, network, runs and crashes.
namespace hone::sim {

/// What a coordinator could get wrong; the simulation must notice each.
enum class Mistake : uint8_t {
  kNone,
  kSendBeforeCommit,   ///< acknowledge before the commit is synced
  kReuseStart,         ///< tokens begin anew after a restart
  kForgetOpenLeases,   ///< after a restart
  kCloseWithoutLease,  ///< results without the end of their lease
};

struct SimulationOptions {
  uint64_t seed = 0;
  Mistake mistake = Mistake::kNone;
  int attempts = 40;
  int workers = 3;
  int steps = 20'000;
};

class FarmSimulation {
 public:
  explicit FarmSimulation(const SimulationOptions& options);
  ~FarmSimulation();

  /// Runs until every attempt is closed, then checks; empty, or what is wrong.
  std::string Run();

  struct Counts {
    int honed_crashes = 0, worker_crashes = 0, breaks = 0, full_disks = 0, condemned = 0;
    server::FarmCounters farm;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Running {
    int64_t number = 0;
    int64_t attempt = 0;
    int64_t start_ns = 0, end_ns = 0;
    bool started = false;
  };
  struct SimWorker {
    std::string name;
    Hash128 instance;
    std::unique_ptr<worker::LeaseDesk> desk;
    std::optional<server::StreamId> stream;
    int64_t dial_ns = 0;
    std::deque<std::pair<int64_t, proto::WorkerMessage>> to_honed;  ///< by when they arrive
    std::deque<std::pair<int64_t, proto::ServerMessage>> to_worker;
    std::vector<Running> jobs;
  };
  struct Held {
    db::FarmUnit unit;
    server::FarmStep step;
    std::vector<int64_t> commits;  ///< attempts whose results this unit holds
  };

  void StartHoned();
  void CrashHoned();
  void CrashWorker(SimWorker& w);
  void Break(SimWorker& w);
  void Dial(SimWorker& w);
  void StepWorker(SimWorker& w);
  void StepHoned();
  /// Takes what the Farm wants into a unit that waits for its commit.
  void Gather(db::FarmUnit unit, std::vector<int64_t> commits);
  void CommitAll();
  void Release(const server::FarmStep& step);
  void Drive();
  void TakeResult(const server::Delivery& delivery);
  std::string Check();
  int64_t Delay() { return random_.Between(0, 30'000'000); }

  const SimulationOptions options_;
  Random random_;
  int64_t now_ns_ = 0;
  server::TemporaryFolder folder_;
  std::unique_ptr<db::LogFile> log_;
  std::unique_ptr<db::FarmStore> store_;
  std::unique_ptr<server::LeaseReader> reader_;
  std::unique_ptr<server::Farm> farm_;
  Hash128 session_;
  std::vector<SimWorker> workers_;
  server::StreamId next_stream_ = 1;
  uint64_t starts_ = 0;
  std::deque<Held> held_;
  int64_t next_tick_ns_ = 0;
  bool full_ = false;
  // The driver of the session: what it asked for and got since the last start.
  std::set<int64_t> submitted_;
  std::map<int64_t, proto::WorkResult> collected_;
  std::set<int64_t> closed_;  ///< durably, as it knows
  std::set<int64_t> condemned_;
  // What workers wrote down: token to digest.
  std::map<Hash128, std::string> accepted_;
  std::string wrong_;
  Counts counts_;
};

}  // namespace hone::sim

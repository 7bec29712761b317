#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "db/farm_store.h"
#include "proto/farm_messages.h"
#include "tests/farm/farm_processes.h"

// A farm that tunes `mlp` again and again while something is done to it, and what must hold of its
// log afterwards.
namespace hone::farm {

class TunedFarm : public ::testing::Test {
 protected:
  /// Credentials for these workers, the client "alice" and the admin "root"; a model of `hone zoo`.
  /// All of mlp is 36 candidates; squeezenet has no end of them.
  explicit TunedFarm(std::vector<std::string> workers, std::string model = "mlp");

  std::string Model() const { return farm_.Path(model_ + ".onnx"); }
  /// `hone` with these words, asking as alice.
  std::vector<std::string> Hone(std::vector<std::string> words) const;
  /// The number-th `hone tune` of alice, with a journal; to be started.
  std::unique_ptr<Daemon> Client(int number) const;
  /// Starts the first session, or the next one where that has ended; false: one failed.
  bool KeepTuning();
  /// Waits until the session that runs has ended well.
  void AwaitSession(int64_t timeout_ns = 60'000'000'000);
  /// Asks again and again, at most `timeout_ns`.
  bool Eventually(const std::function<bool()>& holds, int64_t timeout_ns = 20'000'000'000) const;

  /// As a person who looks after the farm: lets the devices of workers back that died so often in a
  /// row that honed took them out. Does not wait for it; to be called again and again.
  void LetBack(const Daemon& honed);

  /// Answers of workers that honed has taken, as they wrote down.
  size_t Answered() const;

  /// The bytes of the package that `hone compile` makes with these words; of mlp, every rung exact.
  std::string Compile(std::vector<std::string> words, const std::string& name) const;
  /// The packages made through the server, from a snapshot of it, and (once the workers and honed
  /// have ended, well) from the log are the same.
  void CheckPackages(Daemon& honed, const std::vector<Daemon*>& workers);
  /// The log equals the journals; `worker_kills`: how often a worker died, each time with some
  /// acknowledgements that it had not written down.
  void CheckLog(size_t worker_kills);

  uint64_t seed_ = 0;
  int trials_ = 40;  ///< of each session
  const std::vector<std::string> workers_;
  const std::string model_;
  FarmFolder farm_;
  const SystemMonotonicClock clock_;
  std::unique_ptr<Daemon> client_;
  int sessions_ = 0;  ///< begun

 private:
  void CheckSession(db::LogFile& log, db::FarmStore& store, const db::FarmSession& session);
  void CheckWorkerJournals(size_t worker_kills);
  void CheckClientJournal();

  size_t let_back_ = 0;  ///< of the quarantines that honed told of
  std::unique_ptr<Daemon> letting_back_;
  std::map<std::string, db::FarmLease> done_;  // by token
  // The events of every session of the log, by its id and their sequence.
  std::map<std::string, std::map<int64_t, proto::SessionEvent>> measured_;
  std::map<std::string, int64_t> charges_;  // by project
};

}  // namespace hone::farm

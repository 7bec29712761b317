#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/hash128.h"
#include "db/farm_store.h"
#include "db/record.h"
#include "ir/accuracy_class.h"
#include "measure/outcome.h"
#include "proto/worker_messages.h"

// What a farm says, as plain values: hone/v1/farm.proto documents each field. convert.h makes these
// from wire messages and checks every bound.
namespace hone::proto {

struct TaskSpec {
  std::string workload, name;
  int count = 1;
  double flop = 0, bound_ns = 0;
  bool operator==(const TaskSpec&) const = default;
};

struct SessionSpec {
  std::string model, model_hash;
  std::vector<TaskSpec> tasks;
  std::string target, device_class;
  double seconds = 0;
  int64_t trials = 0;
  int64_t until_unix_ms = 0;
  uint64_t seed = 0;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
  int priority = 0;
  std::string project;
  bool operator==(const SessionSpec&) const = default;
};

struct SessionInfo {
  Hash128 id;
  std::string owner, project;
  db::SessionState state = db::SessionState::kWaiting;
  std::string reason, model, target, device_class;
  int64_t created_ms = 0;
  int64_t attempts = 0;
  int tasks = 0;
  bool operator==(const SessionInfo&) const = default;
};

/// One event of a watched session.
struct SessionEvent {
  enum class Kind : uint8_t { kState, kProposed, kMeasured, kDecided, kEnded };
  Kind kind = Kind::kState;
  int64_t sequence = 0;
  int64_t attempt = 0;  ///< kProposed, kMeasured
  int task = 0;         ///< kProposed, kDecided
  std::string proposer;
  measure::Outcome outcome = measure::Outcome::kOk;
  double median_ns = 0;
  bool replaced = false;
  double default_ns = 0, best_ns = 0;
  SessionInfo info;  ///< kState, kEnded
  bool operator==(const SessionEvent&) const = default;
};

enum class RecordQuestion : uint8_t { kExact = 1, kSameIsa = 2, kNear = 3 };

struct FindRecords {
  db::RecordKey key;
  std::string builder_version;
  RecordQuestion question = RecordQuestion::kExact;
  std::string workload_text;
  int limit = 0;
  std::optional<Hash128> model;  ///< of who asks: its verdicts are told, too
  bool operator==(const FindRecords&) const = default;
};

struct DeviceInfo {
  std::string worker;
  DeviceFacts device;
  db::DeviceState state = db::DeviceState::kActive;
  std::string reason;
  bool connected = false;
  bool sandboxed = true;
  int leases = 0;
  int64_t busy_ns = 0;
  int64_t results = 0;
  std::optional<WorkerRole> role;  ///< none: it was not connected since the start
  std::optional<Probes> probes;
  std::string program_version;
  std::map<std::string, std::string> labels = {};
  int64_t since_ms = 0;  ///< that its stream is up, or away
  bool operator==(const DeviceInfo&) const = default;
};

enum class DeviceAction : uint8_t { kDrain = 1, kUndrain = 2, kProbe = 3 };

}  // namespace hone::proto

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/core/hash128.h"
#include "db/farm_store.h"
#include "db/record.h"
#include "ir/accuracy_class.h"
#include "measure/outcome.h"

// What a farm says, as plain values: hone/v1/farm.proto documents each field. convert.h makes these
// from wire messages and checks every bound.
namespace hone::proto {

enum class WorkerRole : uint8_t { kBoth = 1, kBuild = 2, kRun = 3 };
enum class JobKind : uint8_t { kScreen = 1, kCompare = 2 };
enum class Verdict : uint8_t { kAccepted = 1, kStale = 2, kConflict = 3, kInvalid = 4 };

struct DeviceFacts {
  std::string name, device_class, fingerprint, target;
  int cores = 0;
  int64_t memory_bytes = 0;
  bool operator==(const DeviceFacts&) const = default;
};

struct HeldLease {
  Hash128 token;
  bool started = false;
  bool operator==(const HeldLease&) const = default;
};

struct Hello {
  int protocol = 0;
  std::string builder_version;
  int measurement_policy = 0;
  std::string program_version;
  Hash128 instance;
  WorkerRole role = WorkerRole::kBoth;
  DeviceFacts device;
  std::map<std::string, std::string> labels;
  std::vector<HeldLease> held;
  bool sandboxed = true;
  bool operator==(const Hello&) const = default;
};

struct Heartbeat {
  std::vector<HeldLease> held;
  int64_t busy_ns = 0;
  int64_t sentinel_ns = 0;
  bool operator==(const Heartbeat&) const = default;
};

struct Started {
  Hash128 token;
  bool operator==(const Started&) const = default;
};

struct ComparedResult {
  measure::Outcome outcome = measure::Outcome::kOk;
  std::string message;
  std::vector<int64_t> samples_ns;
  bool operator==(const ComparedResult&) const = default;
};

struct WorkResult {
  Hash128 token;
  measure::Outcome outcome = measure::Outcome::kWorkerLost;
  std::string message;
  std::vector<int64_t> samples_ns;
  bool hopeless = false;
  bool noisy = false;
  int64_t build_ns = 0;
  int64_t run_ns = 0;
  std::vector<ComparedResult> compared;
  bool operator==(const WorkResult&) const = default;
};

struct Returned {
  Hash128 token;
  std::string reason;
  bool operator==(const Returned&) const = default;
};

struct WorkerCredit {
  int64_t leases = 0;
  bool operator==(const WorkerCredit&) const = default;
};

struct Draining {
  bool operator==(const Draining&) const = default;
};

using WorkerMessage =
    std::variant<Hello, Heartbeat, Started, WorkResult, Returned, WorkerCredit, Draining>;

struct Welcome {
  int heartbeat_ms = 0;
  std::vector<Hash128> keep, drop;
  bool operator==(const Welcome&) const = default;
};

struct Job {
  JobKind kind = JobKind::kScreen;
  std::string workload, target;
  std::vector<std::string> traces;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
  int64_t incumbent_ns = 0;
  uint64_t seed = 0;
  int rounds = 0;
  bool operator==(const Job&) const = default;
};

struct Grant {
  Hash128 token, session;
  int64_t attempt = 0;
  Job job;
  int64_t start_by_ms = 0, run_by_ms = 0;
  bool operator==(const Grant&) const = default;
};

struct Acknowledgement {
  Hash128 token;
  Verdict verdict = Verdict::kAccepted;
  std::string reason;
  bool operator==(const Acknowledgement&) const = default;
};

struct Revoke {
  Hash128 token;
  std::string reason;
  bool operator==(const Revoke&) const = default;
};

struct ServerCredit {
  int64_t results = 0;
  bool operator==(const ServerCredit&) const = default;
};

struct Drain {
  std::string reason;
  bool operator==(const Drain&) const = default;
};

using ServerMessage = std::variant<Welcome, Grant, Acknowledgement, Revoke, ServerCredit, Drain>;

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
  bool operator==(const DeviceInfo&) const = default;
};

enum class DeviceAction : uint8_t { kDrain = 1, kUndrain = 2, kProbe = 3 };

}  // namespace hone::proto

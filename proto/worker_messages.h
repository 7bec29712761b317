#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/hash128.h"
#include "ir/accuracy_class.h"
#include "measure/device_rates.h"
#include "measure/outcome.h"

// What a worker and honed say on their stream, as plain values: hone/v1/farm.proto documents each
// field. convert.h makes these from wire messages and checks every bound.
namespace hone::proto {

enum class WorkerRole : uint8_t { kBoth = 1, kBuild = 2, kRun = 3 };
/// "both", "build", "run"; none: empty.
constexpr std::string_view NameOf(std::optional<WorkerRole> role) {
  constexpr std::string_view kNames[] = {"", "both", "build", "run"};
  return kNames[role ? static_cast<int>(*role) : 0];
}

enum class LeaseKind : uint8_t { kBoth = 1, kBuild = 2, kRun = 3 };
enum class JobKind : uint8_t { kScreen = 1, kCompare = 2, kModel = 3 };
enum class Verdict : uint8_t { kAccepted = 1, kStale = 2, kConflict = 3, kInvalid = 4 };

struct DeviceFacts {
  std::string name, device_class, fingerprint, target;
  int cores = 0;
  int64_t memory_bytes = 0;
  std::string driver = {};
  bool operator==(const DeviceFacts&) const = default;
};

struct Probes {
  double flop_per_second = 0, memory_bytes_per_second = 0, noise = 0;
  int64_t number = 0;
  double dot_i8_per_second = 0, dot_bf16_per_second = 0;
  std::vector<measure::MemoryLevel> caches = {};
  bool operator==(const Probes&) const = default;
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
  std::optional<Probes> probes;
  std::string sandbox_gap = {};
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

/// What a kernel took in a model, ns, by round: all its runs of one run of the model.
struct KernelTimes {
  Hash128 workload;
  std::vector<int64_t> samples_ns;
  bool operator==(const KernelTimes&) const = default;
};

struct ComparedResult {
  measure::Outcome outcome = measure::Outcome::kOk;
  std::string message;
  std::vector<int64_t> samples_ns;
  std::vector<KernelTimes> kernels = {};  ///< of a whole model; none from an older worker
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
  int64_t part_ns = 0;
  double part = 1;
  bool operator==(const WorkResult&) const = default;
};

struct Returned {
  Hash128 token;
  std::string reason;
  bool operator==(const Returned&) const = default;
};

/// `sha256` in hexadecimal; outcome kOk: there are bytes.
struct Artifact {
  std::string sha256;
  int64_t bytes = 0;
  measure::Outcome outcome = measure::Outcome::kOk;
  std::string message;
  bool operator==(const Artifact&) const = default;
};

struct Built {
  Hash128 token;
  std::vector<Artifact> artifacts;
  int64_t build_ns = 0;
  bool operator==(const Built&) const = default;
};

struct ArtifactChunk {
  Hash128 token;
  std::string sha256;
  int64_t total_bytes = 0, offset = 0;
  std::string data;
  bool operator==(const ArtifactChunk&) const = default;
};

struct Fetch {
  Hash128 token;
  std::string sha256;
  int64_t offset = 0;
  bool operator==(const Fetch&) const = default;
};

struct WorkerCredit {
  int64_t leases = 0;
  bool operator==(const WorkerCredit&) const = default;
};

struct Draining {
  bool operator==(const Draining&) const = default;
};

struct DeviceLost {
  std::string reason;
  bool operator==(const DeviceLost&) const = default;
};

using WorkerMessage = std::variant<Hello, Heartbeat, Started, WorkResult, Returned, WorkerCredit,
                                   Draining, Built, ArtifactChunk, Fetch, Probes, DeviceLost>;

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
  int64_t most_ns = 0;  ///< kModel: no further round after so long
  int64_t part_ns = 0;
  double part_ratio = 1;
  bool both_ways = false;
  bool operator==(const Job&) const = default;
};

struct Grant {
  Hash128 token, session;
  int64_t attempt = 0;
  Job job;
  int64_t start_by_ms = 0, run_by_ms = 0;
  LeaseKind kind = LeaseKind::kBoth;
  std::vector<int> wanted;          ///< kBuild: positions in job.traces; its size: the default's
  std::vector<Artifact> artifacts;  ///< kRun: of each trace, then the default's
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

struct Probe {
  std::string reason;
  bool operator==(const Probe&) const = default;
};

using ServerMessage = std::variant<Welcome, Grant, Acknowledgement, Revoke, ServerCredit, Drain,
                                   ArtifactChunk, Probe>;

}  // namespace hone::proto

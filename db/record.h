#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "base/core/hash128.h"
#include "ir/accuracy_class.h"
#include "measure/outcome.h"

// What the log holds: plain values, no SQL. All of it is facts: written once, never changed. Ids
// are RandomId() or, of records, attempts and events, FactId(): facts of different logs never
// collide.
namespace hone::db {

using measure::Outcome;

/// How well a latency is known, and with it how much a record counts. Stored: do not renumber.
enum class Rigor : uint8_t {
  kScreened = 0,   ///< raced against others
  kVerified = 1,   ///< won an interleaved comparison of finalists, incumbent and default
  kConfirmed = 2,  ///< and did not lose in the comparison of whole packages
  kPredicted = 3,  ///< never ran: the analytic model says so; counts less than all others
};

inline constexpr int kNumRigors = 4;

/// "screened", "verified", "confirmed", "predicted".
std::string_view RigorName(Rigor rigor);
/// Whether it won a comparison in turns.
inline bool WonComparison(Rigor rigor) {
  return rigor == Rigor::kVerified || rigor == Rigor::kConfirmed;
}

/// What a record is about. Records with equal keys compete.
struct RecordKey {
  Hash128 workload;          ///< ir::StructuralHash
  std::string target;        ///< resolved text: "cpu:avx512,threads=2"
  std::string device_class;  ///< vendor, family, model, L2 and L3 per core, cores
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
  int measurement_policy = 0;  ///< KindVersions' when it was measured; kNotMeasured: a prediction

  bool operator==(const RecordKey&) const = default;
};

/// A Workload, once per log. `flop` and `bytes` are what a person reads, not identity.
struct WorkloadRow {
  Hash128 hash;  ///< must be HashBytes(text)
  std::string text;
  int64_t flop = 0;   ///< of one run
  int64_t bytes = 0;  ///< inputs, constants and outputs, each counted once

  bool operator==(const WorkloadRow&) const = default;
};

/// A machine (or one device of it).
struct Device {
  std::string device_class;
  std::string fingerprint;  ///< everything known about it: text, stable for one device

  bool operator==(const Device&) const = default;
};

/// A Device's identity: of its two texts.
Hash128 DeviceId(const Device& device);

/// One request to tune.
struct Session {
  Hash128 id;
  std::string request;  ///< JSON: model, budget, options
  uint64_t seed = 0;
  std::string versions;    ///< JSON: what base/versions.h, LLVM and XGBoost said
  int64_t created_ms = 0;  ///< since 1970, for people; nothing is decided by it

  bool operator==(const Session&) const = default;
};

/// A proposal that came to an end.
struct Attempt {
  Hash128 id;
  Hash128 session;
  RecordKey key;
  Hash128 device;  ///< DeviceId; the log must have the device
  std::string trace;
  std::string proposer;  ///< "model", "random", "neighbour", …
  Outcome outcome = Outcome::kOk;
  std::string message;  ///< why; if ok how the device did, where it tells (a GPU's clock)
  Hash128 record;       ///< the record that it gave; zero: none
  int64_t cost_ns = 0;  ///< device and builder time it took
  int64_t created_ms = 0;

  bool operator==(const Attempt&) const = default;
};

/// A measured Trace, or a predicted one (db/prediction.h). Never changed: a better measurement of
/// the same Trace is another record.
struct TuningRecord {
  Hash128 id;
  RecordKey key;
  Hash128 device;               ///< DeviceId; its class is key.device_class
  std::string trace;            ///< text
  int trace_version = 0;        ///< kTraceTextVersion
  std::string builder_version;  ///< "1+22.1": kBuilderVersion and LLVM's major.minor
  Rigor rigor = Rigor::kScreened;
  double median_ns = 0;  ///< of one run of the Workload; > 0
  double low_ns = 0;     ///< interval of the median: 0 < low <= median <= high
  double high_ns = 0;
  bool noisy = false;  ///< measured while other programs loaded the machine
  Hash128 session;
  uint64_t seed = 0;  ///< of the inputs
  int64_t created_ms = 0;
  /// One value a repeat, in the order measured. Not part of the content hash: compaction may fold
  /// them to kSampleQuantiles quantiles.
  std::vector<double> samples_ns;

  bool operator==(const TuningRecord&) const = default;
};

/// Identity of a Trace: HashBytes of its text.
Hash128 TraceHash(std::string_view trace);

/// What a Trace was written from, by name: once for a Workload, a Target and a Trace. Beside the
/// facts, which the Trace alone decides; of several texts the first stays.
struct TraceValues {
  Hash128 workload;
  std::string target;
  Hash128 trace;     ///< TraceHash; of a record or attempt of this workload and target
  std::string text;  ///< the Sketch and its values: "direct/peeled rows=6 vectors=2"

  bool operator==(const TraceValues&) const = default;
};

/// One step of a Tuner. The log orders events by `sequence`.
struct Event {
  Hash128 id;
  Hash128 session;      ///< zero: of no session (a farm's clock, a shared model)
  std::string type;     ///< "proposed", "result", "model", …
  std::string payload;  ///< of the writer's own format; bytes
  /// Given by the log when the event is appended, increasing; ignored on append.
  int64_t sequence = 0;

  bool operator==(const Event&) const = default;
};

/// Bytes that events name by digest: trained models, checkpoints.
struct Blob {
  std::string digest;  ///< Sha256Hex(bytes)
  std::string bytes;

  bool operator==(const Blob&) const = default;
};

/// Facts that become durable together.
struct Batch {
  std::vector<WorkloadRow> workloads;
  std::vector<Device> devices;
  std::vector<Session> sessions;
  std::vector<Blob> blobs;
  std::vector<TuningRecord> records;
  std::vector<Attempt> attempts;
  std::vector<TraceValues> values;
  std::vector<Event> events;

  bool empty() const;
};

/// Hashes of everything in a fact but samples, sequence and where it came from: equal content,
/// equal hash, in every log. A package keeps that of each record it was built from.
Hash128 ContentHash(const WorkloadRow& workload);
Hash128 ContentHash(const Session& session);
Hash128 ContentHash(const Attempt& attempt);
Hash128 ContentHash(const TuningRecord& record);
Hash128 ContentHash(const Event& event);
Hash128 ContentHash(const TraceValues& values);

/// Whether a fact may be stored, by itself: id and texts present, latencies in order and finite,
/// hashes fitting their texts. kInvalidArgument names the fact and the field.
absl::Status CheckFact(const WorkloadRow& workload);
absl::Status CheckFact(const Device& device);
absl::Status CheckFact(const Session& session);
absl::Status CheckFact(const Attempt& attempt);
absl::Status CheckFact(const TuningRecord& record);
absl::Status CheckFact(const TraceValues& values);
absl::Status CheckFact(const Event& event);
absl::Status CheckFact(const Blob& blob);

}  // namespace hone::db

#include "db/record.h"

#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "fmt/core.h"

#include "base/sha256.h"
#include "base/status.h"
#include "base/versions.h"

namespace hone::db {
namespace {

constexpr std::array<std::string_view, kNumRigors> kRigorNames = {"screened", "verified",
                                                                  "confirmed", "predicted"};

// Fields one after another, little-endian, texts behind their length: no two contents give the same
// bytes. The name in front keeps kinds apart and lets a later form be told from this one.
class ContentWriter {
 public:
  explicit ContentWriter(std::string_view form) { Text(form); }

  template <typename T>
  requires(std::is_integral_v<T>) ContentWriter& Int(T value) {
    const auto bits = static_cast<uint64_t>(value);
    for (int byte = 0; byte < 8; ++byte) {
      bytes_.push_back(static_cast<char>((bits >> (8 * byte)) & 0xff));
    }
    return *this;
  }
  template <typename T>
  requires(std::is_enum_v<T>) ContentWriter& Enum(T value) {
    return Int(static_cast<std::underlying_type_t<T>>(value));
  }
  ContentWriter& Real(double value) { return Int(std::bit_cast<uint64_t>(value)); }
  ContentWriter& Text(std::string_view text) {
    Int(text.size());
    bytes_.append(text);
    return *this;
  }
  ContentWriter& Hash(const Hash128& hash) { return Int(hash.high).Int(hash.low); }
  ContentWriter& Key(const RecordKey& key) {
    return Hash(key.workload)
        .Text(key.target)
        .Text(key.device_class)
        .Enum(key.accuracy)
        .Int(key.measurement_policy);
  }

  Hash128 Finish() const { return HashBytes(bytes_); }

 private:
  std::string bytes_;
};

absl::Status Refuse(std::string_view kind, const std::string& id, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{} {} cannot be logged: {}", kind, id, why));
}

absl::Status CheckKey(std::string_view kind, const std::string& id, const RecordKey& key,
                      const Hash128& device) {
  if (key.workload == Hash128{}) return Refuse(kind, id, "it names no workload");
  if (key.target.empty()) return Refuse(kind, id, "it names no target");
  if (key.target.find("native") != std::string::npos) {
    return Refuse(kind, id, fmt::format("target '{}' is not resolved", key.target));
  }
  if (key.device_class.empty()) return Refuse(kind, id, "it names no device class");
  if (device == Hash128{}) return Refuse(kind, id, "it names no device");
  if (static_cast<int>(key.accuracy) >= ir::kNumAccuracyClasses) {
    return Refuse(kind, id, "its accuracy class has no name");
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view RigorName(Rigor rigor) { return kRigorNames[static_cast<size_t>(rigor)]; }

bool Batch::empty() const {
  return workloads.empty() && devices.empty() && sessions.empty() && blobs.empty() &&
         records.empty() && attempts.empty() && values.empty() && events.empty();
}

Hash128 DeviceId(const Device& device) {
  return ContentWriter("device 1").Text(device.device_class).Text(device.fingerprint).Finish();
}

Hash128 TraceHash(std::string_view trace) { return HashBytes(trace); }

Hash128 ContentHash(const WorkloadRow& workload) {
  return ContentWriter("workload 1")
      .Text(workload.text)
      .Int(workload.flop)
      .Int(workload.bytes)
      .Finish();
}

Hash128 ContentHash(const Session& session) {
  return ContentWriter("session 1")
      .Hash(session.id)
      .Text(session.request)
      .Int(session.seed)
      .Text(session.versions)
      .Int(session.created_ms)
      .Finish();
}

Hash128 ContentHash(const Attempt& attempt) {
  return ContentWriter("attempt 1")
      .Hash(attempt.id)
      .Hash(attempt.session)
      .Key(attempt.key)
      .Hash(attempt.device)
      .Text(attempt.trace)
      .Text(attempt.proposer)
      .Enum(attempt.outcome)
      .Text(attempt.message)
      .Hash(attempt.record)
      .Int(attempt.cost_ns)
      .Int(attempt.created_ms)
      .Finish();
}

Hash128 ContentHash(const TuningRecord& record) {
  return ContentWriter("record 1")
      .Hash(record.id)
      .Key(record.key)
      .Hash(record.device)
      .Text(record.trace)
      .Int(record.trace_version)
      .Text(record.builder_version)
      .Enum(record.rigor)
      .Real(record.median_ns)
      .Real(record.low_ns)
      .Real(record.high_ns)
      .Int(record.noisy)
      .Hash(record.session)
      .Int(record.seed)
      .Int(record.created_ms)
      .Finish();
}

Hash128 ContentHash(const Event& event) {
  return ContentWriter("event 1")
      .Hash(event.id)
      .Hash(event.session)
      .Text(event.type)
      .Text(event.payload)
      .Finish();
}

Hash128 ContentHash(const TraceValues& values) {
  return ContentWriter("values 1")
      .Hash(values.workload)
      .Text(values.target)
      .Hash(values.trace)
      .Text(values.text)
      .Finish();
}

absl::Status CheckFact(const WorkloadRow& workload) {
  const std::string id = workload.hash.ToHex();
  if (workload.text.empty()) return Refuse("workload", id, "its text is empty");
  if (HashBytes(workload.text) != workload.hash) {
    return Refuse("workload", id, "its text has another hash (is it canonical?)");
  }
  if (workload.flop < 0 || workload.bytes < 0) {
    return Refuse("workload", id, "its flop or bytes are negative");
  }
  return absl::OkStatus();
}

absl::Status CheckFact(const Device& device) {
  if (device.device_class.empty() || device.fingerprint.empty()) {
    return Refuse("device", DeviceId(device).ToHex(), "its class or its fingerprint is empty");
  }
  return absl::OkStatus();
}

absl::Status CheckFact(const Session& session) {
  if (session.id == Hash128{}) return Refuse("session", session.id.ToHex(), "its id is zero");
  return absl::OkStatus();
}

absl::Status CheckFact(const Attempt& attempt) {
  const std::string id = attempt.id.ToHex();
  if (attempt.id == Hash128{}) return Refuse("attempt", id, "its id is zero");
  if (attempt.session == Hash128{}) return Refuse("attempt", id, "it names no session");
  HONE_RETURN_IF_ERROR(CheckKey("attempt", id, attempt.key, attempt.device));
  if (attempt.outcome != Outcome::kOk && attempt.record != Hash128{}) {
    return Refuse("attempt", id, "it failed and yet names a record");
  }
  if (static_cast<int>(attempt.outcome) >= measure::kNumOutcomes) {
    return Refuse("attempt", id, "its outcome has no name");
  }
  if (attempt.cost_ns < 0) return Refuse("attempt", id, "its cost is negative");
  return absl::OkStatus();
}

absl::Status CheckFact(const TuningRecord& record) {
  const std::string id = record.id.ToHex();
  if (record.id == Hash128{}) return Refuse("record", id, "its id is zero");
  if (record.session == Hash128{}) return Refuse("record", id, "it names no session");
  HONE_RETURN_IF_ERROR(CheckKey("record", id, record.key, record.device));
  if (record.builder_version.empty()) return Refuse("record", id, "it names no builder version");
  if (static_cast<int>(record.rigor) >= kNumRigors) {
    return Refuse("record", id, "its rigor has no name");
  }
  if ((record.rigor == Rigor::kPredicted) != (record.key.measurement_policy == kNotMeasured)) {
    return Refuse("record", id,
                  fmt::format("its rigor {} does not fit measurement policy {}: 0 is for what was "
                              "predicted, others for what was measured",
                              RigorName(record.rigor), record.key.measurement_policy));
  }
  const bool ordered = 0 < record.low_ns && record.low_ns <= record.median_ns &&
                       record.median_ns <= record.high_ns && std::isfinite(record.high_ns);
  if (!ordered) {
    return Refuse("record", id,
                  fmt::format("its latency {} ns in [{}, {}] is not 0 < low <= median <= high",
                              record.median_ns, record.low_ns, record.high_ns));
  }
  for (const double sample : record.samples_ns) {
    if (!std::isfinite(sample)) return Refuse("record", id, "a sample is not finite");
  }
  return absl::OkStatus();
}

absl::Status CheckFact(const TraceValues& values) {
  if (values.text.empty()) return Refuse("values of trace", values.trace.ToHex(), "they are empty");
  return absl::OkStatus();
}

absl::Status CheckFact(const Event& event) {
  if (event.id == Hash128{}) return Refuse("event", event.id.ToHex(), "its id is zero");
  if (event.type.empty()) return Refuse("event", event.id.ToHex(), "its type is empty");
  return absl::OkStatus();
}

absl::Status CheckFact(const Blob& blob) {
  if (Sha256Hex(blob.bytes) != blob.digest) {
    return Refuse("blob", blob.digest, "its bytes have another SHA-256");
  }
  return absl::OkStatus();
}

}  // namespace hone::db

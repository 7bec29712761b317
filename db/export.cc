#include "db/export.h"

#include <memory>
#include <string_view>
#include <vector>

#include "fmt/core.h"

#include "base/status.h"

namespace hone::db {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (RFC 3629).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  uint32_t code = 0;
  if (first >= 0xc2 && first < 0xe0) {
    length = 2;
    code = first & 0x1fU;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3;
    code = first & 0x0fU;
  } else if (first >= 0xf0 && first < 0xf5) {
    length = 4;
    code = first & 0x07U;
  }
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// One object, member by member.
class JsonLine {
 public:
  explicit JsonLine(std::string_view kind) { Text("kind", kind); }

  JsonLine& Text(std::string_view name, std::string_view value) {
    if (IsUtf8(value)) {
      Name(name);
      Quote(value);
      return *this;
    }
    Name(std::string(name) + "_hex");
    line_ += '"';
    for (const char c : value) line_ += fmt::format("{:02x}", static_cast<unsigned char>(c));
    line_ += '"';
    return *this;
  }
  JsonLine& Hash(std::string_view name, const Hash128& hash) { return Text(name, hash.ToHex()); }
  JsonLine& Int(std::string_view name, int64_t value) {
    Name(name);
    line_ += std::to_string(value);
    return *this;
  }
  JsonLine& Bool(std::string_view name, bool value) {
    Name(name);
    line_ += value ? "true" : "false";
    return *this;
  }
  JsonLine& Real(std::string_view name, double value) {
    Name(name);
    line_ += fmt::format("{}", value);  // the shortest form that reads back to the same bits
    return *this;
  }
  JsonLine& Reals(std::string_view name, const std::vector<double>& values) {
    Name(name);
    line_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      line_ += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
    }
    line_ += ']';
    return *this;
  }
  JsonLine& Key(const RecordKey& key) {
    return Hash("workload", key.workload)
        .Text("target", key.target)
        .Text("device_class", key.device_class)
        .Text("accuracy", ir::AccuracyClassName(key.accuracy))
        .Int("measurement_policy", key.measurement_policy);
  }

  std::string Finish() const { return line_ + '}'; }

 private:
  void Name(std::string_view name) {
    line_ += line_.empty() ? '{' : ',';
    Quote(name);
    line_ += ':';
  }
  void Quote(std::string_view text) {
    line_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        line_ += '\\';
        line_ += c;
      } else if (c == '\n') {
        line_ += "\\n";
      } else if (static_cast<unsigned char>(c) < 0x20) {
        line_ += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
      } else {
        line_ += c;
      }
    }
    line_ += '"';
  }

  std::string line_;
};

std::string LineOf(const WorkloadRow& workload) {
  return JsonLine("workload")
      .Hash("hash", workload.hash)
      .Text("text", workload.text)
      .Int("flop", workload.flop)
      .Int("bytes", workload.bytes)
      .Finish();
}

std::string LineOf(const Device& device) {
  return JsonLine("device")
      .Hash("id", DeviceId(device))
      .Text("device_class", device.device_class)
      .Text("fingerprint", device.fingerprint)
      .Finish();
}

std::string LineOf(const StoredSession& stored) {
  const Session& session = stored.session;
  return JsonLine("session")
      .Hash("id", session.id)
      .Text("request", session.request)
      .Text("seed", std::to_string(session.seed))
      .Text("versions", session.versions)
      .Int("created_ms", session.created_ms)
      .Bool("merged", stored.merged)
      .Finish();
}

std::string LineOf(const RankedRecord& ranked) {
  const TuningRecord& record = ranked.record;
  return JsonLine("record")
      .Hash("id", record.id)
      .Key(record.key)
      .Hash("device", record.device)
      .Text("trace", record.trace)
      .Hash("trace_hash", TraceHash(record.trace))
      .Int("trace_version", record.trace_version)
      .Text("builder_version", record.builder_version)
      .Text("rigor", RigorName(record.rigor))
      .Real("median_ns", record.median_ns)
      .Real("low_ns", record.low_ns)
      .Real("high_ns", record.high_ns)
      .Bool("noisy", record.noisy)
      .Reals("samples_ns", record.samples_ns)
      .Hash("session", record.session)
      .Text("seed", std::to_string(record.seed))
      .Int("created_ms", record.created_ms)
      .Hash("content", ranked.content)
      .Bool("merged", ranked.merged)
      .Finish();
}

std::string LineOf(const Attempt& attempt) {
  JsonLine line("attempt");
  line.Hash("id", attempt.id)
      .Hash("session", attempt.session)
      .Key(attempt.key)
      .Hash("device", attempt.device)
      .Text("trace", attempt.trace)
      .Text("proposer", attempt.proposer)
      .Text("outcome", measure::ToString(attempt.outcome))
      .Text("message", attempt.message)
      .Int("cost_ns", attempt.cost_ns)
      .Int("created_ms", attempt.created_ms);
  if (attempt.record != Hash128{}) line.Hash("record", attempt.record);
  return line.Finish();
}

std::string LineOf(const TraceValues& values) {
  return JsonLine("values")
      .Hash("workload", values.workload)
      .Text("target", values.target)
      .Hash("trace_hash", values.trace)
      .Text("text", values.text)
      .Finish();
}

std::string LineOf(const Event& event) {
  JsonLine line("event");
  line.Hash("id", event.id).Int("sequence", event.sequence);
  if (event.session != Hash128{}) line.Hash("session", event.session);
  return line.Text("type", event.type).Text("payload", event.payload).Finish();
}

std::string LineOf(const Blob& blob) {
  return JsonLine("blob")
      .Text("digest", blob.digest)
      .Int("bytes", static_cast<int64_t>(blob.bytes.size()))
      .Finish();
}

}  // namespace

absl::Status ExportLog(Database& database, const WriteLine& write) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Database::ReadScope> scope, database.BeginRead());
  const auto line = [&](const auto& fact) { return write(LineOf(fact)); };
  HONE_RETURN_IF_ERROR(database.ScanWorkloads(line));
  HONE_RETURN_IF_ERROR(database.ScanDevices(line));
  HONE_RETURN_IF_ERROR(database.ScanSessions(line));
  HONE_RETURN_IF_ERROR(database.ScanBlobs(line));
  HONE_RETURN_IF_ERROR(database.ScanRecords({}, line));
  HONE_RETURN_IF_ERROR(database.ScanAttempts({}, line));
  HONE_RETURN_IF_ERROR(database.ScanValues({}, line));
  return database.ScanEvents({}, line);
}

}  // namespace hone::db

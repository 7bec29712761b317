#include <algorithm>
#include <ctime>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "client/command.h"
#include "client/db_recheck.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/open_log.h"
#include "client/output_path.h"
#include "client/remove_on_signal.h"
#include "client/server_connection.h"
#include "client/server_options.h"
#include "client/server_snapshot.h"
#include "client/text_table.h"
#include "db/export.h"
#include "db/farm_store.h"
#include "db/merge.h"
#include "db/recheck.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

/// A log: the file to read, what people call it, and whether this line names it.
struct NamedLog {
  std::string file, name;
  LogName line = LogName::kGiven;
};

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// How best and audit print their list: -o there names a form, not a file.
enum class ListForm { kTable, kWide, kJson };

absl::StatusOr<ListForm> FormOf(const CommandContext& context) {
  const std::string form = context.arguments.TextOr("output", "");
  if (context.json() || form == "json") return ListForm::kJson;
  if (form.empty()) return ListForm::kTable;
  if (form == "wide") return ListForm::kWide;
  return Usage(fmt::format("-o takes wide or json for this list, not \"{}\"", form));
}

/// A list in the form that was asked for.
void Print(CommandContext& context, ListForm form, const TextTable& table,
           const ordered_json& object) {
  const std::string text = JsonText(object);
  if (context.json()) {
    context.json_result = text;
  } else {
    context.out << (form == ListForm::kJson ? text + "\n" : table.Text());
  }
}

absl::Status Stats(CommandContext& context, const NamedLog& named) {
  HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(named.file, {}, named.line));
  HONE_ASSIGN_OR_RETURN(const db::LogStats stats, log->Stats());
  ordered_json rigors = ordered_json::object(), outcomes = ordered_json::object();
  for (int i = 0; i < db::kNumRigors; ++i) {
    rigors[std::string(db::RigorName(static_cast<db::Rigor>(i)))] = stats.by_rigor[i];
  }
  for (int i = 0; i < measure::kNumOutcomes; ++i) {
    outcomes[std::string(measure::ToString(static_cast<db::Outcome>(i)))] = stats.by_outcome[i];
  }
  const ordered_json object = {{"log", named.name},
                               {"workloads", stats.workloads},
                               {"traces", stats.traces},
                               {"devices", stats.devices},
                               {"sessions", stats.sessions},
                               {"attempts", stats.attempts},
                               {"records", stats.records},
                               {"merged_records", stats.merged_records},
                               {"events", stats.events},
                               {"blobs", stats.blobs},
                               {"file_bytes", stats.file_bytes},
                               {"records_by_rigor", rigors},
                               {"attempts_by_outcome", outcomes}};
  context.json_result = JsonText(object);
  if (context.json()) return absl::OkStatus();
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) context.out << fmt::format("{:<20}{:>12}\n", name, value.dump());
  }
  for (const auto& [name, value] : rigors.items()) {
    context.out << fmt::format("  {:<18}{:>12} records\n", name, value.dump());
  }
  for (const auto& [name, value] : outcomes.items()) {
    if (value != 0) context.out << fmt::format("  {:<18}{:>12} attempts\n", name, value.dump());
  }
  return absl::OkStatus();
}

/// Workload, target, device class, accuracy class and measurement policy.
using BestKey = std::tuple<std::string, std::string, std::string, int, int>;

absl::StatusOr<std::map<BestKey, db::RankedRecord>> BestOfKeys(db::Database& log) {
  std::map<BestKey, db::RankedRecord> best;
  HONE_ASSIGN_OR_RETURN(const db::ReplacedRecords replaced, db::ReplacedOf(log));
  HONE_RETURN_IF_ERROR(log.ScanRecords({}, [&](const db::RankedRecord& r) {
    if (replaced.Contains(r.record.id, r.merged)) return absl::OkStatus();
    const db::RecordKey& k = r.record.key;
    const auto [known, fresh] =
        best.try_emplace(BestKey(k.workload.ToHex(), k.target, k.device_class,
                                 static_cast<int>(k.accuracy), k.measurement_policy),
                         r);
    if (!fresh && db::RanksBefore(r, known->second)) known->second = r;
    return absl::OkStatus();
  }));
  return best;
}

/// The best record of each key, by workload.
absl::Status Best(CommandContext& context, const NamedLog& named) {
  HONE_ASSIGN_OR_RETURN(const ListForm form, FormOf(context));
  HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(named.file, {}, named.line));
  HONE_ASSIGN_OR_RETURN(const auto best, BestOfKeys(*log));
  const bool wide = form == ListForm::kWide;
  const int64_t now_ms = SystemWallClock().UnixNs() / 1'000'000;
  std::vector<std::string> header = {"WORKLOAD", "BEST US", "INTERVAL", "RIGOR", "AGE", "TARGET"};
  if (wide) header.insert(header.end(), {"CLASS", "ACCURACY", "MERGED", "RECORD"});
  TextTable table(std::move(header));
  ordered_json records = ordered_json::array();
  for (const auto& [key, r] : best) {
    const db::TuningRecord& record = r.record;
    const std::string& workload = std::get<0>(key);
    const std::string accuracy(ir::AccuracyClassName(record.key.accuracy));
    records.push_back({{"workload", workload},
                       {"target", record.key.target},
                       {"device_class", record.key.device_class},
                       {"accuracy", accuracy},
                       {"measurement_policy", record.key.measurement_policy},
                       {"record", record.id.ToHex()},
                       {"rigor", std::string(db::RigorName(r.rigor))},
                       {"merged", r.merged},
                       {"median_us", record.median_ns * 1e-3},
                       {"low_us", record.low_ns * 1e-3},
                       {"high_us", record.high_ns * 1e-3},
                       {"created_ms", record.created_ms},
                       {"trace", record.trace}});
    // `hone explain` takes the beginning of a hash.
    std::vector<std::string> row = {
        wide ? workload : workload.substr(0, 12),
        fmt::format("{:.2f}", record.median_ns * 1e-3),
        fmt::format("[{:.2f}, {:.2f}]", record.low_ns * 1e-3, record.high_ns * 1e-3),
        std::string(db::RigorName(r.rigor)),
        AgeText(now_ms, record.created_ms),
        record.key.target};
    if (wide) {
      row.insert(row.end(),
                 {record.key.device_class, accuracy, r.merged ? "yes" : "no", record.id.ToHex()});
    }
    table.Add(std::move(row));
  }
  Print(context, form, table, {{"log", named.name}, {"records", std::move(records)}});
  return absl::OkStatus();
}

absl::Status Export(CommandContext& context, const NamedLog& named) {
  const std::string output = context.arguments.TextOr("output", "");
  if (context.json() && output.empty()) {
    return Usage(
        "hone db export prints one JSON object a line; with --json, name a file for them with "
        "--output");
  }
  if (!output.empty()) HONE_RETURN_IF_ERROR(CheckOutput(output, {named.file}));
  HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(named.file, {}, named.line));
  std::string text;
  int64_t lines = 0;
  HONE_RETURN_IF_ERROR(db::ExportLog(*log, [&](const std::string& line) -> absl::Status {
    ++lines;
    if (output.empty()) {
      context.out << line << '\n';
    } else {
      text.append(line).push_back('\n');
    }
    return absl::OkStatus();
  }));
  if (output.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(WriteFileAtomically(output, text));
  context.json_result =
      JsonText(ordered_json({{"log", named.name}, {"output", output}, {"facts", lines}}));
  if (!context.json()) context.out << fmt::format("wrote {} facts to {}\n", lines, output);
  return absl::OkStatus();
}

absl::Status Merge(CommandContext& context, const NamedLog& named) {
  const std::string other =
      context.arguments.Text(context.arguments.GivenOnLine("db") ? "LOG" : "FROM");
  // The source first: a misspelt name must not make an empty log.
  HONE_ASSIGN_OR_RETURN(const auto from, OpenUserLog(other, {.skip_damaged = true}));
  HONE_ASSIGN_OR_RETURN(const auto into,
                        OpenUserLog(named.file, {.mode = db::OpenMode::kWrite}, named.line));
  HONE_ASSIGN_OR_RETURN(const db::MergeReport report, db::MergeLog(*into, *from));
  ordered_json conflicts = ordered_json::array();
  for (const db::Conflict& c : report.conflicts) {
    conflicts.push_back({{"kind", c.kind}, {"id", c.id.ToHex()}});
    context.err << fmt::format("refused: {} {} has other content in '{}'\n", c.kind, c.id.ToHex(),
                               named.name);
  }
  const int64_t damaged = from->damaged_facts();
  if (damaged + report.dropped > 0) {
    context.err << fmt::format(
        "left out: {} damaged facts of '{}', and {} facts that refer to them\n", damaged, other,
        report.dropped);
  }
  context.json_result = JsonText(ordered_json({{"log", named.name},
                                               {"from", other},
                                               {"added", report.added},
                                               {"known", report.known},
                                               {"damaged", damaged},
                                               {"dropped", report.dropped},
                                               {"conflicts", conflicts}}));
  if (!context.json()) {
    context.out << fmt::format("{} facts of {} added to {}, {} were there already\n", report.added,
                               other, named.name, report.known);
  }
  return absl::OkStatus();
}

absl::Status Snapshot(CommandContext& context, const NamedLog& named) {
  const std::string output = context.arguments.TextOr("output", "");
  if (output.empty()) return Usage("name the file to write: hone db snapshot LOG --output FILE");
  HONE_RETURN_IF_ERROR(CheckSnapshotOutput(output, {named.file}));
  std::string digest;
  if (named.file.empty()) {  // a server's
    HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(context.arguments));
    HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
    RemoveOnSignal on_signal("db", context.json());
    on_signal.Set({ServerConnection::TemporaryOf(output)});
    HONE_ASSIGN_OR_RETURN(digest, server->Snapshot(output, ServerConnection::Use::kKept));
  } else {
    HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(named.file, {}, named.line));
    HONE_ASSIGN_OR_RETURN(digest, log->Snapshot(output));
  }
  context.json_result =
      JsonText(ordered_json({{"log", named.name},
                             {"snapshot", output},
                             {"sha256", digest},
                             {"pin", fmt::format("{}@sha256:{}", output, digest)}}));
  if (!context.json()) context.out << fmt::format("{}@sha256:{}\n", output, digest);
  return absl::OkStatus();
}

absl::Status Verify(CommandContext& context, const NamedLog& named) {
  const auto log = OpenUserLog(named.file, {}, named.line);
  if (absl::IsDataLoss(log.status())) {
    const std::string why = StatusMessage(log.status());
    return LogError(absl::DataLossError(fmt::format(
        "{}; nothing in it can be read: restore a copy or a snapshot of the log, or move the file "
        "away and begin a new one",
        why.substr(0, why.find(';')))));
  }
  HONE_RETURN_IF_ERROR(log.status());
  HONE_ASSIGN_OR_RETURN(const db::VerifyReport report, (*log)->Verify());
  context.json_result = JsonText(ordered_json({{"log", named.name},
                                               {"facts", report.facts},
                                               {"ok", report.problems.empty()},
                                               {"problems", report.problems}}));
  if (report.problems.empty()) {
    if (!context.json())
      context.out << fmt::format("{}: {} facts, sound\n", named.name, report.facts);
    return absl::OkStatus();
  }
  if (!context.json()) {
    for (const std::string& problem : report.problems) context.out << problem << '\n';
  }
  return absl::DataLossError(
      fmt::format("'{}' is damaged ({} problems, e.g. {}); save what is sound with `hone db merge "
                  "NEW_LOG {}`",
                  named.name, report.problems.size(), report.problems.front(), named.name));
}

absl::Status Compact(CommandContext& context, const NamedLog& named) {
  // Compacting an absent log must not make one; opening it for reading would refuse an older
  // schema, which opening it for writing migrates.
  std::error_code ignored;
  if (!std::filesystem::exists(named.file, ignored)) {
    return absl::NotFoundError(fmt::format("log '{}' does not exist", named.name));
  }
  HONE_ASSIGN_OR_RETURN(const auto log,
                        OpenUserLog(named.file, {.mode = db::OpenMode::kWrite}, named.line));
  HONE_ASSIGN_OR_RETURN(const db::CompactReport report, log->Compact());
  if (report.damaged_records > 0) {
    context.err << fmt::format(
        "warning: samples of {} records are damaged and were left as they are; `hone db verify {}` "
        "names them\n",
        report.damaged_records, named.name);
  }
  context.json_result = JsonText(ordered_json({{"log", named.name},
                                               {"folded_records", report.folded_records},
                                               {"damaged_records", report.damaged_records},
                                               {"bytes_before", report.bytes_before},
                                               {"bytes_after", report.bytes_after}}));
  if (!context.json()) {
    context.out << fmt::format("{}: samples of {} records folded, {:.2f} MB before, {:.2f} after\n",
                               named.name, report.folded_records,
                               static_cast<double>(report.bytes_before) * 1e-6,
                               static_cast<double>(report.bytes_after) * 1e-6);
  }
  return absl::OkStatus();
}

absl::Status RecheckBest(CommandContext& context, const NamedLog& named) {
  std::error_code ignored;
  if (!std::filesystem::exists(named.file, ignored)) {
    return absl::NotFoundError(fmt::format("log '{}' does not exist", named.name));
  }
  HONE_ASSIGN_OR_RETURN(const auto log,
                        OpenUserLog(named.file, {.mode = db::OpenMode::kWrite}, named.line));
  return RecheckLog(context, *log);
}

std::string UtcText(int64_t unix_ms) {
  const time_t seconds = unix_ms / 1000;
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

absl::Status Audit(CommandContext& context, const NamedLog& named) {
  HONE_ASSIGN_OR_RETURN(const ListForm form, FormOf(context));
  HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(named.file, {}, named.line));
  HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(*log));
  HONE_ASSIGN_OR_RETURN(std::vector<db::FarmAudit> entries,
                        store->Audit(std::numeric_limits<int>::max()));
  std::reverse(entries.begin(), entries.end());
  const bool wide = form == ListForm::kWide;
  const int64_t now_ms = SystemWallClock().UnixNs() / 1'000'000;
  std::vector<std::string> header = {"AGE", "ACTION", "SUBJECT", "BY", "DETAIL"};
  if (wide) header.insert(header.begin(), "TIME");
  TextTable table(std::move(header));
  ordered_json list = ordered_json::array();
  for (const db::FarmAudit& e : entries) {
    list.push_back({{"at_ms", e.at_ms},
                    {"actor", e.actor},
                    {"action", e.action},
                    {"subject", e.subject},
                    {"detail", e.detail}});
    std::vector<std::string> row = {AgeText(now_ms, e.at_ms), e.action, e.subject, e.actor,
                                    e.detail};
    if (wide) row.insert(row.begin(), UtcText(e.at_ms));
    table.Add(std::move(row));
  }
  if (entries.empty() && form != ListForm::kJson) {
    context.out << fmt::format("{}: the audit is empty (snapshots leave it out)\n", named.name);
    return absl::OkStatus();
  }
  Print(context, form, table, {{"log", named.name}, {"audit", std::move(list)}});
  return absl::OkStatus();
}

struct Action {
  std::string_view name;
  absl::Status (*function)(CommandContext&, const NamedLog& log);
  bool of_server = false;  ///< reads, and can read what a server has
};
constexpr Action kActions[] = {
    {"stats", Stats, true},       {"best", Best, true},
    {"export", Export, true},     {"merge", Merge},
    {"compact", Compact},         {"audit", Audit},
    {"snapshot", Snapshot, true}, {"verify", Verify, true},
    {"recheck", RecheckBest},
};

/// With a server: reads a copy of its log as it stands now. Only honed writes that log.
absl::Status OfServer(CommandContext& context, const Action& action) {
  const Arguments& arguments = context.arguments;
  if (!action.of_server) {
    return Usage(
        fmt::format("hone db {} takes a log file, not --server: only honed writes a server's log, "
                    "and its audit is read on its machine",
                    action.name));
  }
  if (arguments.Has("LOG") || arguments.GivenOnLine("db")) {
    return Usage(fmt::format("\"{}\" and --server are two logs: name one of them",
                             arguments.Text(arguments.Has("LOG") ? "LOG" : "db")));
  }
  NamedLog log{.file = "", .name = arguments.Text("server")};
  if (action.function == Snapshot) return Snapshot(context, log);
  HONE_ASSIGN_OR_RETURN(const auto snapshot, ServerSnapshot::Take(arguments));
  log.file = snapshot->path();
  return LogError(action.function(context, log));
}

}  // namespace

absl::Status RunDb(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const std::string name = arguments.Text("ACTION");
  const auto* const action = std::find_if(std::begin(kActions), std::end(kActions),
                                          [&](const Action& a) { return a.name == name; });
  HONE_CHECK(action != std::end(kActions)) << name;
  const bool option = arguments.GivenOnLine("db"), log = arguments.Has("LOG");
  // One of the config file is for commands that name no log.
  if (AsksServer(arguments) && (arguments.GivenOnLine("server") || !(log || option)))
    return OfServer(context, *action);
  if (action->function == Merge) {
    if (option ? !log || arguments.Has("FROM") : !arguments.Has("FROM"))
      return Usage("merge adds one log to another: hone db merge LOG FROM, or --db LOG FROM");
  } else if (arguments.Has("FROM")) {
    return Usage(fmt::format("\"{}\" is one argument too many: only merge takes a second log",
                             arguments.Text("FROM")));
  } else if (log && option) {
    return Usage(fmt::format("\"{}\" and --db {} are two logs: name one of them",
                             arguments.Text("LOG"), arguments.Text("db")));
  }
  std::string file = arguments.TextOr("LOG", "");
  if (option || !log) {
    HONE_ASSIGN_OR_RETURN(file, UserLogPath(arguments, context.environment));
  }
  const LogName line = option || log ? LogName::kGiven : LogName::kDefault;
  return LogError(action->function(context, {.file = file, .name = file, .line = line}));
}

}  // namespace hone::client

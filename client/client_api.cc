#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "fmt/format.h"

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/farm_address.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/farm_request.h"
#include "client/npy.h"
#include "client/server_connection.h"
#include "graph/onnx_import/import.h"
#include "hone/client.h"
#include "ir/kind_facts.h"
#include "ir/target.h"

// The public client library: hone/client.h over ServerConnection, as the command uses it.
namespace hone {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLongestDeadlineMs = 3'600'000;

Status FromAbsl(const absl::Status& status) {
  if (status.ok()) return {};
  return {static_cast<StatusCode>(status.code()), StatusMessage(status)};
}

Status Invalid(const std::string& message) { return {StatusCode::kInvalidArgument, message}; }

/// hone-builder of the installation that this library was loaded from; empty: it is not there.
std::string BuilderBesideThisLibrary() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&BuilderBesideThisLibrary), &info) == 0) return "";
  // lib/x86_64-linux-gnu/libhone_client.so: the prefix is one or two folders above.
  std::error_code ignored;
  std::filesystem::path folder =
      std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path();
  for (int up = 0; up < 3; ++up, folder = folder.parent_path()) {
    const std::filesystem::path program = folder / "libexec/hone/hone-builder";
    if (std::filesystem::exists(program, ignored)) return program.string();
  }
  return "";
}

SessionInfo ToPublic(const proto::SessionInfo& info) {
  return {.id = info.id.ToHex(),
          .owner = info.owner,
          .project = info.project,
          .state = static_cast<SessionState>(info.state),
          .reason = info.reason,
          .model = info.model,
          .target = info.target,
          .device_class = info.device_class,
          .created_unix_ms = info.created_ms,
          .attempts = info.attempts,
          .tasks = info.tasks};
}

SessionEvent ToPublic(const proto::SessionEvent& event) {
  return {.kind = static_cast<SessionEvent::Kind>(event.kind),
          .sequence = event.sequence,
          .attempt = event.attempt,
          .task = event.task,
          .outcome = std::string(measure::ToString(event.outcome)),
          .median_ns = event.median_ns,
          .replaced = event.replaced,
          .default_ns = event.default_ns,
          .best_ns = event.best_ns,
          .info = ToPublic(event.info)};
}

DeviceInfo ToPublic(const proto::DeviceInfo& info) {
  const proto::Probes probes = info.probes.value_or(proto::Probes{});
  return {.worker = info.worker,
          .device = info.device.name,
          .device_class = info.device.device_class,
          .target = info.device.target,
          .driver = info.device.driver,
          .cores = info.device.cores,
          .memory_bytes = info.device.memory_bytes,
          .state = static_cast<DeviceState>(info.state),
          .reason = info.reason,
          .connected = info.connected,
          .sandboxed = info.sandboxed,
          .leases = info.leases,
          .results = info.results,
          .busy_seconds = static_cast<double>(info.busy_ns) * 1e-9,
          .program_version = info.program_version,
          .flop_per_second = probes.flop_per_second,
          .memory_bytes_per_second = probes.memory_bytes_per_second,
          .noise = probes.noise,
          .labels = info.labels};
}

proto::SessionSpec ToSpec(const SessionRequest& request) {
  proto::SessionSpec spec{.model = request.model,
                          .model_hash = request.model_hash,
                          .target = request.target,
                          .device_class = request.device_class,
                          .seconds = request.seconds,
                          .trials = request.trials,
                          .until_unix_ms = request.until_unix_ms,
                          .seed = request.seed,
                          .accuracy = static_cast<ir::AccuracyClass>(request.accuracy),
                          .priority = request.priority,
                          .project = request.project};
  for (const SessionTask& task : request.tasks) {
    spec.tasks.push_back({task.workload, task.name, task.count, task.flop, task.bound_ns});
  }
  return spec;
}

Status ParseId(const std::string& text, Hash128* id) {
  const auto parsed = Hash128::FromHex(text);
  if (!parsed) return Invalid(fmt::format("'{}' is no id: 32 hexadecimal digits", text));
  *id = *parsed;
  return {};
}

}  // namespace

class Client::Impl {
 public:
  ClientOptions options;
  std::unique_ptr<client::ServerConnection> server;
  SystemMonotonicClock clock;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Status Client::Connect(const ClientOptions& options, std::unique_ptr<Client>* client) {
  if (options.address.empty()) return Invalid("address: name the server, as \"tuner:7421\"");
  if (options.deadline_ms < 1 || options.deadline_ms > kLongestDeadlineMs) {
    return Invalid(fmt::format("deadline_ms: {} is not 1 to 3600000", options.deadline_ms));
  }
  if (options.retry_for_ms < 0) return Invalid("retry_for_ms: it is negative");
  auto address = DialAddress(options.address);
  if (!address.ok()) return Invalid("address: " + StatusMessage(address.status()));
  auto server = client::ServerConnection::Open(
      {.address = *std::move(address),
       .tls_folder = options.tls_folder,
       .plaintext = options.insecure_loopback,
       .deadline_ms = options.deadline_ms,
       .retry_for_ms = options.retry_for_ms,
       // It may be about to start.
       .refused_for_ms = std::max<int64_t>(options.retry_for_ms, 1'500)});
  if (!server.ok()) return FromAbsl(server.status());
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->server = *std::move(server);
  client->reset(new Client(std::move(impl)));
  return {};
}

Status Client::TasksOfModel(const std::string& path, const ModelOptions& options,
                            SessionRequest* request) const {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(ir::ResolveNative(options.target, UsableCores()), &target, &why)) {
    return Invalid("target: " + why);
  }
  const auto bytes = ReadFile(path);
  if (!bytes.ok()) return FromAbsl(bytes.status());
  graph::ImportOptions import{.dims = options.dims, .shapes = options.shapes};
  for (const auto& [input, file] : options.binds) {
    auto value = client::ReadNpy(file);
    if (!value.ok()) return FromAbsl(value.status());
    import.binds[input] = std::make_shared<const graph::TensorData>(*std::move(value));
  }
  auto graph = graph::ImportOnnxFile(path, import);
  if (!graph.ok()) return FromAbsl(graph.status());
  measure::BuilderOptions builder_options;
  builder_options.processes = UsableCores();
  builder_options.program = impl_->options.builder_program.empty() ? BuilderBesideThisLibrary()
                                                                   : impl_->options.builder_program;
  measure::BuilderClient builder(builder_options, impl_->clock);
  const auto tasks = client::TasksOfModel(*std::move(graph), &target, builder);
  if (!tasks.ok()) return FromAbsl(tasks.status());
  request->tasks.clear();
  for (const proto::TaskSpec& task : *tasks) {
    request->tasks.push_back({task.workload, task.name, task.count, task.flop, task.bound_ns});
  }
  request->target = target.text;
  request->model_hash = Sha256Hex(*bytes);
  if (request->model.empty()) request->model = std::filesystem::path(path).stem().string();
  return {};
}

Status Client::StartSession(const SessionRequest& request, StartedSession* session) {
  const auto started = impl_->server->StartSession(ToSpec(request));
  if (!started.ok()) return FromAbsl(started.status());
  *session = {started->session.ToHex(), started->joined};
  return {};
}

Status Client::CancelSession(const std::string& id) {
  Hash128 session;
  if (Status parsed = ParseId(id, &session); !parsed.ok()) return parsed;
  return FromAbsl(impl_->server->CancelSession(session));
}

Status Client::ListSessions(int limit, std::vector<SessionInfo>* sessions) {
  const auto infos = impl_->server->ListSessions(limit);
  if (!infos.ok()) return FromAbsl(infos.status());
  sessions->clear();
  for (const proto::SessionInfo& info : *infos) sessions->push_back(ToPublic(info));
  return {};
}

Status Client::FindSession(const std::string& id, SessionInfo* session) {
  Hash128 hash;
  if (Status parsed = ParseId(id, &hash); !parsed.ok()) return parsed;
  const auto info = impl_->server->FindSession(hash);
  if (!info.ok()) return FromAbsl(info.status());
  *session = ToPublic(*info);
  return {};
}

Status Client::WatchSession(const std::string& id, int64_t after_sequence,
                            const std::function<bool(const SessionEvent&)>& on_event,
                            int64_t patience_ms, const std::function<bool()>& stop) {
  Hash128 session;
  if (Status parsed = ParseId(id, &session); !parsed.ok()) return parsed;
  std::atomic<bool> enough{false};
  int64_t sequence = after_sequence;
  return FromAbsl(impl_->server->Watch(
      session, &sequence,
      [&](const proto::SessionEvent& event) {
        // What was on its way when the caller had enough is not shown.
        if (!enough.load() && !on_event(ToPublic(event))) enough.store(true);
      },
      [&] { return enough.load() || (stop && stop()); }, patience_ms * kNsPerMs));
}

Status Client::FindRecords(const RecordQuery& query, std::vector<Record>* records) {
  const auto found = impl_->server->FindRecords(
      {.key = {.workload = HashBytes(query.workload),
               .target = query.target,
               .device_class = query.device_class,
               .accuracy = static_cast<ir::AccuracyClass>(query.accuracy),
               .measurement_policy = ir::VersionsOf(query.target).measurement_policy},
       .question = proto::RecordQuestion::kExact,
       .limit = query.limit});
  if (!found.ok()) return FromAbsl(found.status());
  records->clear();
  for (const db::RankedRecord& ranked : found->records) {
    const db::TuningRecord& r = ranked.record;
    records->push_back({.id = r.id.ToHex(),
                        .trace = r.trace,
                        .target = r.key.target,
                        .device_class = r.key.device_class,
                        .builder_version = r.builder_version,
                        .rigor = std::string(db::RigorName(ranked.rigor)),
                        .median_ns = r.median_ns,
                        .low_ns = r.low_ns,
                        .high_ns = r.high_ns,
                        .created_unix_ms = r.created_ms});
  }
  return {};
}

Status Client::ListDevices(std::vector<DeviceInfo>* devices) {
  const auto infos = impl_->server->ListDevices();
  if (!infos.ok()) return FromAbsl(infos.status());
  devices->clear();
  for (const proto::DeviceInfo& info : *infos) devices->push_back(ToPublic(info));
  return {};
}

Status Client::SetDevice(const std::string& worker, const std::string& device,
                         DeviceAction action) {
  return FromAbsl(
      impl_->server->SetDevice(worker, device, static_cast<proto::DeviceAction>(action)));
}

Status Client::Snapshot(const std::string& path, std::string* sha256) {
  auto digest = impl_->server->Snapshot(path, client::ServerConnection::Use::kKept);
  if (!digest.ok()) return FromAbsl(digest.status());
  *sha256 = *std::move(digest);
  return {};
}

}  // namespace hone

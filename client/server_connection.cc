#include "client/server_connection.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "fmt/format.h"

#include "base/core/clock.h"
#include "base/core/random_id.h"
#include "base/credential_check.h"
#include "base/credentials.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "db/publish_file.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::client {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kConnectMs = 2000;
constexpr int64_t kLeastMs = 100;  ///< for a first connection
constexpr int64_t kPauseNs = 100 * kNsPerMs;
constexpr int64_t kLongestPauseNs = 2000 * kNsPerMs;

/// What honed would refuse is refused here: text that is no UTF-8 does not even reach it.
absl::Status WhatWasAsked(const absl::Status& status) {
  return WithExitCode(status, ExitCode::kUsage);
}

class GrpcConnection final : public ServerConnection {
 public:
  GrpcConnection(ServerAddress address, Credentials credentials)
      : address_(std::move(address)), credentials_(std::move(credentials)) {
    channel_ = Dial();
    stub_ = v1::Tuning::NewStub(channel_);
    judging_ = v1::Judging::NewStub(channel_);
  }

  absl::StatusOr<Started> StartSession(const proto::SessionSpec& spec) override;
  absl::Status CancelSession(const Hash128& session) override;
  absl::StatusOr<std::vector<proto::SessionInfo>> ListSessions(int limit) override;
  absl::StatusOr<proto::SessionInfo> FindSession(const Hash128& session) override;
  absl::Status Watch(const Hash128& session, int64_t* sequence, const OnEvent& on_event,
                     const std::function<bool()>& stop, int64_t patience_ns) override;
  absl::StatusOr<Found> FindRecords(const proto::FindRecords& question) override;
  absl::StatusOr<std::string> Snapshot(const std::string& path, Use use) override;
  absl::StatusOr<std::string> PutPackage(const std::string& bytes) override;
  absl::StatusOr<ModelAnswer> JudgeModel(const ModelQuestion& question) override;
  absl::StatusOr<std::vector<proto::DeviceInfo>> ListDevices() override;
  absl::Status SetDevice(const std::string& worker, const std::string& device,
                         proto::DeviceAction action) override;
  const std::string& address() const override { return address_.address; }

 private:
  std::shared_ptr<grpc::Channel> Dial() const;
  /// `more`: whether there are older ones.
  absl::StatusOr<std::vector<proto::SessionInfo>> AskSessions(
      const v1::ListSessionsRequest& request, bool* more);
  /// One try of a watch; true when the session has ended.
  absl::StatusOr<bool> WatchOnce(const Hash128& session, int64_t* sequence, const OnEvent& on_event,
                                 const std::function<bool()>& stop, int64_t* heard_ns);
  absl::Status Explain(const absl::Status& status) const;

  /// Calls until there is an answer: the server may be starting again.
  template <typename Request, typename Reply>
  absl::Status Call(grpc::Status (v1::Tuning::Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Reply*),
                    const Request& request, Reply* reply) {
    return CallOf(*stub_, method, request, reply);
  }
  template <typename Stub, typename Request, typename Reply>
  absl::Status CallOf(Stub& stub,
                      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                      const Request& request, Reply* reply) {
    const int64_t begin_ns = clock_.NowNs();
    for (int64_t pause_ns = kPauseNs;; pause_ns = std::min(pause_ns * 2, kLongestPauseNs)) {
      grpc::ClientContext context;
      Prepare(context, address_.deadline_ms);
      const absl::Status status = proto::FromGrpc((stub.*method)(&context, request, reply));
      const bool again = status.code() == absl::StatusCode::kUnavailable ||
                         status.code() == absl::StatusCode::kDeadlineExceeded;
      const int64_t for_ms = !met_.load() && proto::IsOfNobody(status)
                                 ? std::min(address_.refused_for_ms, address_.retry_for_ms)
                                 : address_.retry_for_ms;
      if (!again || proto::IsOfAnotherAuthority(status) ||
          clock_.NowNs() - begin_ns >= for_ms * kNsPerMs) {
        return Explain(status);
      }
      clock_.SleepNs(pause_ns);
    }
  }
  /// Readies a call. A channel that was lost is connected here first: gRPC moves a handshake on
  /// only while some thread waits for something, and a call that fails at once does not.
  void Prepare(grpc::ClientContext& context, int64_t deadline_ms) {
    int64_t connect_ms = deadline_ms > 0 ? std::min(kConnectMs, deadline_ms) : kConnectMs;
    if (!met_.load())
      connect_ms = std::min(connect_ms, std::max(address_.refused_for_ms, kLeastMs));
    if (channel_->WaitForConnected(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                                gpr_time_from_millis(connect_ms, GPR_TIMESPAN)))) {
      met_.store(true);
    }
    if (deadline_ms > 0) {
      context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                        gpr_time_from_millis(deadline_ms, GPR_TIMESPAN)));
    }
    proto::SayProtocol(context);
    if (address_.plaintext) context.AddMetadata("hone-name", "local");
  }

  const ServerAddress address_;
  const Credentials credentials_;
  const SystemMonotonicClock clock_;
  std::atomic<bool> met_{false};  ///< was connected at some time
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Tuning::Stub> stub_;
  std::unique_ptr<v1::Judging::Stub> judging_;
};

std::shared_ptr<grpc::Channel> GrpcConnection::Dial() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // This bounds one attempt, handshake included; a refused one ends at once all the same.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  // A watch says nothing after its first word and asks on all the same.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(proto::kMaxMessageBytes));
  if (address_.plaintext) {
    return grpc::CreateCustomChannel(address_.address, grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = credentials_.ca;
  tls.pem_private_key = credentials_.key;
  tls.pem_cert_chain = credentials_.certificate;
  arguments.SetSslTargetNameOverride(kServerName);
  return grpc::CreateCustomChannel(address_.address, grpc::SslCredentials(tls), arguments);
}

absl::Status GrpcConnection::Explain(const absl::Status& status) const {
  if (status.ok()) return status;
  std::string text = fmt::format("server '{}': {}", address_.address, StatusMessage(status));
  ExitCode code = ExitCode::kServer;
  const auto dialled = address_.plaintext ? proto::Dialled::kPlaintext : proto::Dialled::kTls;
  if (const std::string why = proto::WhyNoConnection(status, dialled); !why.empty()) {
    text = fmt::format("server '{}': {} ({})", address_.address, why, StatusMessage(status));
    return WithExitCode(absl::Status(status.code(), text), code);
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      text += "; it does not answer: see whether honed runs there";
      if (!address_.plaintext) {
        text += ", and whether the certificates are of its authority (--tls)";
      }
      break;
    case absl::StatusCode::kNotFound: code = ExitCode::kUsage; break;
    default: break;
  }
  return WithExitCode(absl::Status(status.code(), text), code);
}

absl::StatusOr<ServerConnection::Started> GrpcConnection::StartSession(
    const proto::SessionSpec& spec) {
  v1::StartSessionRequest request;
  v1::StartSessionReply reply;
  request.set_request_id(RandomId().ToHex());
  proto::ToWire(spec, request.mutable_spec());
  HONE_RETURN_IF_ERROR(WhatWasAsked(proto::FromWire(request.spec()).status()));
  // gRPC's own word for it is that of a full disk.
  if (const size_t bytes = request.ByteSizeLong(); bytes > proto::kMaxMessageBytes) {
    return WhatWasAsked(absl::InvalidArgumentError(
        fmt::format("tasks: with their workloads the request has {} bytes, {} at most are possible",
                    bytes, proto::kMaxMessageBytes)));
  }
  HONE_RETURN_IF_ERROR(Call(&v1::Tuning::Stub::StartSession, request, &reply));
  Started started{.joined = reply.joined()};
  HONE_ASSIGN_OR_RETURN(started.session, proto::IdFromBytes(reply.session(), "session"));
  return started;
}

absl::Status GrpcConnection::CancelSession(const Hash128& session) {
  v1::CancelSessionRequest request;
  v1::CancelSessionReply reply;
  request.set_request_id(RandomId().ToHex());
  request.set_session(proto::IdBytes(session));
  return Call(&v1::Tuning::Stub::CancelSession, request, &reply);
}

absl::StatusOr<std::vector<proto::SessionInfo>> GrpcConnection::AskSessions(
    const v1::ListSessionsRequest& request, bool* more) {
  v1::ListSessionsReply reply;
  HONE_RETURN_IF_ERROR(Call(&v1::Tuning::Stub::ListSessions, request, &reply));
  *more = reply.more() && reply.sessions_size() > 0;
  std::vector<proto::SessionInfo> infos;
  for (const v1::SessionInfo& wire : reply.sessions()) {
    HONE_ASSIGN_OR_RETURN(infos.emplace_back(), proto::FromWire(wire));
  }
  return infos;
}

absl::StatusOr<std::vector<proto::SessionInfo>> GrpcConnection::ListSessions(int limit) {
  v1::ListSessionsRequest request;
  std::vector<proto::SessionInfo> all;
  for (bool more = true; more && std::ssize(all) < limit;) {
    request.set_limit(std::min(limit - static_cast<int>(all.size()), proto::kMaxListed));
    if (!all.empty()) request.set_after_session(proto::IdBytes(all.back().id));
    HONE_ASSIGN_OR_RETURN(std::vector<proto::SessionInfo> page, AskSessions(request, &more));
    std::move(page.begin(), page.end(), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<proto::SessionInfo> GrpcConnection::FindSession(const Hash128& session) {
  v1::ListSessionsRequest request;
  request.set_session(proto::IdBytes(session));
  request.set_limit(1);
  bool more = false;
  HONE_ASSIGN_OR_RETURN(std::vector<proto::SessionInfo> infos, AskSessions(request, &more));
  if (infos.empty()) return absl::NotFoundError("no such session");
  return std::move(infos.front());
}

absl::StatusOr<bool> GrpcConnection::WatchOnce(const Hash128& session, int64_t* sequence,
                                               const OnEvent& on_event,
                                               const std::function<bool()>& stop,
                                               int64_t* heard_ns) {
  v1::WatchSessionRequest request;
  request.set_session(proto::IdBytes(session));
  request.set_after_sequence(*sequence);
  grpc::ClientContext context;
  Prepare(context, 0);
  std::atomic<bool> over{false};
  std::thread canceller([&] {
    while (!over.load()) {
      if (stop()) context.TryCancel();
      clock_.SleepNs(kPauseNs);
    }
  });
  const std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> reader =
      stub_->WatchSession(&context, request);
  bool ended = false;
  absl::Status bad;
  v1::SessionEvent wire;
  while (bad.ok() && reader->Read(&wire)) {
    *heard_ns = clock_.NowNs();
    const auto event = proto::FromWire(wire);
    if (!event.ok()) {
      bad = event.status();
      context.TryCancel();
      break;
    }
    if (event->kind != proto::SessionEvent::Kind::kState) *sequence = event->sequence;
    ended = event->kind == proto::SessionEvent::Kind::kEnded;
    on_event(*event);
  }
  const absl::Status status = proto::FromGrpc(reader->Finish());
  over.store(true);
  canceller.join();
  if (ended) return true;
  return bad.ok() ? status : bad;
}

absl::Status GrpcConnection::Watch(const Hash128& session, int64_t* sequence,
                                   const OnEvent& on_event, const std::function<bool()>& stop,
                                   int64_t patience_ns) {
  int64_t heard_ns = clock_.NowNs();
  std::string told = "none";
  for (;;) {
    const auto ended = WatchOnce(session, sequence, on_event, stop, &heard_ns);
    if (stop()) return absl::CancelledError("detached");
    if (ended.ok() && *ended) return absl::OkStatus();
    const absl::StatusCode code = ended.status().code();
    const bool again = code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kOk ||
                       code == absl::StatusCode::kCancelled ||
                       code == absl::StatusCode::kResourceExhausted;
    if (!again || clock_.NowNs() - heard_ns > patience_ns) return Explain(ended.status());
    if (std::string why = StatusMessage(ended.status()); why != told) {
      LogWarning("server '{}': {}; trying again", address_.address, why);
      told = std::move(why);
    }
    clock_.SleepNs(kPauseNs);
  }
}

absl::StatusOr<ServerConnection::Found> GrpcConnection::FindRecords(
    const proto::FindRecords& question) {
  v1::FindRecordsRequest request;
  v1::FindRecordsReply reply;
  proto::ToWire(question, &request);
  HONE_RETURN_IF_ERROR(WhatWasAsked(proto::FromWire(request).status()));
  HONE_RETURN_IF_ERROR(Call(&v1::Tuning::Stub::FindRecords, request, &reply));
  Found found;
  for (const v1::Record& wire : reply.records()) {
    HONE_ASSIGN_OR_RETURN(db::RankedRecord record, proto::FromWire(wire));
    record.other_builder = !question.builder_version.empty() &&
                           record.record.builder_version != question.builder_version;
    record.rigor = db::EffectiveRigor(record.record, record.merged, record.other_builder);
    found.records.push_back(std::move(record));
  }
  found.workloads.assign(reply.workloads().begin(), reply.workloads().end());
  for (const v1::ModelVerdict& wire : reply.verdicts()) {
    HONE_ASSIGN_OR_RETURN(found.verdicts.emplace_back(), proto::FromWire(wire));
  }
  return found;
}

absl::StatusOr<std::string> GrpcConnection::Snapshot(const std::string& path, Use use) {
  grpc::ClientContext context;
  Prepare(context, 0);
  if (use == Use::kRead) context.AddMetadata(proto::kPassingKey, "1");
  const auto reader = stub_->Snapshot(&context, {});
  const std::string temporary = TemporaryOf(path);
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  Sha256 digest;
  std::string sha256;
  v1::SnapshotChunk chunk;
  while (reader->Read(&chunk)) {
    file.write(chunk.data().data(), static_cast<std::streamsize>(chunk.data().size()));
    digest.Update(chunk.data());
    if (!chunk.sha256().empty()) sha256 = chunk.sha256();
  }
  const absl::Status status = proto::FromGrpc(reader->Finish());
  file.close();
  absl::Status result = Explain(status);
  if (result.ok() && !file) {
    result = absl::ResourceExhaustedError(fmt::format("cannot write '{}'", temporary));
  }
  if (result.ok() && (sha256.empty() || digest.FinishHex() != sha256)) {
    result = WithExitCode(absl::DataLossError("the snapshot arrived damaged; try again"),
                          ExitCode::kServer);
  }
  // Synced before its name: after a power cut a snapshot that was told of is there, and whole.
  if (result.ok()) result = db::PublishFile(temporary, path);
  if (result.ok()) return sha256;
  std::remove(temporary.c_str());
  return result;
}

absl::StatusOr<std::string> GrpcConnection::PutPackage(const std::string& bytes) {
  v1::PutPackageRequest request;
  v1::PutPackageReply reply;
  request.set_sha256(Sha256Hex(bytes));
  request.set_total_bytes(static_cast<int64_t>(bytes.size()));
  if (static_cast<int64_t>(bytes.size()) > proto::kMaxPackageBytes) {
    return absl::InvalidArgumentError(
        fmt::format("its package has {} bytes without constants, {} at most are possible",
                    bytes.size(), proto::kMaxPackageBytes));
  }
  for (size_t at = 0; at < bytes.size(); at += proto::kArtifactChunkBytes) {
    request.set_offset(static_cast<int64_t>(at));
    request.set_data(bytes.substr(at, proto::kArtifactChunkBytes));
    HONE_RETURN_IF_ERROR(CallOf(*judging_, &v1::Judging::Stub::PutPackage, request, &reply));
  }
  return request.sha256();
}

absl::StatusOr<ServerConnection::ModelAnswer> GrpcConnection::JudgeModel(
    const ModelQuestion& question) {
  v1::JudgeModelRequest request;
  v1::JudgeModelReply reply;
  request.set_session(proto::IdBytes(question.session));
  request.set_default_package(question.default_package);
  request.set_tuned_package(question.tuned_package);
  request.set_subject(question.subject == db::ModelVerdict::Subject::kBranches ? 1 : 0);
  for (const Hash128& hash : question.tuned) request.add_tuned(proto::IdBytes(hash));
  request.set_seconds(question.seconds);
  request.set_may_put_back(question.may_put_back);
  request.set_mended_package(question.mended_package);
  for (const Hash128& hash : question.put_back) request.add_put_back(proto::IdBytes(hash));
  HONE_RETURN_IF_ERROR(CallOf(*judging_, &v1::Judging::Stub::JudgeModel, request, &reply));
  ModelAnswer answer{.done = reply.done(), .reason = reply.reason()};
  for (const std::string& bytes : reply.losing()) {
    HONE_ASSIGN_OR_RETURN(answer.losing.emplace_back(), proto::IdFromBytes(bytes, "losing"));
  }
  if (reply.payload().empty()) return answer;
  answer.verdict = db::VerdictOf(
      {.session = question.session, .type = db::kModelVerdict, .payload = reply.payload()}, false);
  if (!answer.verdict) return absl::DataLossError("the server's verdict cannot be read");
  return answer;
}

absl::StatusOr<std::vector<proto::DeviceInfo>> GrpcConnection::ListDevices() {
  v1::ListDevicesRequest request;
  v1::ListDevicesReply reply;
  std::vector<proto::DeviceInfo> devices;
  do {
    reply.Clear();
    HONE_RETURN_IF_ERROR(Call(&v1::Tuning::Stub::ListDevices, request, &reply));
    for (const v1::DeviceInfo& wire : reply.devices()) {
      HONE_ASSIGN_OR_RETURN(devices.emplace_back(), proto::FromWire(wire));
    }
    if (devices.empty()) break;
    request.set_after_worker(devices.back().worker);
    request.set_after_device(devices.back().device.name);
  } while (reply.more() && reply.devices_size() > 0);
  return devices;
}

absl::Status GrpcConnection::SetDevice(const std::string& worker, const std::string& device,
                                       proto::DeviceAction action) {
  v1::SetDeviceRequest request;
  v1::SetDeviceReply reply;
  request.set_request_id(RandomId().ToHex());
  HONE_RETURN_IF_ERROR(WhatWasAsked(proto::Name(worker, "worker").status()));
  HONE_RETURN_IF_ERROR(WhatWasAsked(proto::Name(device, "device").status()));
  request.set_worker(worker);
  request.set_device(device);
  request.set_action(static_cast<v1::DeviceAction>(action));
  return Call(&v1::Tuning::Stub::SetDevice, request, &reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerConnection>> ServerConnection::Open(
    const ServerAddress& address) {
  Credentials credentials;
  if (address.plaintext && !IsLoopbackAddress(address.address)) {
    return absl::InvalidArgumentError(
        fmt::format("plaintext is for servers on this machine, '{}' is not one", address.address));
  }
  if (!address.plaintext) {
    auto read = ReadCredentials(address.tls_folder);
    if (!read.ok()) {
      return Annotate(read.status(),
                      "no credentials for the server (honed issue submit NAME "
                      "makes them, --tls FOLDER names them)");
    }
    // Whether the certificate is over is the server's to say, whose clock counts.
    HONE_RETURN_IF_ERROR(
        Annotate(CheckCredentials(
                     *read, address.tls_folder,
                     {.roles = {CallerRole::kSubmit, CallerRole::kPublish, CallerRole::kAdmin}}),
                 "no credentials for the server"));
    credentials = *std::move(read);
  }
  return std::unique_ptr<ServerConnection>(new GrpcConnection(address, std::move(credentials)));
}

}  // namespace hone::client

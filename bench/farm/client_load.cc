#include "bench/farm/client_load.h"

#include <algorithm>
#include <utility>

#include "base/core/random_id.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "proto/limits.h"

namespace hone::bench {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kAgainNs = 200 * kNsPerMs;

std::unique_ptr<v1::Tuning::Stub> Dial(const std::string& server, const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(proto::kMaxMessageBytes));
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = credentials.ca;
  tls.pem_private_key = credentials.key;
  tls.pem_cert_chain = credentials.certificate;
  arguments.SetSslTargetNameOverride(kServerName);
  return v1::Tuning::NewStub(
      grpc::CreateCustomChannel(server, grpc::SslCredentials(tls), arguments));
}

}  // namespace

SessionLoad::SessionLoad(std::string server, Credentials credentials, const MonotonicClock& clock)
    : server_(std::move(server)), credentials_(std::move(credentials)), clock_(clock) {}

SessionLoad::~SessionLoad() { Stop(); }

absl::StatusOr<Hash128> SessionLoad::Begin(const proto::SessionSpec& spec) {
  grpc::ClientContext context;
  v1::StartSessionRequest request;
  v1::StartSessionReply reply;
  request.set_request_id(RandomId().ToHex());
  proto::ToWire(spec, request.mutable_spec());
  HONE_RETURN_IF_ERROR(
      proto::FromGrpc(Dial(server_, credentials_)->StartSession(&context, request, &reply)));
  return proto::IdFromBytes(reply.session(), "session");
}

void SessionLoad::Watch(const Hash128& session) {
  threads_.emplace_back([this, session] { WatchLoop(session); });
}

void SessionLoad::WatchLoop(const Hash128& session) {
  int64_t sequence = 0;
  while (!stopping_) {
    const auto stub = Dial(server_, credentials_);
    grpc::ClientContext context;
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(&context);
    }
    v1::WatchSessionRequest request;
    request.set_session(proto::IdBytes(session));
    request.set_after_sequence(sequence);
    const auto reader = stub->WatchSession(&context, request);
    v1::SessionEvent event;
    while (!stopping_ && reader->Read(&event)) {
      if (event.has_ended()) ++ended_;
      if (event.has_ended() || event.has_state()) continue;
      ++events_;
      if (event.sequence() <= sequence) ++disordered_;
      sequence = std::max(sequence, event.sequence());
    }
    context.TryCancel();
    (void)reader->Finish();
    {
      const std::lock_guard lock(mutex_);
      std::erase(calls_, &context);
    }
    if (!stopping_) clock_.SleepNs(kAgainNs);
  }
}

void SessionLoad::Stop() {
  if (stopping_.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }
  for (std::thread& thread : threads_) thread.join();
}

LookupFigures RunLookups(const LookupLoad& load, const MonotonicClock& clock) {
  Latencies latencies;
  std::atomic<int64_t> found{0}, failed{0};
  const int64_t start_ns = clock.NowNs();
  const auto end_ns = start_ns + static_cast<int64_t>(1e9 * load.seconds);
  const auto client = [&](int number) {
    const auto stub = Dial(load.server, load.credentials);
    bool connected = false;
    const double every_ns = load.rate > 0 ? 1e9 * load.clients / load.rate : 0;
    double next_ns =
        static_cast<double>(start_ns) + every_ns * (static_cast<double>(number) / load.clients);
    for (size_t i = static_cast<size_t>(number);; i += static_cast<size_t>(load.clients)) {
      clock.SleepNs(static_cast<int64_t>(next_ns) - clock.NowNs());
      if (clock.NowNs() >= end_ns) return;
      next_ns += every_ns;
      const proto::FindRecords question{.key = (*load.keys)[i % load.keys->size()],
                                        .builder_version = load.builder_version,
                                        .question = proto::RecordQuestion::kExact,
                                        .limit = 1};
      v1::FindRecordsRequest request;
      v1::FindRecordsReply reply;
      proto::ToWire(question, &request);
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      const int64_t call_ns = clock.NowNs();
      const grpc::Status status = stub->FindRecords(&context, request, &reply);
      if (std::exchange(connected, true)) latencies.Add(clock.NowNs() - call_ns);
      if (!status.ok()) ++failed;
      if (reply.records_size() > 0) ++found;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < load.clients; ++i) threads.emplace_back(client, i);
  for (std::thread& thread : threads) thread.join();
  LookupFigures figures{.latency = latencies.Since(0), .found = found, .failed = failed};
  figures.rate = static_cast<double>(figures.latency.count) / load.seconds;
  return figures;
}

}  // namespace hone::bench

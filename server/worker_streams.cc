#include "server/worker_streams.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/log.h"
#include "base/status.h"
#include "grpc/grpc_security_constants.h"
#include "proto/farm_service.h"
#include "server/stream_end.h"

namespace hone::server {

std::string_view NameOf(Refusal refusal) {
  constexpr std::array<std::string_view, kNumRefusals> kNames = {
      "no_certificate", "stranger", "identity", "expired", "revoked", "role", "protocol"};
  return kNames.at(static_cast<size_t>(refusal));
}

absl::StatusOr<Identity> CallerOf(const grpc::ServerContextBase& context, Transport transport,
                                  KnownCertificates& certificates, int64_t now_unix_s,
                                  std::initializer_list<CallerRole> roles, Refusal* why) {
  Identity identity;
  *why = Refusal::kIdentity;
  if (transport == Transport::kPlaintext) {
    const auto& metadata = context.client_metadata();
    const auto name = metadata.find("hone-name");
    identity.role = *roles.begin();
    identity.name =
        name == metadata.end() ? "anybody" : std::string(name->second.data(), name->second.size());
    identity.expires_unix_s = INT64_MAX;
    HONE_RETURN_IF_ERROR(ParseIdentity(identity.Uri()).status());
    return identity;
  }
  const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.size() != 1) {
    *why = Refusal::kNoCertificate;
    return absl::UnauthenticatedError("no client certificate was shown");
  }
  HONE_ASSIGN_OR_RETURN(identity,
                        certificates.IdentityOf({shown.front().data(), shown.front().size()}));
  if (identity.expires_unix_s <= now_unix_s) {
    *why = Refusal::kExpired;
    return absl::UnauthenticatedError(
        fmt::format("the certificate of {} has expired; issue a new one (honed issue {} {})",
                    identity.Uri(), RoleName(identity.role), identity.name));
  }
  if (std::ranges::find(roles, identity.role) != roles.end()) return identity;
  *why = Refusal::kRole;
  std::string wanted;
  for (const CallerRole role : roles) {
    wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", RoleName(role));
  }
  return absl::PermissionDeniedError(
      fmt::format("{} may not do this; it takes the role {}", identity.Uri(), wanted));
}

/// One worker's stream. One read and one write are under way at a time; a message is read when the
/// loop has taken the one before, so a worker that floods waits.
class WorkerStreams::Stream final
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(WorkerStreams& owner, StreamId id, Identity identity, grpc::CallbackServerContext* context)
      : owner_(owner),
        id_(id),
        identity_(std::move(identity)),
        begun_ns_(owner.loop_->clock().NowNs()),
        end_(context) {}

  StreamId id() const { return id_; }
  const Identity& identity() const { return identity_; }
  /// Without a Hello after so long it is no worker's.
  bool silent(int64_t now_ns) const {
    constexpr int64_t kPatienceNs = 10'000'000'000;
    return !said_hello_.load() && now_ns - begun_ns_ > kPatienceNs;
  }

  /// True the first time: its certificate is over, which ends it and is counted once.
  bool MarkOver() { return !over_.exchange(true); }

  void Begin() {
    const std::lock_guard lock(mutex_);
    StartRead(&in_);
  }

  void Send(const proto::ServerMessage& message) {
    const std::lock_guard lock(mutex_);
    if (end_.begun()) return;
    out_.emplace_back();
    proto::ToWire(message, &out_.back());
    out_bytes_ += out_.back().ByteSizeLong();
    if (!std::exchange(writing_, true)) StartWrite(&out_.front());
  }

  void End(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_.Begin(status, owner_.loop_->clock().NowNs())) return;
    end_status_ = proto::ToGrpc(status);
    if (!writing_) Finish(end_status_);
  }

  void CutWhenLate(int64_t now_ns) { end_.CutWhenLate(now_ns); }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    out_bytes_ -= out_.front().ByteSizeLong();
    out_.pop_front();
    if (read_waits_ && out_bytes_ <= owner_.most_unsent_bytes_ && !end_.begun()) {
      read_waits_ = false;
      StartRead(&in_);
    }
    if (ok && !out_.empty()) return StartWrite(&out_.front());
    writing_ = false;
    if (end_.begun()) Finish(end_status_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    {
      const std::lock_guard lock(mutex_);
      if (end_.begun()) return;  // whoever ended it has told the loop already
    }
    absl::StatusOr<proto::WorkerMessage> message = proto::FromWire(in_);
    if (!message.ok()) {
      LogWarning("worker '{}' sent a message that is not allowed: {}", identity_.name,
                 StatusMessage(message.status()));
      return End(message.status());
    }
    if (std::holds_alternative<proto::Hello>(*message)) said_hello_.store(true);
    owner_.loop_->Post(
        [self = shared_from_this(), message = *std::move(message)](Farm& farm, int64_t now_ns) {
          if (const auto* hello = std::get_if<proto::Hello>(&message)) {
            if (!std::exchange(self->greeted_, true)) {
              farm.OnHello(self->id_, self->identity_.name, *hello, now_ns);
              return self->ReadNext();
            }
          }
          farm.OnMessage(self->id_, message, now_ns);
          self->ReadNext();
        });
  }

  void OnCancel() override { End(absl::CancelledError("the worker has gone")); }

  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      end_.Done();
    }
    owner_.loop_->Post([id = id_](Farm& farm, int64_t now_ns) { farm.OnGone(id, now_ns); });
    owner_.Remove(id_);
  }

 private:
  void ReadNext() {
    const std::lock_guard lock(mutex_);
    if (end_.begun()) return;
    // A small question may have a large answer: who reads none of them is not heard any more.
    read_waits_ = out_bytes_ > owner_.most_unsent_bytes_;
    if (!read_waits_) StartRead(&in_);
  }

  WorkerStreams& owner_;
  const StreamId id_;
  const Identity identity_;
  const int64_t begun_ns_;
  v1::WorkerMessage in_;
  std::atomic<bool> said_hello_{false}, over_{false};
  bool greeted_ = false;  // the loop's alone
  std::mutex mutex_;
  std::deque<v1::ServerMessage> out_;  // guarded by mutex_, as all below
  size_t out_bytes_ = 0;
  bool read_waits_ = false;
  bool writing_ = false;
  StreamEnd end_;
  grpc::Status end_status_;
};

class WorkerStreams::Service final : public v1::Workers::CallbackService {
 public:
  explicit Service(WorkerStreams& owner) : owner_(owner) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* Work(
      grpc::CallbackServerContext* context) override {
    const absl::StatusOr<Identity> caller = owner_.Admit(*context, {CallerRole::kMeasure}, "Work");
    std::shared_ptr<Stream> stream;
    {
      const std::lock_guard lock(owner_.mutex_);
      const StreamId id = owner_.next_++;
      stream = std::make_shared<Stream>(owner_, id, caller.ok() ? *caller : Identity{}, context);
      owner_.streams_[id] = stream;
    }
    if (caller.ok()) {
      stream->Begin();
    } else {
      stream->End(caller.status());
    }
    return stream.get();
  }

 private:
  WorkerStreams& owner_;
};

WorkerStreams::WorkerStreams(Transport transport, const WallClock& wall_clock,
                             size_t most_unsent_bytes)
    : transport_(transport),
      wall_clock_(wall_clock),
      most_unsent_bytes_(most_unsent_bytes),
      service_(new Service(*this)) {}
WorkerStreams::~WorkerStreams() = default;

grpc::Service* WorkerStreams::service() { return service_.get(); }

std::shared_ptr<WorkerStreams::Stream> WorkerStreams::Find(StreamId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

void WorkerStreams::Remove(StreamId id) {
  std::shared_ptr<Stream> last;  // dies after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  last = std::move(found->second);
  streams_.erase(found);
}

void WorkerStreams::Send(StreamId id, const proto::ServerMessage& message) {
  if (const auto stream = Find(id)) stream->Send(message);
}

void WorkerStreams::Close(StreamId id, const absl::Status& status) {
  if (const auto stream = Find(id)) stream->End(status);
}

absl::StatusOr<Identity> WorkerStreams::Admit(const grpc::ServerContextBase& context,
                                              std::initializer_list<CallerRole> roles,
                                              std::string_view call) {
  constexpr int64_t kNs = 1'000'000'000;
  Refusal why{};
  absl::StatusOr<Identity> caller =
      CallerOf(context, transport_, certificates_, wall_clock_.UnixNs() / kNs, roles, &why);
  if (caller.ok() && Refused(caller->Uri())) {
    why = Refusal::kRevoked;
    caller = absl::PermissionDeniedError(
        fmt::format("the certificate of {} was revoked, and its name with it; issue one of another "
                    "name (honed issue {} NAME)",
                    caller->Uri(), RoleName(caller->role)));
  }
  if (!caller.ok()) CountRefused(why, call, context.peer(), StatusMessage(caller.status()));
  return caller;
}

void WorkerStreams::CountRefused(Refusal why, std::string_view call, const std::string& peer,
                                 const std::string& text) {
  refused_[static_cast<size_t>(why)].fetch_add(1);
  // Whoever reaches the port can fail handshakes: not a line for each.
  constexpr int64_t kQuietNs = 10'000'000'000;
  if (call == kHandshake) {
    const int64_t now_ns = wall_clock_.UnixNs();
    const int64_t last_ns = handshake_logged_ns_.load();
    if (now_ns >= last_ns && now_ns - last_ns < kQuietNs) return;
    handshake_logged_ns_.store(now_ns);
  }
  LogEvent(LogLevel::kWarning, "caller_refused",
           {{"call", std::string(call)},
            {"peer", peer},
            {"reason", std::string(NameOf(why))},
            {"why", text}});
}

int64_t WorkerStreams::refused(Refusal why) const {
  return refused_[static_cast<size_t>(why)].load();
}

void WorkerStreams::Refuse(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  refused_names_.insert(uri);
}

std::vector<Identity> WorkerStreams::KnownCallers() const {
  std::vector<Identity> all = certificates_.All();
  const std::lock_guard lock(mutex_);
  std::erase_if(all, [&](const Identity& who) { return refused_names_.contains(who.Uri()); });
  return all;
}

bool WorkerStreams::Refused(const std::string& uri) const {
  const std::lock_guard lock(mutex_);
  return refused_names_.contains(uri);
}

int64_t WorkerStreams::connected() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(streams_.size());
}

void WorkerStreams::EndExpired() {
  constexpr int64_t kNs = 1'000'000'000;
  const int64_t now_s = wall_clock_.UnixNs() / kNs;
  const int64_t now_ns = loop_->clock().NowNs();
  std::vector<std::shared_ptr<Stream>> all, over, silent;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, stream] : streams_) {
      all.push_back(stream);
      const Identity& who = stream->identity();
      if (stream->silent(now_ns)) silent.push_back(stream);
      if (who.expires_unix_s <= now_s || refused_names_.contains(who.Uri())) over.push_back(stream);
    }
  }
  for (const auto& stream : all) stream->CutWhenLate(now_ns);
  for (const auto& stream : silent) {
    stream->End(absl::DeadlineExceededError("no Hello within 10 s of the stream's begin"));
  }
  for (const auto& stream : over) {
    const Identity& who = stream->identity();
    if (who.name.empty() || !stream->MarkOver()) continue;
    const Refusal why = who.expires_unix_s <= now_s ? Refusal::kExpired : Refusal::kRevoked;
    const std::string text = fmt::format("the certificate of {} {}", who.Uri(),
                                         why == Refusal::kExpired ? "has expired" : "was revoked");
    const absl::Status status = absl::UnauthenticatedError(text);
    // Before the stream's own end is posted, which would leave its leases to be lost. Others of its
    // name may have a certificate that is good for longer.
    loop_->Post([id = stream->id(), status](Farm& farm, int64_t at_ns) {
      farm.EndStream(id, status, at_ns);
    });
    stream->End(status);
    CountRefused(why, "Work", "", text + ": its stream ends");
  }
}

void WorkerStreams::CloseAll() {
  std::vector<std::shared_ptr<Stream>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, stream] : streams_) all.push_back(stream);
  }
  for (const auto& stream : all) stream->End(absl::UnavailableError("honed is ending"));
}

}  // namespace hone::server

#include "server/tuning_service.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <utility>

#include "fmt/format.h"

#include "base/core/thread_name.h"
#include "base/core/timed_wait.h"
#include "base/log.h"
#include "base/status.h"
#include "proto/farm_service.h"
#include "proto/field_check.h"
#include "proto/limits.h"
#include "server/record_finder.h"
#include "server/reply_rows.h"
#include "server/request_once.h"
#include "server/snapshot_streams.h"
#include "server/stream_end.h"

namespace hone::server {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kThreads = 6;
constexpr int kWatchThreads = 2;
constexpr int kEventsAtOnce = 256;
constexpr int64_t kWatchPauseNs = 50 * kNsPerMs;
const std::initializer_list<CallerRole> kClients = {CallerRole::kSubmit, CallerRole::kPublish,
                                                    CallerRole::kAdmin};
const std::initializer_list<CallerRole> kAdmins = {CallerRole::kAdmin};

}  // namespace

class TuningService::Service final : public v1::Tuning::CallbackService {
 public:
  explicit Service(Context context);
  ~Service() override { Stop(); }
  void Changed();
  void EndExpired();
  void Stop();

  grpc::ServerUnaryReactor* StartSession(grpc::CallbackServerContext* context,
                                         const v1::StartSessionRequest* request,
                                         v1::StartSessionReply* reply) override;
  grpc::ServerUnaryReactor* CancelSession(grpc::CallbackServerContext* context,
                                          const v1::CancelSessionRequest* request,
                                          v1::CancelSessionReply* reply) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* context,
                                         const v1::ListSessionsRequest* request,
                                         v1::ListSessionsReply* reply) override;
  grpc::ServerUnaryReactor* FindRecords(grpc::CallbackServerContext* context,
                                        const v1::FindRecordsRequest* request,
                                        v1::FindRecordsReply* reply) override;
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesReply* reply) override;
  grpc::ServerUnaryReactor* SetDevice(grpc::CallbackServerContext* context,
                                      const v1::SetDeviceRequest* request,
                                      v1::SetDeviceReply* reply) override;
  grpc::ServerUnaryReactor* Revoke(grpc::CallbackServerContext* context,
                                   const v1::RevokeRequest* request,
                                   v1::RevokeReply* reply) override;
  grpc::ServerWriteReactor<v1::SessionEvent>* WatchSession(
      grpc::CallbackServerContext* context, const v1::WatchSessionRequest* request) override;
  grpc::ServerWriteReactor<v1::SnapshotChunk>* Snapshot(
      grpc::CallbackServerContext* context, const v1::SnapshotRequest* request) override;

 private:
  class Watch;

  absl::StatusOr<Identity> Caller(const grpc::ServerContextBase& context,
                                  std::initializer_list<CallerRole> roles) {
    HONE_ASSIGN_OR_RETURN(Identity caller, context_.workers.Admit(context, roles, "Tuning"));
    const absl::Status spoken = proto::CheckProtocol(context, caller.Uri());
    if (spoken.ok()) return caller;
    context_.workers.CountRefused(Refusal::kProtocol, "Tuning", context.peer(),
                                  StatusMessage(spoken));
    return spoken;
  }
  /// Answers a call from the pool: `answer` gets who calls.
  template <typename Answer>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context,
                                  std::initializer_list<CallerRole> roles, Answer answer) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::StatusOr<Identity> caller = Caller(*context, roles);
    if (!caller.ok()) {
      reactor->Finish(proto::ToGrpc(caller.status()));
    } else if (!pool_.Add([reactor, who = *caller, answer] {
                 reactor->Finish(proto::ToGrpc(answer(who)));
               })) {
      reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "honed is overloaded, try later"});
    }
    return reactor;
  }
  void WatchLoop();
  /// A watch more of this caller, if it may have one; with mutex_.
  absl::Status MayWatch(const Identity& who) const;

  const Context context_;
  WorkPool pool_{"calls", kThreads};
  /// Apart from calls, and it refuses nothing: a watch waits in it once, and callers have
  /// kMaxWatches each.
  WorkPool pumps_{"pumps", kWatchThreads, SIZE_MAX};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool dirty_ = false;  // guarded by mutex_, as all below
  bool stopping_ = false;
  std::map<Watch*, std::shared_ptr<Watch>> watches_;
  SnapshotStreams snapshots_;
  std::thread watcher_;
};

/// One watched session: events in order, each after it is durable.
class TuningService::Service::Watch final : public grpc::ServerWriteReactor<v1::SessionEvent>,
                                            public std::enable_shared_from_this<Watch> {
 public:
  Watch(Service& service, grpc::CallbackServerContext* context, Identity who, Hash128 session,
        int64_t after)
      : service_(service), who_(std::move(who)), session_(session), after_(after), end_(context) {}

  const Identity& who() const { return who_; }

  /// Has it look for events, soon.
  void Schedule() {
    if (scheduled_.exchange(true)) return;
    (void)service_.pumps_.Add([self = shared_from_this()] { self->Pump(); });
  }
  /// Looks for events and writes the first; in the pool.
  void Pump() {
    scheduled_.store(false);
    std::unique_lock lock(mutex_);
    if (writing_ || end_.begun()) return;
    if (!stated_) {
      auto info = service_.context_.book.Find(session_, "");
      if (!info.ok()) return EndLocked(info.status());
      stated_ = true;
      queue_.push_back({.kind = proto::SessionEvent::Kind::kState, .info = *std::move(info)});
      return WriteLocked();
    }
    // Its state first: an end seen here comes after every event that is read below.
    const auto over = service_.context_.book.Over(session_);
    if (!over.ok()) return EndLocked(over.status());
    auto events = service_.context_.book.EventsAfter(session_, after_, kEventsAtOnce);
    if (!events.ok()) return EndLocked(events.status());
    for (proto::SessionEvent& event : *events) {
      after_ = event.sequence;
      queue_.push_back(std::move(event));
    }
    if (queue_.empty() && *over) {
      const auto info = service_.context_.book.Find(session_, "");
      if (!info.ok()) return EndLocked(info.status());
      last_ = true;
      queue_.push_back(
          {.kind = proto::SessionEvent::Kind::kEnded, .sequence = after_, .info = *info});
    }
    if (!queue_.empty()) WriteLocked();
  }

  void End(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    EndLocked(status);
  }
  bool ended() const { return end_.begun(); }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return !writing_ && !end_.begun();
  }
  void CutWhenLate(int64_t now_ns) { end_.CutWhenLate(now_ns); }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      queue_.pop_front();
      if (!ok) return EndLocked(absl::OkStatus());
      if (!queue_.empty()) return WriteLocked();
      if (last_) return EndLocked(absl::OkStatus());
    }
    Schedule();
  }
  void OnCancel() override { End(absl::CancelledError("the client has gone")); }
  void OnDone() override {
    std::shared_ptr<Watch> self = shared_from_this();
    {
      const std::lock_guard lock(mutex_);
      end_.Done();
    }
    const std::lock_guard lock(service_.mutex_);
    service_.watches_.erase(this);
  }

 private:
  void WriteLocked() {
    if (end_.begun()) return;
    writing_ = true;
    out_.Clear();
    proto::ToWire(queue_.front(), &out_);
    StartWrite(&out_);
  }
  void EndLocked(const absl::Status& status) {
    if (end_.Begin(status, service_.context_.loop.clock().NowNs())) Finish(proto::ToGrpc(status));
  }

  Service& service_;
  const Identity who_;
  const Hash128 session_;
  std::atomic<bool> scheduled_{false};
  std::mutex mutex_;
  int64_t after_;  // guarded by mutex_, as all below
  std::deque<proto::SessionEvent> queue_;
  v1::SessionEvent out_;
  bool writing_ = false, stated_ = false, last_ = false;
  StreamEnd end_;
};

TuningService::Service::Service(Context context)
    : context_(std::move(context)),
      snapshots_({context_.wall_clock, context_.loop, context_.workers, context_.log_path}) {
  watcher_ = std::thread([this] {
    NameThisThread("watches");
    WatchLoop();
  });
}

void TuningService::Service::Changed() {
  {
    const std::lock_guard lock(mutex_);
    dirty_ = true;
  }
  changed_.notify_one();
}

void TuningService::Service::Stop() {
  std::vector<std::shared_ptr<Watch>> all;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, watch] : watches_) all.push_back(watch);
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
  for (const auto& watch : all) watch->End(absl::UnavailableError("honed is ending"));
  snapshots_.Stop();
  pumps_.Stop();
  pool_.Stop();
}

void TuningService::Service::EndExpired() {
  snapshots_.EndExpired();
  std::unique_lock lock(mutex_);
  const auto all = watches_;
  lock.unlock();
  const int64_t now_s = context_.wall_clock.UnixNs() / kNsPerSecond;
  for (const auto& [key, watch] : all) {
    watch->CutWhenLate(context_.loop.clock().NowNs());
    const Identity& who = watch->who();
    if (who.expires_unix_s > now_s && !context_.workers.Refused(who.Uri())) continue;
    watch->End(absl::UnauthenticatedError(
        fmt::format("the certificate of {} has expired or was revoked", who.Uri())));
  }
}

void TuningService::Service::WatchLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || dirty_; });
    if (stopping_) return;
    dirty_ = false;
    const auto all = watches_;
    lock.unlock();
    for (const auto& [key, watch] : all) {
      if (watch->idle()) watch->Schedule();
    }
    lock.lock();
    WaitFor(changed_, lock, kWatchPauseNs, [this] { return stopping_; });
  }
}

grpc::ServerUnaryReactor* TuningService::Service::StartSession(
    grpc::CallbackServerContext* context, const v1::StartSessionRequest* request,
    v1::StartSessionReply* reply) {
  return Serve(context, kClients, [this, request, reply](const Identity& who) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const proto::SessionSpec spec, proto::FromWire(request->spec()));
    HONE_ASSIGN_OR_RETURN(const SessionBook::Started started,
                          context_.book.Start({who.Owner(), request->request_id()}, spec));
    reply->set_session(proto::IdBytes(started.id));
    reply->set_joined(started.joined);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TuningService::Service::CancelSession(
    grpc::CallbackServerContext* context, const v1::CancelSessionRequest* request,
    v1::CancelSessionReply*) {
  return Serve(context, kClients, [this, request](const Identity& who) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const Hash128 id, proto::IdFromBytes(request->session(), "session"));
    return context_.book.Cancel({who.Owner(), request->request_id()}, id,
                                who.role == CallerRole::kAdmin, who.Uri());
  });
}

grpc::ServerUnaryReactor* TuningService::Service::ListSessions(
    grpc::CallbackServerContext* context, const v1::ListSessionsRequest* request,
    v1::ListSessionsReply* reply) {
  return Serve(context, kClients, [this, request, reply](const Identity& who) -> absl::Status {
    const std::string owner = who.role == CallerRole::kSubmit ? who.Owner() : "";
    if (!request->session().empty()) {
      HONE_ASSIGN_OR_RETURN(const Hash128 one, proto::IdFromBytes(request->session(), "session"));
      const absl::StatusOr<proto::SessionInfo> info = context_.book.Find(one, owner);
      if (info.ok()) proto::ToWire(*info, reply->add_sessions());
      return info.status();
    }
    const int limit = std::clamp(request->limit(), 1, proto::kMaxListed);
    HONE_ASSIGN_OR_RETURN(const auto after, AfterOf(*request));
    HONE_ASSIGN_OR_RETURN(auto infos, context_.book.List(limit + 1, owner, after));
    reply->set_more(std::ssize(infos) > limit);
    if (reply->more()) infos.pop_back();
    for (proto::SessionInfo& info : infos) {
      // A thousand of them fit, whatever was said.
      info.reason = proto::Cut(info.reason, proto::kMaxListedReasonBytes);
      proto::ToWire(info, reply->add_sessions());
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TuningService::Service::FindRecords(grpc::CallbackServerContext* context,
                                                              const v1::FindRecordsRequest* request,
                                                              v1::FindRecordsReply* reply) {
  return Serve(context, kClients, [this, request, reply](const Identity&) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const proto::FindRecords question, proto::FromWire(*request));
    HONE_ASSIGN_OR_RETURN(const FoundRecords found, context_.reader.With([&](db::LogFile& log) {
      return AnswerFrom(log, question);
    }));
    int64_t used = 0;
    AddRows(found.records, reply->mutable_records(), &used);
    for (const std::string& text : found.workloads) {
      if (!Fits(text.size(), &used)) break;
      reply->add_workloads(text);
    }
    AddRows(found.verdicts, reply->mutable_verdicts(), &used);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TuningService::Service::ListDevices(grpc::CallbackServerContext* context,
                                                              const v1::ListDevicesRequest* request,
                                                              v1::ListDevicesReply* reply) {
  return Serve(context, kClients, [this, request, reply](const Identity&) -> absl::Status {
    std::vector<proto::DeviceInfo> devices;
    HONE_RETURN_IF_ERROR(
        context_.loop.Ask({.prepare =
                               [&](Farm& farm, db::FarmStore&, db::FarmUnit&, int64_t now_ns) {
                                 devices = farm.Devices(now_ns);
                                 return absl::OkStatus();
                               },
                           .done = {}}));
    // In the order of the Farm's keys.
    const std::string after = request->after_worker() + "/" + request->after_device();
    int64_t used = 0;
    for (const proto::DeviceInfo& device : devices) {
      if (after != "/" && device.worker + "/" + device.device.name <= after) continue;
      v1::DeviceInfo row;
      proto::ToWire(device, &row);
      reply->set_more(!Fits(row.ByteSizeLong(), &used));
      if (reply->more()) break;
      *reply->add_devices() = std::move(row);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TuningService::Service::SetDevice(grpc::CallbackServerContext* context,
                                                            const v1::SetDeviceRequest* request,
                                                            v1::SetDeviceReply*) {
  return Serve(context, kAdmins, [this, request](const Identity& who) -> absl::Status {
    std::string word = "drain";
    if (request->action() == v1::DEVICE_ACTION_UNDRAIN) {
      word = "undrain";
    } else if (request->action() == v1::DEVICE_ACTION_PROBE) {
      word = "probe";
    } else if (request->action() != v1::DEVICE_ACTION_DRAIN) {
      return absl::InvalidArgumentError("action: drain, undrain or probe");
    }
    const std::string action = v1::DeviceAction_Name(request->action());
    const std::string subject = request->worker() + "/" + request->device();
    std::function<void(Farm&)> before;
    return RunOnce(
        context_.loop,
        {.caller = who.Uri(), .id = request->request_id(), .body = action + "\n" + subject},
        context_.wall_clock.UnixNs() / kNsPerMs,
        [&](Farm& farm, db::FarmUnit& unit, int64_t now_ns, int64_t now_ms) {
          before = farm.Remember(request->worker(), request->device());
          const std::string reason = "by " + who.name;
          const absl::Status set = word == "probe"
                                       ? farm.AskProbe(request->worker(), request->device(), reason)
                                       : farm.SetDevice(request->worker(), request->device(),
                                                        word == "drain" ? DeviceTrigger::kDrain
                                                                        : DeviceTrigger::kUndrain,
                                                        reason, now_ns);
          if (set.ok()) {
            unit.changes.push_back(db::FarmAudit{
                .at_ms = now_ms, .actor = who.Uri(), .action = word, .subject = subject});
          }
          return set;
        },
        [&](Farm& farm) { before(farm); });
  });
}

grpc::ServerUnaryReactor* TuningService::Service::Revoke(grpc::CallbackServerContext* context,
                                                         const v1::RevokeRequest* request,
                                                         v1::RevokeReply*) {
  return Serve(context, kAdmins, [this, request](const Identity& who) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const Identity target, ParseIdentity(request->identity()));
    HONE_RETURN_IF_ERROR(MayRevoke(target));
    const UnaryRequest unary{
        .caller = who.Uri(), .id = request->request_id(), .body = "revoke\n" + target.Uri()};
    // Whoever could never make it durable changes nothing.
    const absl::Status known = FirstAnswer(context_.reader, unary).status();
    if (absl::IsInvalidArgument(known) || absl::IsAlreadyExists(known)) return known;
    // In force first, for it may be long until anything can be written.
    context_.workers.Refuse(target.Uri());
    context_.workers.EndExpired();
    EndExpired();
    if (target.role == CallerRole::kMeasure) {
      // Also of one that is away just now, or has not come back since honed was started.
      context_.loop.Post(
          [name = target.name](Farm& farm, int64_t now_ns) { farm.RevokeWorker(name, now_ns); });
    }
    const absl::Status durable = RunOnce(
        context_.loop, unary, context_.wall_clock.UnixNs() / kNsPerMs,
        [&](Farm&, db::FarmUnit& unit, int64_t, int64_t now_ms) {
          unit.changes.push_back(db::RevokeFarmIdentity{target.Uri(), now_ms});
          unit.changes.push_back(db::FarmAudit{
              .at_ms = now_ms, .actor = who.Uri(), .action = "revoke", .subject = target.Uri()});
          return absl::OkStatus();
        });
    return Annotate(durable, fmt::format("{} is refused from now on, but not yet durably: ask "
                                         "again, or a restart of honed forgets it",
                                         target.Uri()));
  });
}

grpc::ServerWriteReactor<v1::SessionEvent>* TuningService::Service::WatchSession(
    grpc::CallbackServerContext* context, const v1::WatchSessionRequest* request) {
  absl::StatusOr<Identity> caller = Caller(*context, kClients);
  const absl::StatusOr<Hash128> id = proto::IdFromBytes(request->session(), "session");
  const auto watch = std::make_shared<Watch>(*this, context, caller.ok() ? *caller : Identity{},
                                             id.value_or(Hash128{}), request->after_sequence());
  absl::Status may = caller.ok() ? id.status() : caller.status();
  {
    const std::lock_guard lock(mutex_);
    if (may.ok() && stopping_) may = absl::UnavailableError("honed is ending");
    if (may.ok()) may = MayWatch(*caller);
    watches_[watch.get()] = watch;
  }
  if (!may.ok()) {
    watch->End(may);
  } else {
    const std::string owner = caller->role == CallerRole::kSubmit ? caller->Owner() : "";
    // Not taken: honed is ending, and with it this watch.
    (void)pumps_.Add([this, watch, owner, session = *id] {
      const auto found = context_.book.Find(session, owner);
      found.ok() ? watch->Pump() : watch->End(found.status());
    });
  }
  return watch.get();
}

absl::Status TuningService::Service::MayWatch(const Identity& who) const {
  const auto open = std::ranges::count_if(watches_, [&](const auto& item) {
    return !item.first->ended() && item.first->who().Uri() == who.Uri();
  });
  if (open < proto::kMaxWatches) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("{} watches {} sessions already", who.Uri(), open));
}

grpc::ServerWriteReactor<v1::SnapshotChunk>* TuningService::Service::Snapshot(
    grpc::CallbackServerContext* context, const v1::SnapshotRequest*) {
  return snapshots_.Open(context, Caller(*context, kClients));
}

TuningService::TuningService(Context context) : service_(new Service(std::move(context))) {}
TuningService::~TuningService() = default;
grpc::Service* TuningService::service() { return service_.get(); }
void TuningService::Changed() { service_->Changed(); }
void TuningService::EndExpired() { service_->EndExpired(); }
void TuningService::Stop() { service_->Stop(); }

}  // namespace hone::server

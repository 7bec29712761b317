#include "server/honed.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/core/timed_wait.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/status.h"
#include "base/versions.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "proto/farm_service.h"
#include "proto/limits.h"
#include "server/certificate_ends.h"
#include "server/health_monitor.h"
#include "server/issue_journal.h"
#include "server/judging_service.h"
#include "server/model_judgements.h"
#include "server/project_shares.h"
#include "server/session_book.h"
#include "server/tls_guard.h"
#include "server/tuning_service.h"
#include "server/web/http_server.h"
#include "server/worker_streams.h"

namespace hone::server {
namespace {

constexpr int64_t kHousekeepingNs = 1'000'000'000;
constexpr int64_t kLooksAnHour = 3600;
constexpr int64_t kLooksATell = 10;
/// As gRPC's health service knows them; "" is all of honed.
constexpr const char* kServices[] = {"", "hone.v1.Workers", "hone.v1.Tuning", "hone.v1.Judging"};
constexpr int kReaders = 8;  ///< connections that read the log beside its writer
constexpr int64_t kShutdownSeconds = 2;
constexpr int64_t kKeepRequestsMs = int64_t{7} * 86400 * 1000;

/// Removes what a honed that was killed while it copied its log left beside it: LOG.snapshot.ID
/// with an id of its own, and what SQLite keeps beside that. Nobody else's files have such names.
void RemoveLeftCopies(const std::string& log_path) {
  constexpr size_t kIdDigits = 32;
  const std::filesystem::path log(log_path);
  const std::string begin = log.filename().string() + ".snapshot.";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           log.has_parent_path() ? log.parent_path() : std::filesystem::path("."), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(begin, 0) != 0 || name.size() < begin.size() + kIdDigits) continue;
    const std::string id = name.substr(begin.size(), kIdDigits);
    if (id.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    std::error_code gone;
    std::filesystem::remove(entry.path(), gone);
  }
}

class StoreLeaseReader final : public LeaseReader {
 public:
  explicit StoreLeaseReader(db::FarmStore& store) : store_(store) {}
  std::optional<db::FarmLease> FindLease(const Hash128& token) override {
    auto lease = store_.FindLease(token);
    HONE_CHECK(lease.ok()) << StatusMessage(lease.status());
    return *std::move(lease);
  }

 private:
  db::FarmStore& store_;
};

class RunningHoned final : public Honed, public FarmSink {
 public:
  RunningHoned(HonedOptions options, const MonotonicClock& clock, const WallClock& wall_clock)
      : options_(std::move(options)),
        clock_(clock),
        wall_clock_(wall_clock),
        workers_(options_.transport, wall_clock, options_.unsent_bytes),
        certificates_(options_.credentials, [this] { return workers_.KnownCallers(); }) {}
  ~RunningHoned() override { Stop(); }

  absl::Status Begin();
  int port() const override { return port_; }
  int metrics_port() const override { return health_ ? health_->metrics_port() : 0; }
  int page_port() const override { return health_ ? health_->page_port() : 0; }
  void Stop() override;

  void Send(StreamId stream, const proto::ServerMessage& message) override {
    workers_.Send(stream, message);
  }
  void Close(StreamId stream, const absl::Status& status) override {
    workers_.Close(stream, status);
  }
  void Deliver(const Delivery& delivery) override {
    if (!judgements_->Deliver(delivery)) book_->Deliver(delivery);
  }
  void Changed() override { tuning_->Changed(); }

 private:
  absl::Status Listen();
  void KeepHouse();
  /// What the authority issued meanwhile goes into the audit.
  void TakeIssues();
  void TellHealth();

  const HonedOptions options_;
  const MonotonicClock& clock_;
  const WallClock& wall_clock_;
  std::unique_ptr<db::LogFile> log_;
  std::unique_ptr<db::FarmStore> store_;
  std::unique_ptr<StoreLeaseReader> lease_reader_;
  std::unique_ptr<SharedReader> reader_;
  std::unique_ptr<Farm> farm_;
  WorkerStreams workers_;
  CertificateEnds certificates_;
  std::unique_ptr<FarmLoop> loop_;
  std::unique_ptr<SessionBook> book_;
  std::unique_ptr<ModelJudgements> judgements_;
  std::unique_ptr<TuningService> tuning_;
  std::unique_ptr<JudgingService> judging_;
  std::unique_ptr<HealthMonitor> health_;
  std::optional<IssueIntake> issues_;  // the housekeeper's once it runs
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread housekeeper_;
};

absl::Status RunningHoned::Begin() {
  HONE_ASSIGN_OR_RETURN(log_, db::OpenLog(options_.log_path, {.mode = db::OpenMode::kWrite,
                                                              .checkpoints_apart = true}));
  // From here on the log is locked: no other honed copies it.
  RemoveLeftCopies(log_->path());
  HONE_ASSIGN_OR_RETURN(store_, db::FarmStore::Open(*log_));
  HONE_ASSIGN_OR_RETURN(reader_, SharedReader::Open(options_.log_path, kReaders));
  const int64_t now_ms = wall_clock_.UnixNs() / 1'000'000;
  const uint64_t start = RandomId().high;
  HONE_RETURN_IF_ERROR(store_->AddStart(start, now_ms));
  HONE_RETURN_IF_ERROR(store_->ForgetRequests(now_ms - kKeepRequestsMs));
  HONE_ASSIGN_OR_RETURN(db::FarmState state, store_->Load());
  HONE_RETURN_IF_ERROR(SetShares(*store_, options_.shares, now_ms, state.projects));
  if (!options_.ca_folder.empty()) {
    HONE_ASSIGN_OR_RETURN(const auto audit, store_->Audit(std::numeric_limits<int>::max()));
    issues_.emplace(options_.ca_folder, audit);
  }
  lease_reader_ = std::make_unique<StoreLeaseReader>(*store_);
  farm_ = std::make_unique<Farm>(options_.policy,
                                 Farm::Versions{kProtocolVersion, options_.builder_version}, start,
                                 *lease_reader_);
  farm_->SetWallClock(&wall_clock_);
  farm_->Restore(state, clock_.NowNs());
  for (const std::string& uri : state.revoked) workers_.Refuse(uri);
  loop_ = std::make_unique<FarmLoop>(*farm_, *store_, *this, clock_);
  workers_.SetLoop(loop_.get());
  book_ = std::make_unique<SessionBook>(DriverContext{*loop_, *reader_, clock_, wall_clock_,
                                                      options_.builder_version, options_.versions});
  tuning_ = std::make_unique<TuningService>(TuningService::Context{
      options_.transport, wall_clock_, *loop_, *reader_, *book_, workers_, log_->path()});
  judgements_ = std::make_unique<ModelJudgements>(*loop_, *book_);
  judging_ = std::make_unique<JudgingService>(workers_, *judgements_);
  KillPoint("honed.recovered");
  loop_->Start();
  HONE_RETURN_IF_ERROR(book_->Resume(state.sessions));
  KillPoint("honed.resumed");
  HONE_ASSIGN_OR_RETURN(health_, HealthMonitor::Start({.loop = *loop_,
                                                       .workers = workers_,
                                                       .certificates = certificates_,
                                                       .clock = clock_,
                                                       .wall_clock = wall_clock_,
                                                       .log_path = log_->path(),
                                                       .builder_version = options_.builder_version,
                                                       .metrics_listen = options_.metrics_listen,
                                                       .page_listen = options_.page_listen}));
  TakeIssues();
  HONE_RETURN_IF_ERROR(Listen());
  health_->Look();
  housekeeper_ = std::thread([this] { KeepHouse(); });
  return absl::OkStatus();
}

absl::Status RunningHoned::Listen() {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (options_.transport == Transport::kPlaintext) {
    credentials = grpc::InsecureServerCredentials();
  } else {
    credentials = GuardedTls(options_.credentials, [this](Refusal why, const std::string& text) {
      workers_.CountRefused(why, WorkerStreams::kHandshake, "", text);
    });
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options_.listen, credentials, &port_);
  builder.RegisterService(workers_.service());
  builder.RegisterService(tuning_->service());
  builder.RegisterService(judging_->service());
  builder.SetMaxReceiveMessageSize(static_cast<int>(proto::kMaxMessageBytes));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A client whose link is cut says nothing more; a worker's silence the farm itself notices.
  constexpr int64_t kMostMs = 86'400'000;
  const int lost_after_ms =
      static_cast<int>(std::min(options_.policy.lost_after_ns / 1'000'000, kMostMs));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, lost_after_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, std::max(lost_after_ms / 2, 1000));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Streams on which one side alone speaks are asked for ever.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    return absl::UnavailableError(fmt::format(
        "cannot listen on '{}': another program does, or the address is not this machine's",
        options_.listen));
  }
  TellHealth();
  return absl::OkStatus();
}

void RunningHoned::TellHealth() {
  const bool well = health_->Trouble().empty();
  for (const char* service : kServices) {
    server_->GetHealthCheckService()->SetServingStatus(service, well);
  }
}

void RunningHoned::TakeIssues() {
  if (!issues_) return;
  std::vector<db::FarmAudit> entries = issues_->Take();
  if (const std::string trouble = issues_->TakeTrouble(); !trouble.empty()) {
    LogEvent(LogLevel::kWarning, "issues_unread", {{"why", trouble}});
  }
  if (entries.empty()) return;
  loop_->Post(
      {.prepare =
           [entries = std::move(entries)](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
             unit.changes.assign(entries.begin(), entries.end());
             return absl::OkStatus();
           },
       .done = [](Farm&, const absl::Status&, int64_t) {}});
}

void RunningHoned::KeepHouse() {
  std::unique_lock lock(mutex_);
  for (int64_t looks = 1; !WaitFor(changed_, lock, kHousekeepingNs, [this] { return stopping_; });
       ++looks) {
    lock.unlock();
    workers_.EndExpired();
    tuning_->EndExpired();
    TakeIssues();
    if (looks % kLooksATell == 1) certificates_.Tell(wall_clock_.UnixNs() / 1'000'000'000);
    if (looks % kLooksAnHour == 0) {
      loop_->Post({.prepare =
                       [this](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
                         return store.ForgetRequests(wall_clock_.UnixNs() / 1'000'000 -
                                                     kKeepRequestsMs);
                       },
                   .done = [](Farm&, const absl::Status&, int64_t) {}});
    }
    health_->Look();
    TellHealth();
    lock.lock();
  }
}

void RunningHoned::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  changed_.notify_all();
  if (housekeeper_.joinable()) housekeeper_.join();
  if (server_) server_->GetHealthCheckService()->Shutdown();
  if (health_) health_->Stop();
  // Sessions first: their last commits need the loop. Where nothing can be written they are not
  // waited for.
  if (loop_) loop_->StopWhenStuck();
  if (book_) book_->StopAll();
  if (tuning_) tuning_->Stop();
  if (judging_) judging_->Stop();
  workers_.CloseAll();
  if (server_) {
    server_->Shutdown(gpr_timespec{kShutdownSeconds, 0, GPR_TIMESPAN});
    server_->Wait();
  }
  if (loop_) loop_->Stop();
}

}  // namespace

absl::Status CheckOptions(const HonedOptions& options) {
  if (options.transport == Transport::kPlaintext && !IsLoopbackAddress(options.listen)) {
    return absl::InvalidArgumentError(fmt::format(
        "plaintext is for loopback alone, '{}' is not: drop --insecure-loopback and give --tls "
        "FOLDER (honed init-ca, honed issue server NAME)",
        options.listen));
  }
  for (const web::HttpOptions& http :
       {web::HttpOptions{.listen = options.metrics_listen},
        web::HttpOptions{.listen = options.page_listen, .loopback_only = true}}) {
    if (!http.listen.empty()) HONE_RETURN_IF_ERROR(web::CheckAddress(http));
  }
  if (options.log_path.empty()) {
    return absl::InvalidArgumentError("--db '': name the log, a file in a folder of honed's own");
  }
  const std::filesystem::path log(options.log_path);
  std::error_code error;
  if (std::filesystem::is_directory(log, error)) {
    return absl::InvalidArgumentError(
        fmt::format("--db {}: that is a folder; name the log, a file in it", options.log_path));
  }
  const std::filesystem::path folder = log.has_parent_path() ? log.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(fmt::format(
        "--db {}: there is no folder '{}' (as a service: StateDirectory of the unit makes it)",
        options.log_path, folder.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Honed>> Honed::Start(const HonedOptions& options,
                                                    const MonotonicClock& clock,
                                                    const WallClock& wall_clock) {
  HONE_RETURN_IF_ERROR(CheckOptions(options));
  auto honed = std::make_unique<RunningHoned>(options, clock, wall_clock);
  HONE_RETURN_IF_ERROR(honed->Begin());
  return honed;
}

}  // namespace hone::server

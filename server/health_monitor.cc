#include "server/health_monitor.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/log.h"
#include "base/status.h"
#include "base/versions.h"
#include "proto/convert.h"
#include "server/session_log.h"
#include "server/web/http_server.h"
#include "server/web/page_routes.h"

namespace hone::server {
namespace {

/// The loop looks a few times a second; when it has not for this long it hangs.
constexpr int64_t kStuckNs = 15'000'000'000;

/// The page shows all sessions that have not ended, and this many that have.
constexpr int kEndedSessions = 30;
/// Their rows are read only while somebody looks, and not more often than the page asks.
constexpr int64_t kReadEveryNs = 1'900'000'000;

using SessionRows = std::vector<std::shared_ptr<const web::SessionRow>>;

/// What the loop told last; the loop may outlive who asked.
struct Told {
  std::mutex mutex;
  FarmView view;                   // guarded by mutex
  std::atomic<bool> asked{false};  ///< a look is under way
};

int64_t BytesOf(const std::string& path) {
  // By name alone: opening and closing the log's files would drop the process's locks on them.
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : static_cast<int64_t>(size);
}

std::array<int64_t, kNumRefusals> Refusals(const WorkerStreams& workers) {
  std::array<int64_t, kNumRefusals> counts{};
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = workers.refused(static_cast<Refusal>(i));
  return counts;
}

class RunningHealthMonitor final : public HealthMonitor, private web::PageSource {
 public:
  explicit RunningHealthMonitor(Context context)
      : context_(std::move(context)),
        started_ns_(context_.clock.NowNs()),
        started_unix_(static_cast<double>(context_.wall_clock.UnixNs()) * 1e-9),
        routes_(*this) {}
  ~RunningHealthMonitor() override { RunningHealthMonitor::Stop(); }

  absl::Status Listen();
  void Look() override;
  std::string Trouble() const override;
  int metrics_port() const override { return metrics_ ? metrics_->port() : 0; }
  int page_port() const override { return page_ ? page_->port() : 0; }
  void Stop() override {
    metrics_.reset();
    page_.reset();
  }

 private:
  FarmView LastView() const {
    const std::lock_guard lock(told_->mutex);
    return told_->view;
  }
  ProcessFacts FactsNow() const;
  ProcessFacts Facts() override { return FactsNow(); }
  FarmView View() override { return LastView(); }
  std::string Trouble() override { return std::as_const(*this).Trouble(); }
  int64_t UnixMs() override { return context_.wall_clock.UnixNs() / 1'000'000; }
  SessionRows Sessions() override;
  absl::Status ReadSessions(db::LogFile& log);
  absl::Status ScanEvents(const Hash128& session, int64_t after,
                          const std::function<bool(const db::Event&)>& visit) override;
  absl::Status ScanFailures(const Hash128& session,
                            const std::function<bool(const db::Attempt&)>& visit) override;
  absl::StatusOr<std::optional<db::RankedRecord>> FindBest(const db::RecordKey& key) override;
  web::HttpResponse ServeMetrics(const web::HttpRequest& request) const;

  const Context context_;
  const int64_t started_ns_;
  const double started_unix_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();
  std::unique_ptr<SharedReader> reader_;
  SessionRows sessions_;             ///< newest first; the page's thread's alone, as below
  int64_t read_ns_ = INT64_MIN / 2;  ///< when they were last read
  web::PageRoutes routes_;
  std::unique_ptr<web::HttpServer> metrics_, page_;
};

void RunningHealthMonitor::Look() {
  // One at a time: a loop that cannot write must not find thousands when it can again.
  if (told_->asked.exchange(true)) return;
  context_.loop.Post(
      {.prepare =
           [told = told_](Farm& farm, db::FarmStore&, db::FarmUnit&, int64_t now_ns) {
             told->asked.store(false);
             FarmView view = farm.View(now_ns);
             const std::lock_guard lock(told->mutex);
             told->view = std::move(view);
             return absl::OkStatus();
           },
       .done = {}});
}

SessionRows RunningHealthMonitor::Sessions() {
  const int64_t now_ns = context_.clock.NowNs();
  if (now_ns - read_ns_ < kReadEveryNs) return sessions_;
  read_ns_ = now_ns;
  const absl::Status read = reader_->With([&](db::LogFile& log) { return ReadSessions(log); });
  if (!read.ok()) {
    LogEvent(LogLevel::kWarning, "page_read_failed", {{"why", StatusMessage(read)}});
  }
  return sessions_;
}

absl::Status RunningHealthMonitor::ReadSessions(db::LogFile& log) {
  HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(log));
  HONE_ASSIGN_OR_RETURN(std::vector<db::FarmSession> rows,
                        store->OpenAndLatestSessions(kEndedSessions));
  SessionRows next;
  for (db::FarmSession& row : rows) {
    const auto known = std::ranges::find_if(
        sessions_, [&](const auto& session) { return session->row.id == row.id; });
    if (known != sessions_.end() && (*known)->row == row) {
      next.push_back(*known);
      continue;
    }
    // A request is read once: it never changes, only its row's state does.
    std::optional<proto::SessionSpec> spec;
    if (known != sessions_.end()) {
      spec = (*known)->spec;
    } else {
      HONE_ASSIGN_OR_RETURN(const auto whole, store->FindFarmSession(row.id));
      if (whole) {
        if (auto decoded = proto::DecodeSpec(whole->spec); decoded.ok()) spec = *std::move(decoded);
      }
    }
    if (spec) next.push_back(std::make_shared<web::SessionRow>(std::move(row), *std::move(spec)));
  }
  sessions_ = std::move(next);
  return absl::OkStatus();
}

absl::Status RunningHealthMonitor::ScanEvents(const Hash128& session, int64_t after,
                                              const std::function<bool(const db::Event&)>& visit) {
  const absl::Status scanned = reader_->With([&](db::LogFile& log) {
    return log.ScanEvents({.session = session, .after_sequence = after},
                          [&](const db::Event& event) {
                            return visit(event) ? absl::OkStatus() : absl::CancelledError("enough");
                          });
  });
  return absl::IsCancelled(scanned) ? absl::OkStatus() : scanned;
}

absl::Status RunningHealthMonitor::ScanFailures(
    const Hash128& session, const std::function<bool(const db::Attempt&)>& visit) {
  const absl::Status scanned = reader_->With([&](db::LogFile& log) {
    return log.ScanAttempts({.session = session}, [&](const db::Attempt& attempt) {
      const bool more = attempt.outcome == db::Outcome::kOk || visit(attempt);
      return more ? absl::OkStatus() : absl::CancelledError("enough");
    });
  });
  return absl::IsCancelled(scanned) ? absl::OkStatus() : scanned;
}

absl::StatusOr<std::optional<db::RankedRecord>> RunningHealthMonitor::FindBest(
    const db::RecordKey& key) {
  return reader_->With([&](db::LogFile& log) -> absl::StatusOr<std::optional<db::RankedRecord>> {
    HONE_ASSIGN_OR_RETURN(
        const std::vector<db::RankedRecord> found,
        log.TopRecords({.key = key, .builder_version = context_.builder_version}, 1));
    if (found.empty()) return std::optional<db::RankedRecord>();
    return std::optional<db::RankedRecord>(found.front());
  });
}

std::string RunningHealthMonitor::Trouble() const {
  if (std::string trouble = context_.loop.trouble(); !trouble.empty()) {
    return "nothing can be written: " + trouble;
  }
  const int64_t since_ns = context_.clock.NowNs() - std::max(LastView().taken_ns, started_ns_);
  if (since_ns <= kStuckNs) return "";
  return fmt::format("the farm's loop has not answered for {} s", since_ns / 1'000'000'000);
}

ProcessFacts RunningHealthMonitor::FactsNow() const {
  return {.version = kProgramVersion,
          .builder = context_.builder_version,
          .now_ns = context_.clock.NowNs(),
          .started_ns = started_ns_,
          .started_unix = started_unix_,
          .usage = ReadProcessUsage(),
          .commits = context_.loop.commit_times(),
          .trouble = context_.loop.trouble(),
          .trouble_ns = context_.loop.trouble_ns(),
          .log_bytes = BytesOf(context_.log_path),
          .wal_bytes = BytesOf(context_.log_path + "-wal"),
          .refusals = Refusals(context_.workers),
          .streams = context_.workers.connected(),
          .certificates = context_.certificates.All(context_.wall_clock.UnixNs() / 1'000'000'000)};
}

web::HttpResponse RunningHealthMonitor::ServeMetrics(const web::HttpRequest& request) const {
  if (request.path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = MetricsText(FactsNow(), LastView())};
  }
  if (request.path == "/healthz") {
    const std::string trouble = Trouble();
    return trouble.empty() ? web::HttpResponse{.body = "ok\n"}
                           : web::HttpResponse{.status = 503, .body = trouble + "\n"};
  }
  return {.status = 404, .body = "there is /metrics and /healthz\n"};
}

absl::Status RunningHealthMonitor::Listen() {
  if (!context_.metrics_listen.empty()) {
    HONE_ASSIGN_OR_RETURN(metrics_, web::HttpServer::Start({.listen = context_.metrics_listen},
                                                           [this](const auto& request) {
                                                             return ServeMetrics(request);
                                                           }));
    LogEvent(LogLevel::kInfo, "metrics_served",
             {{"listen", context_.metrics_listen}, {"port", metrics_->port()}});
  }
  if (context_.page_listen.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(reader_, SharedReader::Open(context_.log_path));
  HONE_ASSIGN_OR_RETURN(page_, web::HttpServer::Start(
                                   {.listen = context_.page_listen, .loopback_only = true},
                                   [this](const auto& request) { return routes_.Serve(request); }));
  LogEvent(LogLevel::kInfo, "page_served",
           {{"listen", context_.page_listen}, {"port", page_->port()}});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HealthMonitor>> HealthMonitor::Start(const Context& context) {
  auto monitor = std::make_unique<RunningHealthMonitor>(context);
  HONE_RETURN_IF_ERROR(monitor->Listen());
  return monitor;
}

}  // namespace hone::server

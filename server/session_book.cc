#include "server/session_book.h"

#include <set>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/status.h"
#include "proto/convert.h"
#include "search/search_event.h"
#include "server/request_once.h"

namespace hone::server {
namespace {

/// What a StartSession is answered, as it is kept for a retry: the session, and whether it was
/// there before.
std::string BytesOf(const SessionBook::Started& started) {
  return proto::IdBytes(started.id) + (started.joined ? '\1' : '\0');
}

absl::StatusOr<SessionBook::Started> StartedOf(std::string bytes) {
  // Without the flag: an earlier version's.
  const bool flagged = bytes.size() > sizeof(Hash128);
  SessionBook::Started started{.joined = !flagged || bytes.back() != 0};
  if (flagged) bytes.pop_back();
  HONE_ASSIGN_OR_RETURN(started.id, proto::IdFromBytes(bytes, "stored answer"));
  return started;
}

std::string RunningKey(const std::string& owner, const std::string& digest) {
  return owner + "\n" + digest;
}

absl::Status NoSession(const Hash128& id) {
  return absl::NotFoundError(fmt::format("there is no session {}", id.ToHex()));
}

// Not asked of sessions that were accepted already: what they hold counts twice, and does no harm.
absl::Status CheckDistinct(const std::vector<search::TuningTask>& tasks) {
  std::map<Hash128, size_t> known;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto [first, fresh] = known.try_emplace(tasks[i].hash, i);
    if (fresh) continue;
    return absl::InvalidArgumentError(
        fmt::format("tasks[{}].workload: the same as tasks[{}]'s; name it once, with its count", i,
                    first->second));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<proto::SessionEvent> EventOf(const db::Event& event) {
  using Kind = proto::SessionEvent::Kind;
  proto::SessionEvent e;
  e.sequence = event.sequence;
  if (const auto proposed = search::EventAs<search::ProposedEvent>(event)) {
    e.kind = Kind::kProposed;
    e.attempt = proposed->attempt;
    e.task = proposed->task;
    e.proposer = search::ProposerName(proposed->proposer);
  } else if (const auto result = search::EventAs<search::ResultEvent>(event)) {
    e.kind = Kind::kMeasured;
    e.attempt = result->attempt;
    e.outcome = result->outcome;
    e.median_ns = result->median_ns;
  } else if (const auto verdict = search::EventAs<search::VerdictEvent>(event)) {
    e.kind = Kind::kDecided;
    e.task = verdict->task;
    e.replaced = verdict->end == search::TaskEnd::kWon;
    e.default_ns = verdict->default_ns;
    e.best_ns = verdict->best_ns;
  } else {
    return std::nullopt;
  }
  return e;
}

SessionBook::~SessionBook() { StopAll(); }

void SessionBook::StopAll() {
  std::map<Hash128, std::unique_ptr<SessionDriver>> drivers;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    drivers.swap(drivers_);
  }
  for (auto& [id, driver] : drivers) driver->Stop();
}

absl::Status SessionBook::Resume(const std::vector<db::FarmSession>& sessions) {
  std::set<Hash128> going_on;
  std::vector<std::pair<const db::FarmSession*, proto::SessionSpec>> readable;
  for (const db::FarmSession& row : sessions) {
    absl::StatusOr<proto::SessionSpec> spec = proto::DecodeSpec(row.spec);
    if (!spec.ok()) {
      HONE_RETURN_IF_ERROR(GiveUp(row, spec.status()));
      continue;
    }
    if (row.state == SessionState::kRunning) going_on.insert(row.id);
    readable.emplace_back(&row, *std::move(spec));
  }
  tuners_.GoOn(std::move(going_on));
  for (auto& [row, spec] : readable) {
    running_[RunningKey(row->owner, row->digest)] = row->id;
    const std::lock_guard lock(mutex_);
    drivers_[row->id] = std::make_unique<SessionDriver>(context_, *row, std::move(spec));
    LogEvent(LogLevel::kInfo, "session_resumed",
             {{"session", row->id.ToHex()}, {"owner", row->owner}, {"project", row->project}});
  }
  return absl::OkStatus();
}

absl::Status SessionBook::GiveUp(const db::FarmSession& row, const absl::Status& why) {
  db::SetFarmSession change{.id = row.id,
                            .state = row.state,
                            .reason = "its request cannot be read: " + StatusMessage(why)};
  Move(change.state,
       row.state == SessionState::kCancelling ? SessionTrigger::kEmptied : SessionTrigger::kFail);
  LogEvent(LogLevel::kError, "session_state",
           {{"session", row.id.ToHex()},
            {"state", std::string(NameOf(change.state))},
            {"why", change.reason}});
  return context_.loop.Run(
      {.prepare =
           [&](Farm& farm, db::FarmStore&, db::FarmUnit& unit, int64_t now_ns) {
             unit.changes.push_back(change);
             farm.EndSession(row.id, change.reason, now_ns);
             return absl::OkStatus();
           },
       .done = [](Farm&, const absl::Status&, int64_t) {}});
}

void SessionBook::Forget() {
  std::vector<std::unique_ptr<SessionDriver>> over;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = drivers_.begin(); it != drivers_.end();) {
      if (it->second->ended()) {
        ForgetRunning(*it->second);
        over.push_back(std::move(it->second));
        it = drivers_.erase(it);
      } else {
        ++it;
      }
    }
  }
}

void SessionBook::ForgetRunning(const SessionDriver& driver) {
  context_.loop.Post(
      [this, id = driver.id(), key = RunningKey(driver.owner(), driver.digest())](Farm&, int64_t) {
        const auto running = running_.find(key);
        // The same request may have begun anew.
        if (running != running_.end() && running->second == id) running_.erase(running);
      });
}

absl::StatusOr<SessionBook::Started> SessionBook::Start(const Request& request,
                                                        const proto::SessionSpec& spec) {
  HONE_RETURN_IF_ERROR(context_.loop.CheckWritable());
  HONE_ASSIGN_OR_RETURN(const std::vector<search::TuningTask> tasks, TasksOf(spec));
  HONE_RETURN_IF_ERROR(CheckDistinct(tasks));
  Forget();
  const std::string digest = proto::SpecDigest(spec);
  const int64_t now_ms = context_.wall_clock.UnixNs() / 1'000'000;
  const UnaryRequest unary{
      .caller = request.caller, .id = request.id, .body = "start\n" + proto::EncodeSpec(spec)};
  const std::string key = RunningKey(request.caller, digest);
  Started started;
  bool again = false;
  db::FarmSession row;
  const auto prepare = [&](Farm&, db::FarmStore& store, db::FarmUnit& unit,
                           int64_t) -> absl::Status {
    started = {};
    row = {};
    HONE_ASSIGN_OR_RETURN(const std::string first, FirstAnswer(store, unary));
    again = !first.empty();
    if (again) {
      HONE_ASSIGN_OR_RETURN(started, StartedOf(first));
      return absl::OkStatus();
    }
    // It may still be refused: RunAnswered asks again when that is known.
    if (accepting_.contains(key)) return absl::InvalidArgumentError("an equal request is begun");
    const auto running = running_.find(key);
    if (running != running_.end()) {
      HONE_ASSIGN_OR_RETURN(const auto before, store.FindFarmSession(running->second));
      started.joined = before && before->state < SessionState::kCancelling;
    }
    started.id = started.joined ? running->second : RandomId();
    if (!started.joined) {
      row = {.id = started.id,
             .owner = request.caller,
             .project = spec.project.empty() ? request.caller : spec.project,
             .digest = digest,
             .spec = proto::EncodeSpec(spec),
             .device_class = spec.device_class,
             .created_ms = now_ms};
      unit.changes.push_back(db::AddFarmSession{row});
      accepting_.insert(key);
    }
    unit.changes.push_back(AnswerOf(unary, BytesOf(started), now_ms));
    return absl::OkStatus();
  };
  // Others join it once it is durable, and not before; and whoever joins it can cancel it.
  const auto done = [&](Farm&, const absl::Status& status, int64_t) {
    if (row.id == Hash128{}) return;
    accepting_.erase(key);
    if (!status.ok()) return;
    running_[key] = row.id;
    const std::lock_guard lock(mutex_);
    if (!stopped_) drivers_[row.id] = std::make_unique<SessionDriver>(context_, row, spec);
  };
  HONE_RETURN_IF_ERROR(RunAnswered(context_.loop, unary, {.prepare = prepare, .done = done}));
  KillPoint("honed.accepted");
  LogEvent(LogLevel::kInfo,
           again            ? "session_asked_again"
           : started.joined ? "session_joined"
                            : "session_accepted",
           {{"session", started.id.ToHex()},
            {"owner", request.caller},
            {"model", spec.model},
            {"tasks", spec.tasks.size()},
            {"target", spec.target}});
  return started;
}

absl::Status SessionBook::Cancel(const Request& request, const Hash128& session, bool any_owner,
                                 const std::string& actor) {
  HONE_RETURN_IF_ERROR(Find(session, any_owner ? "" : request.caller).status());
  const UnaryRequest unary{
      .caller = request.caller, .id = request.id, .body = "cancel\n" + session.ToHex()};
  const int64_t now_ms = context_.wall_clock.UnixNs() / 1'000'000;
  std::string joined_by;  // who asks for the same joins it by this
  const auto prepare = [&](Farm&, db::FarmStore& store, db::FarmUnit& unit,
                           int64_t) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const std::string first, FirstAnswer(store, unary));
    if (!first.empty()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const auto row, store.FindFarmSession(session));
    // Nobody joins it from now on, also not by a request of the same commit.
    std::erase_if(running_, [&](const auto& item) {
      if (item.second == session) joined_by = item.first;
      return item.second == session;
    });
    if (row && row->state <= SessionState::kRunning) {
      SetCancelPrepared(session, true);
      unit.changes.push_back(db::SetFarmSession{.id = session,
                                                .state = SessionState::kCancelling,
                                                .reason = "cancelled by " + request.caller});
    }
    // One that is over stays as it is, whoever says that it is to end.
    if (row && row->state < SessionState::kFinished) {
      unit.changes.push_back(db::FarmAudit{
          .at_ms = now_ms, .actor = actor, .action = "cancel", .subject = session.ToHex()});
    }
    unit.changes.push_back(AnswerOf(unary, "cancelled", now_ms));
    return absl::OkStatus();
  };
  const auto done = [&](Farm&, const absl::Status& status, int64_t) {
    SetCancelPrepared(session, false);
    if (!status.ok() && !joined_by.empty()) running_.try_emplace(joined_by, session);
  };
  const FarmLoop::Work work{.prepare = prepare, .done = done};
  absl::Status cancelled = RunAnswered(context_.loop, unary, work);
  // Its end was in the same commit: then there is nothing to cancel.
  if (absl::IsFailedPrecondition(cancelled)) cancelled = RunAnswered(context_.loop, unary, work);
  HONE_RETURN_IF_ERROR(cancelled);
  const std::lock_guard lock(mutex_);
  if (const auto driver = drivers_.find(session); driver != drivers_.end()) {
    driver->second->Cancel();
  }
  return absl::OkStatus();
}

void SessionBook::SetCancelPrepared(const Hash128& session, bool prepared) {
  const std::lock_guard lock(mutex_);
  const auto driver = drivers_.find(session);
  if (driver != drivers_.end()) driver->second->SetCancelPrepared(prepared);
}

absl::StatusOr<int64_t> SessionBook::AnswersOf(const db::FarmSession& row) {
  const bool over = row.state >= SessionState::kFinished;
  {
    const std::lock_guard lock(mutex_);
    if (const auto ended = ended_answers_.Find(row.id)) return *ended;
    if (const auto driver = drivers_.find(row.id); !over && driver != drivers_.end()) {
      if (const auto answers = driver->second->answers()) return *answers;
    }
  }
  HONE_ASSIGN_OR_RETURN(const int64_t answers,
                        context_.reader.With([&](db::LogFile& log) -> absl::StatusOr<int64_t> {
                          HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(log));
                          return store->CountAnswers(row.id, kFirstComparison);
                        }));
  if (over) {
    const std::lock_guard lock(mutex_);
    ended_answers_.Add(row.id, answers);
  }
  return answers;
}

absl::StatusOr<proto::SessionInfo> SessionBook::Find(const Hash128& session,
                                                     const std::string& owner) {
  HONE_ASSIGN_OR_RETURN(const auto row, StoredRow(session));
  if (!row || (!owner.empty() && row->owner != owner)) return NoSession(session);
  // The request may be of another version of Hone.
  proto::SessionInfo info =
      InfoOf(*row, proto::DecodeSpec(row->spec).value_or(proto::SessionSpec{}));
  HONE_ASSIGN_OR_RETURN(info.attempts, AnswersOf(*row));
  info.reason = ReasonOf(*row);
  return info;
}

absl::StatusOr<SessionBook::Asked> SessionBook::FindAsked(const Hash128& session,
                                                          const std::string& owner) {
  HONE_ASSIGN_OR_RETURN(auto row, StoredRow(session));
  if (!row || (!owner.empty() && row->owner != owner)) return NoSession(session);
  HONE_ASSIGN_OR_RETURN(proto::SessionSpec spec, proto::DecodeSpec(row->spec));
  row->spec.clear();
  return Asked{*std::move(row), std::move(spec)};
}

std::string SessionBook::ReasonOf(const db::FarmSession& row) {
  if (row.state >= SessionState::kFinished) return row.reason;
  if (const std::string trouble = context_.loop.trouble(); !trouble.empty()) return trouble;
  const std::lock_guard lock(mutex_);
  const auto driver = drivers_.find(row.id);
  if (driver == drivers_.end()) return row.reason;
  const proto::SessionInfo info = driver->second->Info();
  return info.state == row.state ? info.reason : row.reason;
}

absl::StatusOr<bool> SessionBook::Over(const Hash128& session) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto driver = drivers_.find(session); driver != drivers_.end()) {
      return driver->second->ended();
    }
  }
  HONE_ASSIGN_OR_RETURN(const proto::SessionInfo info, Find(session, ""));
  return info.state >= SessionState::kFinished;
}

absl::StatusOr<std::vector<proto::SessionInfo>> SessionBook::List(
    int limit, const std::string& owner, const std::optional<Hash128>& after) {
  HONE_ASSIGN_OR_RETURN(
      const std::vector<db::FarmSession> rows,
      context_.reader.With([&](db::LogFile& log) -> absl::StatusOr<std::vector<db::FarmSession>> {
        HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(log));
        return store->LatestSessions(limit, owner, after);
      }));
  std::vector<proto::SessionInfo> infos;
  for (const db::FarmSession& row : rows) {
    HONE_ASSIGN_OR_RETURN(const int64_t answers, AnswersOf(row));
    HONE_ASSIGN_OR_RETURN(proto::SessionInfo info, ListedInfo(row));
    info.state = row.state;
    info.reason = ReasonOf(row);
    info.attempts = answers;
    infos.push_back(std::move(info));
  }
  return infos;
}

absl::StatusOr<std::optional<db::Event>> SessionBook::FindEvent(const Hash128& session,
                                                                const Hash128& id) {
  std::optional<db::Event> found;
  HONE_RETURN_IF_ERROR(context_.reader.With([&](db::LogFile& log) {
    return log.ScanEvents({.session = session}, [&](const db::Event& event) {
      if (event.id == id) found = event;
      return absl::OkStatus();
    });
  }));
  return found;
}

absl::StatusOr<std::optional<db::FarmSession>> SessionBook::StoredRow(const Hash128& session) {
  return context_.reader.With(
      [&](db::LogFile& log) -> absl::StatusOr<std::optional<db::FarmSession>> {
        HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(log));
        return store->FindFarmSession(session);
      });
}

absl::StatusOr<proto::SessionInfo> SessionBook::ListedInfo(const db::FarmSession& row) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto driver = drivers_.find(row.id); driver != drivers_.end()) {
      return driver->second->Info();
    }
    if (const auto asked = asked_.Find(row.id)) {
      proto::SessionInfo info = InfoOf(row, {});
      info.model = asked->model;
      info.target = asked->target;
      info.tasks = asked->tasks;
      return info;
    }
  }
  HONE_ASSIGN_OR_RETURN(const auto stored, StoredRow(row.id));
  if (!stored) return NoSession(row.id);
  const proto::SessionInfo info =
      InfoOf(row, proto::DecodeSpec(stored->spec).value_or(proto::SessionSpec{}));
  const std::lock_guard lock(mutex_);
  asked_.Add(row.id, {.model = info.model, .target = info.target, .tasks = info.tasks});
  return info;
}

absl::StatusOr<std::vector<proto::SessionEvent>> SessionBook::EventsAfter(const Hash128& session,
                                                                          int64_t sequence,
                                                                          int limit) {
  std::vector<proto::SessionEvent> events;
  const absl::Status scanned = context_.reader.With([&](db::LogFile& log) {
    return log.ScanEvents({.session = session, .after_sequence = sequence},
                          [&](const db::Event& event) -> absl::Status {
                            if (auto e = EventOf(event)) events.push_back(*std::move(e));
                            return static_cast<int>(events.size()) < limit
                                       ? absl::OkStatus()
                                       : absl::CancelledError("enough");
                          });
  });
  if (!scanned.ok() && scanned.code() != absl::StatusCode::kCancelled) return scanned;
  return events;
}

void SessionBook::Deliver(const Delivery& delivery) {
  const std::lock_guard lock(mutex_);
  const auto driver = drivers_.find(delivery.session);
  if (driver != drivers_.end()) driver->second->Deliver(delivery.attempt, delivery.result);
}

}  // namespace hone::server

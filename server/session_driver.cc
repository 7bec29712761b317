#include "server/session_driver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/core/thread_name.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/status.h"
#include "ir/kind_facts.h"
#include "ir/target.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "schedule/least_work.h"

namespace hone::server {
namespace {

constexpr int64_t kLookNs = 100'000'000;
constexpr int64_t kNsPerMs = 1'000'000;

std::string NoDevice(const proto::SessionSpec& spec) {
  const std::string of = spec.device_class.empty() ? "" : " of class '" + spec.device_class + "'";
  return fmt::format("waiting for a device{} that can run it", of);
}

}  // namespace

absl::StatusOr<std::vector<search::TuningTask>> TasksOf(const proto::SessionSpec& spec) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(spec.target, &target, &why)) return absl::InvalidArgumentError(why);
  std::vector<search::TuningTask> tasks;
  for (size_t i = 0; i < spec.tasks.size(); ++i) {
    const proto::TaskSpec& from = spec.tasks[i];
    auto workload = ir::ParseWorkload(from.workload);
    absl::Status good = workload.ok() ? ir::Verify(*workload) : workload.status();
    if (!good.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("tasks[{}].workload: {}", i, StatusMessage(good)));
    }
    if (workload->stages.size() > proto::kMaxStages) {
      return absl::InvalidArgumentError(
          fmt::format("tasks[{}].workload: it has {} Stages, {} are possible", i,
                      workload->stages.size(), proto::kMaxStages));
    }
    tasks.push_back(
        search::TaskOf(std::make_shared<const ir::Workload>(*std::move(workload)), target));
    tasks.back().name = from.name;
    tasks.back().count = from.count;
  }
  return tasks;
}

SessionDriver::SessionDriver(const DriverContext& context, db::FarmSession row,
                             proto::SessionSpec spec)
    : context_(context),
      spec_(std::move(spec)),
      id_(row.id),
      owner_(row.owner),
      digest_(row.digest),
      project_(row.project),
      row_(std::move(row)) {
  row_.spec.clear();
  if (row_.state == SessionState::kWaiting) row_.reason = NoDevice(spec_);
  thread_ = std::thread([this] {
    NameThisThread("session");
    Run();
  });
}

SessionDriver::~SessionDriver() { Stop(); }

void SessionDriver::Stop() {
  interrupted_.store(true);
  {
    const std::lock_guard lock(mutex_);
    if (measurer_) measurer_->Stop();
  }
  if (thread_.joinable()) thread_.join();
}

void SessionDriver::Cancel() {
  cancelled_.store(true);
  interrupted_.store(true);
  const std::lock_guard lock(mutex_);
  if (measurer_) measurer_->Stop();
}

void SessionDriver::Deliver(int64_t attempt, const proto::WorkResult& result) {
  const std::lock_guard lock(mutex_);
  if (measurer_) measurer_->Deliver(attempt, result);
}

proto::SessionInfo InfoOf(const db::FarmSession& row, const proto::SessionSpec& spec) {
  return {.id = row.id,
          .owner = row.owner,
          .project = row.project,
          .state = row.state,
          .reason = row.reason,
          .model = spec.model,
          .target = spec.target,
          .device_class = row.device_class,
          .created_ms = row.created_ms,
          .tasks = static_cast<int>(spec.tasks.size())};
}

proto::SessionInfo SessionDriver::Info() const {
  const std::lock_guard lock(mutex_);
  return InfoOf(row_, spec_);
}

std::optional<int64_t> SessionDriver::answers() const {
  const std::lock_guard lock(mutex_);
  return measurer_ ? std::optional(measurer_->answers()) : std::nullopt;
}

absl::Status SessionDriver::Store(SessionTrigger event, const std::string& reason,
                                  const proto::DeviceFacts* device) {
  db::SetFarmSession next{.id = id_,
                          .state = row_.state,
                          .reason = reason,
                          .device_class = row_.device_class,
                          .fingerprint = row_.fingerprint};
  Move(next.state, event);
  if (device != nullptr) {
    next.device_class = device->device_class;
    next.fingerprint = device->fingerprint;
  }
  const bool over = next.state >= SessionState::kFinished;
  const bool cancels = event == SessionTrigger::kCancel || event == SessionTrigger::kEmptied;
  bool cancelled = false, undecided = false;
  // Looked up first: what the store refused of a unit, the Farm would have done already.
  const auto prepare = [&](Farm& farm, db::FarmStore& store, db::FarmUnit& unit,
                           int64_t now_ns) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const auto row, store.FindFarmSession(next.id));
    cancelled = row && row->state == SessionState::kCancelling;
    undecided = !cancelled && !cancels && cancel_prepared_;
    if (undecided || (cancelled && !cancels)) {
      return absl::FailedPreconditionError("it is being cancelled");
    }
    if (cancelled && !row->reason.empty()) next.reason = row->reason;  // by whom
    unit.changes.push_back(next);
    if (over) farm.EndSession(next.id, "the session has ended", now_ns);
    return absl::OkStatus();
  };
  // Before watchers look.
  const auto done = [&](Farm&, const absl::Status& status, int64_t) {
    if (status.ok() && over) ended_.store(true);
  };
  absl::Status stored;
  do {
    undecided = false;
    stored = context_.loop.Run({.prepare = prepare, .done = done});
  } while (undecided);
  if (!stored.ok() && cancelled && !cancels) {
    // A client cancelled it, durably, just before.
    cancelled_.store(true);
    interrupted_.store(true);
    const std::lock_guard lock(mutex_);
    row_.state = SessionState::kCancelling;
  }
  HONE_RETURN_IF_ERROR(stored);
  LogEvent(next.state == SessionState::kFailed ? LogLevel::kError : LogLevel::kInfo,
           "session_state",
           {{"session", next.id.ToHex()},
            {"state", std::string(NameOf(next.state))},
            {"owner", owner_},
            {"project", project_},
            {"model", spec_.model},
            {"device_class", next.device_class},
            {"why", next.reason}});
  const std::lock_guard lock(mutex_);
  row_.state = next.state;
  row_.reason = std::move(next.reason);
  row_.device_class = std::move(next.device_class);
  row_.fingerprint = std::move(next.fingerprint);
  return absl::OkStatus();
}

absl::Status SessionDriver::ChooseDevice(proto::DeviceFacts* device) {
  if (!row_.device_class.empty() && !row_.fingerprint.empty()) {
    device->device_class = row_.device_class;
    device->fingerprint = row_.fingerprint;
    return Store(SessionTrigger::kBegin, "", nullptr);
  }
  // Its seconds are of tuning; one that never begins waits for as long and no longer.
  const int64_t start_ns = context_.clock.NowNs();
  const auto waited_seconds = [&] {
    return static_cast<double>(context_.clock.NowNs() - start_ns) * 1e-9;
  };
  while (!Interrupted()) {
    std::optional<proto::DeviceFacts> found;
    HONE_RETURN_IF_ERROR(
        context_.loop.Run({.prepare = [&](Farm& farm, db::FarmStore&, db::FarmUnit&, int64_t) {
          found = farm.FindDevice(spec_.target, spec_.device_class);
          return absl::OkStatus();
        }}));
    if (found) {
      *device = *std::move(found);
      return Store(SessionTrigger::kBegin, "", device);
    }
    if (DateHasCome()) return absl::DeadlineExceededError("no device came before its --until");
    if (spec_.seconds > 0 && waited_seconds() >= spec_.seconds) {
      return absl::DeadlineExceededError(fmt::format(
          "no device that can run it came within its {:g} s: {} {}; `hone device list` shows what "
          "there is",
          spec_.seconds, spec_.device_class.empty() ? "target" : "device class",
          spec_.device_class.empty() ? spec_.target : spec_.device_class));
    }
    context_.clock.SleepNs(kLookNs);
  }
  return absl::CancelledError("interrupted");
}

absl::StatusOr<search::SessionOptions> SessionDriver::OptionsFor(
    const proto::DeviceFacts& device) const {
  search::SessionOptions options;
  options.id = id_;
  // The farm's id finds the session again, however many ask for the same.
  options.request =
      fmt::format(R"({{"farm_session":"{}","target":"{}"}})", id_.ToHex(), spec_.target);
  options.versions = context_.versions;
  options.seed = spec_.seed;
  options.trials = spec_.trials;
  options.seconds = spec_.seconds;
  options.until_unix_ns = spec_.until_unix_ms * kNsPerMs;
  std::string why;
  if (!ir::ParseTarget(spec_.target, &options.target, &why)) {
    return absl::InvalidArgumentError(why);
  }
  options.accuracy = spec_.accuracy;
  options.device = {device.device_class, device.fingerprint};
  options.builder_version = context_.builder_version;
  options.interrupted = &interrupted_;
  return options;
}

search::SharedTuners::Request SessionDriver::SharedRequest(
    const search::SessionOptions& options) const {
  return {
      .text = fmt::format(
          R"({{"farm_search":"{}","device_class":"{}","accuracy":{},"policy":{},"builder":"{}"}})",
          options.target.text, options.device.device_class, static_cast<int>(options.accuracy),
          ir::VersionsOf(options.target.text).measurement_policy, options.builder_version),
      .versions = options.versions,
      .seed = options.seed,
      .target = options.target,
      .accuracy = options.accuracy,
      .now_ms = context_.wall_clock.UnixNs() / kNsPerMs};
}

absl::Status SessionDriver::StartInTurn(search::TuningSession& session,
                                        std::vector<search::TuningTask> tasks,
                                        SpaceTurns::CountFault& count_fault) {
  // Leases of before do not wait for that.
  SetDeadline(SecondsUntilDate());
  const auto ended = [this] {
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (!DateHasCome()) return absl::OkStatus();
    return absl::DeadlineExceededError(
        "its --until passed while sessions that had ended honed were tried again, one by one; what "
        "was measured before stands in the log");
  };
  return context_.turns->Run(context_.loop, id_, ended, [&](const auto& own) {
    count_fault = own;
    absl::Status started;
    // Building spaces and replaying take seconds; after a restart a thousand workers dial in
    // meanwhile.
    std::thread([&] {
      NameThisThread("tuner");
      LowerThisThread();
      started = session.Start(std::move(tasks));
    }).join();
    return started;
  });
}

absl::Status SessionDriver::Tune(const proto::DeviceFacts& device) {
  HONE_ASSIGN_OR_RETURN(std::vector<search::TuningTask> tasks, TasksOf(spec_));
  HONE_ASSIGN_OR_RETURN(search::SessionOptions options, OptionsFor(device));
  RemoteMeasurer::Before before;
  HONE_RETURN_IF_ERROR(context_.loop.Run(
      {.prepare = [&](Farm& farm, db::FarmStore& store, db::FarmUnit&, int64_t) -> absl::Status {
        HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                              store.AnswersFrom(id_, kFirstComparison));
        before.comparisons.insert(numbers.begin(), numbers.end());
        HONE_ASSIGN_OR_RETURN(before.answers, store.CountAnswers(id_, kFirstComparison));
        options.run_seconds = static_cast<double>(farm.run_limit_ns()) * 1e-9;
        farm.BeginSession({.id = id_,
                           .project = project_,
                           .priority = spec_.priority,
                           .target = spec_.target,
                           .device_class = device.device_class});
        return absl::OkStatus();
      }}));
  auto measurer =
      std::make_unique<RemoteMeasurer>(context_.loop, id_, device.device_class, std::move(before));
  RemoteMeasurer* const farm = measurer.get();
  std::map<std::string, JobHints> hints;
  for (const search::TuningTask& t : tasks) {
    // By what no schedule avoids, whatever the client says.
    const double flop = schedule::LeastFlop(*t.workload);
    hints[ir::ToText(*t.workload)] = {.fastest_ns = flop / ir::MostFlopPerNs(options.target),
                                      .flop = flop,
                                      .threads = options.target.threads};
  }
  farm->SetHints(std::move(hints));
  SessionLog log(context_.reader, context_.loop);
  options.commit_results = [farm](const db::Batch& batch) { return farm->Commit(batch); };
  options.begin_results = [farm](db::Batch batch, search::TunerQueue::Done done) {
    farm->BeginCommit(std::move(batch), std::move(done));
  };
  options.begin_append = [&log](db::Batch batch, search::TunerQueue::Done done) {
    log.BeginAppend(std::move(batch), std::move(done));
  };
  options.tell_seconds_left = [this](double seconds_left) { SetDeadline(seconds_left); };
  SpaceTurns::CountFault count_fault;
  options.join =
      [this, &log, &count_fault,
       shared = SharedRequest(options)]() -> absl::StatusOr<std::shared_ptr<search::SharedTuner>> {
    HONE_ASSIGN_OR_RETURN(auto tuner, context_.tuners->Get(log, shared));
    // A replay is all members' doing; what follows is this one's.
    HONE_RETURN_IF_ERROR(count_fault());
    return tuner;
  };
  {
    const std::lock_guard lock(mutex_);
    measurer_ = std::move(measurer);
    if (Interrupted()) measurer_->Stop();
  }
  search::TuningSession session(log, *farm, context_.clock, context_.wall_clock,
                                std::move(options));
  HONE_RETURN_IF_ERROR(StartInTurn(session, std::move(tasks), count_fault));
  SetDeadline(session.SecondsLeft());
  HONE_RETURN_IF_ERROR(session.Run(nullptr));
  if (Interrupted()) return absl::CancelledError("interrupted");
  KillPoint("honed.finished");
  End(SessionTrigger::kEnd, std::string(search::StopReasonName(session.reason())));
  return absl::OkStatus();
}

bool SessionDriver::DateHasCome() const {
  return spec_.until_unix_ms > 0 && context_.wall_clock.UnixNs() >= spec_.until_unix_ms * kNsPerMs;
}

double SessionDriver::SecondsUntilDate() const {
  if (spec_.until_unix_ms == 0) return std::numeric_limits<double>::infinity();
  const int64_t left_ns = spec_.until_unix_ms * kNsPerMs - context_.wall_clock.UnixNs();
  return static_cast<double>(left_ns) * 1e-9;
}

void SessionDriver::SetDeadline(double seconds_left) {
  if (std::isinf(seconds_left)) return;
  constexpr double kMostSeconds = 1e9;
  const auto left_ns = static_cast<int64_t>(1e9 * std::clamp(seconds_left, 0.0, kMostSeconds));
  // From now: the loop may be behind.
  const int64_t deadline_ns = context_.loop.clock().NowNs() + left_ns;
  context_.loop.Post(
      [id = id_, deadline_ns](Farm& farm, int64_t) { farm.SetDeadline(id, deadline_ns); });
}

void SessionDriver::End(SessionTrigger event, const std::string& reason) {
  const absl::Status stored = Store(event, reason, nullptr);
  if (!stored.ok()) {
    LogWarning("session {}: {}", id_.ToHex(), StatusMessage(stored));
  }
}

void SessionDriver::EndCancelled() {
  if (row_.state != SessionState::kCancelling &&
      !Store(SessionTrigger::kCancel, "cancelled", nullptr).ok()) {
    return;
  }
  End(SessionTrigger::kEmptied, "cancelled");
}

absl::StatusOr<std::optional<std::string>> SessionDriver::FinishedAs() {
  SessionLog log(context_.reader, context_.loop);
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Event> events, log.EventsOf(id_));
  for (const db::Event& event : events) {
    if (const auto end = search::EventAs<search::FinishedEvent>(event))
      return std::optional(end->why);
  }
  return std::optional<std::string>();
}

void SessionDriver::LeaveSearch() {
  SessionLog log(context_.reader, context_.loop);
  const absl::Status left = context_.tuners->Leave(log, id_);
  if (!left.ok()) LogWarning("session {}: {}", id_.ToHex(), StatusMessage(left));
}

void SessionDriver::Run() {
  if (row_.state == SessionState::kRunning) {
    const auto finished = FinishedAs();
    // Where its log could not be read, or an older Hone did not write that it left.
    if (!finished.ok() || *finished) LeaveSearch();
    if (!finished.ok()) End(SessionTrigger::kFail, StatusMessage(finished.status()));
    if (finished.ok() && *finished) End(SessionTrigger::kEnd, **finished);
    if (!finished.ok() || *finished) {
      if (cancelled_.load()) EndCancelled();
      return;
    }
  }
  proto::DeviceFacts device;
  absl::Status status = row_.state == SessionState::kCancelling ? absl::CancelledError("cancelled")
                                                                : ChooseDevice(&device);
  if (status.ok()) status = Tune(device);
  // What was posted for the measurer is done before it goes.
  (void)context_.loop.Run({});
  if (cancelled_.load() || (!status.ok() && !Interrupted())) LeaveSearch();
  context_.tuners->ForgetEnded();
  if (!status.ok() && !Interrupted() && row_.state != SessionState::kCancelling) {
    End(SessionTrigger::kFail, StatusMessage(status));
  }
  if (ended_.load()) return;
  if (cancelled_.load() || row_.state == SessionState::kCancelling) EndCancelled();
}

}  // namespace hone::server

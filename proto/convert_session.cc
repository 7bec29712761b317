#include <utility>

#include "fmt/format.h"

#include "base/sha256.h"
#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "proto/convert.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::proto {
namespace {

absl::StatusOr<TaskSpec> FromTask(const v1::TaskSpec& wire) {
  TaskSpec t;
  HONE_ASSIGN_OR_RETURN(t.workload,
                        Bounded(wire.workload(), 1, kMaxWorkloadBytes, "tasks.workload"));
  HONE_ASSIGN_OR_RETURN(t.name, Text(wire.name(), "tasks.name"));
  HONE_RETURN_IF_ERROR(InRange(wire.count(), 1, 1 << 20, "tasks.count"));
  HONE_RETURN_IF_ERROR(RealInRange(wire.flop(), 0, 1e18, "tasks.flop"));
  HONE_RETURN_IF_ERROR(RealInRange(wire.bound_ns(), 0, 1e18, "tasks.bound_ns"));
  t.count = wire.count();
  t.flop = wire.flop();
  t.bound_ns = wire.bound_ns();
  return t;
}

absl::StatusOr<db::RecordKey> FromKey(const v1::RecordKey& wire) {
  db::RecordKey key;
  HONE_ASSIGN_OR_RETURN(key.workload, IdFromBytes(wire.workload(), "key.workload"));
  HONE_ASSIGN_OR_RETURN(key.target, TargetText(wire.target(), "key.target"));
  HONE_ASSIGN_OR_RETURN(key.device_class, Name(wire.device_class(), "key.device_class"));
  HONE_RETURN_IF_ERROR(InRange(wire.accuracy(), 0, ir::kNumAccuracyClasses - 1, "key.accuracy"));
  HONE_RETURN_IF_ERROR(InRange(wire.measurement_policy(), 1, 1 << 20, "key.measurement_policy"));
  key.accuracy = static_cast<ir::AccuracyClass>(wire.accuracy());
  key.measurement_policy = wire.measurement_policy();
  return key;
}

void FromKey(const db::RecordKey& key, v1::RecordKey* wire) {
  wire->set_workload(IdBytes(key.workload));
  wire->set_target(key.target);
  wire->set_device_class(key.device_class);
  wire->set_accuracy(static_cast<int>(key.accuracy));
  wire->set_measurement_policy(key.measurement_policy);
}

constexpr double kMaxLatencyNs = 1e18;

}  // namespace

absl::StatusOr<SessionSpec> FromWire(const v1::SessionSpec& wire) {
  SessionSpec s;
  HONE_ASSIGN_OR_RETURN(s.model, Name(wire.model(), "model"));
  s.model_hash = wire.model_hash();
  if ((!s.model_hash.empty() && s.model_hash.size() != 64) ||
      s.model_hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return absl::InvalidArgumentError("model_hash: it is not a SHA-256 in 64 hexadecimal digits");
  }
  HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(wire.tasks_size()), kMaxWorkloads, "tasks"));
  if (wire.tasks_size() == 0) return absl::InvalidArgumentError("tasks: there are none");
  for (const v1::TaskSpec& task : wire.tasks()) {
    HONE_ASSIGN_OR_RETURN(s.tasks.emplace_back(), FromTask(task));
  }
  HONE_ASSIGN_OR_RETURN(s.target, TargetText(wire.target(), "target"));
  HONE_ASSIGN_OR_RETURN(s.device_class,
                        Printing(wire.device_class(), 0, kMaxNameBytes, "device_class"));
  HONE_RETURN_IF_ERROR(RealInRange(wire.seconds(), 0, kMaxSeconds, "seconds"));
  HONE_RETURN_IF_ERROR(InRange(wire.trials(), 0, int64_t{1} << 32, "trials"));
  HONE_RETURN_IF_ERROR(InRange(wire.until_unix_ms(), 0, kMaxUnixMs, "until_unix_ms"));
  HONE_RETURN_IF_ERROR(InRange(wire.accuracy(), 0, ir::kNumAccuracyClasses - 1, "accuracy"));
  HONE_RETURN_IF_ERROR(InRange(wire.priority(), -kMaxPriority, kMaxPriority, "priority"));
  HONE_ASSIGN_OR_RETURN(s.project, Printing(wire.project(), 0, kMaxNameBytes, "project"));
  s.seconds = wire.seconds();
  s.trials = wire.trials();
  s.until_unix_ms = wire.until_unix_ms();
  if (s.seconds == 0 && s.trials == 0 && s.until_unix_ms == 0) {
    return absl::InvalidArgumentError("seconds, trials, until_unix_ms: one must limit the session");
  }
  s.seed = wire.seed();
  s.accuracy = static_cast<ir::AccuracyClass>(wire.accuracy());
  s.priority = wire.priority();
  return s;
}

void ToWire(const SessionSpec& s, v1::SessionSpec* wire) {
  wire->set_model(Cut(s.model, kMaxNameBytes));
  wire->set_model_hash(s.model_hash);
  for (const TaskSpec& t : s.tasks) {
    v1::TaskSpec* task = wire->add_tasks();
    task->set_workload(t.workload);
    task->set_name(Cut(t.name, kMaxTextBytes));
    task->set_count(t.count);
    task->set_flop(t.flop);
    task->set_bound_ns(t.bound_ns);
  }
  wire->set_target(s.target);
  wire->set_device_class(s.device_class);
  wire->set_seconds(s.seconds);
  wire->set_trials(s.trials);
  wire->set_until_unix_ms(s.until_unix_ms);
  wire->set_seed(s.seed);
  wire->set_accuracy(static_cast<int>(s.accuracy));
  wire->set_priority(s.priority);
  wire->set_project(s.project);  // one cut short would be another
}

std::string EncodeSpec(const SessionSpec& spec) {
  v1::SessionSpec wire;
  ToWire(spec, &wire);
  return wire.SerializeAsString();
}

absl::StatusOr<SessionSpec> DecodeSpec(const std::string& bytes) {
  v1::SessionSpec wire;
  if (!wire.ParseFromString(bytes)) return absl::DataLossError("a session's request is damaged");
  return FromWire(wire);
}

std::string SpecDigest(const SessionSpec& s) {
  std::string text =
      fmt::format("spec 1\n{}\n{}\n{}\n{}\n{} {} {} {} {} {}\n{}\n", s.model, s.model_hash,
                  s.target, s.device_class, s.seconds, s.trials, s.until_unix_ms, s.seed,
                  static_cast<int>(s.accuracy), s.priority, s.project);
  for (const TaskSpec& t : s.tasks) {
    text +=
        fmt::format("{}:{} {} {} {}\n", t.workload.size(), t.workload, t.count, t.flop, t.bound_ns);
  }
  return Sha256Hex(text);
}

absl::StatusOr<SessionInfo> FromWire(const v1::SessionInfo& wire) {
  SessionInfo i;
  HONE_ASSIGN_OR_RETURN(i.id, IdFromBytes(wire.session(), "session"));
  HONE_ASSIGN_OR_RETURN(i.owner, Text(wire.owner(), "owner"));
  HONE_ASSIGN_OR_RETURN(i.project, Text(wire.project(), "project"));
  HONE_RETURN_IF_ERROR(InRange(wire.state(), 1, 6, "state"));
  i.state = static_cast<db::SessionState>(wire.state() - 1);
  HONE_ASSIGN_OR_RETURN(i.reason, Text(wire.reason(), "reason"));
  HONE_ASSIGN_OR_RETURN(i.model, Text(wire.model(), "model"));
  HONE_ASSIGN_OR_RETURN(i.target, Text(wire.target(), "target"));
  HONE_ASSIGN_OR_RETURN(i.device_class, Text(wire.device_class(), "device_class"));
  i.created_ms = wire.created_ms();
  i.attempts = wire.attempts();
  i.tasks = wire.tasks();
  return i;
}

void ToWire(const SessionInfo& i, v1::SessionInfo* wire) {
  wire->set_session(IdBytes(i.id));
  wire->set_owner(Cut(i.owner, kMaxTextBytes));
  wire->set_project(Cut(i.project, kMaxTextBytes));
  wire->set_state(static_cast<v1::SessionState>(static_cast<int>(i.state) + 1));
  wire->set_reason(Cut(i.reason, kMaxTextBytes));
  wire->set_model(Cut(i.model, kMaxTextBytes));
  wire->set_target(Cut(i.target, kMaxTextBytes));
  wire->set_device_class(Cut(i.device_class, kMaxTextBytes));
  wire->set_created_ms(i.created_ms);
  wire->set_attempts(i.attempts);
  wire->set_tasks(i.tasks);
}

absl::StatusOr<SessionEvent> FromWire(const v1::SessionEvent& wire) {
  SessionEvent e;
  e.sequence = wire.sequence();
  switch (wire.kind_case()) {
    case v1::SessionEvent::kProposed: {
      e.kind = SessionEvent::Kind::kProposed;
      e.attempt = wire.proposed().attempt();
      e.task = wire.proposed().task();
      HONE_RETURN_IF_ERROR(InRange(e.task, 0, static_cast<int>(kMaxWorkloads), "task"));
      HONE_ASSIGN_OR_RETURN(e.proposer, Text(wire.proposed().proposer(), "proposer"));
      return e;
    }
    case v1::SessionEvent::kMeasured:
      e.kind = SessionEvent::Kind::kMeasured;
      e.attempt = wire.measured().attempt();
      HONE_RETURN_IF_ERROR(
          InRange(wire.measured().outcome(), 0, measure::kNumOutcomes - 1, "outcome"));
      e.outcome = static_cast<measure::Outcome>(wire.measured().outcome());
      HONE_RETURN_IF_ERROR(RealInRange(wire.measured().median_ns(), 0, kMaxLatencyNs, "median_ns"));
      e.median_ns = wire.measured().median_ns();
      return e;
    case v1::SessionEvent::kDecided:
      e.kind = SessionEvent::Kind::kDecided;
      e.task = wire.decided().task();
      HONE_RETURN_IF_ERROR(InRange(e.task, 0, static_cast<int>(kMaxWorkloads), "task"));
      e.replaced = wire.decided().replaced();
      e.default_ns = wire.decided().default_ns();
      e.best_ns = wire.decided().best_ns();
      return e;
    case v1::SessionEvent::kState: {
      HONE_ASSIGN_OR_RETURN(e.info, FromWire(wire.state()));
      return e;
    }
    case v1::SessionEvent::kEnded: {
      e.kind = SessionEvent::Kind::kEnded;
      HONE_ASSIGN_OR_RETURN(e.info, FromWire(wire.ended()));
      return e;
    }
    case v1::SessionEvent::KIND_NOT_SET: break;
  }
  return absl::InvalidArgumentError("an event of no known kind");
}

void ToWire(const SessionEvent& e, v1::SessionEvent* wire) {
  wire->set_sequence(e.sequence);
  switch (e.kind) {
    case SessionEvent::Kind::kProposed:
      wire->mutable_proposed()->set_attempt(e.attempt);
      wire->mutable_proposed()->set_task(e.task);
      wire->mutable_proposed()->set_proposer(e.proposer);
      break;
    case SessionEvent::Kind::kMeasured:
      wire->mutable_measured()->set_attempt(e.attempt);
      wire->mutable_measured()->set_outcome(static_cast<int>(e.outcome));
      wire->mutable_measured()->set_median_ns(e.median_ns);
      break;
    case SessionEvent::Kind::kDecided:
      wire->mutable_decided()->set_task(e.task);
      wire->mutable_decided()->set_replaced(e.replaced);
      wire->mutable_decided()->set_default_ns(e.default_ns);
      wire->mutable_decided()->set_best_ns(e.best_ns);
      break;
    case SessionEvent::Kind::kState: ToWire(e.info, wire->mutable_state()); break;
    case SessionEvent::Kind::kEnded: ToWire(e.info, wire->mutable_ended()); break;
  }
}

absl::StatusOr<FindRecords> FromWire(const v1::FindRecordsRequest& wire) {
  FindRecords f;
  HONE_ASSIGN_OR_RETURN(f.key, FromKey(wire.key()));
  HONE_ASSIGN_OR_RETURN(f.builder_version, Text(wire.builder_version(), "builder_version"));
  HONE_RETURN_IF_ERROR(InRange(wire.question(), 1, 3, "question"));
  f.question = static_cast<RecordQuestion>(wire.question());
  HONE_ASSIGN_OR_RETURN(f.workload_text,
                        Bounded(wire.workload_text(), 0, kMaxWorkloadBytes, "workload_text"));
  HONE_RETURN_IF_ERROR(InRange(wire.limit(), 1, kMaxFound, "limit"));
  f.limit = wire.limit();
  if (!wire.model().empty()) {
    HONE_ASSIGN_OR_RETURN(f.model, IdFromBytes(wire.model(), "model"));
  }
  return f;
}

void ToWire(const FindRecords& f, v1::FindRecordsRequest* wire) {
  FromKey(f.key, wire->mutable_key());
  wire->set_builder_version(f.builder_version);
  wire->set_question(static_cast<v1::RecordQuestion>(f.question));
  wire->set_workload_text(f.workload_text);
  wire->set_limit(f.limit);
  if (f.model) wire->set_model(IdBytes(*f.model));
}

absl::StatusOr<db::ModelVerdict> FromWire(const v1::ModelVerdict& wire) {
  db::Event event{.type = db::kModelVerdict};
  HONE_ASSIGN_OR_RETURN(event.session, IdFromBytes(wire.session(), "session"));
  HONE_ASSIGN_OR_RETURN(event.payload, Bounded(wire.payload(), 1, kMaxWorkloadBytes, "payload"));
  std::optional<db::ModelVerdict> verdict = db::VerdictOf(event, wire.merged());
  if (!verdict) return absl::InvalidArgumentError("payload: not a verdict of a model");
  return *std::move(verdict);
}

void ToWire(const db::ModelVerdict& verdict, v1::ModelVerdict* wire) {
  db::Event event = db::EventOf(verdict);
  wire->set_payload(std::move(event.payload));
  wire->set_session(IdBytes(verdict.session));
  wire->set_merged(verdict.merged);
}

absl::StatusOr<db::RankedRecord> FromWire(const v1::Record& wire) {
  db::RankedRecord ranked;
  db::TuningRecord& r = ranked.record;
  HONE_ASSIGN_OR_RETURN(r.id, IdFromBytes(wire.id(), "id"));
  HONE_ASSIGN_OR_RETURN(r.key, FromKey(wire.key()));
  HONE_ASSIGN_OR_RETURN(r.device, IdFromBytes(wire.device(), "device"));
  HONE_ASSIGN_OR_RETURN(r.trace, Bounded(wire.trace(), 0, kMaxTraceBytes, "trace"));
  r.trace_version = wire.trace_version();
  HONE_ASSIGN_OR_RETURN(r.builder_version, Text(wire.builder_version(), "builder_version"));
  HONE_RETURN_IF_ERROR(InRange(wire.rigor(), 0, db::kNumRigors - 1, "rigor"));
  r.rigor = static_cast<db::Rigor>(wire.rigor());
  r.median_ns = wire.median_ns();
  r.low_ns = wire.low_ns();
  r.high_ns = wire.high_ns();
  r.noisy = wire.noisy();
  HONE_ASSIGN_OR_RETURN(r.session, IdFromBytes(wire.session(), "session"));
  r.seed = wire.seed();
  r.created_ms = wire.created_ms();
  HONE_RETURN_IF_ERROR(db::CheckFact(r));
  ranked.merged = wire.merged();
  ranked.content = db::ContentHash(r);
  return ranked;
}

void ToWire(const db::RankedRecord& ranked, v1::Record* wire) {
  const db::TuningRecord& r = ranked.record;
  wire->set_id(IdBytes(r.id));
  FromKey(r.key, wire->mutable_key());
  wire->set_device(IdBytes(r.device));
  wire->set_trace(r.trace);
  wire->set_trace_version(r.trace_version);
  wire->set_builder_version(r.builder_version);
  wire->set_rigor(static_cast<int>(r.rigor));
  wire->set_median_ns(r.median_ns);
  wire->set_low_ns(r.low_ns);
  wire->set_high_ns(r.high_ns);
  wire->set_noisy(r.noisy);
  wire->set_session(IdBytes(r.session));
  wire->set_seed(r.seed);
  wire->set_created_ms(r.created_ms);
  wire->set_merged(ranked.merged);
}

}  // namespace hone::proto

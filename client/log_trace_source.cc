#include "client/log_trace_source.h"

#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "client/exit_code.h"
#include "client/open_log.h"
#include "client/verdict_text.h"
#include "compiler/model_steps.h"
#include "ir/kind_facts.h"
#include "ir/narrow_target.h"
#include "ir/text.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "search/transplant.h"

namespace hone::client {
namespace {

absl::Status Replays(const ir::Workload& workload, const std::string& text,
                     const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, schedule::ParseTrace(text));
  return schedule::LowerTrace(workload, trace, target, {}, "probe").status();
}

/// The candidate's Trace moved to the point of `space` with the nearest values; nothing where it
/// has no such point or that cannot be lowered.
std::optional<std::string> Transplant(const db::NearCandidate& candidate,
                                      const schedule::Space& space) {
  const auto to = search::TransplantPoint(candidate, space);
  if (!to) return std::nullopt;
  auto trace = space.TraceOf(*to);
  if (!trace.ok()) return std::nullopt;
  std::string text = schedule::ToText(*trace);
  if (!Replays(space.workload(), text, space.target()).ok()) return std::nullopt;
  return text;
}

void SetRecord(const db::RankedRecord& r, std::string trace, db::Rung rung, LogAnswer& answer) {
  answer.found.trace = std::move(trace);
  answer.found.rung = db::RungName(rung);
  answer.found.record_id = r.record.id.ToHex();
  answer.found.content_hash = r.content.ToHex();
  answer.found.noisy = r.record.noisy;
  answer.median_ns = r.record.median_ns;
  answer.low_ns = r.record.low_ns;
  answer.high_ns = r.record.high_ns;
  answer.rigor = db::RigorName(r.rigor);
}

Hash128 ModelHashOf(const std::vector<compiler::ModelKernel>& kernels) {
  std::vector<std::pair<Hash128, int64_t>> tasks;
  for (const compiler::ModelKernel& kernel : kernels) {
    tasks.emplace_back(Hash128::FromHex(kernel.hash).value_or(Hash128{}), kernel.count);
  }
  return db::ModelHash(std::move(tasks));
}

/// By whom, and how much it is.
std::string SaidOf(const db::ModelVerdict& verdict) {
  return fmt::format("{} (session {}{})", WayWhy(verdict), verdict.session.ToHex(),
                     verdict.merged ? ", merged from another log" : "");
}

absl::Status Missing(const std::string& message) {
  return WithExitCode(absl::NotFoundError(message), ExitCode::kRecordMissing);
}

}  // namespace

std::string BuilderVersionText() {
  return fmt::format("{}+{}", kBuilderVersion, HONE_LLVM_MAJOR_MINOR);
}

LogTraceSource::LogTraceSource(std::unique_ptr<db::Database> log, std::string name, LogTerms terms)
    : log_(std::move(log)), name_(std::move(name)), terms_(std::move(terms)) {}

absl::StatusOr<std::unique_ptr<LogTraceSource>> LogTraceSource::Create(
    std::unique_ptr<db::LogFile> log, LogTerms terms) {
  std::string name = log->path();
  std::unique_ptr<LogTraceSource> source(
      new LogTraceSource(std::move(log), std::move(name), std::move(terms)));
  HONE_RETURN_IF_ERROR(source->BeginLookUps());
  return source;
}

std::unique_ptr<LogTraceSource> LogTraceSource::Create(std::unique_ptr<ServerDatabase> server,
                                                       std::string name, LogTerms terms) {
  ServerDatabase* const asked = server.get();
  std::unique_ptr<LogTraceSource> source(
      new LogTraceSource(std::move(server), std::move(name), std::move(terms)));
  source->server_ = asked;
  return source;
}

absl::Status LogTraceSource::BeginLookUps() {
  if (!scope_) {
    auto scope = log_->BeginRead();
    if (!scope.ok()) return LogError(scope.status());
    scope_ = *std::move(scope);
    lookup_.reset();
  }
  // What it keeps (what is near, verdicts) is of one state and one model.
  if (!lookup_) {
    lookup_.emplace(*log_, BuilderVersionText(), model_,
                    server_ == nullptr ? terms_.predictions : db::Predictions::kIgnored);
  }
  return absl::OkStatus();
}

void LogTraceSource::BeginModel(const Hash128& model) {
  model_ = model;
  lookup_.reset();
}

void LogTraceSource::BeginModel(const std::vector<compiler::ModelKernel>& kernels) {
  BeginModel(ModelHashOf(kernels));
}

absl::StatusOr<std::optional<db::ModelVerdict>> LogTraceSource::WayOf(
    const std::vector<compiler::ModelKernel>& kernels, const ir::Target& target,
    db::ModelVerdict::Subject subject) {
  HONE_RETURN_IF_ERROR(BeginLookUps());
  const db::RecordKey key = {{},
                             target.text,
                             terms_.device_class,
                             terms_.accuracy,
                             ir::VersionsOf(target.text).measurement_policy};
  if (server_ != nullptr) server_->SetSubject(key, "");
  auto verdicts = log_->ModelVerdicts(ModelHashOf(kernels));
  if (!verdicts.ok()) return LogError(verdicts.status());
  const db::ModelVerdict* const verdict = db::OnSubject(*verdicts, key, subject);
  return verdict == nullptr ? std::nullopt : std::optional(*verdict);
}

absl::StatusOr<compiler::KnownBatch> LogTraceSource::FindBatch(
    const std::vector<compiler::ModelKernel>& together, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const auto verdict,
                        WayOf(together, target, db::ModelVerdict::Subject::kBatch));
  if (!verdict) return compiler::KnownBatch{};
  const auto run =
      verdict->keeps_defaults ? compiler::BatchRun::kTogether : compiler::BatchRun::kEach;
  return compiler::KnownBatch{run, SaidOf(*verdict)};
}

absl::StatusOr<compiler::KnownBranches> LogTraceSource::FindBranchRun(
    const std::vector<compiler::ModelKernel>& kernels, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const auto verdict,
                        WayOf(kernels, target, db::ModelVerdict::Subject::kBranches));
  if (!verdict) return compiler::KnownBranches{};
  const auto run =
      verdict->keeps_defaults ? compiler::BranchRun::kInTurn : compiler::BranchRun::kBeside;
  return compiler::KnownBranches{run, SaidOf(*verdict)};
}

absl::StatusOr<compiler::KnownCascades> LogTraceSource::FindCascadeRun(
    const std::vector<compiler::ModelKernel>& apart, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const auto verdict,
                        WayOf(apart, target, db::ModelVerdict::Subject::kCascades));
  if (!verdict) return compiler::KnownCascades{};
  const auto run = verdict->keeps_defaults ? compiler::CascadeRun::kOff : compiler::CascadeRun::kOn;
  return compiler::KnownCascades{run, SaidOf(*verdict)};
}

absl::StatusOr<double> LogTraceSource::FindNs(const ir::Workload& workload, const std::string& hash,
                                              const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const LogAnswer answer, Look(workload, hash, target));
  return answer.found.rung == db::RungName(db::Rung::kExact) ? answer.median_ns : 0;
}

void LogTraceSource::EndLookUps() { scope_.reset(); }

absl::Status LogTraceSource::SetThreads(const db::RankedRecord& record, LogAnswer& answer) {
  const auto threads = lookup_->ThreadsOf(record);
  if (!threads.ok()) return LogError(threads.status());
  const int all = db::ThreadsOfTarget(record.record.key.target);
  if (*threads == all) return absl::OkStatus();
  answer.found.threads = *threads;
  answer.why += fmt::format("; on {} of {} threads, which is as fast", *threads, all);
  return absl::OkStatus();
}

absl::StatusOr<db::RecordKey> LogTraceSource::KeyOf(const ir::Workload& workload,
                                                    const std::string& hash,
                                                    const ir::Target& target) const {
  const auto key_hash = Hash128::FromHex(hash);
  if (!key_hash) return absl::InternalError("a workload hash of another form");
  return db::RecordKey{*key_hash, ir::NarrowedTo(target, workload).text, terms_.device_class,
                       terms_.accuracy, ir::VersionsOf(target.text).measurement_policy};
}

absl::StatusOr<bool> LogTraceSource::HasExact(const ir::Workload& workload, const std::string& hash,
                                              const ir::Target& target) {
  if (!HasRecords()) return false;
  HONE_ASSIGN_OR_RETURN(const db::RecordKey key, KeyOf(workload, hash, target));
  HONE_RETURN_IF_ERROR(BeginLookUps());
  const auto best = log_->BestRecord({.key = key, .builder_version = BuilderVersionText()});
  if (!best.ok()) return LogError(best.status());
  return best->has_value();
}

absl::StatusOr<LogAnswer> LogTraceSource::Look(const ir::Workload& workload,
                                               const std::string& hash, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const db::RecordKey key, KeyOf(workload, hash, target));
  std::string text = ir::ToText(workload);
  HONE_RETURN_IF_ERROR(BeginLookUps());
  if (server_ != nullptr) {
    // What is near is told for one Workload at a time, and a Lookup keeps it.
    server_->SetSubject(key, text);
    lookup_->ForgetNear();
  }
  auto looked = lookup_->Find(key, text, [&](const db::TuningRecord& record) {
    return Replays(workload, record.trace, target);
  });
  if (!looked.ok()) return LogError(looked.status());
  LogAnswer answer;
  answer.found.rung = db::RungName(db::Rung::kDefault);
  answer.why = std::move(looked->why);
  answer.found.judged = looked->judged;
  answer.found.unused_prediction = looked->predicted;
  answer.stale = std::move(looked->stale);
  if (looked->record) {
    SetRecord(*looked->record, looked->record->record.trace, looked->rung, answer);
    if (looked->rung == db::Rung::kExact) HONE_RETURN_IF_ERROR(SetThreads(*looked->record, answer));
  } else if (!looked->candidates.empty() && terms_.required != RequiredRung::kExact) {
    const schedule::Space space(workload, target, terms_.accuracy);
    for (const db::NearCandidate& candidate : looked->candidates) {
      auto trace = Transplant(candidate, space);
      if (!trace) continue;
      SetRecord(candidate.record, *std::move(trace), db::Rung::kNearest, answer);
      break;
    }
    if (answer.median_ns == 0) {
      answer.why = fmt::format("none of {} records of similar workloads fits workload {}",
                               looked->candidates.size(), hash);
    }
  }
  return answer;
}

absl::StatusOr<compiler::FoundTrace> LogTraceSource::Find(const ir::Workload& workload,
                                                          const std::string& hash,
                                                          const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(LogAnswer answer, Look(workload, hash, target));
  // What was judged is known: the default is the better schedule there.
  if (terms_.required == RequiredRung::kExact && !answer.found.judged &&
      answer.found.rung != db::RungName(db::Rung::kExact)) {
    return Missing(
        fmt::format("the log '{}' has no record of workload {} for {} on {} that still replays; "
                    "tune the model there, or allow a lower rung with --require nearest",
                    name_, hash, target.text, terms_.device_class));
  }
  if (terms_.required == RequiredRung::kNearest && !answer.found.judged && answer.median_ns == 0) {
    return Missing(
        fmt::format("the log '{}' has nothing for workload {} on this ISA; tune the model, or "
                    "allow the default schedule with --require default",
                    name_, hash));
  }
  answer.found.why = std::move(answer.why);
  return std::move(answer.found);
}

}  // namespace hone::client

#include "client/log_trace_source.h"

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "client/exit_code.h"
#include "schedule/lower.h"

namespace hone::client {

std::string BuilderVersionText() {
  return fmt::format("{}+{}", kBuilderVersion, HONE_LLVM_MAJOR_MINOR);
}

LogTraceSource::LogTraceSource(std::unique_ptr<db::LogFile> log, std::string device_class,
                               RequiredRung required)
    : log_(std::move(log)), device_class_(std::move(device_class)), required_(required) {}

absl::StatusOr<compiler::FoundTrace> LogTraceSource::Find(const ir::Workload& workload,
                                                          const std::string& hash,
                                                          const ir::Target& target) {
  const auto key_hash = Hash128::FromHex(hash);
  if (!key_hash) return absl::InternalError("a workload hash of another form");
  db::RecordQuery query;
  query.key = {*key_hash, target.text, device_class_, ir::AccuracyClass::kDefault,
               kMeasurementPolicyVersion};
  query.builder_version = BuilderVersionText();
  auto answer = [&](const db::RankedRecord& r,
                    const char* rung) -> std::optional<compiler::FoundTrace> {
    auto trace = schedule::ParseTrace(r.record.trace);
    if (!trace.ok() || !schedule::LowerTrace(workload, *trace, target, {}, "probe").ok())
      return std::nullopt;
    return compiler::FoundTrace{r.record.trace, rung, r.record.id.ToHex(), r.content.ToHex()};
  };
  HONE_ASSIGN_OR_RETURN(auto exact, log_->TopRecords(query, 4));
  for (const auto& r : exact) {
    if (auto found = answer(r, "exact")) return *found;
  }
  if (required_ == RequiredRung::kExact) {
    return WithExitCode(
        absl::NotFoundError(
            fmt::format("the log '{}' has no record of workload {} for {} on {}; tune the model "
                        "there, or allow a lower rung with --require nearest",
                        log_->path(), hash, target.text, device_class_)),
        ExitCode::kRecordMissing);
  }
  HONE_ASSIGN_OR_RETURN(auto similar, log_->SameIsaRecords(query));
  for (const auto& r : similar) {
    if (auto found = answer(r, "threads")) return *found;
  }
  if (required_ == RequiredRung::kNearest) {
    return WithExitCode(
        absl::NotFoundError(
            fmt::format("the log '{}' has nothing for workload {} on this ISA; tune the model, or "
                        "allow the default schedule with --require default",
                        log_->path(), hash)),
        ExitCode::kRecordMissing);
  }
  return compiler::FoundTrace{.rung = "default"};
}

}  // namespace hone::client

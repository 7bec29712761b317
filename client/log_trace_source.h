#pragma once

#include <memory>
#include <string>

#include "compiler/trace_source.h"
#include "db/log_file.h"

namespace hone::client {

/// The lowest rung of the look-up ladder that may answer.
enum class RequiredRung : uint8_t { kDefault, kNearest, kExact };

/// Schedules from a tuning log, rung by rung: exact, other threads or device class of the same ISA,
/// default. A Trace that no longer fits its Workload counts as absent.
class LogTraceSource final : public compiler::TraceSource {
 public:
  LogTraceSource(std::unique_ptr<db::LogFile> log, std::string device_class, RequiredRung required);

  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override;

 private:
  std::unique_ptr<db::LogFile> log_;
  std::string device_class_;
  RequiredRung required_;
};

/// "1+22.1": kBuilderVersion and LLVM's major.minor.
std::string BuilderVersionText();

}  // namespace hone::client

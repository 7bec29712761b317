#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/server_database.h"
#include "compiler/trace_source.h"
#include "db/log_file.h"
#include "db/lookup.h"
#include "ir/accuracy_class.h"

namespace hone::client {

/// The lowest rung of the look-up ladder that may answer.
enum class RequiredRung : uint8_t { kDefault, kNearest, kExact };

/// What is asked of a log beside Workload and target.
struct LogTerms {
  std::string device_class;
  RequiredRung required = RequiredRung::kDefault;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;  ///< records of stricter ones serve
  db::Predictions predictions = db::Predictions::kTold;      ///< a server has none
};

/// What a log answers for one kernel.
struct LogAnswer {
  compiler::FoundTrace found;
  std::string why;       ///< one line: what answered, and what was missing above
  double median_ns = 0;  ///< of the record, on its own Workload and machine; 0: no record
  double low_ns = 0, high_ns = 0;
  std::string rigor;                   ///< db::RigorName of it
  std::vector<db::StaleRecord> stale;  ///< would have answered, but do not replay any more
};

/// Schedules from a tuning log by the look-up ladder (db::Lookup): exact, other threads or device
/// class of the same ISA, the nearest Workload's transplanted, default. A Trace that cannot be
/// lowered for its Workload any more counts as absent. All answers until EndLookUps are of one
/// state of the log. Not thread-safe.
class LogTraceSource final : public compiler::TraceSource {
 public:
  /// Begins to read; errors of that, and later of reading, are the log's (exit code 5).
  static absl::StatusOr<std::unique_ptr<LogTraceSource>> Create(std::unique_ptr<db::LogFile> log,
                                                                LogTerms terms);
  /// Asks a server instead: one unary call or few for a kernel, each of one state of its log.
  static std::unique_ptr<LogTraceSource> Create(std::unique_ptr<ServerDatabase> server,
                                                std::string name, LogTerms terms);

  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override;

  absl::StatusOr<double> FindNs(const ir::Workload& workload, const std::string& hash,
                                const ir::Target& target) override;

  /// Not of a server, which would be asked for every Workload of before.
  bool HasRecords() const override { return server_ == nullptr; }
  absl::StatusOr<bool> HasExact(const ir::Workload& workload, const std::string& hash,
                                const ir::Target& target) override;

  /// What `hone tune` measured of the model's batch, if it did.
  absl::StatusOr<compiler::KnownBatch> FindBatch(const std::vector<compiler::ModelKernel>& together,
                                                 const ir::Target& target) override;

  /// What it measured of the model's branches.
  absl::StatusOr<compiler::KnownCascades> FindCascadeRun(
      const std::vector<compiler::ModelKernel>& apart, const ir::Target& target) override;
  absl::StatusOr<compiler::KnownBranches> FindBranchRun(
      const std::vector<compiler::ModelKernel>& kernels, const ir::Target& target) override;

  /// Whose look-ups follow: verdicts of this model bind them.
  void BeginModel(const std::vector<compiler::ModelKernel>& kernels) override;
  void BeginModel(const Hash128& model);

  /// Lets go of the state of the log, so that it may fold in its newest rows while a model is
  /// built.
  void EndLookUps() override;

  /// As Find, with the reasons.
  absl::StatusOr<LogAnswer> Look(const ir::Workload& workload, const std::string& hash,
                                 const ir::Target& target);

 private:
  LogTraceSource(std::unique_ptr<db::Database> log, std::string name, LogTerms terms);

  absl::Status BeginLookUps();
  absl::StatusOr<db::RecordKey> KeyOf(const ir::Workload& workload, const std::string& hash,
                                      const ir::Target& target) const;
  /// The verdict on how the model that has these kernels runs, if there is one.
  absl::StatusOr<std::optional<db::ModelVerdict>> WayOf(
      const std::vector<compiler::ModelKernel>& kernels, const ir::Target& target,
      db::ModelVerdict::Subject subject);
  /// Adds how many threads run what answered exactly.
  absl::Status SetThreads(const db::RankedRecord& record, LogAnswer& answer);

  std::unique_ptr<db::Database> log_;
  ServerDatabase* server_ = nullptr;  // log_, where it is a server
  std::unique_ptr<db::Database::ReadScope>
      scope_;  // after log_: destroyed first; none between models
  std::optional<Hash128> model_;
  std::optional<db::Lookup> lookup_;
  std::string name_;  ///< of the log, for messages
  LogTerms terms_;
};

/// "1+22.1": kBuilderVersion and LLVM's major.minor.
std::string BuilderVersionText();

}  // namespace hone::client

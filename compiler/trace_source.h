#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/target.h"
#include "ir/workload.h"

namespace hone::compiler {

struct ModelKernel;

/// The answer of the look-up ladder for one kernel.
struct FoundTrace {
  std::string trace;         ///< text; empty: the default schedule
  std::string rung;          ///< "exact", "threads", "nearest", "default"
  std::string record_id;     ///< of the tuning log; empty for the default
  std::string content_hash;  ///< of the record's content; empty for the default
  std::string why;           ///< one line: what answered, and what was missing above; may be empty
  bool judged = false;       ///< the default, as a verdict of this model says
  bool noisy = false;        ///< the record was measured beside other programs
};

/// Where the schedules of a compiled model come from. Not thread-safe.
class TraceSource {
 public:
  virtual ~TraceSource() = default;

  /// What follows are look-ups of the model that has these kernels.
  virtual void BeginModel(const std::vector<ModelKernel>& /*kernels*/) {}

  /// The best Trace known. `hash` is the workload's structural hash. An error ends the compilation
  /// (a record that is required and missing, a log that cannot be read).
  virtual absl::StatusOr<FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                          const ir::Target& target) = 0;

  /// All kernels of a model were looked up: what was held for one state of a log (a read
  /// transaction) is let go before anything is built. Find may follow, on a newer state.
  virtual void EndLookUps() {}
};

/// Answers "default" always: the model compiled without a log.
class DefaultTraceSource final : public TraceSource {
 public:
  absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                  const ir::Target&) override {
    return FoundTrace{.rung = "default"};
  }
};

}  // namespace hone::compiler

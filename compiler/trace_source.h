#pragma once

#include <cstdint>
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
  std::string rung;          ///< "exact", "threads", "predicted", "nearest", "default"
  std::string record_id;     ///< of the tuning log; empty for the default
  std::string content_hash;  ///< of the record's content; empty for the default
  std::string why;           ///< one line: what answered, and what was missing above; may be empty
  bool judged = false;       ///< the default, because a verdict of this model says so
  bool noisy = false;        ///< the record was measured beside other programs
  bool unused_prediction = false;  ///< the log has a prediction, but predictions are not allowed
  /// How many threads run it at most. 0: all of the target's or, with an empty trace, as many as
  /// are worth it (WorthThreads).
  int threads = 0;
};

/// How the images of a batch run.
enum class BatchRun : uint8_t {
  kAuto,      ///< what the log says, else the nominal times of the target
  kTogether,  ///< each kernel computes all images
  kEach,      ///< all kernels for an image, then the next; an error where that cannot be
};

/// What is known of a batch that can run either way.
struct KnownBatch {
  BatchRun run = BatchRun::kAuto;  ///< kAuto: nothing
  std::string why;                 ///< one line; empty: nothing is known
};

/// How branches of a model run that do not depend on each other.
enum class BranchRun : uint8_t {
  kAuto,    ///< what the log says, else in turn
  kInTurn,  ///< one after the other, each on all threads
  kBeside,  ///< side by side, where that leaves fewer threads idle
};

/// What is known of a model that has such branches.
struct KnownBranches {
  BranchRun run = BranchRun::kAuto;  ///< kAuto: nothing
  std::string why;                   ///< one line; empty: nothing is known
};

/// Whether chains of layers are one kernel each, computed in bands (compiler/cascades.h).
enum class CascadeRun : uint8_t {
  kAuto,  ///< what the log says, else off
  kOff,   ///< every layer is a kernel of its own
  kOn,    ///< chains whose tensors between layers do not fit into the target's last cache
  kAll,   ///< every chain that can be
};

/// What is known of a model that has such chains.
struct KnownCascades {
  CascadeRun run = CascadeRun::kAuto;  ///< kAuto: nothing
  std::string why;                     ///< one line; empty: nothing is known
};

/// Where the schedules of a compiled model come from. Not thread-safe.
class TraceSource {
 public:
  virtual ~TraceSource() = default;

  /// How the batch of a model runs that has these kernels when its images run together; asked
  /// before BeginModel, and only where both ways can be. Errors as Find's.
  virtual absl::StatusOr<KnownBatch> FindBatch(const std::vector<ModelKernel>& /*together*/,
                                               const ir::Target& /*target*/) {
    return KnownBatch{};
  }

  /// How the branches of the model that has these kernels run; asked before BeginModel. Errors as
  /// Find's.
  virtual absl::StatusOr<KnownBranches> FindBranchRun(const std::vector<ModelKernel>& /*kernels*/,
                                                      const ir::Target& /*target*/) {
    return KnownBranches{};
  }

  /// Whether chains of layers of the model are one kernel each, which has these kernels when they
  /// are not; asked before BeginModel, and only where there are such chains. Errors as Find's.
  virtual absl::StatusOr<KnownCascades> FindCascadeRun(const std::vector<ModelKernel>& /*apart*/,
                                                       const ir::Target& /*target*/) {
    return KnownCascades{};
  }

  /// What follows are look-ups of the model that has these kernels.
  virtual void BeginModel(const std::vector<ModelKernel>& /*kernels*/) {}

  /// The best Trace known. `hash` is the workload's structural hash. An error ends the compilation
  /// (a record that is required and missing, a log that cannot be read).
  virtual absl::StatusOr<FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                          const ir::Target& target) = 0;

  /// The best time that was measured of a run of the Workload on just this target, ns; 0: none.
  /// Errors as Find's.
  virtual absl::StatusOr<double> FindNs(const ir::Workload& /*workload*/,
                                        const std::string& /*hash*/, const ir::Target& /*target*/) {
    return 0;
  }

  /// Whether HasExact looks anything up.
  virtual bool HasRecords() const { return false; }
  /// Whether there is a record of just this Workload and target, also one that does not replay.
  /// Errors as Find's.
  virtual absl::StatusOr<bool> HasExact(const ir::Workload& /*workload*/,
                                        const std::string& /*hash*/, const ir::Target& /*target*/) {
    return false;
  }

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

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/lower.h"

namespace hone::bench {

/// A kernel compiled into this process, with its own buffers filled with seeded values in the
/// stated ranges. For benchmarks: no sandbox, one thread.
class KernelRun {
 public:
  static absl::StatusOr<std::unique_ptr<KernelRun>> Make(const ir::Workload& workload,
                                                         const schedule::Trace& trace,
                                                         const ir::Target& target,
                                                         const MonotonicClock& clock,
                                                         uint64_t seed);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  /// Runs every phase once on this thread. Gives false when a phase failed.
  bool Run();
  struct Times {
    double best = 0, median = 0;  ///< seconds of one run
  };
  /// Runs for about `seconds`, at least once. cold_constants: they leave the caches before each
  /// run, as between the runs of a model.
  Times Time(double seconds, bool cold_constants = false);
  /// Largest |a - b| / (1e-4·max|b| + 1e-3·|b|) over all f32 outputs; at most 1 is right.
  double WorstAgainst(const KernelRun& other) const;
  double compile_ms() const { return compile_ms_; }
  const std::string& assembly() const { return assembly_; }

 private:
  explicit KernelRun(const MonotonicClock& clock) : clock_(clock) {}
  struct Buffer {
    void* data = nullptr;
    int64_t bytes = 0;
    ir::DType dtype = ir::DType::kF32;
  };
  Buffer Allocate(int64_t bytes, ir::DType dtype);

  const MonotonicClock& clock_;
  schedule::Lowered lowered_;
  std::vector<ir::PhaseFunction> functions_;
  std::vector<Buffer> owned_;
  std::vector<void*> buffers_;
  std::vector<Buffer> outputs_;
  std::vector<Buffer> constants_;  // and what the prologue makes of them
  void* scratch_ = nullptr;
  void* handle_ = nullptr;
  int fd_ = -1;
  double compile_ms_ = 0;
  std::string assembly_;
};

/// 2 × multiply-adds of the workload's contractions (every sum of products, taps in the padding
/// too).
double FlopOf(const ir::Workload& workload);

}  // namespace hone::bench

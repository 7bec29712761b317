#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/driver.h"
#include "runtime/device.h"

namespace hone::runtime {

/// A plan with its code and constants on a GPU.
struct CudaModel {
  const CudaDriver* driver = nullptr;
  CuHandle context = nullptr;
  const ir::Plan* plan = nullptr;
  CuPointer constants = 0;
  std::vector<std::vector<CuHandle>> functions;  ///< by kernel, by phase
};

/// Memory of a run on a GPU, and the graphs that run the plan. A phase that checks indices ends a
/// graph: the host looks at what it found before anything is read at those indices. Buffers in the
/// device's memory stand in the graphs, which are made anew when they change.
class CudaPlan final : public PreparedPlan {
 public:
  /// `model` must outlive it.
  static Result<std::unique_ptr<PreparedPlan>> Create(const CudaModel& model,
                                                      const RunOptions& options);
  ~CudaPlan() override;

  int threads() const override { return 1; }
  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) override;
  std::span<const int64_t> step_times_ns() const override { return step_times_ns_; }
  Status SetStream(void* stream) override;
  std::optional<int64_t> device_ns() const override { return device_ns_; }

 private:
  /// Launches from `first` up to `end`, as one graph.
  struct Part {
    size_t first = 0, end = 0;
    CuHandle graph = nullptr;  ///< CUgraphExec; of no launches null
    size_t event = 0;          ///< before its first launch
  };
  /// One phase, once.
  struct Launch {
    size_t step = 0;
    int32_t phase = 0;
    int64_t repeat = 0;
  };

  /// A buffer of the caller's, and what the kernels use for it.
  struct Place {
    const void* caller = nullptr;
    bool on_device = false;
    CuPointer at = 0;
  };

  CudaPlan(const CudaModel& model, const RunOptions& options);
  Status Allocate();
  void ListLaunches();
  Status MarkTime();
  Status MakeGraphs();
  void DropGraphs();
  Result<std::vector<Place>> PlacesOf(std::span<const InputBuffer> inputs,
                                      std::span<const OutputBuffer> outputs) const;
  /// Makes the graphs for these places, unless they are for them.
  Status Use(std::vector<Place> places);
  Status Prepare();
  Status CopyIn(std::span<const InputBuffer> inputs);
  Status CopyOut(std::span<const OutputBuffer> outputs);
  /// The stream of runs.
  CuHandle stream() const { return callers_ != nullptr ? callers_ : stream_; }
  CuPointer AddressOf(int32_t buffer) const;
  Status Submit(const Launch& launch) const;
  Status RunParts();
  /// What the events of the graphs say of the run that is over.
  Status ReadTimes();
  /// Waits, and says whether a kernel stopped.
  Status Finish();

  const CudaModel& model_;
  const CudaDriver& driver_;
  const bool poison_, profiles_;
  CuHandle stream_ = nullptr;   // captures
  CuHandle callers_ = nullptr;  // null: runs are in the one above
  CudaMemory arena_;
  CudaMemory results_;          // an int32 for each step
  std::vector<CudaMemory> io_;  // inputs, then outputs: what takes copies
  std::vector<Place> places_;   // that the graphs are for, in the same order
  std::vector<int32_t> found_;  // the results, here
  std::vector<Launch> launches_;
  std::vector<Part> parts_;
  std::vector<CuHandle> events_;  // when profiling: before each launch, and at the end of each part
  std::vector<int64_t> step_times_ns_;
  std::optional<int64_t> device_ns_;
};

}  // namespace hone::runtime

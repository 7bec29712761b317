#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/cuda/device_buffer.h"
#include "measure/host_data.h"
#include "measure/kind_runner.h"
#include "runtime/crew.h"

namespace hone::measure {

/// A GPU of this process: its context is current.
struct CudaCard {
  const runtime::CudaDriver* driver = nullptr;
  runtime::CuHandle stream = nullptr;
  int64_t l2_bytes = 0;

  /// OK for 0. A candidate's own fault: kInvalidArgument (the driver refuses its code or its
  /// launch), kAborted (it touched what it must not), kDeadlineExceeded, kResourceExhausted;
  /// kUnavailable: the device's.
  Status Check(runtime::CuResult code, const char* what) const;
  Status Wait(const char* what) const;
};

/// Nanoseconds between two places in a card's stream, by the device's clock.
class CudaStopwatch {
 public:
  static Result<std::unique_ptr<CudaStopwatch>> Create(const CudaCard& card);
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  Status Begin() const;
  /// Waits for all that was submitted since.
  Result<int64_t> End() const;

 private:
  explicit CudaStopwatch(const CudaCard& card) : card_(card) {}

  const CudaCard& card_;
  runtime::CuHandle begin_ = nullptr, end_ = nullptr;
};

/// HostData with copies of it on a GPU.
struct CudaData {
  std::shared_ptr<HostData> host;
  std::vector<DeviceBuffer> inputs;

  static Result<std::shared_ptr<CudaData>> Make(const PrepareJob& job, const CudaCard& card);
  /// kAborted: a kernel changed an input, and whatever runs on this data from now on is wrong.
  Status CheckUnchanged(const CudaCard& card) const;
};

/// A kernel for a GPU with all its memory there. Outputs and workspace are poisoned and lie between
/// zones. Timed are events around a graph of repeated launches, each with the next of several
/// copies of the constants: those have left the caches when their turn comes again, while inputs
/// and outputs stay in them, as in a model.
class CudaCandidate final : public LoadedCandidate {
 public:
  /// `card` must outlive it; `crew` runs its prologue, which is code for the host.
  static Result<std::unique_ptr<CudaCandidate>> Load(const PrepareJob& job,
                                                     std::shared_ptr<CudaData> data,
                                                     const CudaCard& card, runtime::Crew& crew);
  ~CudaCandidate() override;

  Status RunForCheck(const std::vector<GuardedBuffer>& outputs) override;
  Result<Race> Time(const TimingPolicy& policy) override;

 private:
  using Buffers = std::vector<DeviceBuffer>;

  CudaCandidate(std::shared_ptr<CudaData> data, const CudaCard& card)
      : data_(std::move(data)), card_(card) {}

  Status LoadCode(const std::string& packed);
  Status AllocateOwn();
  Result<Buffers> CopyConstants() const;
  Status Launch(int32_t phase, int64_t step, const Buffers& constants) const;
  /// All phases in order; `checks`: looks after the first one whether it found a bad index.
  enum class Checks { kNo, kYes };
  Status LaunchAll(const Buffers& constants, Checks checks) const;
  Status CheckResult(int32_t phase) const;
  Status CheckZones() const;
  int64_t NumLaunches() const;
  Status MakeGraph();

  const std::shared_ptr<CudaData> data_;
  const CudaCard& card_;
  ir::Artifact artifact_;
  std::shared_ptr<const HostData::Buffers> prologue_;
  runtime::CuHandle module_ = nullptr;
  std::vector<runtime::CuHandle> functions_;  // by phase
  Buffers outputs_, workspace_;
  DeviceBuffer result_;
  std::vector<Buffers> constants_;  // copies, with the prologue's results
  runtime::CuHandle graph_ = nullptr;
  std::unique_ptr<CudaStopwatch> stopwatch_;
  int64_t runs_of_graph_ = 1;
  int64_t check_ns_ = 0;
};

}  // namespace hone::measure

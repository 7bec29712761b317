#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/core/result.h"
#include "ir/dtype.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/driver.h"

namespace hone::measure {

/// Memory of a GPU for one buffer of a kernel, between two zones that no kernel may write to: what
/// lands there is found by CheckZones. Copies and fills are in the order of `stream` and have
/// happened when the call returns, but for Poison. Movable. Not thread-safe.
class DeviceBuffer {
 public:
  static constexpr size_t kZoneBytes = 4096;

  DeviceBuffer() = default;
  /// kResourceExhausted. `driver` outlives it.
  static Result<DeviceBuffer> Allocate(const runtime::CudaDriver& driver, int64_t bytes,
                                       runtime::CuHandle stream);

  runtime::CuPointer at() const { return memory_.at() + kZoneBytes; }
  size_t bytes() const { return bytes_; }

  /// NaN for floats, 0xa5 for others, as measure::Poison does.
  Status Poison(ir::DType dtype, runtime::CuHandle stream) const;
  Status Upload(std::span<const std::byte> from, runtime::CuHandle stream) const;
  Status Download(std::span<std::byte> to, runtime::CuHandle stream) const;
  /// kAborted: something was written before or behind it.
  Status CheckZones(runtime::CuHandle stream) const;

 private:
  const runtime::CudaDriver* driver_ = nullptr;
  runtime::CudaMemory memory_;
  size_t bytes_ = 0;
};

}  // namespace hone::measure

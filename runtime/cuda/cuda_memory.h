#pragma once

#include <cstddef>
#include <utility>

#include "runtime/cuda/driver.h"

namespace hone::runtime {

/// Memory of a GPU, freed with it. Movable.
class CudaMemory {
 public:
  CudaMemory() = default;
  /// `what` is for the error: kResourceExhausted says how much was wanted and how much is free.
  static Result<CudaMemory> Allocate(const CudaDriver& driver, size_t bytes, const char* what);
  CudaMemory(CudaMemory&& other) noexcept { *this = std::move(other); }
  CudaMemory& operator=(CudaMemory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(at_, other.at_);
    return *this;
  }
  ~CudaMemory();

  CuPointer at() const { return at_; }  ///< 0: nothing

 private:
  const CudaDriver* driver_ = nullptr;
  CuPointer at_ = 0;
};

}  // namespace hone::runtime

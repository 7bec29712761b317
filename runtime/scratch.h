#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/core/result.h"
#include "runtime/region.h"

namespace hone::runtime {

/// Memory of each thread for its phases, 64-aligned. Not shared: thread i uses Of(i) alone.
class Scratch {
 public:
  Scratch() = default;

  /// `bytes` for each of `threads` threads. kResourceExhausted.
  static Result<Scratch> Allocate(int threads, int64_t bytes);
  /// As Allocate; a page that nobody may touch follows right after the last (64-rounded) byte of
  /// each thread's, so that a kernel which runs past it crashes: for code that nobody has checked.
  static Result<Scratch> AllocateGuarded(int threads, int64_t bytes);

  void* Of(int thread) const {
    return region_.data() + static_cast<size_t>(thread) * stride_ + offset_;
  }
  /// All of it; not for one with guards.
  std::span<std::byte> span() const { return region_.span(); }

 private:
  Region region_;
  size_t stride_ = 0;
  size_t offset_ = 0;  // of a thread's first byte in its part
};

}  // namespace hone::runtime

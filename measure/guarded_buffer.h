#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/core/result.h"
#include "measure/run_job.h"

namespace hone::measure {

/// Memory of one buffer of a kernel: 64-aligned, and a page that nobody may touch follows right
/// after its last (64-rounded) byte, so that a kernel which runs past its end crashes. Unmapped by
/// the destructor. Movable. Not thread-safe.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept
      : mapped_(std::exchange(other.mapped_, {})),
        body_(std::exchange(other.body_, {})),
        span_(std::exchange(other.span_, {})) {}
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(body_, other.body_);
    std::swap(span_, other.span_);
    return *this;
  }
  ~GuardedBuffer();

  /// Zeroed private memory; from 2 MiB on in huge pages where the kernel has them, as a model's
  /// arena is. kResourceExhausted.
  static Result<GuardedBuffer> Allocate(int64_t bytes);

  /// A place in a memory file, shared with whoever else maps it.
  static Result<GuardedBuffer> MapShared(int fd, const SharedBuffer& place);

  /// Makes it read-only: a kernel that writes to its input crashes.
  Status Protect();

  std::byte* data() const { return span_.data(); }
  std::span<std::byte> span() const { return span_; }

 private:
  std::span<std::byte> mapped_;  // with the guard page
  std::span<std::byte> body_;    // the pages before it
  std::span<std::byte> span_;
};

/// Fills outputs with what no kernel computes by chance: NaN for floats, 0xa5 for others.
void Poison(ir::DType dtype, std::span<std::byte> bytes);

}  // namespace hone::measure

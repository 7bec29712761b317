#pragma once

#include <cstdint>

namespace hone::gpu {

/// Our emulation of the swizzles that TMA writes and wgmma reads: byte `offset` of a tile whose
/// rows have `row_bytes` (32, 64 or 128: the swizzle's name; other widths are not swizzled) lies
/// there, counted from an address that is a multiple of 1,024. Chunks of 16 bytes change places
/// within a row, by the number of their 128 bytes. After the PTX ISA, "Tensor Swizzling Modes".
constexpr uint32_t Swizzled(uint32_t offset, uint32_t row_bytes) {
  const uint32_t chunks =
      row_bytes == 32 || row_bytes == 64 || row_bytes == 128 ? row_bytes / 16 : 1;
  return offset ^ (((offset >> 7) & (chunks - 1)) << 4);
}

/// A shared-memory operand of wgmma: `start`, `leading` and `stride` in bytes, all multiples of 16.
/// After the PTX ISA, "Matrix Descriptor Format".
constexpr uint64_t Descriptor(uint32_t start, uint32_t leading, uint32_t stride,
                              uint32_t row_bytes) {
  const uint64_t mode = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : row_bytes == 32 ? 3 : 0;
  return uint64_t{start >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         mode << 62;
}

}  // namespace hone::gpu

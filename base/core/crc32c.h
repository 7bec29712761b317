#pragma once

#include <cstddef>
#include <cstdint>

namespace hone {

/// CRC-32C (Castagnoli; RFC 3720 B.4) of `size` bytes, continuing from `crc`, the checksum of what
/// stood before (0 for nothing). Uses the SSE4.2 instruction where the CPU has it.
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);

/// The same by table, on any CPU; the oracle of the fast one.
uint32_t Crc32cPortable(const void* data, size_t size, uint32_t crc = 0);

}  // namespace hone

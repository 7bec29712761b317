#pragma once

#include <cstdint>

// std only.
namespace hone::ir {

/// What ldtilecfg reads (Intel's Software Developer's Manual, volume 1, "TILECFG"): palette 1 has
/// eight registers of at most 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};  ///< by register
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace hone::ir

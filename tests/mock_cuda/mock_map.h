#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace hone::mock_cuda {

/// What the mock driver's tensor maps (CUtensorMap) say; lists are of the innermost dimension
/// first. What stands in a real one nobody but the driver knows.
struct TensorMap {
  uint64_t mark = 0, address = 0;
  uint64_t bytes = 0;  ///< from there to the end of the tensor
  uint64_t extents[5] = {}, strides[4] = {};
  unsigned box[5] = {};
  uint8_t type = 0, rank = 0, swizzle = 0;
};

/// What cuTensorMapEncodeTiled writes; nothing where the driver refuses its arguments (CUDA Driver
/// API, "Tensor Map Object Management").
std::optional<std::array<uint8_t, 128>> MapBytes(int type, unsigned rank, uint64_t address,
                                                 const uint64_t* extents, const uint64_t* strides,
                                                 const unsigned* box, const unsigned* steps,
                                                 int swizzle);

/// Nothing where MapBytes has not made these.
std::optional<TensorMap> MapIn(std::span<const uint8_t> bytes);

}  // namespace hone::mock_cuda

#include "tests/mock_cuda/mock_map.h"

#include <cstring>

namespace hone::mock_cuda {
namespace {

constexpr uint64_t kMark = 0x70616d2d65646f6d;
/// By CUtensorMapDataType.
constexpr std::array<uint64_t, 10> kTypeBytes = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

}  // namespace

std::optional<std::array<uint8_t, 128>> MapBytes(int type, unsigned rank, uint64_t address,
                                                 const uint64_t* extents, const uint64_t* strides,
                                                 const unsigned* box, const unsigned* steps,
                                                 int swizzle) {
  constexpr uint64_t kMostExtent = uint64_t{1} << 32, kMostStride = uint64_t{1} << 40;
  if (type < 0 || type >= static_cast<int>(kTypeBytes.size()) || rank < 1 || rank > 5 ||
      address % 16 != 0 || swizzle < 0 || swizzle > 3) {
    return std::nullopt;
  }
  const uint64_t element = kTypeBytes[static_cast<size_t>(type)];
  TensorMap map;
  map.mark = kMark;
  map.address = address;
  map.bytes = element;
  map.type = static_cast<uint8_t>(type);
  map.rank = static_cast<uint8_t>(rank);
  map.swizzle = static_cast<uint8_t>(swizzle);
  const uint64_t row_bytes = box[0] * element;
  if (row_bytes % 16 != 0 || (swizzle != 0 && row_bytes > (uint64_t{16} << swizzle)))
    return std::nullopt;
  for (unsigned d = 0; d < rank; ++d) {
    const uint64_t stride = d == 0 ? element : strides[d - 1];
    const bool whole = d == 0 || (stride % 16 == 0 && stride < kMostStride);
    if (extents[d] < 1 || extents[d] > kMostExtent || box[d] < 1 || box[d] > 256 || steps[d] != 1 ||
        !whole) {
      return std::nullopt;
    }
    map.bytes += (extents[d] - 1) * stride;
    map.extents[d] = extents[d];
    map.box[d] = box[d];
    if (d > 0) map.strides[d - 1] = stride;
  }
  std::array<uint8_t, 128> bytes = {};
  static_assert(sizeof map <= sizeof bytes);
  std::memcpy(bytes.data(), &map, sizeof map);
  return bytes;
}

std::optional<TensorMap> MapIn(std::span<const uint8_t> bytes) {
  TensorMap map;
  if (bytes.size() != 128) return std::nullopt;
  std::memcpy(&map, bytes.data(), sizeof map);
  if (map.mark != kMark) return std::nullopt;
  return map;
}

}  // namespace hone::mock_cuda

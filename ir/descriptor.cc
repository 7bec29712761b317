#include "ir/descriptor.h"

namespace hone::ir {

std::optional<int64_t> BytesOf(const Descriptor& descriptor) {
  constexpr size_t kMostDimensions = 5;
  constexpr int64_t kMostBytes = int64_t{1} << 48, kMostBox = 256;
  const size_t rank = descriptor.shape.size();
  if (rank < 1 || rank > kMostDimensions || descriptor.strides.size() != rank - 1 ||
      descriptor.box.size() != rank) {
    return std::nullopt;
  }
  int64_t bytes = SizeOf(descriptor.dtype);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = descriptor.shape[d];
    const int64_t stride = d + 1 < rank ? descriptor.strides[d] : int64_t{SizeOf(descriptor.dtype)};
    if (extent < 1 || descriptor.box[d] < 1 || descriptor.box[d] > kMostBox || stride < 1 ||
        stride > kMostBytes || extent - 1 > (kMostBytes - bytes) / stride) {
      return std::nullopt;
    }
    bytes += (extent - 1) * stride;
  }
  return bytes;
}

}  // namespace hone::ir

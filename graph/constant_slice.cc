#include "graph/constant_slice.h"

#include <utility>

namespace hone::graph {

ConstantPtr Sliced(const TensorData& data, size_t axis, const std::vector<int64_t>& keep) {
  TensorType type = data.type;
  int64_t outer = 1, inner = ir::SizeOf(type.dtype);
  for (size_t d = 0; d < axis; ++d) outer *= type.shape[d];
  for (size_t d = axis + 1; d < type.shape.size(); ++d) inner *= type.shape[d];
  const int64_t whole = type.shape[axis];
  type.shape[axis] = static_cast<int64_t>(keep.size());
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(type.Bytes()));
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t k : keep) {
      const auto part = data.bytes.subspan(static_cast<size_t>((o * whole + k) * inner),
                                           static_cast<size_t>(inner));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  }
  return MakeConstant(std::move(type), std::move(bytes));
}

}  // namespace hone::graph

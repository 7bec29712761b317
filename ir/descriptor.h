#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/dtype.h"

// std only: the runtime includes this file.
namespace hone::ir {

/// How a box lies in shared memory: as it is, or with the 16-byte pieces of each 128 (64, 32) bytes
/// of a row exchanged, so that a column of them meets every bank. Stored: do not renumber.
enum class Swizzle : uint8_t { kNone, k32, k64, k128 };
inline constexpr int kNumSwizzles = 4;

/// What a launch says of an argument beside its address: a tensor, of which the kernel asks for
/// boxes. An NVIDIA GPU gets a tensor map (CUDA Driver API, "Tensor Map Object Management").
/// Dimensions as everywhere, the last one's neighbours side by side.
struct Descriptor {
  int32_t argument = 0;  ///< of HoneCall.buffers
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  ///< bytes from one to the next along each dimension but the last
  std::vector<int64_t> box;      ///< elements of a box along each dimension
  Swizzle swizzle = Swizzle::kNone;
  bool operator==(const Descriptor&) const = default;
};

/// From the argument's first byte to the end of what is described; nothing where that is no tensor
/// of 1 to 5 dimensions below 2^48 bytes, or the box none of 1 to 256 elements along each. A box
/// may be larger than the tensor: outside of it are zeros.
std::optional<int64_t> BytesOf(const Descriptor& descriptor);

}  // namespace hone::ir

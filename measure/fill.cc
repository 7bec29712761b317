#include "measure/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/core/random.h"
#include "ir/half.h"

namespace hone::measure {
namespace {

template <typename T>
void Store(std::span<std::byte> bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

// One random number serves two elements.
void FillF32(float low, float high, Random& random, std::span<std::byte> bytes) {
  constexpr float kUnit = 1.0F / (1 << 24);
  const float width = high - low;
  const float last = std::max(low, std::nextafter(high, low));  // rounding may reach `high`
  const size_t count = bytes.size() / sizeof(float);
  for (size_t i = 0; i < count; i += 2) {
    const uint64_t bits = random.Next();
    Store(bytes, i, std::min(low + width * (static_cast<float>(bits >> 40) * kUnit), last));
    if (i + 1 == count) break;
    const auto second = static_cast<float>((bits >> 8) & 0xffffff);
    Store(bytes, i + 1, std::min(low + width * (second * kUnit), last));
  }
}

template <typename T>
void FillIntegers(double low, double high, Random& random, std::span<std::byte> bytes) {
  const auto least = static_cast<double>(std::numeric_limits<T>::min());
  const auto most = static_cast<double>(std::numeric_limits<T>::max());
  const double first = std::clamp(std::ceil(low), least, most);
  const double last = std::clamp(std::ceil(high) - 1, first, most);
  // Spans of more than 2^63 do not occur: a range is given in doubles around zero.
  const double span = std::min(last - first, 9.0e18);
  const auto bound = static_cast<uint64_t>(span) + 1;
  const auto base = static_cast<T>(first);
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    Store(bytes, i, static_cast<T>(base + static_cast<T>(random.Below(bound))));
  }
}

template <typename Convert>
void FillConverted(double low, double high, Random& random, size_t count, Convert&& convert) {
  for (size_t i = 0; i < count; ++i) {
    convert(i, high > low ? low + (high - low) * random.Uniform() : low);
  }
}

}  // namespace

void FillTensor(ir::DType dtype, double low, double high, uint64_t seed, int tensor,
                std::span<std::byte> bytes) {
  Random random = Random(seed).Fork(static_cast<uint64_t>(tensor));
  switch (dtype) {
    case ir::DType::kBool:
      return FillIntegers<uint8_t>(std::max(low, 0.0), std::clamp(high, 1.0, 2.0), random, bytes);
    case ir::DType::kI8: return FillIntegers<int8_t>(low, high, random, bytes);
    case ir::DType::kU8: return FillIntegers<uint8_t>(low, high, random, bytes);
    case ir::DType::kI16: return FillIntegers<int16_t>(low, high, random, bytes);
    case ir::DType::kU16: return FillIntegers<uint16_t>(low, high, random, bytes);
    case ir::DType::kI32: return FillIntegers<int32_t>(low, high, random, bytes);
    case ir::DType::kU32: return FillIntegers<uint32_t>(low, high, random, bytes);
    case ir::DType::kI64: return FillIntegers<int64_t>(low, high, random, bytes);
    case ir::DType::kU64: return FillIntegers<uint64_t>(low, high, random, bytes);
    case ir::DType::kF16:
      return FillConverted(low, high, random, bytes.size() / 2, [&](size_t i, double value) {
        Store(bytes, i, ir::F16FromDouble(value));
      });
    case ir::DType::kBF16:
      return FillConverted(low, high, random, bytes.size() / 2, [&](size_t i, double value) {
        Store(bytes, i, ir::BF16FromDouble(value));
      });
    case ir::DType::kF32:
      return FillF32(static_cast<float>(low), static_cast<float>(high), random, bytes);
    case ir::DType::kF64:
      return FillConverted(low, high, random, bytes.size() / 8,
                           [&](size_t i, double value) { Store(bytes, i, value); });
  }
}

void FillZeros(const ir::ZeroPattern& zeros, uint64_t seed, int tensor,
               std::span<std::byte> bytes) {
  if (zeros.columns == 0) return;
  // Its stream is none of those that fill tensors.
  uint64_t state = seed ^ (static_cast<uint64_t>(tensor) << 32);
  ir::MakeZeros(zeros, SplitMix64(state),
                {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)});
}

}  // namespace hone::measure

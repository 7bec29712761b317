#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone::ir {

/// Element types of tensors and expressions. The values are stored in packages and logs: do not
/// renumber.
enum class DType : uint8_t {
  kBool = 0,
  kI8 = 1,
  kU8 = 2,
  kI16 = 3,
  kU16 = 4,
  kI32 = 5,
  kU32 = 6,
  kI64 = 7,
  kU64 = 8,
  kF16 = 9,
  kBF16 = 10,
  kF32 = 11,
  kF64 = 12,
};

inline constexpr int kNumDTypes = 13;

/// Size of one element in memory, bytes (bool takes one).
constexpr int64_t SizeOf(DType t) {
  constexpr int64_t kSizes[kNumDTypes] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(t)];
}

constexpr bool IsFloat(DType t) { return t >= DType::kF16; }
constexpr bool IsBool(DType t) { return t == DType::kBool; }
/// True for the signed and unsigned integers, not for bool.
constexpr bool IsInteger(DType t) { return t >= DType::kI8 && t <= DType::kU64; }
constexpr bool IsUnsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
}

/// The one text form: bool i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64.
constexpr std::string_view ToString(DType t) {
  constexpr std::string_view kNames[kNumDTypes] = {
      "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<int>(t)];
}

/// Inverse of ToString; empty for anything else.
constexpr std::optional<DType> ParseDType(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (ToString(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace hone::ir

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// std only: the runtime includes this file.
namespace hone::ir {

/// What does arithmetic on a device: each has a rate of its own. Packages store their order: do not
/// renumber.
enum class ArithmeticUnit : uint8_t {
  kF32,      ///< multiply-adds of f32; every operation that has no other unit is counted here
  kDotI8,    ///< products of bytes that are summed in i32
  kDotBF16,  ///< products of bf16 that are summed in f32
};
inline constexpr size_t kNumArithmeticUnits = 3;

/// One number for each unit.
template <typename Number>
using ByUnit = std::array<Number, kNumArithmeticUnits>;

/// "f32", "dot_i8", "dot_bf16"
constexpr std::string_view NameOf(ArithmeticUnit unit) {
  constexpr ByUnit<std::string_view> kNames = {"f32", "dot_i8", "dot_bf16"};
  return kNames[static_cast<size_t>(unit)];
}

}  // namespace hone::ir

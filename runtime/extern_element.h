#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/core/check.h"
#include "ir/dtype.h"
#include "ir/half.h"

// Element types as the extern routines see them: how they lie in memory and how they compare and
// add.
namespace hone::runtime {

struct F16 {
  using Value = double;  // holds a product and a sum of two f16 exactly
  uint16_t bits;
  Value Get() const { return ir::F16ToDouble(bits); }
  static F16 From(Value value) { return {ir::F16FromDouble(value)}; }
};

struct BF16 {
  using Value = double;  // a product exactly; a sum rounds twice only 45 bits further down
  uint16_t bits;
  Value Get() const { return ir::BF16ToDouble(bits); }
  static BF16 From(Value value) { return {ir::BF16FromDouble(value)}; }
};

/// Every other type is its own value.
template <typename T>
struct Native {
  using Value = T;
  T value;
  Value Get() const { return value; }
  static Native From(Value value) { return {value}; }
};

/// Calls `visit` with an element of the dtype's memory type (only its type matters) and returns
/// what it returns.
template <typename Visitor>
auto VisitDType(ir::DType dtype, Visitor visit) {
  switch (dtype) {
    case ir::DType::kBool:
    case ir::DType::kU8: return visit(Native<uint8_t>{});
    case ir::DType::kI8: return visit(Native<int8_t>{});
    case ir::DType::kI16: return visit(Native<int16_t>{});
    case ir::DType::kU16: return visit(Native<uint16_t>{});
    case ir::DType::kI32: return visit(Native<int32_t>{});
    case ir::DType::kU32: return visit(Native<uint32_t>{});
    case ir::DType::kI64: return visit(Native<int64_t>{});
    case ir::DType::kU64: return visit(Native<uint64_t>{});
    case ir::DType::kF16: return visit(F16{});
    case ir::DType::kBF16: return visit(BF16{});
    case ir::DType::kF32: return visit(Native<float>{});
    case ir::DType::kF64: return visit(Native<double>{});
  }
  HONE_UNREACHABLE();
}

/// The order of TopK: NaN above everything, and equal to itself.
template <typename Value>
bool IsGreater(Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    if (std::isnan(a)) return !std::isnan(b);
  }
  return a > b;
}

}  // namespace hone::runtime

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/dtype.h"

namespace hone::ir {

/// One element in a form that holds every dtype exactly: integers and bool in `i` (u64 by its
/// bits), floats in `f`.
struct Element {
  double f = 0;
  int64_t i = 0;
  bool operator==(const Element&) const = default;
};

/// Element number `index` of a little-endian array. Integers wrap to the width when written, floats
/// round to nearest even, any non-zero bool is written as 1.
Element ReadElement(DType dtype, const uint8_t* bytes, int64_t index);
void WriteElement(DType dtype, uint8_t* bytes, int64_t index, Element element);

/// `value` as an element of the dtype (integers truncate and saturate, as Cast does).
Element ElementOf(DType dtype, double value);
/// The nearest double.
double ToDouble(DType dtype, Element element);

/// A dense row-major tensor with its bytes.
struct TensorBuffer {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  static TensorBuffer Zeros(DType dtype, std::vector<int64_t> shape);
  /// `values` has as many elements as `shape` (checked).
  static TensorBuffer Of(DType dtype, std::vector<int64_t> shape, std::span<const double> values);

  int64_t NumElements() const;
  Element At(int64_t index) const { return ReadElement(dtype, bytes.data(), index); }
  double DoubleAt(int64_t index) const { return ToDouble(dtype, At(index)); }
  void Set(int64_t index, Element e) { WriteElement(dtype, bytes.data(), index, e); }
  std::vector<double> ToDoubles() const;
};

}  // namespace hone::ir

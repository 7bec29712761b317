#include "ir/tensor_buffer.h"

#include <cstring>
#include <utility>

#include "base/core/check.h"
#include "ir/half.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

template <typename T>
T ReadAs(const uint8_t* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void WriteAs(uint8_t* bytes, int64_t index, T value) {
  std::memcpy(bytes + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

Element ReadElement(DType dtype, const uint8_t* bytes, int64_t index) {
  switch (dtype) {
    case DType::kBool: return {.i = ReadAs<uint8_t>(bytes, index) != 0 ? 1 : 0};
    case DType::kI8: return {.i = ReadAs<int8_t>(bytes, index)};
    case DType::kU8: return {.i = ReadAs<uint8_t>(bytes, index)};
    case DType::kI16: return {.i = ReadAs<int16_t>(bytes, index)};
    case DType::kU16: return {.i = ReadAs<uint16_t>(bytes, index)};
    case DType::kI32: return {.i = ReadAs<int32_t>(bytes, index)};
    case DType::kU32: return {.i = ReadAs<uint32_t>(bytes, index)};
    case DType::kI64:
    case DType::kU64: return {.i = ReadAs<int64_t>(bytes, index)};
    case DType::kF16: return {.f = F16ToDouble(ReadAs<uint16_t>(bytes, index))};
    case DType::kBF16: return {.f = BF16ToDouble(ReadAs<uint16_t>(bytes, index))};
    case DType::kF32: return {.f = static_cast<double>(ReadAs<float>(bytes, index))};
    case DType::kF64: return {.f = ReadAs<double>(bytes, index)};
  }
  return {};
}

void WriteElement(DType dtype, uint8_t* bytes, int64_t index, Element element) {
  switch (dtype) {
    case DType::kF16: WriteAs(bytes, index, F16FromDouble(element.f)); return;
    case DType::kBF16: WriteAs(bytes, index, BF16FromDouble(element.f)); return;
    case DType::kF32: WriteAs(bytes, index, static_cast<float>(element.f)); return;
    case DType::kF64: WriteAs(bytes, index, element.f); return;
    default: break;
  }
  const auto bits = static_cast<uint64_t>(WrapTo(dtype, element.i));
  switch (SizeOf(dtype)) {
    case 1: WriteAs(bytes, index, static_cast<uint8_t>(bits)); return;
    case 2: WriteAs(bytes, index, static_cast<uint16_t>(bits)); return;
    case 4: WriteAs(bytes, index, static_cast<uint32_t>(bits)); return;
    default: WriteAs(bytes, index, bits); return;
  }
}

Element ElementOf(DType dtype, double value) {
  if (IsFloat(dtype)) return {.f = RoundTo(dtype, value)};
  return {.i = SaturateTo(dtype, value)};
}

double ToDouble(DType dtype, Element element) {
  if (IsFloat(dtype)) return element.f;
  if (dtype == DType::kU64) return static_cast<double>(static_cast<uint64_t>(element.i));
  return static_cast<double>(element.i);
}

TensorBuffer TensorBuffer::Zeros(DType dtype, std::vector<int64_t> shape) {
  TensorBuffer buffer{.dtype = dtype, .shape = std::move(shape), .bytes = {}};
  buffer.bytes.resize(static_cast<size_t>(buffer.NumElements() * SizeOf(dtype)));
  return buffer;
}

TensorBuffer TensorBuffer::Of(DType dtype, std::vector<int64_t> shape,
                              std::span<const double> values) {
  TensorBuffer buffer = Zeros(dtype, std::move(shape));
  HONE_CHECK(static_cast<int64_t>(values.size()) == buffer.NumElements())
      << values.size() << " values for " << buffer.NumElements() << " elements";
  for (size_t i = 0; i < values.size(); ++i) {
    buffer.Set(static_cast<int64_t>(i), ElementOf(dtype, values[i]));
  }
  return buffer;
}

int64_t TensorBuffer::NumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<double> TensorBuffer::ToDoubles() const {
  std::vector<double> values;
  for (int64_t i = 0; i < NumElements(); ++i) values.push_back(DoubleAt(i));
  return values;
}

}  // namespace hone::ir

#include "graph/graph.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "fmt/format.h"

#include "base/core/check.h"
#include "ir/half.h"

namespace hone::graph {
namespace {

using ir::DType;

template <typename T>
T Read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// One element as a double; exact but for integers beyond 2^53.
double ElementAsDouble(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool: return Read<uint8_t>(at) != 0 ? 1 : 0;
    case DType::kI8: return Read<int8_t>(at);
    case DType::kU8: return Read<uint8_t>(at);
    case DType::kI16: return Read<int16_t>(at);
    case DType::kU16: return Read<uint16_t>(at);
    case DType::kI32: return Read<int32_t>(at);
    case DType::kU32: return Read<uint32_t>(at);
    case DType::kI64: return static_cast<double>(Read<int64_t>(at));
    case DType::kU64: return static_cast<double>(Read<uint64_t>(at));
    case DType::kF16: return ir::F16ToDouble(Read<uint16_t>(at));
    case DType::kBF16: return ir::BF16ToDouble(Read<uint16_t>(at));
    case DType::kF32: return Read<float>(at);
    case DType::kF64: return Read<double>(at);
  }
  return 0;
}

/// One element of an integer or bool type; u64 keeps its bits.
int64_t ElementAsInt64(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kBool: return Read<uint8_t>(at) != 0 ? 1 : 0;
    case DType::kI8: return Read<int8_t>(at);
    case DType::kU8: return Read<uint8_t>(at);
    case DType::kI16: return Read<int16_t>(at);
    case DType::kU16: return Read<uint16_t>(at);
    case DType::kI32: return Read<int32_t>(at);
    case DType::kU32: return Read<uint32_t>(at);
    case DType::kI64:
    case DType::kU64: return Read<int64_t>(at);
    default: HONE_CHECK(false) << "AsInt64s of " << ToString(dtype);
  }
  return 0;
}

template <typename T>
void Write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// Stores `bits` truncated to the width of an integer or bool type.
void WriteInteger(DType dtype, int64_t bits, std::byte* to) {
  static_assert(std::endian::native == std::endian::little);
  if (ir::IsBool(dtype)) bits = bits != 0 ? 1 : 0;
  std::memcpy(to, &bits, static_cast<size_t>(ir::SizeOf(dtype)));
}

void WriteDouble(DType dtype, double value, std::byte* to) {
  switch (dtype) {
    case DType::kF16: return Write(to, ir::F16FromDouble(value));
    case DType::kBF16: return Write(to, ir::BF16FromDouble(value));
    case DType::kF32: return Write(to, static_cast<float>(value));
    case DType::kF64: return Write(to, value);
    default: {
      // Beyond 64 bits the nearest, as no conversion is defined there; narrower types wrap.
      constexpr double kEnd = 0x1p63;
      const bool large = dtype == DType::kU64 && value >= kEnd;
      const DType wide = large ? DType::kU64 : DType::kI64;
      return WriteInteger(dtype, ir::ConstInt(dtype, ir::Const(wide, value)->int_value)->int_value,
                          to);
    }
  }
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

/// One element as text: integers exactly, floats as short as they read back.
std::string ElementText(const TensorData& data, int64_t i) {
  const DType dtype = data.type.dtype;
  const std::byte* at = data.bytes.data() + i * ir::SizeOf(dtype);
  if (ir::IsBool(dtype)) return ElementAsInt64(dtype, at) != 0 ? "true" : "false";
  if (dtype == DType::kU64) return fmt::format("{}", Read<uint64_t>(at));
  if (ir::IsInteger(dtype)) return fmt::format("{}", ElementAsInt64(dtype, at));
  if (dtype == DType::kF64) return fmt::format("{}", Read<double>(at));
  return fmt::format("{}", static_cast<float>(ElementAsDouble(dtype, at)));
}

/// Small constants by value, larger ones by type only: texts stay readable and independent of
/// weights.
std::string ConstantText(const TensorData& data) {
  constexpr int64_t kMaxShown = 8;
  const int64_t count = data.type.NumElements();
  if (count > kMaxShown) return "constant";
  std::vector<std::string> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(ElementText(data, i));
  return fmt::format("constant {{{}}}", fmt::join(elements, ","));
}

std::string AttributeText(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, ConstantPtr>) {
          return ToText(value->type) + " " + ConstantText(*value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return value;
        } else if constexpr (std::is_arithmetic_v<T>) {
          return fmt::format("{}", value);
        } else {
          return fmt::format("[{}]", fmt::join(value, ","));
        }
      },
      attribute);
}

}  // namespace

int64_t TensorType::NumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::numeric_limits<int64_t>::max();
  }
  return count;
}

double TensorData::DoubleAt(int64_t i) const {
  return ElementAsDouble(type.dtype, bytes.data() + i * ir::SizeOf(type.dtype));
}

std::vector<double> TensorData::AsDoubles() const {
  std::vector<double> values(static_cast<size_t>(type.NumElements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = DoubleAt(static_cast<int64_t>(i));
  return values;
}

std::vector<int64_t> TensorData::AsInt64s() const {
  std::vector<int64_t> values(static_cast<size_t>(type.NumElements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        ElementAsInt64(type.dtype, bytes.data() + static_cast<int64_t>(i) * ir::SizeOf(type.dtype));
  }
  return values;
}

ConstantPtr MakeConstant(TensorType type, std::vector<std::byte> bytes) {
  HONE_CHECK(static_cast<int64_t>(bytes.size()) == type.Bytes())
      << ToText(type) << " takes " << type.Bytes() << " bytes, not " << bytes.size();
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  auto data = std::make_shared<TensorData>();
  data->type = std::move(type);
  data->bytes = *owner;
  data->owner = std::move(owner);
  return data;
}

ConstantPtr MakeConstant(ir::DType dtype, std::vector<int64_t> shape,
                         const std::vector<double>& values) {
  TensorType type{dtype, std::move(shape)};
  HONE_CHECK(type.NumElements() == static_cast<int64_t>(values.size())) << ToText(type);
  std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
  const auto size = static_cast<size_t>(ir::SizeOf(dtype));
  for (size_t i = 0; i < values.size(); ++i) WriteDouble(dtype, values[i], bytes.data() + i * size);
  return MakeConstant(std::move(type), std::move(bytes));
}

ConstantPtr MakeInt64s(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  TensorType type{DType::kI64, std::move(shape)};
  HONE_CHECK(type.NumElements() == static_cast<int64_t>(values.size())) << ToText(type);
  std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return MakeConstant(std::move(type), std::move(bytes));
}

ValueId Graph::AddValue(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::AddConstant(ConstantPtr data, std::string value_name) {
  Value value;
  value.name = std::move(value_name);
  value.type = data->type;
  value.constant = std::move(data);
  return AddValue(std::move(value));
}

std::vector<std::vector<NodeId>> Graph::Readers() const {
  std::vector<std::vector<NodeId>> readers(values.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (ValueId input : nodes[i].inputs) {
      if (input == kNoValue) continue;
      auto& list = readers[static_cast<size_t>(input)];
      const auto id = static_cast<NodeId>(i);
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return readers;
}

std::string ToText(const TensorType& type) {
  return std::string(ToString(type.dtype)) + ShapeText(type.shape);
}

std::string ToText(const Graph& graph, const Node& node) {
  std::vector<std::string> outputs;
  for (ValueId id : node.outputs) {
    outputs.push_back(
        id == kNoValue
            ? "_"
            : fmt::format("%{}:{}", id, ToText(graph.values[static_cast<size_t>(id)].type)));
  }
  std::vector<std::string> inputs;
  for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? "_" : fmt::format("%{}", id));
  std::string text =
      fmt::format("{} = {}({})", fmt::join(outputs, ", "), node.op, fmt::join(inputs, ", "));
  std::vector<std::string> attributes;
  for (const auto& [name, value] : node.attributes)
    attributes.push_back(name + "=" + AttributeText(value));
  if (!attributes.empty()) text += fmt::format(" {{{}}}", fmt::join(attributes, " "));
  return text;
}

std::string ToText(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name);
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    text += fmt::format("%{}:{} = input {}\n", id, ToText(value.type), value.name);
  }
  std::vector<bool> shown(graph.values.size());
  const auto show_constant = [&](ValueId id) {
    if (id == kNoValue || shown[static_cast<size_t>(id)]) return;
    const Value& value = graph.values[static_cast<size_t>(id)];
    if (value.constant == nullptr) return;
    shown[static_cast<size_t>(id)] = true;
    text += fmt::format("%{}:{} = {}\n", id, ToText(value.type), ConstantText(*value.constant));
  };
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) show_constant(id);
    text += ToText(graph, node) + "\n";
  }
  for (ValueId id : graph.outputs) {
    show_constant(id);
    text += fmt::format("output %{} {}\n", id, graph.values[static_cast<size_t>(id)].name);
  }
  return text;
}

}  // namespace hone::graph

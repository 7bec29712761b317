#include "graph/onnx_import/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/extent_span.h"

namespace hone::graph::onnx_import {
namespace {

using ir::DType;

constexpr int64_t kMaxBytes = int64_t{1} << 46;
constexpr int kMaxUserRank = 6;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

absl::StatusOr<TensorType> TypeOf(const onnx::TensorProto& tensor) {
  TensorType type;
  HONE_ASSIGN_OR_RETURN(type.dtype, HeldDTypeOf(tensor.data_type()));
  type.shape.assign(tensor.dims().begin(), tensor.dims().end());
  if (tensor.dims_size() > kMaxUserRank) {
    return Invalid(
        fmt::format("rank {}; ranks 0 to {} are supported", tensor.dims_size(), kMaxUserRank));
  }
  for (int64_t extent : type.shape) {
    if (extent < 0) return Invalid("a negative extent in " + ToText(type));
  }
  if (ExtentSpan(type) > kMaxBytes / 8)
    return Invalid("the size of " + ToText(type) + " overflows");
  return type;
}

/// Copies a typed field, element by element, into elements of type T.
template <typename T, typename Field>
absl::StatusOr<ConstantPtr> FromField(TensorType type, const Field& field) {
  const int64_t count = type.NumElements();
  if (static_cast<int64_t>(field.size()) != count) {
    return Invalid(
        fmt::format("{} has {} elements, but its data have {}", ToText(type), count, field.size()));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(field.Get(static_cast<int>(i)));
    std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof value);
  }
  return MakeConstant(std::move(type), std::move(bytes));
}

absl::StatusOr<ConstantPtr> FromTypedField(TensorType type, const onnx::TensorProto& tensor) {
  switch (type.dtype) {
    case DType::kF32: return FromField<float>(std::move(type), tensor.float_data());
    case DType::kF64: return FromField<double>(std::move(type), tensor.double_data());
    case DType::kI64: return FromField<int64_t>(std::move(type), tensor.int64_data());
    case DType::kU64: return FromField<uint64_t>(std::move(type), tensor.uint64_data());
    case DType::kU32: return FromField<uint32_t>(std::move(type), tensor.uint64_data());
    case DType::kI32: return FromField<int32_t>(std::move(type), tensor.int32_data());
    case DType::kI16: return FromField<int16_t>(std::move(type), tensor.int32_data());
    case DType::kI8: return FromField<int8_t>(std::move(type), tensor.int32_data());
    case DType::kU8: return FromField<uint8_t>(std::move(type), tensor.int32_data());
    case DType::kBool: return FromField<bool>(std::move(type), tensor.int32_data());
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16: return FromField<uint16_t>(std::move(type), tensor.int32_data());
  }
  return Invalid("unknown element type");
}

/// A constant over bytes that somebody else owns; of bools a copy.
absl::StatusOr<ConstantPtr> FromBytes(TensorType type, std::span<const std::byte> bytes,
                                      std::shared_ptr<const void> owner) {
  if (static_cast<int64_t>(bytes.size()) != type.Bytes()) {
    return Invalid(fmt::format("{} takes {} bytes, but its data have {}", ToText(type),
                               type.Bytes(), bytes.size()));
  }
  if (type.dtype == DType::kBool) {  // any byte but zero is true; ours are 0 and 1
    std::vector<std::byte> truths(bytes.begin(), bytes.end());
    for (std::byte& truth : truths) truth = std::byte{truth != std::byte{0}};
    return MakeConstant(std::move(type), std::move(truths));
  }
  auto data = std::make_shared<TensorData>();
  data->type = std::move(type);
  data->bytes = bytes;
  data->owner = std::move(owner);
  return data;
}

/// Two numbers of four bits in each byte, the low one first, as bytes.
ConstantPtr Unpacked(TensorType type, const TensorData& packed) {
  std::vector<std::byte> bytes(static_cast<size_t>(type.NumElements()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto both = std::to_integer<int>(packed.bytes[i / 2]);
    const int own = i % 2 == 0 ? both % 16 : both / 16;
    bytes[i] = static_cast<std::byte>(type.dtype == DType::kI8 && own > 7 ? own - 16 : own);
  }
  return MakeConstant(std::move(type), std::move(bytes));
}

absl::StatusOr<int64_t> ParseCount(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Invalid(fmt::format("external data: {} is '{}', not a number of bytes", key, text));
  }
  return value;
}

}  // namespace

bool IsFourBits(int32_t data_type) {
  return data_type == onnx::TensorProto::INT4 || data_type == onnx::TensorProto::UINT4;
}

absl::StatusOr<DType> HeldDTypeOf(int32_t data_type) {
  if (data_type == onnx::TensorProto::INT4) return DType::kI8;
  return data_type == onnx::TensorProto::UINT4 ? DType::kU8 : DTypeOf(data_type);
}

absl::StatusOr<DType> DTypeOf(int32_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT: return DType::kF32;
    case onnx::TensorProto::UINT8: return DType::kU8;
    case onnx::TensorProto::INT8: return DType::kI8;
    case onnx::TensorProto::UINT16: return DType::kU16;
    case onnx::TensorProto::INT16: return DType::kI16;
    case onnx::TensorProto::INT32: return DType::kI32;
    case onnx::TensorProto::INT64: return DType::kI64;
    case onnx::TensorProto::BOOL: return DType::kBool;
    case onnx::TensorProto::FLOAT16: return DType::kF16;
    case onnx::TensorProto::DOUBLE: return DType::kF64;
    case onnx::TensorProto::UINT32: return DType::kU32;
    case onnx::TensorProto::UINT64: return DType::kU64;
    case onnx::TensorProto::BFLOAT16: return DType::kBF16;
    case onnx::TensorProto::UNDEFINED: return Invalid("no element type is given");
    default: break;
  }
  if (!onnx::TensorProto::DataType_IsValid(data_type)) {
    return Invalid(fmt::format("unknown element type {}", data_type));
  }
  return absl::UnimplementedError(
      fmt::format("elements of type {} are not supported", DataTypeName(data_type)));
}

std::string DataTypeName(int32_t data_type) {
  if (!onnx::TensorProto::DataType_IsValid(data_type)) return fmt::format("{}", data_type);
  return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
}

std::vector<std::string> TensorReader::DataFiles() const {
  std::vector<std::string> paths;
  for (const auto& [relative, file] : files_) {
    if (file != nullptr) paths.push_back((folder_ / relative).string());
  }
  return paths;
}

absl::StatusOr<ConstantPtr> TensorReader::Read(const onnx::TensorProto& tensor) {
  HONE_ASSIGN_OR_RETURN(TensorType type, TypeOf(tensor));
  if (tensor.has_segment()) return Invalid("segmented tensors are not supported");
  if (!IsFourBits(tensor.data_type())) return ReadAs(std::move(type), tensor);
  ConstantPtr& converted = converted_[&tensor];
  if (converted == nullptr) {
    const int64_t count = type.NumElements();
    HONE_ASSIGN_OR_RETURN(const ConstantPtr packed,
                          ReadAs({DType::kU8, {count / 2 + count % 2}}, tensor));
    converted = Unpacked(std::move(type), *packed);
  }
  return converted;
}

absl::StatusOr<ConstantPtr> TensorReader::ReadAs(TensorType type, const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return ReadExternal(tensor, std::move(type));
  if (tensor.has_raw_data()) {
    const std::string& raw = tensor.raw_data();
    return FromBytes(std::move(type), {reinterpret_cast<const std::byte*>(raw.data()), raw.size()},
                     model_);
  }
  if (IsFourBits(tensor.data_type())) return FromTypedField(std::move(type), tensor);
  // The body of a loop is read in every iteration: what is converted stays.
  ConstantPtr& converted = converted_[&tensor];
  if (converted == nullptr) {
    HONE_ASSIGN_OR_RETURN(converted, FromTypedField(std::move(type), tensor));
  }
  return converted;
}

// A model names its data files, so an archive with a link could have any file of the user's packed
// into a package. A folder of links into one store (as some model hubs keep them) stays usable:
// there model and data lie side by side behind the links.
bool TensorReader::StaysInside(const std::filesystem::path& path) const {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return true;  // opening it tells what is wrong
  for (const std::filesystem::path* folder : {&folder_, &linked_folder_}) {
    if (folder == &linked_folder_ && folder->empty()) continue;
    const std::filesystem::path inside =
        std::filesystem::canonical(folder->empty() ? "." : *folder, error);
    if (error) continue;
    const auto [end, at] = std::mismatch(inside.begin(), inside.end(), real.begin(), real.end());
    if (end == inside.end() && at != real.end()) return true;
  }
  return false;
}

absl::StatusOr<ConstantPtr> TensorReader::ReadExternal(const onnx::TensorProto& tensor,
                                                       TensorType type) {
  std::string location;
  int64_t offset = 0;
  int64_t length = type.Bytes();
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      HONE_ASSIGN_OR_RETURN(offset, ParseCount("offset", entry.value()));
    }
    if (entry.key() == "length") {
      HONE_ASSIGN_OR_RETURN(length, ParseCount("length", entry.value()));
    }
  }
  const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..") {
    return Invalid(
        fmt::format("external data: location '{}' must be a file beside the model", location));
  }
  auto& file = files_[relative.string()];
  if (file == nullptr) {
    std::error_code ignored;
    if (std::filesystem::is_directory(folder_ / relative, ignored)) {
      return Invalid(fmt::format(
          "external data: location '{}' is a folder; it must be a file beside the model",
          location));
    }
    if (!StaysInside(folder_ / relative)) {
      return Invalid(fmt::format(
          "external data: location '{}' is a link that leads out of the model's folder; copy the "
          "file that it leads to beside the model",
          location));
    }
    auto opened = MappedFile::Open(folder_ / relative);
    if (!opened.ok())
      return Annotate(opened.status(), "external data (keep the .data file beside the model)");
    file = *std::move(opened);
  }
  const auto size = static_cast<int64_t>(file->bytes().size());
  if (offset > size || length > size - offset) {
    return Invalid(
        fmt::format("external data: the tensor needs {} bytes at offset {} of '{}', but the file "
                    "has {} bytes: is it complete?",
                    length, offset, location, size));
  }
  return FromBytes(std::move(type),
                   file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length)),
                   file);
}

absl::StatusOr<ConstantPtr> TensorReader::ReadSparse(const onnx::SparseTensorProto& tensor) {
  if (IsFourBits(tensor.values().data_type()))
    return absl::UnimplementedError("sparse tensors of four bits are not supported");
  HONE_ASSIGN_OR_RETURN(const ConstantPtr values, Read(tensor.values()));
  HONE_ASSIGN_OR_RETURN(const ConstantPtr indices, Read(tensor.indices()));
  onnx::TensorProto dense;
  *dense.mutable_dims() = tensor.dims();
  dense.set_data_type(tensor.values().data_type());
  HONE_ASSIGN_OR_RETURN(TensorType type, TypeOf(dense));
  constexpr int64_t kMaxDense = int64_t{1} << 28;
  const int64_t count = values->type.NumElements();
  const auto rank = static_cast<int64_t>(type.shape.size());
  const bool flat = indices->type.shape.size() == 1;
  if (type.Bytes() > kMaxDense)
    return Invalid("the sparse tensor " + ToText(type) + " is too large");
  if (indices->type.dtype != DType::kI64 ||
      indices->type.NumElements() != count * (flat ? 1 : rank)) {
    return Invalid(fmt::format("the sparse indices {} do not fit {} values of rank {}",
                               ToText(indices->type), count, rank));
  }
  const std::vector<int64_t> at = indices->AsInt64s();
  const auto size = static_cast<size_t>(ir::SizeOf(type.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = flat ? at[static_cast<size_t>(i)] : 0;
    for (int64_t d = 0; !flat && d < rank; ++d) {
      const int64_t index = at[static_cast<size_t>(i * rank + d)];
      const int64_t extent = type.shape[static_cast<size_t>(d)];
      if (index < 0 || index >= extent)
        return Invalid(fmt::format("sparse index {} is outside extent {}", index, extent));
      position = position * extent + index;
    }
    if (position < 0 || position >= type.NumElements())
      return Invalid(fmt::format("sparse index {} is out of range", position));
    std::memcpy(bytes.data() + static_cast<size_t>(position) * size,
                values->bytes.data() + static_cast<size_t>(i) * size, size);
  }
  return MakeConstant(std::move(type), std::move(bytes));
}

}  // namespace hone::graph::onnx_import

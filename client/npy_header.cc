#include "client/npy_header.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"
#include "client/npz.h"

namespace hone::client {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 65536;
constexpr size_t kMaxRank = 6;

struct NumpyName {
  std::string_view text;  ///< descr without the byte order
  ir::DType dtype;
};
constexpr std::array<NumpyName, ir::kNumDTypes> kNumpyNames = {{
    {"b1", ir::DType::kBool},
    {"i1", ir::DType::kI8},
    {"u1", ir::DType::kU8},
    {"i2", ir::DType::kI16},
    {"u2", ir::DType::kU16},
    {"i4", ir::DType::kI32},
    {"u4", ir::DType::kU32},
    {"i8", ir::DType::kI64},
    {"u8", ir::DType::kU64},
    {"f2", ir::DType::kF16},
    {"V2", ir::DType::kBF16},
    {"f4", ir::DType::kF32},
    {"f8", ir::DType::kF64},
}};

/// Reads the few Python literals a header may hold.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
      text_.remove_prefix(1);
    }
  }
  bool Take(std::string_view token) {
    SkipSpace();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }
  std::optional<std::string> TakeString() {
    SkipSpace();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  std::optional<bool> TakeBool() {
    if (Take("True")) return true;
    if (Take("False")) return false;
    return std::nullopt;
  }
  std::optional<int64_t> TakeExtent() {
    SkipSpace();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    Take("L");  // Python 2 wrote long integers so
    return value;
  }
  std::optional<std::vector<int64_t>> TakeShape() {
    if (!Take("(")) return std::nullopt;
    std::vector<int64_t> shape;
    while (!Take(")")) {
      const auto extent = TakeExtent();
      if (!extent) return std::nullopt;
      shape.push_back(*extent);
      if (!Take(",")) {
        if (!Take(")")) return std::nullopt;
        break;
      }
    }
    return shape;
  }

 private:
  std::string_view text_;
};

absl::Status ParseDescr(const std::string& descr, NpyHeader& header) {
  std::string_view name = descr;
  char order = '|';
  if (!name.empty() && std::string_view("<>|=").find(name.front()) != std::string_view::npos) {
    order = name.front();
    name.remove_prefix(1);
  }
  for (const NumpyName& known : kNumpyNames) {
    if (known.text != name) continue;
    header.type.dtype = known.dtype;
    header.big_endian = order == '>';
    return absl::OkStatus();
  }
  const bool objects = name == "O";
  return absl::InvalidArgumentError(
      fmt::format("dtype '{}' is {}; use bool, an integer, or a float of 16, 32 or 64 bits", descr,
                  objects ? "Python objects, which are never read" : "not one of a tensor"));
}

absl::Status CheckShape(const graph::TensorType& type) {
  if (type.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        fmt::format("rank {}, at most {}", type.shape.size(), kMaxRank));
  }
  int64_t limit = kMaxArrayBytes / ir::SizeOf(type.dtype);
  for (const int64_t extent : type.shape) {
    // A zero elsewhere does not excuse an extent that overflows.
    if (extent > limit) {
      return absl::InvalidArgumentError(fmt::format("shape ({}) needs more than {} bytes",
                                                    fmt::join(type.shape, ", "), kMaxArrayBytes));
    }
    if (extent > 0) limit /= extent;
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> ParseDictionary(std::string_view text) {
  NpyHeader header;
  bool have_descr = false, have_order = false, have_shape = false;
  LiteralReader reader(text);
  const auto malformed = [&text] {
    return absl::InvalidArgumentError(
        fmt::format("the header is not a dictionary of descr, fortran_order and shape: {:.80}",
                    std::string(text)));
  };
  if (!reader.Take("{")) return malformed();
  while (!reader.Take("}")) {
    const auto key = reader.TakeString();
    if (!key || !reader.Take(":")) return malformed();
    if (*key == "descr" && !have_descr) {
      const auto descr = reader.TakeString();
      if (!descr) return absl::InvalidArgumentError("records (structured dtypes) are not tensors");
      HONE_RETURN_IF_ERROR(ParseDescr(*descr, header));
      have_descr = true;
    } else if (*key == "fortran_order" && !have_order) {
      const auto order = reader.TakeBool();
      if (!order) return malformed();
      header.fortran_order = *order;
      have_order = true;
    } else if (*key == "shape" && !have_shape) {
      auto shape = reader.TakeShape();
      if (!shape) return malformed();
      header.type.shape = *std::move(shape);
      have_shape = true;
    } else {
      return malformed();
    }
    if (!reader.Take(",")) {
      if (!reader.Take("}")) return malformed();
      break;
    }
  }
  if (!reader.AtEnd() || !have_descr || !have_order || !have_shape) return malformed();
  HONE_RETURN_IF_ERROR(CheckShape(header.type));
  return header;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text) {
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 4) {
    return absl::InvalidArgumentError("not a NumPy array (.npy)");
  }
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[kMagic.size() + at]); };
  const int major = byte(0);
  if (major < 1 || major > 3 || byte(1) != 0) {
    return absl::InvalidArgumentError(
        fmt::format(".npy version {}.{}, known are 1.0, 2.0 and 3.0", major, byte(1)));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t start = kMagic.size() + 2 + length_bytes;
  if (text.size() < start) return absl::InvalidArgumentError("cut off inside the header");
  size_t length = 0;
  for (size_t i = length_bytes; i > 0; --i) length = length << 8 | byte(1 + i);
  if (length > kMaxHeaderBytes || length > text.size() - start) {
    return absl::InvalidArgumentError(
        fmt::format("a header of {} bytes, the file has {} more: cut off or damaged", length,
                    text.size() - start));
  }
  HONE_ASSIGN_OR_RETURN(NpyHeader header, ParseDictionary(text.substr(start, length)));
  header.data_offset = start + length;
  return header;
}

std::string FormatNpyHeader(const graph::TensorType& type) {
  std::string_view name;
  for (const NumpyName& known : kNumpyNames) {
    if (known.dtype == type.dtype) name = known.text;
  }
  const char* order = ir::SizeOf(type.dtype) == 1 ? "|" : "<";
  const char* comma = type.shape.size() == 1 ? "," : "";
  std::string dictionary =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order, name,
                  fmt::join(type.shape, ", "), comma);
  constexpr size_t kFixed = 10, kAlignment = 64;  // magic, version, length
  const size_t unpadded = kFixed + dictionary.size() + 1;
  const size_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  dictionary += std::string(padding, ' ') + '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00'};
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace hone::client

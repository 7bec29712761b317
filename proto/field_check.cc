#include "proto/field_check.h"

#include <cmath>

#include "fmt/format.h"

#include "base/status.h"
#include "ir/target.h"
#include "proto/convert.h"

namespace hone::proto {

absl::Status InRange(int64_t value, int64_t low, int64_t high, std::string_view field) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} is not within {} and {}", field, value, low, high));
}

absl::Status RealInRange(double value, double low, double high, std::string_view field) {
  if (std::isfinite(value) && value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} is not within {} and {}", field, value, low, high));
}

absl::Status AtMost(size_t count, size_t most, std::string_view field) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} are over the limit {}", field, count, most));
}

absl::StatusOr<std::string> Bounded(const std::string& text, size_t least, size_t most,
                                    std::string_view field) {
  if (text.size() >= least && text.size() <= most) return text;
  return absl::InvalidArgumentError(
      fmt::format("{}: {} bytes are not within {} and {}", field, text.size(), least, most));
}

absl::StatusOr<std::string> Printing(const std::string& text, size_t least, size_t most,
                                     std::string_view field) {
  HONE_ASSIGN_OR_RETURN(std::string bounded, Bounded(text, least, most, field));
  if (bounded.find_first_of("\n\t") == std::string::npos && Cut(bounded, most) == bounded) {
    return bounded;
  }
  return absl::InvalidArgumentError(fmt::format("{}: has characters that do not print", field));
}

absl::StatusOr<std::string> Name(const std::string& text, std::string_view field) {
  return Printing(text, 1, kMaxNameBytes, field);
}

absl::StatusOr<std::string> Text(const std::string& text, std::string_view field) {
  HONE_RETURN_IF_ERROR(Bounded(text, 0, kMaxTextBytes, field).status());
  return Cut(text, kMaxTextBytes);
}

absl::StatusOr<std::string> TargetText(const std::string& text, std::string_view field) {
  HONE_ASSIGN_OR_RETURN(std::string name, Name(text, field));
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(name, &target, &why)) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", field, why));
  }
  return name;
}

absl::Status CheckSamples(const std::vector<int64_t>& samples, std::string_view field) {
  for (const int64_t sample : samples) HONE_RETURN_IF_ERROR(InRange(sample, 1, kMaxNs, field));
  return absl::OkStatus();
}

namespace {

// Length of the UTF-8 sequence at the front (RFC 3629), 0 where there is none.
size_t SequenceLength(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  size_t length = 0;
  uint32_t value = 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) length = 2, value = first & 0x1fU;
  if (first >= 0xe0 && first < 0xf0) length = 3, value = first & 0x0fU;
  if (first >= 0xf0 && first < 0xf5) length = 4, value = first & 0x07U;
  if (length == 0 || s.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3fU);
  }
  const uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  return length;
}

// Control characters of ASCII and of Latin-1 (U+0080 to U+009F, which terminals heed too).
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace

std::string Cut(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const bool shown = length != 0 && !IsControl(text.substr(0, length));
    const std::string_view piece = shown ? text.substr(0, length) : "?";
    if (out.size() + piece.size() > most) break;
    out += piece;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string IdBytes(const Hash128& id) {
  std::string bytes(16, '\0');
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(id.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(id.low >> (56 - 8 * i));
  }
  return bytes;
}

absl::StatusOr<Hash128> IdFromBytes(std::string_view bytes, std::string_view field) {
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} bytes are no id of 16", field, bytes.size()));
  }
  Hash128 id;
  for (size_t i = 0; i < 8; ++i) {
    id.high = id.high << 8 | static_cast<unsigned char>(bytes[i]);
    id.low = id.low << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  return id;
}

}  // namespace hone::proto

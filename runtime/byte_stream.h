#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/core/status.h"

// The little-endian tables of a package. Integers have fixed widths; a text is its length (u32) and
// its bytes; a list is its count (u32) and its items. There is exactly one encoding of each value.
namespace hone::runtime {

/// Appends values to a string of bytes.
class ByteWriter {
 public:
  void U8(uint8_t value) { Put(value, 1); }
  void U32(uint32_t value) { Put(value, 4); }
  void I32(int32_t value) { Put(static_cast<uint32_t>(value), 4); }
  void U64(uint64_t value) { Put(value, 8); }
  void I64(int64_t value) { Put(static_cast<uint64_t>(value), 8); }
  void Text(std::string_view text);
  /// The count of a list; a programmer error beyond 2^32 - 1.
  void Count(size_t count);
  void Raw(std::string_view bytes) { bytes_.append(bytes); }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  void Put(uint64_t value, int width);

  std::string bytes_;
};

/// Reads what a ByteWriter wrote. The first failure sticks: later reads give zeros and empty texts,
/// so a decoder checks `status()` once at its end (and bounds its loops by Count). The bytes must
/// outlive the reader.
class ByteReader {
 public:
  /// `what` names the table in errors.
  ByteReader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  uint8_t U8() { return static_cast<uint8_t>(Get(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Get(4)); }
  int32_t I32() { return static_cast<int32_t>(Get(4)); }
  uint64_t U64() { return Get(8); }
  int64_t I64() { return static_cast<int64_t>(Get(8)); }

  /// A text of at most `max_bytes`.
  std::string Text(size_t max_bytes);

  /// The count of a list whose items take at least `item_bytes` each: fails when the rest of the
  /// table cannot hold that many, so no count makes a decoder allocate more than the file's size.
  size_t Count(size_t item_bytes);

  /// Makes the reader fail with "WHAT: REASON (at byte N)", unless it has failed before.
  void Fail(std::string_view reason);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  /// The status, or an error when bytes are left over.
  Status Finish();

 private:
  uint64_t Get(size_t width);

  std::span<const std::byte> bytes_;
  std::string what_;
  size_t at_ = 0;
  Status status_;
};

}  // namespace hone::runtime

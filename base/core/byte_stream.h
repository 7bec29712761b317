#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/core/status.h"

// The one codec of packages, of the pipes between programs and of what lies in the cache. Numbers
// are little-endian and as wide as their type; a text is its length (u32) and its bytes; a list is
// its count (u32) and its items. There is exactly one encoding of each value.
namespace hone {

/// Appends values to a string of bytes.
class ByteWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Put(T value) {
    static_assert(std::endian::native == std::endian::little);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void PutText(std::string_view text);
  /// The count of a list; a programmer error beyond 2^32 - 1.
  void PutCount(size_t count);
  template <typename T>
  void PutList(const std::vector<T>& values) {
    PutCount(values.size());
    for (const T value : values) Put(value);
  }
  /// Without a length.
  void PutBytes(std::string_view bytes) { bytes_.append(bytes); }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a ByteWriter wrote, and trusts nothing: every read is bounded. The first value that
/// does not fit makes the reader fail for good: everything read from then on is zero or empty, so a
/// decoder checks once, at its end. The bytes must outlive the reader and the views that it gives.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    const std::string_view bytes = GetBytes(sizeof value);
    if (!ok()) return value;
    std::char_traits<char>::copy(reinterpret_cast<char*>(&value), bytes.data(), sizeof value);
    return value;
  }
  /// A text of at most `max_bytes`.
  std::string_view GetText(size_t max_bytes = std::numeric_limits<uint32_t>::max());
  /// The count of a list whose items take at least `item_bytes` each: a count that cannot fit in
  /// what is left fails here, before anything is reserved.
  size_t GetCount(size_t item_bytes);
  template <typename T>
  std::vector<T> GetList() {
    std::vector<T> values(GetCount(sizeof(T)));
    for (T& value : values) value = Get<T>();
    return values;
  }
  std::string_view GetBytes(size_t count);

  /// Marks the bytes as bad (a value outside its range), unless they are.
  void Fail(std::string_view reason);
  bool ok() const { return !failed_; }
  bool failed() const { return failed_; }
  const std::string& reason() const { return reason_; }
  /// Bytes read so far.
  size_t at() const { return at_; }
  /// Fails where bytes are left over; whether all was good.
  bool AtEnd();
  /// The same as a status: kDataLoss, "damaged WHAT: REASON".
  Status Finish(std::string_view what);

 private:
  size_t left() const { return bytes_.size() - at_; }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
  std::string reason_;
};

}  // namespace hone

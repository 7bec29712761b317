#include "runtime/byte_stream.h"

#include <limits>

#include "base/core/check.h"
#include "runtime/message.h"

namespace hone::runtime {

void ByteWriter::Put(uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xffu));
}

void ByteWriter::Text(std::string_view text) {
  Count(text.size());
  bytes_.append(text);
}

void ByteWriter::Count(size_t count) {
  HONE_CHECK(count <= std::numeric_limits<uint32_t>::max()) << count;
  U32(static_cast<uint32_t>(count));
}

uint64_t ByteReader::Get(size_t width) {
  if (!ok()) return 0;
  if (bytes_.size() - at_ < width) {
    Fail("ends too early");
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    value |= static_cast<uint64_t>(std::to_integer<uint8_t>(bytes_[at_ + i])) << (8 * i);
  }
  at_ += width;
  return value;
}

std::string ByteReader::Text(size_t max_bytes) {
  const size_t size = U32();
  if (!ok()) return {};
  if (size > max_bytes || size > bytes_.size() - at_) {
    Fail(Message("a text of ", size, " bytes, but at most ",
                 std::min(max_bytes, bytes_.size() - at_), " are possible here"));
    return {};
  }
  std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), size);
  at_ += size;
  return text;
}

size_t ByteReader::Count(size_t item_bytes) {
  const size_t count = U32();
  if (!ok()) return 0;
  if (count > (bytes_.size() - at_) / item_bytes) {
    Fail(Message("a list of ", count, " items, more than the table can hold"));
    return 0;
  }
  return count;
}

void ByteReader::Fail(std::string_view reason) {
  if (ok()) status_ = Invalid(what_, ": ", reason, " (at byte ", at_, " of the table)");
}

Status ByteReader::Finish() {
  if (ok() && at_ != bytes_.size()) {
    Fail(Message(bytes_.size() - at_, " bytes after the end"));
  }
  return status_;
}

}  // namespace hone::runtime

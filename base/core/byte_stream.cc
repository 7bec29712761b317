#include "base/core/byte_stream.h"

#include <algorithm>

#include "base/core/check.h"

namespace hone {

void ByteWriter::PutText(std::string_view text) {
  PutCount(text.size());
  PutBytes(text);
}

void ByteWriter::PutCount(size_t count) {
  HONE_CHECK(std::in_range<uint32_t>(count)) << "a list of " << count;
  Put(static_cast<uint32_t>(count));
}

std::string_view ByteReader::GetBytes(size_t count) {
  if (failed_) return {};
  if (count > left()) {
    Fail("a value of " + std::to_string(count) + " bytes where " + std::to_string(left()) +
         " are left");
    return {};
  }
  const std::string_view taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

std::string_view ByteReader::GetText(size_t max_bytes) {
  const auto size = Get<uint32_t>();
  if (size > max_bytes) {
    Fail("a text of " + std::to_string(size) + " bytes where at most " + std::to_string(max_bytes) +
         " are allowed");
  }
  return GetBytes(size);
}

size_t ByteReader::GetCount(size_t item_bytes) {
  const auto count = Get<uint32_t>();
  if (count > left() / std::max<size_t>(item_bytes, 1)) {
    Fail("a list of " + std::to_string(count) + " items where " + std::to_string(left()) +
         " bytes are left");
  }
  return failed_ ? 0 : count;
}

void ByteReader::Fail(std::string_view reason) {
  if (!failed_) reason_ = reason;
  failed_ = true;
}

bool ByteReader::AtEnd() {
  if (!failed_ && left() != 0) Fail(std::to_string(left()) + " bytes too many");
  return !failed_;
}

Status ByteReader::Finish(std::string_view what) {
  if (AtEnd()) return {};
  return {StatusCode::kDataLoss, "damaged " + std::string(what) + ": " + reason_};
}

}  // namespace hone

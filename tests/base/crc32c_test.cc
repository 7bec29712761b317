#include "base/core/crc32c.h"

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"

namespace hone {
namespace {

uint32_t Crc(std::string_view bytes) { return Crc32c(bytes.data(), bytes.size()); }

// RFC 3720 B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  EXPECT_EQ(Crc(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc(std::string(ascending.rbegin(), ascending.rend())), 0x113fdb5cu);
  EXPECT_EQ(Crc("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc(""), 0u);
}

TEST(Crc32c, FastAndPortableAgreeAtEveryLengthOffsetAndSplit) {
  Random random(11);
  std::vector<unsigned char> bytes(300);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random.Below(256));
  for (size_t offset = 0; offset < 9; ++offset) {
    for (size_t size = 0; size + offset <= bytes.size(); size += 7) {
      const uint32_t whole = Crc32cPortable(bytes.data() + offset, size);
      EXPECT_EQ(Crc32c(bytes.data() + offset, size), whole) << offset << " " << size;
      const size_t half = size / 3;
      const uint32_t first = Crc32c(bytes.data() + offset, half);
      EXPECT_EQ(Crc32c(bytes.data() + offset + half, size - half, first), whole);
    }
  }
}

}  // namespace
}  // namespace hone

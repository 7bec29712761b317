#include "base/core/hash128.h"

#include <cstring>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace hone {
namespace {

std::string LittleEndian(const Hash128& hash) {
  std::string bytes;
  for (const uint64_t word : {hash.high, hash.low}) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>((word >> (8 * i)) & 0xff));
  }
  return bytes;
}

// SMHasher's own verification (KeysetTest.cpp, VerificationTest; the value for MurmurHash3_x64_128
// stands in its main.cpp): hash the keys {}, {0}, {0,1}, ... with seeds 256, 255, ..., then hash
// the hashes; the first four bytes must be this number.
TEST(HashBytes, PassesTheVerificationOfSmHasher) {
  std::string hashes;
  std::string key;
  for (uint32_t i = 0; i < 256; ++i) {
    hashes += LittleEndian(HashBytes(key, 256 - i));
    key.push_back(static_cast<char>(i));
  }
  EXPECT_EQ(static_cast<uint32_t>(HashBytes(hashes).high), 0x6384ba69u);
}

TEST(HashBytes, GivesPublishedVectors) {
  EXPECT_EQ(HashBytes("").ToHex(), "00000000000000000000000000000000");
  EXPECT_EQ(HashBytes("The quick brown fox jumps over the lazy dog").ToHex(),
            "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST(Hash128, HexReadsBackAndRefusesEverythingElse) {
  const Hash128 hash{.high = 0x0123456789abcdefu, .low = 0xfedcba9876543210u};
  EXPECT_EQ(hash.ToHex(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(Hash128::FromHex(hash.ToHex()), hash);
  EXPECT_EQ(Hash128::FromHex("0123456789abcdeffedcba987654321"), std::nullopt);
  EXPECT_EQ(Hash128::FromHex("0123456789abcdeffedcba98765432100"), std::nullopt);
  EXPECT_EQ(Hash128::FromHex("0123456789ABCDEFfedcba9876543210"), std::nullopt);
  EXPECT_EQ(Hash128::FromHex("0123456789abcdefgedcba9876543210"), std::nullopt);
}

TEST(Hash128, EveryPrefixAndEveryFlippedBitHashesDifferently) {
  const std::string text(40, 'x');
  std::set<std::string> seen;
  for (size_t size = 0; size <= text.size(); ++size)
    seen.insert(HashBytes(text.substr(0, size)).ToHex());
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    seen.insert(HashBytes(flipped).ToHex());
  }
  EXPECT_EQ(seen.size(), text.size() + 1 + text.size() * 8);
}

}  // namespace
}  // namespace hone

#include "base/core/hash128.h"

#include <bit>

namespace hone {
namespace {

constexpr uint64_t kC1 = 0x87c37b91114253d5u;
constexpr uint64_t kC2 = 0x4cf5ad432745937fu;

// Up to eight bytes, first byte lowest: the same number on either endianness.
uint64_t LoadLittle(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    word = (word << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return word;
}

uint64_t MixFirst(uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
uint64_t MixSecond(uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

uint64_t Finish(uint64_t k) {
  k ^= k >> 33;
  k *= 0xff51afd7ed558ccdu;
  k ^= k >> 33;
  k *= 0xc4ceb9fe1a85ec53u;
  return k ^ (k >> 33);
}

std::optional<uint64_t> ParseHex(std::string_view digits) {
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9') {
      value = value * 16 + static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = value * 16 + static_cast<uint64_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

Hash128 HashBytes(std::string_view bytes, uint32_t seed) {
  uint64_t h1 = seed;
  uint64_t h2 = seed;
  std::string_view rest = bytes;
  for (; rest.size() >= 16; rest.remove_prefix(16)) {
    h1 ^= MixFirst(LoadLittle(rest.substr(0, 8)));
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729u;
    h2 ^= MixSecond(LoadLittle(rest.substr(8, 8)));
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5u;
  }
  if (rest.size() > 8) h2 ^= MixSecond(LoadLittle(rest.substr(8)));
  if (!rest.empty()) h1 ^= MixFirst(LoadLittle(rest.substr(0, 8)));

  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = Finish(h1);
  h2 = Finish(h2);
  h1 += h2;
  h2 += h1;
  return {.high = h1, .low = h2};
}

std::string Hash128::ToHex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (size_t i = 0; i < 16; ++i) {
    text[15 - i] = kDigits[(high >> (4 * i)) & 15];
    text[31 - i] = kDigits[(low >> (4 * i)) & 15];
  }
  return text;
}

std::optional<Hash128> Hash128::FromHex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = ParseHex(text.substr(0, 16));
  const auto low = ParseHex(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Hash128{.high = *high, .low = *low};
}

}  // namespace hone

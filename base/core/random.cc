#include "base/core/random.h"

#include <bit>

#include "base/core/check.h"

namespace hone {

uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  HONE_CHECK(bound > 0);
  // The lowest `2^64 mod bound` draws are refused, so every remainder is equally likely.
  const uint64_t refused = (0 - bound) % bound;
  for (;;) {
    const uint64_t draw = Next();
    if (draw >= refused) return draw % bound;
  }
}

int64_t Random::Between(int64_t first, int64_t last) {
  HONE_CHECK(first <= last) << first << " > " << last;
  const uint64_t width = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
  const uint64_t offset = width == 0 ? Next() : Below(width);  // 0: the whole range of int64
  return static_cast<int64_t>(static_cast<uint64_t>(first) + offset);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

Random Random::Fork(uint64_t stream) const {
  uint64_t mixed = stream;
  uint64_t seed = SplitMix64(mixed);
  for (const uint64_t word : state_) {
    seed ^= word;
    seed = SplitMix64(seed);
  }
  return Random(seed);
}

}  // namespace hone

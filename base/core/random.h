#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

// The only source of random numbers in Hone: seeded, and the same on every platform, compiler and
// standard library (no <random> distribution is).
namespace hone {

/// The next number of the SplitMix64 sequence; advances `state`. Good for deriving seeds.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
uint64_t SplitMix64(uint64_t& state);

/// xoshiro256** 1.0 of Blackman and Vigna (prng.di.unimi.it, 2018). Not for secrets. Copying copies
/// the state. Not thread-safe.
class Random {
 public:
  /// Any seed is good, zero included: it is spread by SplitMix64.
  explicit Random(uint64_t seed);

  /// Starts from a raw state, which must not be all zero (for published vectors, checkpoints).
  explicit Random(const std::array<uint64_t, 4>& state) : state_(state) {}
  const std::array<uint64_t, 4>& state() const { return state_; }

  uint64_t Next();

  /// Uniform in [0, bound), without bias; bound > 0.
  uint64_t Below(uint64_t bound);

  /// Uniform in [first, last], both included; first <= last.
  int64_t Between(int64_t first, int64_t last);

  /// Uniform in [0, 1): 53 random bits.
  double Uniform();

  /// True with this probability.
  bool Chance(double probability) { return Uniform() < probability; }

  /// A generator of its own for a named purpose: streams with different numbers are independent,
  /// and drawing from one does not move this one or the others.
  Random Fork(uint64_t stream) const;

  /// Fisher-Yates.
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      using std::swap;
      swap(values[i - 1], values[static_cast<size_t>(Below(i))]);
    }
  }

  /// One of `values`, which must not be empty.
  template <typename T>
  const T& Pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(values.size()))];
  }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace hone

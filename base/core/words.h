#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/core/hash128.h"

namespace hone {

/// Takes a text apart, word after word, with one space between two. What does not fit makes it bad
/// for good and reads as 0 or "", so that a reader asks once, at the end. Refers to the text.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view Word() {
    const std::string_view word = Until(' ');
    if (word.empty()) bad_ = true;
    return word;
  }
  /// Decimal; of floating-point numbers only finite ones.
  template <typename T>
  T Number() {
    T value = 0;
    const std::string_view word = Word();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if constexpr (std::is_floating_point_v<T>) bad_ = bad_ || !std::isfinite(value);
    if (error != std::errc() || end != word.data() + word.size()) bad_ = true;
    return value;
  }
  Hash128 Hash() { return HashIn(Word()); }
  /// Hashes with commas between; "-": none.
  std::vector<Hash128> Hashes() {
    std::vector<Hash128> hashes;
    Words list(Word());
    while (list.rest_ != "-" && !list.empty()) hashes.push_back(HashIn(list.Until(',')));
    return hashes;
  }
  /// The words up to the end of the line; the next line's come then.
  Words Line() { return Words(Until('\n')); }
  /// All that is left, at least one byte.
  std::string_view Rest() {
    if (rest_.empty()) bad_ = true;
    return rest_;
  }

  bool empty() const { return rest_.empty(); }
  void SetBad() { bad_ = true; }
  bool bad() const { return bad_; }

 private:
  std::string_view Until(char separator) {
    const size_t end = std::min(rest_.find(separator), rest_.size());
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return part;
  }
  Hash128 HashIn(std::string_view hex) {
    const auto hash = Hash128::FromHex(hex);
    if (!hash) bad_ = true;
    return hash.value_or(Hash128{});
  }

  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace hone

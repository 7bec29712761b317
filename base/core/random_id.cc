#include "base/core/random_id.h"

#include <sys/random.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/core/check.h"

namespace hone {

Hash128 RandomId() {
  std::array<uint64_t, 2> words{};
  ssize_t got = -1;
  do {
    got = ::getrandom(words.data(), sizeof words, 0);
  } while (got < 0 && errno == EINTR);
  // Linux gives up to 256 bytes at once or none at all.
  HONE_CHECK(got == static_cast<ssize_t>(sizeof words)) << "getrandom gave " << got;
  return {.high = words[0], .low = words[1]};
}

Hash128 FactId() {
  static const Hash128 first = RandomId();
  static std::atomic<uint64_t> drawn{0};
  return {.high = first.high, .low = first.low + drawn.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace hone

#include "base/core/flush_lines.h"

#include <cpuid.h>
#include <immintrin.h>

namespace hone {
namespace {

constexpr size_t kLineBytes = 64;

bool HasClflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 23)) != 0;
}

__attribute__((target("clflushopt"))) void FlushLinesFast(const std::byte* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLineBytes) {
    _mm_clflushopt(const_cast<std::byte*>(data + at));
  }
}

}  // namespace

void FlushLines(std::span<const std::byte> memory) {
  static const bool fast = HasClflushopt();
  if (fast) {
    FlushLinesFast(memory.data(), memory.size());
  } else {
    for (size_t at = 0; at < memory.size(); at += kLineBytes) _mm_clflush(memory.data() + at);
  }
  _mm_mfence();
}

}  // namespace hone

#include "server/heap_limits.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/sanitizer.h"

namespace hone::server {
namespace {

int Arenas() {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const file = ::open_memstream(&text, &size);
  if (::malloc_info(0, file) != 0) std::exit(4);
  std::fclose(file);
  const std::string info(text, size);
  std::free(text);
  int arenas = 0;
  for (size_t at = 0; (at = info.find("<heap nr=", at)) != std::string::npos; ++at) ++arenas;
  return arenas;
}

/// A block that no compiler leaves out.
std::unique_ptr<volatile char[]> Block(size_t bytes) {
  std::unique_ptr<volatile char[]> block(new volatile char[bytes]);
  block[0] = 1;
  return block;
}

/// In a process of its own, whose arenas no other test has made; its exit code says what is wrong.
[[noreturn]] void Try() {
  constexpr size_t kMib = size_t{1} << 20;
  KeepHeapFlat();
  // By default a block of this size that is freed has later ones of half of it kept in arenas.
  Block(16 * kMib).reset();
  const size_t mapped = ::mallinfo2().hblkhd;
  {
    const auto block = Block(8 * kMib);
    if (::mallinfo2().hblkhd < mapped + 8 * kMib) std::exit(1);
  }
  if (::mallinfo2().hblkhd != mapped) std::exit(2);

  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = std::min(6 * cores, 384);  // by default each has an arena of its own
  std::latch all(threads);
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&all] {
      Block(1000).reset();
      all.arrive_and_wait();
    });
  }
  running.clear();
  std::exit(Arenas() <= std::min(2 * cores, 64) + 1 ? 0 : 3);
}

TEST(HeapLimitsDeathTest, LargeBlocksGoBackAndArenasAreFew) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has a malloc of its own";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(Try(), ::testing::ExitedWithCode(0), "") << "1, 2: large blocks; 3: arenas";
}

}  // namespace
}  // namespace hone::server

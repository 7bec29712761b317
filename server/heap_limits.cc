#include "server/heap_limits.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

namespace hone::server {

void KeepHeapFlat() {
  constexpr int kMappedBytes = 256 << 10, kTrimBytes = 1 << 20, kMostArenas = 64;
  // A threshold that is set no longer grows with each large block that is freed (to 32 MiB).
  ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  ::mallopt(M_TRIM_THRESHOLD, kTrimBytes);
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  ::mallopt(M_ARENA_MAX, std::min(2 * cores, kMostArenas));
}

}  // namespace hone::server

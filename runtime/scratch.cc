#include "runtime/scratch.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/core/status_macros.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

// Scratches of two threads never share a page, hence no cache line that a prefetcher pairs.
constexpr size_t kScratchUnit = 4096;

}  // namespace

Result<Scratch> Scratch::Allocate(int threads, int64_t bytes) {
  Scratch scratch;
  scratch.stride_ = (static_cast<size_t>(bytes) + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
  HONE_ASSIGN_OR_RETURN(scratch.region_,
                        Region::Allocate(scratch.stride_ * static_cast<size_t>(threads),
                                         Message("the scratch of ", threads, " threads")));
  return scratch;
}

Result<Scratch> Scratch::AllocateGuarded(int threads, int64_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t used = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  const size_t body = (used + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
  Scratch scratch;
  scratch.stride_ = body + kScratchUnit;
  scratch.offset_ = body - used;
  HONE_ASSIGN_OR_RETURN(scratch.region_,
                        Region::Allocate(scratch.stride_ * static_cast<size_t>(threads),
                                         Message("the scratch of ", threads, " threads")));
  for (int thread = 0; thread < threads; ++thread) {
    std::byte* const guard =
        scratch.region_.data() + static_cast<size_t>(thread) * scratch.stride_ + body;
    if (::mprotect(guard, kScratchUnit, PROT_NONE) != 0) {
      return Status(StatusCode::kResourceExhausted, "cannot guard the scratch of a thread");
    }
  }
  return scratch;
}

}  // namespace hone::runtime

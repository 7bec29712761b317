#include "runtime/process_number.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace hone::runtime {
namespace {

/// A word that is 0 again in a child; null where the kernel has no such memory.
std::atomic<uint64_t>* WipedWord() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (::madvise(memory, page, MADV_WIPEONFORK) != 0) {
    ::munmap(memory, page);
    return nullptr;
  }
  return new (memory) std::atomic<uint64_t>(0);
}

std::atomic<uint64_t> last_number{0};  // of this process or those that it comes from

// Its word is made when the library is loaded: a fork while another thread makes it would leave the
// word's lock held in the child.
[[maybe_unused]] const uint64_t at_load = ProcessNumber();

}  // namespace

uint64_t ProcessNumber() {
  static std::atomic<uint64_t>* const word = WipedWord();  // for as long as the process lives
  if (word == nullptr) [[unlikely]]
    return static_cast<uint64_t>(::getpid());
  uint64_t number = word->load(std::memory_order_relaxed);
  if (number != 0) [[likely]]
    return number;
  // Where several threads come first, one's number counts.
  const uint64_t mine = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  return word->compare_exchange_strong(number, mine, std::memory_order_relaxed) ? mine : number;
}

}  // namespace hone::runtime

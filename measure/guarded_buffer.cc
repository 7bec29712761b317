#include "measure/guarded_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

namespace hone::measure {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kAlignBytes = 64;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

Status NotMapped(size_t bytes, int error) {
  // Any other refusal says something about this machine, not about what a candidate uses.
  const bool no_memory = error == ENOMEM || error == EAGAIN;
  return Status(no_memory ? StatusCode::kResourceExhausted : StatusCode::kFailedPrecondition,
                "cannot map " + std::to_string(bytes) +
                    " bytes for a buffer: " + std::generic_category().message(error));
}

}  // namespace

GuardedBuffer::~GuardedBuffer() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

Result<GuardedBuffer> GuardedBuffer::Allocate(int64_t wanted) {
  const auto bytes = static_cast<size_t>(wanted);
  const size_t aligned = RoundUp(bytes, kAlignBytes);
  const bool huge = aligned >= kHugePageBytes;
  const size_t unit = huge ? kHugePageBytes : kPageBytes;
  const size_t body = RoundUp(aligned, unit);
  // The kernel aligns to pages only: one huge page more lets the end stand on a boundary.
  const size_t total = body + kPageBytes + (huge ? kHugePageBytes : 0);
  void* address = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return NotMapped(bytes, errno);

  GuardedBuffer buffer;
  buffer.mapped_ = {static_cast<std::byte*>(address), total};
  const auto start = reinterpret_cast<uintptr_t>(address);
  std::byte* const first = static_cast<std::byte*>(address) + (RoundUp(start, unit) - start);
  if (body > 0 && ::mprotect(first, body, PROT_READ | PROT_WRITE) != 0) {
    return NotMapped(bytes, errno);
  }
  // Only advice: without huge pages everything still works.
  if (huge) ::madvise(first, body, MADV_HUGEPAGE);
  buffer.body_ = {first, body};
  buffer.span_ = {first + (body - aligned), bytes};
  return buffer;
}

Result<GuardedBuffer> GuardedBuffer::MapShared(int fd, const SharedBuffer& place) {
  const auto region = static_cast<size_t>(place.region_bytes);
  const size_t total = region + kPageBytes;
  void* address = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return NotMapped(region, errno);
  GuardedBuffer buffer;
  buffer.mapped_ = {static_cast<std::byte*>(address), total};
  if (::mmap(address, region, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             place.region_offset) == MAP_FAILED) {
    return NotMapped(region, errno);
  }
  buffer.body_ = {static_cast<std::byte*>(address), region};
  buffer.span_ = {static_cast<std::byte*>(address) + (place.data_offset - place.region_offset),
                  static_cast<size_t>(place.data_bytes)};
  return buffer;
}

Status GuardedBuffer::Protect() {
  if (!body_.empty() && ::mprotect(body_.data(), body_.size(), PROT_READ) != 0) {
    return NotMapped(span_.size(), errno);
  }
  return {};
}

void Poison(ir::DType dtype, std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memset(bytes.data(), ir::IsFloat(dtype) ? 0xff : 0xa5, bytes.size());
}

}  // namespace hone::measure

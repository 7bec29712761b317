#include "runtime/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/core/unique_fd.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

Region::~Region() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

Result<Region> Region::Allocate(size_t bytes, const std::string& what) {
  const bool huge = bytes >= kHugePageBytes;
  const size_t unit = huge ? kHugePageBytes : kPageBytes;
  const auto too_big = [&](int error_number) {
    return SystemError(error_number, Message("cannot allocate ", bytes, " bytes for ", what));
  };
  if (bytes > std::numeric_limits<size_t>::max() / 4) return too_big(ENOMEM);
  const size_t rounded = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
  // The kernel aligns to pages only: map one huge page more and start at its boundary.
  const size_t mapped = huge ? rounded + kHugePageBytes : rounded;
  void* address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return too_big(errno);

  Region region;
  region.mapped_ = {static_cast<std::byte*>(address), mapped};
  const auto start = reinterpret_cast<uintptr_t>(address);
  region.data_ = static_cast<std::byte*>(address) + ((start + unit - 1) / unit * unit - start);
  region.bytes_ = bytes;
  // Only advice: without huge pages everything still works.
  if (huge) ::madvise(region.data_, rounded, MADV_HUGEPAGE);
  return region;
}

Result<Region> Region::MapFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(errno, "cannot open '" + path + "'");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError(errno, "cannot read '" + path + "'");
  if (!S_ISREG(info.st_mode)) return Invalid("cannot read '", path, "': not a regular file");
  Region region;
  if (info.st_size == 0) return region;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return SystemError(errno, "cannot map '" + path + "'");
  region.data_ = static_cast<std::byte*>(address);
  region.bytes_ = bytes;
  region.mapped_ = {region.data_, bytes};
  // Only advice, too: it depends on the kernel and the file system.
  if (bytes >= kHugePageBytes) ::madvise(address, bytes, MADV_HUGEPAGE);
  return region;
}

Region Region::Borrow(std::span<const std::byte> memory) {
  Region region;
  region.data_ = const_cast<std::byte*>(memory.data());
  region.bytes_ = memory.size();
  return region;
}

Status Region::Protect() {
  if (!mapped_.empty() && ::mprotect(mapped_.data(), mapped_.size(), PROT_READ) != 0) {
    return SystemError(errno, "cannot make memory read-only");
  }
  return {};
}

}  // namespace hone::runtime

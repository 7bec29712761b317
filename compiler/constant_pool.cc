#include "compiler/constant_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/status.h"
#include "compiler/memory_plan.h"

namespace hone::compiler {
namespace {

/// A file that goes with its last descriptor. Not every file system can make one without a name.
UniqueFd MakeScratch(const std::string& folder) {
  UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) return file;
  std::string path = folder + "/.hone-constants-XXXXXX";
  file = UniqueFd(::mkostemp(path.data(), O_CLOEXEC));
  if (file.valid()) ::unlink(path.c_str());
  return file;
}

}  // namespace

absl::StatusOr<ConstantPool> ConstantPool::Create(const std::string& folder) {
  if (!folder.empty()) {
    UniqueFd file = MakeScratch(folder);
    if (file.valid()) return ConstantPool(std::move(file), "a scratch file in '" + folder + "'");
  }
  UniqueFd file(::memfd_create("hone-constants", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "keep constants in memory");
  return ConstantPool(std::move(file), "memory");
}

absl::Status ConstantPool::Write(std::span<const std::byte> bytes) {
  for (int64_t at = size_; !bytes.empty();) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "keep constants in " + where_);
    at += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ConstantPool::Holds(int64_t offset, std::span<const std::byte> bytes) const {
  std::vector<std::byte> piece(std::min<size_t>(bytes.size(), size_t{1} << 20));
  while (!bytes.empty()) {
    const ssize_t read =
        ::pread(file_.get(), piece.data(), std::min(piece.size(), bytes.size()), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return ErrnoStatus(errno, "read constants from " + where_);
    const auto got = static_cast<size_t>(read);
    if (std::memcmp(piece.data(), bytes.data(), got) != 0) return false;
    offset += read;
    bytes = bytes.subspan(got);
  }
  return true;
}

absl::StatusOr<int64_t> ConstantPool::Add(const graph::ConstantPtr& constant) {
  auto& [object, known] = offset_of_object_[constant.get()];
  if (object.lock() == constant) return known;
  object = constant;
  const std::span<const std::byte> bytes = constant->bytes;
  const Hash128 hash =
      HashBytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<Entry>& same_hash = entries_of_hash_[hash];
  for (const Entry& entry : same_hash) {
    if (entry.bytes != bytes.size()) continue;
    HONE_ASSIGN_OR_RETURN(const bool holds, Holds(entry.offset, bytes));
    if (!holds) continue;
    known = entry.offset;
    return known;
  }
  HONE_RETURN_IF_ERROR(Write(bytes));
  same_hash.push_back({size_, bytes.size()});
  known = size_;
  const auto size = static_cast<int64_t>(bytes.size());
  size_ += (size + kArenaAlignmentBytes - 1) / kArenaAlignmentBytes * kArenaAlignmentBytes;
  return known;
}

absl::StatusOr<runtime::Region> ConstantPool::Take() {
  if (::ftruncate(file_.get(), size_) != 0) {
    return ErrnoStatus(errno, "keep constants in " + where_);
  }
  // The descriptor's own name: what it stands for has none.
  Result<runtime::Region> region =
      runtime::Region::MapFile("/proc/self/fd/" + std::to_string(file_.get()));
  if (!region.ok()) return ToAbsl(region.status());
  return *std::move(region);
}

}  // namespace hone::compiler

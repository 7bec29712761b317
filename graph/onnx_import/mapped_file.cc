#include "graph/onnx_import/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "fmt/format.h"

#include "base/core/unique_fd.h"
#include "base/file.h"
#include "base/status.h"

namespace hone::graph::onnx_import {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
    const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return UnreadableFile(errno, path.string());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return UnreadableFile(errno, path.string());
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("cannot read '{}': {}", path.string(),
                                                  S_ISDIR(status.st_mode)
                                                      ? "it is a folder; name a file in it"
                                                      : "it is no regular file; name one"));
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, fmt::format("map '{}'", path.string()));
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(at), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hone::graph::onnx_import

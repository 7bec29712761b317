#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/core/result.h"

namespace hone::runtime {

/// A piece of address space: anonymous memory or a file read-only. Page-aligned, unmapped by the
/// destructor. Movable, not copyable. The object itself is not thread-safe, its memory is whatever
/// the users make of it.
class Region {
 public:
  Region() = default;
  Region(Region&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, {})) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Region();

  /// Zeroed memory; from 2 MiB on aligned to 2 MiB and offered to the kernel for huge pages (GEMMs
  /// with 4 KiB pages lose up to 2 %). `what` names its purpose in the error (kResourceExhausted).
  /// `data()` is never null, even for no bytes.
  static Result<Region> Allocate(size_t bytes, const std::string& what);

  /// A whole regular file, read-only; from 2 MiB on offered for huge pages. Errors name the path:
  /// kNotFound, kPermissionDenied, kInvalidArgument when it is no regular file. The file must not
  /// shrink while it is mapped.
  static Result<Region> MapFile(const std::string& path);

  /// Memory of somebody else, which must outlive the object and is only read.
  static Region Borrow(std::span<const std::byte> memory);

  /// Makes the memory read-only.
  Status Protect();

  /// Null for an empty file and a default-made object.
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::span<std::byte> mapped_;  // what to unmap; holds [data_, data_ + bytes_)
};

}  // namespace hone::runtime

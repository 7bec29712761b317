#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace hone::graph::onnx_import {

/// A file mapped read-only. The bytes live as long as the object. Thread-safe to read.
class MappedFile {
 public:
  /// kNotFound, kPermissionDenied or kInvalidArgument (no regular file), naming the path.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace hone::graph::onnx_import

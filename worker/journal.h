#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "base/core/unique_fd.h"

namespace hone::worker {

/// A file of lines, each written at once and in order: a killed process leaves whole lines.
/// Thread-safe.
class Journal {
 public:
  /// `path` empty: writes nowhere.
  static absl::StatusOr<Journal> Open(const std::string& path);
  void Write(std::string line) const;

 private:
  explicit Journal(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace hone::worker

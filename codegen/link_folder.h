#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "base/core/clock.h"

namespace hone::codegen {

/// Where link folders may lie, the best first.
std::vector<std::string> LinkBases();

/// A folder for the linker's output, which LLD makes under another name and renames: a file in
/// memory would not do. Removed with what it holds.
class LinkFolder {
 public:
  /// Makes one in `base`; status() says whether it could.
  explicit LinkFolder(const std::string& base);
  LinkFolder(const LinkFolder&) = delete;
  LinkFolder& operator=(const LinkFolder&) = delete;
  ~LinkFolder();

  const absl::Status& status() const { return error_; }
  std::string File() const { return path_ + "/kernel.so"; }

 private:
  std::string path_;
  absl::Status error_;
};

/// Removes what builders that were killed left in `bases`: link folders of this user that nobody
/// has touched for an hour, which is far longer than a job may take. What cannot be removed stays.
void RemoveStaleLinkFolders(const std::vector<std::string>& bases, const WallClock& clock);

}  // namespace hone::codegen

#pragma once

#include <string>
#include <vector>

#include "base/core/unique_fd.h"

namespace hone::measure {

/// Folders of one builder alone, in memory and on disk, for what its linker writes. They go with
/// the object and with what the builder left in them, however that ended; those of a process that
/// was killed go when another sweeps (SweepLeftFolders).
class BuilderFolders {
 public:
  BuilderFolders();
  BuilderFolders(BuilderFolders&&) = default;
  BuilderFolders& operator=(BuilderFolders&&) = delete;
  ~BuilderFolders();

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_;
  std::vector<UniqueFd> locks_;  ///< of the folders themselves: held until the process ends
};

/// Removes what killed processes of this user left: folders of that kind, more than a minute older
/// than `own`, that nobody holds. A few system calls where there are none.
void SweepLeftFolders(const BuilderFolders& own);

}  // namespace hone::measure

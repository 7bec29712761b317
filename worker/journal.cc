#include "worker/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::worker {

absl::StatusOr<Journal> Journal::Open(const std::string& path) {
  if (path.empty()) return Journal(UniqueFd());
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("open '{}'", path));
  return Journal(std::move(fd));
}

void Journal::Write(std::string line) const {
  if (!fd_.valid()) return;
  line += '\n';
  HONE_CHECK(::write(fd_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()))
      << "the journal cannot be written";
}

}  // namespace hone::worker

#include "base/helper_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "fmt/core.h"

namespace hone {

absl::StatusOr<std::string> FindHelperProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "read '/proc/self/exe' (is /proc mounted?)");
  const std::filesystem::path path = self.parent_path().parent_path() / "libexec" / "hone" / name;
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        fmt::format("helper program '{}' is missing or cannot be executed; build or install all of "
                    "Hone again, with the folders bin/ and libexec/ side by side",
                    path.string()));
  }
  return path.string();
}

}  // namespace hone

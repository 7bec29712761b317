#include "base/helper_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "fmt/core.h"

namespace hone {

namespace {

absl::StatusOr<std::filesystem::path> FolderOfProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "read '/proc/self/exe' (is /proc mounted?)");
  return self.parent_path();
}

}  // namespace

absl::StatusOr<std::string> FindHelperProgram(const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path folder, FolderOfProgram());
  const std::filesystem::path path = folder.parent_path() / "libexec" / "hone" / name;
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        fmt::format("helper program '{}' is missing or cannot be executed; build or install all of "
                    "Hone again, with the folders bin/ and libexec/ side by side",
                    path.string()));
  }
  return path.string();
}

absl::StatusOr<std::string> FindSiblingProgram(const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path folder, FolderOfProgram());
  const std::filesystem::path path = folder / name;
  if (::access(path.c_str(), X_OK) == 0) return path.string();
  return absl::NotFoundError(fmt::format(
      "program '{}' is missing or cannot be executed; build or install it, too", path.string()));
}

}  // namespace hone

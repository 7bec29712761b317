#include "client/output_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fmt/format.h"

namespace hone::client {

absl::Status CheckOutput(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot write '{}': it is a folder; name a file in it", path));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return absl::OkStatus();
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(fmt::format(
        "cannot write '{}': there is no folder '{}'; make it first", path, folder.string()));
  }
  // A file is written beside its place and renamed: the folder decides.
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write '{}': folder '{}': {}; name a file in a folder of yours", path,
                    folder.string(), std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace hone::client

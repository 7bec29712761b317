#include "client/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fmt/format.h"

#include "base/status.h"
#include "client/exit_code.h"
#include "db/log_file.h"

namespace hone::client {
namespace {

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// Whether writing to `path` would lose one of `inputs`.
absl::Status CheckInputs(const std::string& path, const std::vector<std::string>& inputs) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return absl::OkStatus();
  for (const std::string& input : inputs) {
    struct stat asked {};
    if (::stat(input.c_str(), &asked) != 0) continue;
    if (asked.st_dev != there.st_dev || asked.st_ino != there.st_ino) continue;
    return Usage(
        fmt::format("cannot write '{}': this command reads '{}', the same file; name another one",
                    path, input));
  }
  return absl::OkStatus();
}

absl::Status CheckPlace(const std::string& path, const std::vector<std::string>& inputs,
                        bool snapshot) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot write '{}': it is a folder; name a file in it", path));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A snapshot is a database that is renamed to its name, and would replace what is there.
    if (!snapshot) return absl::OkStatus();
    return Usage(fmt::format(
        "cannot write a snapshot to '{}': it is no file but a device or a pipe; name a file",
        path));
  }
  HONE_RETURN_IF_ERROR(CheckInputs(path, inputs));
  const db::FileKind kind = db::KindOfFile(path);
  if (snapshot && kind == db::FileKind::kSnapshot) {
    return Usage(fmt::format(
        "cannot write '{}': another snapshot is there, and builds may be pinned to it; name "
        "another file, or remove that one first",
        path));
  }
  if (kind == db::FileKind::kLog || kind == db::FileKind::kSnapshot) {
    return Usage(
        fmt::format("cannot write '{}': a tuning log of Hone is there; name another file", path));
  }
  if (snapshot && std::filesystem::exists(status)) {
    return Usage(fmt::format(
        "cannot write a snapshot to '{}': a file that is no snapshot is there; name another file",
        path));
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

}  // namespace

std::vector<std::string> InputFiles(const Arguments& arguments) {
  const std::string model = arguments.Text("MODEL");
  std::vector<std::string> files = {
      model, std::filesystem::path(model).replace_extension(".inputs.npz").string()};
  for (const char* option : {"inputs", "input", "bind", "expect", "db", "snapshot"}) {
    if (arguments.command()->FindOption(option) == nullptr) continue;
    for (const std::string& text : arguments.List(option)) {
      // FILE, NAME=FILE or FILE@sha256:DIGEST.
      files.push_back(text);
      files.push_back(text.substr(text.rfind('=') + 1));
      files.push_back(text.substr(0, text.rfind("@sha256:")));
    }
  }
  return files;
}

absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs) {
  return CheckPlace(path, inputs, false);
}

absl::Status CheckSnapshotOutput(const std::string& path, const std::vector<std::string>& inputs) {
  return CheckPlace(path, inputs, true);
}

}  // namespace hone::client

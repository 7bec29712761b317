#include "client/server_snapshot.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "client/server_connection.h"
#include "client/server_options.h"

namespace hone::client {

ServerSnapshot::ServerSnapshot(std::string folder)
    : folder_(std::move(folder)), path_(folder_ + "/snapshot.db") {}

ServerSnapshot::~ServerSnapshot() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<ServerSnapshot>> ServerSnapshot::Take(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  std::string folder = temporary / "hone-snapshot-XXXXXX";
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return absl::PermissionDeniedError(
        fmt::format("cannot make a folder in '{}': {}; name another one in TMPDIR",
                    temporary.string(), error ? error.message() : std::strerror(errno)));
  }
  std::unique_ptr<ServerSnapshot> snapshot(new ServerSnapshot(std::move(folder)));
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  HONE_RETURN_IF_ERROR(server->Snapshot(snapshot->path(), ServerConnection::Use::kRead).status());
  return snapshot;
}

}  // namespace hone::client

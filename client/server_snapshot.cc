#include "client/server_snapshot.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/status.h"
#include "client/server_connection.h"
#include "client/server_options.h"

namespace hone::client {

ServerSnapshot::ServerSnapshot(std::string folder, bool json)
    : folder_(std::move(folder)), path_(folder_ + "/snapshot.db"), on_signal_("db", json) {
  on_signal_.Set({path_, ServerConnection::TemporaryOf(path_)}, folder_);
}

ServerSnapshot::~ServerSnapshot() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<ServerSnapshot>> ServerSnapshot::Take(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  // By a name that is known, and nobody else's, before it is made: a signal may come in between.
  const std::string folder = temporary / ("hone-snapshot-" + RandomId().ToHex());
  std::unique_ptr<ServerSnapshot> snapshot(new ServerSnapshot(folder, arguments.Flag("json")));
  if (error || ::mkdir(folder.c_str(), 0700) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("cannot make a folder in '{}': {}; name another one in TMPDIR",
                    temporary.string(), error ? error.message() : std::strerror(errno)));
  }
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  HONE_RETURN_IF_ERROR(server->Snapshot(snapshot->path(), ServerConnection::Use::kRead).status());
  return snapshot;
}

}  // namespace hone::client

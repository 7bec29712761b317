#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "client/arguments.h"

namespace hone::client {

/// A server's log as it stood a moment ago, in a temporary file of this machine that goes with the
/// object. Needs as much room in the folder for temporary files (TMPDIR) as the log takes.
class ServerSnapshot {
 public:
  /// From the server that the arguments name; the errors are those of ServerConnection.
  static absl::StatusOr<std::unique_ptr<ServerSnapshot>> Take(const Arguments& arguments);
  ~ServerSnapshot();
  ServerSnapshot(const ServerSnapshot&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ServerSnapshot(std::string folder);

  const std::string folder_, path_;
};

}  // namespace hone::client

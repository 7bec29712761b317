#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/remove_on_signal.h"

namespace hone::client {

/// A server's log as it stood a moment ago, in a temporary file of this machine that goes with the
/// object, or with the program on a signal (RemoveOnSignal). Needs as much room in the folder for
/// temporary files (TMPDIR) as the log takes.
class ServerSnapshot {
 public:
  /// From the server that the arguments name; the errors are those of ServerConnection.
  static absl::StatusOr<std::unique_ptr<ServerSnapshot>> Take(const Arguments& arguments);
  ~ServerSnapshot();
  ServerSnapshot(const ServerSnapshot&) = delete;

  const std::string& path() const { return path_; }

 private:
  ServerSnapshot(std::string folder, bool json);

  const std::string folder_, path_;
  RemoveOnSignal on_signal_;
};

}  // namespace hone::client

#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/server_connection.h"

namespace hone::client {

/// Whether the command has --server and it was given.
bool AsksServer(const Arguments& arguments);

/// "--server tuner:7421 --tls 'my creds'": the options that name the same server, quoted for a
/// shell.
std::string ServerWords(const Arguments& arguments);

/// --server, --tls and --insecure-loopback of a command; usage errors.
absl::StatusOr<ServerAddress> ReadServer(const Arguments& arguments);

}  // namespace hone::client

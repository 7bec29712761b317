#include "client/server_options.h"

#include <utility>

#include "fmt/format.h"

#include "base/credentials.h"
#include "base/farm_address.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/option_table.h"

namespace hone::client {

bool AsksServer(const Arguments& arguments) {
  return arguments.command() != nullptr && arguments.command()->FindOption("server") != nullptr &&
         arguments.Given("server");
}

std::string ServerWords(const Arguments& arguments) {
  std::string words = "--server " + ShellWord(arguments.Text("server"));
  if (arguments.Given("tls")) words += " --tls " + ShellWord(arguments.Text("tls"));
  if (arguments.Flag("insecure-loopback")) words += " --insecure-loopback";
  return words;
}

absl::StatusOr<ServerAddress> ReadServer(const Arguments& arguments) {
  ServerAddress server;
  server.address = arguments.TextOr("server", "");
  server.plaintext = arguments.Flag("insecure-loopback");
  server.tls_folder = arguments.TextOr("tls", "");
  if (server.address.empty() || (server.tls_folder.empty() && !server.plaintext)) {
    return WithExitCode(
        absl::InvalidArgumentError("name a server with --server ADDRESS and the folder of your "
                                   "credentials with --tls FOLDER (or both in the config file)"),
        ExitCode::kUsage);
  }
  if (auto dialled = DialAddress(server.address); dialled.ok()) {
    server.address = *std::move(dialled);
  } else {
    return WithExitCode(Annotate(dialled.status(), "--server"), ExitCode::kUsage);
  }
  if (server.plaintext && !IsLoopbackAddress(server.address)) {
    return WithExitCode(
        absl::InvalidArgumentError(fmt::format(
            "--insecure-loopback is for servers on this machine, '{}' is not one", server.address)),
        ExitCode::kUsage);
  }
  return server;
}

}  // namespace hone::client

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "absl/synchronization/mutex.h"

#include "base/log.h"
#include "client/program.h"
#include "proto/quiet_grpc.h"

namespace {

/// $VARIABLE/hone, or ~/FALLBACK/hone; empty without a home. The specification tells to ignore
/// relative paths (specifications.freedesktop.org/basedir-spec).
std::string UserFolder(const char* variable, const char* fallback) {
  const char* given = std::getenv(variable);
  if (given != nullptr && given[0] == '/') return std::string(given) + "/hone";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return std::string(home) + "/" + fallback + "/hone";
}

/// A pipe or socket whose other end is closed.
bool OutputAbandoned() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Debian builds Abseil with deadlock detection on; it costs four times the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // A child that dies while it is written to is an error message, not our death.
  std::signal(SIGPIPE, SIG_IGN);
  const hone::LogSession log({.plain = true});
  hone::proto::KeepGrpcQuiet();
  const hone::SystemMonotonicClock clock;
  hone::client::Environment environment;
  environment.config_path = UserFolder("XDG_CONFIG_HOME", ".config");
  if (!environment.config_path.empty()) environment.config_path += "/config.toml";
  environment.cache_folder = UserFolder("XDG_CACHE_HOME", ".cache");
  environment.data_folder = UserFolder("XDG_DATA_HOME", ".local/share");
  if (const char* log_path = std::getenv("HONE_DB")) environment.log_path = log_path;
  environment.clock = &clock;
  environment.output_abandoned = OutputAbandoned;
  environment.error_is_terminal = ::isatty(STDERR_FILENO) == 1;
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(hone::client::RunProgram(words, environment, std::cout, std::cerr));
}

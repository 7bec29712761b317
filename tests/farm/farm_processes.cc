#include "tests/farm/farm_processes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/unique_fd.h"
#include "tests/test_paths.h"

namespace hone::farm {

Folder::Folder() {
  const bool memory = std::filesystem::is_directory("/dev/shm");
  std::string path =
      (memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
      "hone-farm-XXXXXX";
  EXPECT_NE(::mkdtemp(path.data()), nullptr) << path;
  path_ = path;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Program(const std::string& name) { return testing::BuildDir() + "/bin/" + name; }

Ran RunToEnd(const std::vector<std::string>& argv) {
  SubprocessOptions options;
  options.argv = argv;
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.standard_input = ChildStream::kNull;
  RunOptions run;
  run.timeout_ns = int64_t{60} * 1'000'000'000;
  const auto result = RunSubprocess(options, run, SystemMonotonicClock());
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_FALSE(result->timed_out) << argv.front();
  return {result->exit_state.code.value_or(-1), result->standard_output, result->standard_error};
}

namespace {

/// Takes a port of loopback, 0: any, until this process ends, and does not listen; 0: somebody has
/// it. Who listens with SO_REUSEADDR, as gRPC and libmicrohttpd do, still can; nobody else is given
/// it for a port that he does not name.
int TakePort(int port) {
  static std::vector<UniqueFd> taken;
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  taken.push_back(std::move(fd));
  return ntohs(address.sin_port);
}

}  // namespace

int FreePort() {
  const int port = TakePort(0);
  EXPECT_GT(port, 0);
  return port;
}

int FreePortPair() {
  constexpr int kDraws = 100, kLast = 65'535;
  for (int draw = 0; draw < kDraws; ++draw) {
    const int port = FreePort();
    if (port < kLast && TakePort(port + 1) > 0) return port;
  }
  ADD_FAILURE() << "no two ports side by side";
  return 0;
}

Daemon::Daemon(std::string name, std::vector<std::string> argv, std::string log)
    : name_(std::move(name)), argv_(std::move(argv)), log_(std::move(log)) {}

Daemon::~Daemon() {
  if (child_) Kill();
}

void Daemon::Start(const std::vector<std::string>& more) {
  SubprocessOptions options;
  // The shell only opens the file for it: exec keeps the process.
  std::string line = "exec";
  for (const std::string& word : argv_) line += " '" + word + "'";
  for (const std::string& word : more) line += " '" + word + "'";
  const size_t said = Said().size();
  options.argv = {"/bin/sh", "-c", line + " >>'" + log_ + "' 2>&1"};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.standard_input = ChildStream::kNull;
  options.standard_output = ChildStream::kNull;
  options.standard_error = ChildStream::kNull;
  auto child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  child_.emplace(*std::move(child));
  if (argv_.front() == Program("honed")) AwaitListening(said);
}

void Daemon::AwaitListening(size_t said) const {
  constexpr int kTurns = 300;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (Said().find("listens on port", said) != std::string::npos) return;
    pollfd ended{.fd = child_->exit_fd(), .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, 50) > 0) return;
  }
}

void Daemon::Kill() {
  if (!child_) return;
  ::kill(child_->pid(), SIGKILL);
  (void)child_->Wait(clock_, -1);
  child_.reset();
  ++kills_;
}

std::optional<int> Daemon::Terminate(int64_t timeout_ns) { return Signal(SIGTERM, timeout_ns); }

std::optional<int> Daemon::Interrupt(int64_t timeout_ns) { return Signal(SIGINT, timeout_ns); }

std::optional<int> Daemon::Signal(int signal, int64_t timeout_ns) {
  if (!child_) return std::nullopt;
  ::kill(child_->pid(), signal);
  const auto ended = child_->Wait(clock_, timeout_ns);
  std::optional<int> code;
  if (ended.ok() && ended->has_value()) code = (*ended)->code;
  child_.reset();
  return code;
}

std::optional<int> Daemon::Ended() {
  if (!child_) return std::nullopt;
  const auto ended = child_->Wait(clock_, 0);
  if (!ended.ok() || !ended->has_value()) return std::nullopt;
  const int code = (*ended)->code.value_or(-1);
  child_.reset();
  return code;
}

std::string Daemon::Said() const {
  std::ifstream file(log_);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

FarmFolder::FarmFolder() : port_(FreePort()) {
  const Ran made = RunToEnd({Program("honed"), "init-ca", "--ca", Path("ca")});
  EXPECT_EQ(made.code, 0) << made.err;
  Issue("server", "honed");
}

std::string FarmFolder::Issue(const std::string& role, const std::string& name) const {
  const Ran issued =
      RunToEnd({Program("honed"), "issue", role, name, "--ca", Path("ca"), "--out", Path(name)});
  EXPECT_EQ(issued.code, 0) << issued.err;
  return Path(name);
}

std::string FarmFolder::Address() const { return fmt::format("127.0.0.1:{}", port_); }

std::vector<std::string> FarmFolder::HonedArgv() const {
  return {Program("honed"), "--db",     LogPath(),   "--listen",       Address(), "--tls",
          Path("honed"),    "--config", "/dev/null", "--heartbeat-ms", "200"};
}

std::vector<std::string> FarmFolder::WorkerArgv(const std::string& name,
                                                const std::string& address) const {
  return {Program("hone-worker"),
          "--connect",
          address.empty() ? Address() : address,
          "--tls",
          Path(name),
          "--journal",
          Journal(name),
          "--config",
          "/dev/null",
          "--lock-folder",
          Path("locks"),
          "--builders",
          "1"};
}

std::vector<std::string> FarmFolder::ServerWords(const std::string& who) const {
  return {"--server", through_.empty() ? Address() : through_, "--tls", Path(who)};
}

std::vector<std::vector<std::string>> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string>& out = lines.emplace_back();
    for (std::string word; words >> word;) out.push_back(word);
  }
  return lines;
}

}  // namespace hone::farm

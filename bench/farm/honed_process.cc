#include "bench/farm/honed_process.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "server/ca.h"

namespace hone::bench {
namespace {

constexpr int64_t kLookNs = 5'000'000;
constexpr int64_t kPatienceNs = 120'000'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// honed of the same build tree.
std::string HonedProgram() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "honed";
}

/// utime + stime of a stat file, and the thread's name.
bool ReadStat(const std::string& path, std::string* name, double* seconds) {
  const std::string text = ReadAll(path);
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return false;
  *name = text.substr(open + 1, close - open - 1);
  std::istringstream fields(text.substr(close + 1));
  std::string word;
  constexpr int kUserTime = 14, kFirst = 3;
  for (int field = kFirst; field < kUserTime; ++field) fields >> word;
  double user = 0, system = 0;
  fields >> user >> system;
  *seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return true;
}

}  // namespace

HonedProcess::HonedProcess(Options options, const MonotonicClock& clock)
    : options_(std::move(options)), clock_(clock) {}

absl::Status HonedProcess::Issue(const std::string& role, const std::string& name) const {
  const int64_t now_s = SystemWallClock().UnixNs() / kNsPerSecond;
  const std::string ca = options_.folder + "/ca";
  if (!std::filesystem::exists(ca + "/ca.key")) {
    HONE_RETURN_IF_ERROR(server::InitCa(ca, now_s));
  }
  HONE_ASSIGN_OR_RETURN(const server::Identity identity,
                        server::ParseIdentity("spiffe://hone/" + role + "/" + name));
  return server::Issue({.ca_folder = ca,
                        .role = identity.role,
                        .name = name,
                        .out_folder = options_.folder + "/" + name,
                        .now_unix_s = now_s});
}

std::string HonedProcess::Address() const { return fmt::format("127.0.0.1:{}", port_); }

absl::Status HonedProcess::Start() {
  const std::string said = fmt::format("{}/honed.{}.out", options_.folder, starts_++);
  std::string line =
      fmt::format("exec '{}' --db '{}' --listen '{}' --tls '{}/honed' --config /dev/null",
                  options_.program.empty() ? HonedProgram() : options_.program, LogPath(),
                  Address(), options_.folder);
  SubprocessOptions child;
  // The shell only opens the files for it: exec keeps the process.
  child.argv = {"/bin/sh", "-c",
                fmt::format("{} >'{}' 2>>'{}/honed.log'", line, said, options_.folder)};
  child.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  child.standard_input = ChildStream::kNull;
  child.standard_output = child.standard_error = ChildStream::kNull;
  HONE_ASSIGN_OR_RETURN(Subprocess started, Subprocess::Spawn(child));
  child_.emplace(std::move(started));
  const int64_t until_ns = clock_.NowNs() + kPatienceNs;
  constexpr char kListens[] = "listens on port ";
  while (clock_.NowNs() < until_ns) {
    const std::string text = ReadAll(said);
    const size_t at = text.find(kListens);
    if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
      port_ = std::atoi(text.c_str() + at + sizeof kListens - 1);
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const auto ended, child_->Wait(clock_, 0));
    if (ended) {
      return absl::UnavailableError(
          fmt::format("honed ended ({}); see {}/honed.log", ended->ToString(), options_.folder));
    }
    clock_.SleepNs(kLookNs);
  }
  return absl::UnavailableError("honed does not listen");
}

void HonedProcess::Kill() {
  if (!child_) return;
  ::kill(child_->pid(), SIGKILL);
  (void)child_->Wait(clock_, -1);
  child_.reset();
}

absl::Status HonedProcess::Terminate() {
  if (!child_) return absl::OkStatus();
  ::kill(child_->pid(), SIGTERM);
  HONE_ASSIGN_OR_RETURN(const auto ended, child_->Wait(clock_, kPatienceNs));
  child_.reset();
  if (ended && ended->success()) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("honed ended badly: {}", ended ? ended->ToString() : "not at all"));
}

void ProcessMeter::Look() {
  const std::string folder = fmt::format("/proc/{}", pid_);
  std::string name;
  double seconds = 0;
  if (!ReadStat(folder + "/stat", &name, &seconds)) return;
  total_s_ = seconds;
  int64_t pages = 0, resident = 0;
  std::istringstream(ReadAll(folder + "/statm")) >> pages >> resident;
  rss_mib_ = static_cast<double>(resident * ::sysconf(_SC_PAGE_SIZE)) / (1 << 20);
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", ignored)) {
    if (!ReadStat(task.path().string() + "/stat", &name, &seconds)) continue;
    threads_[task.path().filename().string()] = {name, seconds};
  }
}

std::map<std::string, double> ProcessMeter::Seconds() const {
  std::map<std::string, double> by_name;
  double known = 0;
  for (const auto& [number, thread] : threads_) {
    by_name[thread.name] += thread.seconds;
    known += thread.seconds;
  }
  if (total_s_ > known) by_name["ended"] += total_s_ - known;
  return by_name;
}

}  // namespace hone::bench

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/subprocess.h"

// Real programs of a farm on loopback, for tests that kill them.
namespace hone::farm {

struct Ran {
  int code = -1;
  std::string out, err;
};

/// A folder of this test in memory, removed with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The path of a program of the build tree.
std::string Program(const std::string& name);

/// Runs a program to its end, at most a minute.
Ran RunToEnd(const std::vector<std::string>& argv);

/// A TCP port of loopback that nobody listens on, kept for programs of this test until it ends.
int FreePort();

/// The first of two of them, one beside the other.
int FreePortPair();

/// A program that is started, killed and started again; what it says is appended to a file.
class Daemon {
 public:
  Daemon(std::string name, std::vector<std::string> argv, std::string log);
  ~Daemon();

  /// `more`: further words of its command line, this time. honed is waited for until it listens or
  /// ends, 15 s at most: who asks where nothing listens gives up at once.
  void Start(const std::vector<std::string>& more = {});
  /// SIGKILL to the program alone, as the kernel's out-of-memory killer would.
  void Kill();
  /// SIGTERM, then waits at most `timeout_ns`; the exit code, nothing if it had to be killed.
  std::optional<int> Terminate(int64_t timeout_ns = 30'000'000'000);
  /// The same with SIGINT.
  std::optional<int> Interrupt(int64_t timeout_ns = 30'000'000'000);
  /// The exit code when it has ended by itself; nothing while it runs.
  std::optional<int> Ended();
  bool running() const { return child_.has_value(); }
  const std::string& name() const { return name_; }
  int kills() const { return kills_; }
  std::string Said() const;

 private:
  /// `said`: bytes of its log before this start.
  void AwaitListening(size_t said) const;
  std::optional<int> Signal(int signal, int64_t timeout_ns);

  const std::string name_;
  const std::vector<std::string> argv_;
  const std::string log_;
  const SystemMonotonicClock clock_;
  std::optional<Subprocess> child_;
  int kills_ = 0;
};

/// A farm's folder: an authority, credentials for honed, workers and a client, and the log.
class FarmFolder {
 public:
  FarmFolder();

  std::vector<std::string> HonedArgv() const;
  /// `address` empty: honed's own.
  std::vector<std::string> WorkerArgv(const std::string& name,
                                      const std::string& address = "") const;
  /// Words of `hone` that say which server and who asks.
  std::vector<std::string> ServerWords(const std::string& who) const;
  /// From now on `hone` goes through this address (a proxy).
  void ReachThrough(const std::string& address) { through_ = address; }
  /// The log lies in another folder, a disk of its own.
  void KeepLogIn(const std::string& folder) { log_folder_ = folder; }
  /// Makes the credentials of a name; its folder.
  std::string Issue(const std::string& role, const std::string& name) const;
  std::string Journal(const std::string& name) const { return folder_ / (name + ".journal"); }
  std::string LogPath() const {
    return log_folder_.empty() ? folder_ / "tune.db" : log_folder_ + "/tune.db";
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Address() const;
  int port() const { return port_; }

 private:
  Folder folder_;
  int port_ = 0;
  std::string through_, log_folder_;
};

/// The lines of a file, each in words.
std::vector<std::vector<std::string>> LinesOf(const std::string& path);

}  // namespace hone::farm

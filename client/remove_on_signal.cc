#include "client/remove_on_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/check.h"
#include "client/exit_code.h"
#include "client/json_text.h"

namespace hone::client {
namespace {

constexpr const char kMessage[] = "interrupted; nothing was kept";
constexpr size_t kMostFiles = 2;

/// What the handler, which may allocate nothing, removes and says; whole before `g_set`.
using Path = std::array<char, PATH_MAX>;
std::array<Path, kMostFiles> g_files;
Path g_folder;
std::atomic<bool> g_set{false};
std::atomic<bool> g_json{false};
std::array<char, 256> g_error, g_object;

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kSignals.size()> g_before;

void Say(int fd, const std::array<char, 256>& text) {
  // Nobody may be there to read it; the end is the same.
  if (::write(fd, text.data(), std::strlen(text.data())) < 0) {
  }
}

void OnSignal(int /*signal*/) {
  if (g_set) {
    for (const Path& file : g_files) ::unlink(file.data());
    ::rmdir(g_folder.data());
  }
  Say(STDERR_FILENO, g_error);
  if (g_json) Say(STDOUT_FILENO, g_object);
  ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

template <size_t N>
void Copy(const std::string& text, std::array<char, N>* into) {
  // A name that is too long for the system names no file.
  const bool fits = text.size() < N;
  std::memcpy(into->data(), fits ? text.c_str() : "", fits ? text.size() + 1 : 1);
}

}  // namespace

RemoveOnSignal::RemoveOnSignal(std::string_view command, bool json) {
  g_set = false;
  g_json = json;
  Copy(fmt::format("hone {}: {}\n", command, kMessage), &g_error);
  const nlohmann::ordered_json object = {
      {"error",
       {{"code", static_cast<int>(ExitCode::kInterrupted)},
        {"name", std::string(ExitCodeName(ExitCode::kInterrupted))},
        {"message", kMessage}}}};
  Copy(JsonText(object) + "\n", &g_object);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    sigaction(kSignals[i], &action, nullptr);
  }
}

RemoveOnSignal::~RemoveOnSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  g_set = false;
}

void RemoveOnSignal::Set(const std::vector<std::string>& files, const std::string& folder) {
  HONE_CHECK(files.size() <= kMostFiles && !g_set);
  for (Path& file : g_files) file[0] = '\0';
  for (size_t i = 0; i < files.size(); ++i) Copy(files[i], &g_files[i]);
  Copy(folder, &g_folder);
  g_set = true;
}

}  // namespace hone::client

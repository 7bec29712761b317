#include "client/tune_signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/exit_code.h"
#include "client/json_text.h"

namespace hone::client {
namespace {

/// What a handler may print: ready-made, because it may call nothing that allocates. Two, so that
/// one is whole while the other is written.
struct LastWords {
  std::array<char, 2048> error;
  std::array<char, 4096> json;
  size_t error_bytes = 0, json_bytes = 0;
};
std::array<LastWords, 2> g_last_words;
std::atomic<int> g_current{0};
std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_in_session{false};
std::atomic<bool> g_json{false};

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGALRM, SIGHUP, SIGXFSZ};
std::array<struct sigaction, kSignals.size()> g_before;

[[noreturn]] void EndNow() {
  const LastWords& words = g_last_words[static_cast<size_t>(g_current.load())];
  // Nobody may be there to read it; the end is the same.
  if (::write(STDERR_FILENO, words.error.data(), words.error_bytes) < 0) {
  }
  if (g_json && ::write(STDOUT_FILENO, words.json.data(), words.json_bytes) < 0) {
  }
  ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

void OnSignal(int signal) {
  if (signal == SIGALRM || !g_in_session || g_interrupted.exchange(true)) EndNow();
  ::alarm(TuneSignals::kGraceSeconds);
}

template <size_t N>
size_t Copy(const std::string& text, std::array<char, N>* into) {
  const size_t bytes = std::min(text.size(), N);
  std::memcpy(into->data(), text.data(), bytes);
  return bytes;
}

}  // namespace

TuneSignals::TuneSignals(bool json) {
  g_interrupted = false;
  g_in_session = false;
  g_json = json;
  SetMessage("interrupted; nothing was measured yet, so nothing was kept");
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    const bool ignored = kSignals[i] == SIGHUP || kSignals[i] == SIGXFSZ;
    action.sa_handler = ignored ? SIG_IGN : OnSignal;
    sigaction(kSignals[i], &action, &g_before[i]);
  }
}

TuneSignals::~TuneSignals() {
  ::alarm(0);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
}

void TuneSignals::SetMessage(const std::string& message) {
  const int next = 1 - g_current.load();
  LastWords& words = g_last_words[static_cast<size_t>(next)];
  words.error_bytes = Copy(fmt::format("hone tune: {}\n", message), &words.error);
  const nlohmann::ordered_json object = {
      {"error",
       {{"code", static_cast<int>(ExitCode::kInterrupted)},
        {"name", std::string(ExitCodeName(ExitCode::kInterrupted))},
        {"message", message}}}};
  words.json_bytes = Copy(JsonText(object) + "\n", &words.json);
  g_current = next;
}

void TuneSignals::BeginSession() { g_in_session = true; }

const std::atomic<bool>* TuneSignals::interrupted() { return &g_interrupted; }

}  // namespace hone::client

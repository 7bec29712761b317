#pragma once

#include <atomic>
#include <string>

namespace hone::client {

/// How a tuning ends when it is asked to, at every moment of it. One at a time, while it lives:
///
/// SIGINT, SIGTERM   Before BeginSession the program ends at once with exit code 7: nothing was
/// begun.
///                   In a session `interrupted` becomes true and the session finishes its record; a
///                   second signal, or kGraceSeconds, ends the program with 7 whatever it is doing:
///                   every commit was whole, so is the log.
///                   With --json also when nobody reads the progress any more.
/// SIGHUP            is ignored: a closed terminal leaves the tuning running.
/// SIGXFSZ           is ignored: a file that may not grow is an error of writing, like a full disk.
class TuneSignals {
 public:
  /// `json`: an end at once also prints an error object on standard output.
  explicit TuneSignals(bool json);
  ~TuneSignals();
  TuneSignals(const TuneSignals&) = delete;
  TuneSignals& operator=(const TuneSignals&) = delete;

  /// What an end at once says from now on. Not from several threads.
  void SetMessage(const std::string& message);
  void BeginSession();

  static const std::atomic<bool>* interrupted();
  static constexpr int kGraceSeconds = 5;
};

}  // namespace hone::client

#pragma once

#include <cstdint>
#include <string_view>

// What is simulated, and with which mistake.
namespace hone::sim {

/// What a coordinator could get wrong; the simulation must notice each.
enum class Mistake : uint8_t {
  kNone,
  kSendBeforeCommit,     ///< acknowledge before the commit is synced
  kReuseStart,           ///< tokens begin anew after a restart
  kForgetOpenLeases,     ///< after a restart
  kCloseWithoutLease,    ///< results without the end of their lease
  kAcceptAnyToken,       ///< a result counts whatever became of its lease
  kDuplicateByContent,   ///< two results of equal content are one
  kNoRefund,             ///< a lost attempt keeps its trial
  kLostCredit,           ///< a worker's credit is not counted from zero on a new stream
  kWallClockLeases,      ///< limits of leases on a clock that jumps
  kLowSynchronous,       ///< commits that are not synced
  kForgetEvents,         ///< a restart replays all but the last of the search's events
  kForgetSuspects,       ///< a restart forgets whose worker was lost
  kIgnoreDeadline,       ///< a session's time is over, and it goes on
  kForgetDeadline,       ///< after a restart
  kWorkerClock,          ///< leases end at times of honed's clock, by the worker's
  kAnswerApart,          ///< a request's answer is committed after its effect, not with it
  kShowBeforeCommit,     ///< a watcher sees events before they are synced
  kSwapArtifacts,        ///< a runner gets another candidate's hash
  kForgetStarted,        ///< after a restart every open lease is one that has not run
  kBelieveAfterRestart,  ///< what would be held back counts when it is asked for anew
  kForgetRevoked,        ///< a restart forgets whose certificates were revoked
  kForgetDrained,        ///< and which devices an operator drained
  kForgetPause,          ///< its own pause is workers' silence
};
inline constexpr int kNumMistakes = 24;
std::string_view NameOf(Mistake mistake);

struct SimulationOptions {
  uint64_t seed = 0;
  Mistake mistake = Mistake::kNone;
  int sessions = 2;
  int trials = 14;                ///< of each session
  int workers = 3;                ///< that build what they run
  int builders = 0, runners = 0;  ///< that build for others, and run what others built
  int steps = 20'000;
  /// Devices that fail and lie now and then, drivers that take their time to replay, and a
  /// comparison in the end of each session.
  bool doubts = false;
  /// Certificates are revoked, devices drained and sessions cancelled in flight; what was said on a
  /// stream comes after the next one's words, and a client's replies in any order.
  bool operators = false;
  /// honed stands still now and then, for up to four times as long as workers may be silent.
  bool pauses = false;
};

/// A farm in which this mistake can be noticed: with what it is about, and time to end.
SimulationOptions OptionsFor(Mistake mistake, uint64_t seed);

}  // namespace hone::sim

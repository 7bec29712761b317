#include "server/transitions.h"

#include <array>
#include <vector>

#include "base/core/check.h"

namespace hone::server {
namespace {

template <typename State, typename Trigger>
struct Row {
  State from;
  Trigger trigger;
  State to;
};

constexpr std::array<Row<SessionState, SessionTrigger>, 9> kSession = {{
    {SessionState::kWaiting, SessionTrigger::kBegin, SessionState::kRunning},
    {SessionState::kWaiting, SessionTrigger::kCancel, SessionState::kCancelling},
    {SessionState::kWaiting, SessionTrigger::kFail, SessionState::kFailed},
    {SessionState::kRunning, SessionTrigger::kBegin, SessionState::kRunning},  // after a restart
    {SessionState::kRunning, SessionTrigger::kCancel, SessionState::kCancelling},
    {SessionState::kRunning, SessionTrigger::kEnd, SessionState::kFinished},
    {SessionState::kRunning, SessionTrigger::kFail, SessionState::kFailed},
    {SessionState::kCancelling, SessionTrigger::kCancel, SessionState::kCancelling},
    {SessionState::kCancelling, SessionTrigger::kEmptied, SessionState::kCancelled},
}};

constexpr std::array<Row<AttemptState, AttemptTrigger>, 9> kAttempt = {{
    {AttemptState::kWaiting, AttemptTrigger::kGrant, AttemptState::kLeased},
    {AttemptState::kWaiting, AttemptTrigger::kCondemn, AttemptState::kAnswered},
    {AttemptState::kWaiting, AttemptTrigger::kDrop, AttemptState::kClosed},
    {AttemptState::kLeased, AttemptTrigger::kTakeBack, AttemptState::kWaiting},
    {AttemptState::kLeased, AttemptTrigger::kAnswer, AttemptState::kAnswered},
    {AttemptState::kLeased, AttemptTrigger::kBuilt, AttemptState::kWaiting},
    {AttemptState::kLeased, AttemptTrigger::kDrop, AttemptState::kClosed},
    {AttemptState::kAnswered, AttemptTrigger::kCommit, AttemptState::kClosed},
    {AttemptState::kAnswered, AttemptTrigger::kDrop, AttemptState::kClosed},
}};

constexpr std::array<Row<LeaseState, LeaseTrigger>, 14> kLease = {{
    {LeaseState::kGranted, LeaseTrigger::kStart, LeaseState::kStarted},
    {LeaseState::kGranted, LeaseTrigger::kAnswer, LeaseState::kAnswered},
    {LeaseState::kGranted, LeaseTrigger::kBuilt, LeaseState::kBuilt},
    {LeaseState::kGranted, LeaseTrigger::kExpire, LeaseState::kExpired},
    {LeaseState::kGranted, LeaseTrigger::kGiveBack, LeaseState::kReturned},
    {LeaseState::kGranted, LeaseTrigger::kRevoke, LeaseState::kRevoked},
    {LeaseState::kGranted, LeaseTrigger::kLose, LeaseState::kLost},
    {LeaseState::kStarted, LeaseTrigger::kAnswer, LeaseState::kAnswered},
    {LeaseState::kStarted, LeaseTrigger::kExpire, LeaseState::kExpired},
    {LeaseState::kStarted, LeaseTrigger::kGiveBack, LeaseState::kReturned},
    {LeaseState::kStarted, LeaseTrigger::kRevoke, LeaseState::kRevoked},
    {LeaseState::kStarted, LeaseTrigger::kLose, LeaseState::kLost},
    {LeaseState::kAnswered, LeaseTrigger::kCommit, LeaseState::kDone},
    {LeaseState::kAnswered, LeaseTrigger::kRevoke, LeaseState::kRevoked},
}};

constexpr std::array<Row<WorkerState, WorkerTrigger>, 9> kWorker = {{
    {WorkerState::kConnected, WorkerTrigger::kConnect, WorkerState::kConnected},
    {WorkerState::kConnected, WorkerTrigger::kDrain, WorkerState::kDraining},
    {WorkerState::kConnected, WorkerTrigger::kDisconnect, WorkerState::kGone},
    {WorkerState::kDraining, WorkerTrigger::kConnect, WorkerState::kConnected},
    {WorkerState::kDraining, WorkerTrigger::kDrain, WorkerState::kDraining},
    {WorkerState::kDraining, WorkerTrigger::kDisconnect, WorkerState::kGone},
    {WorkerState::kGone, WorkerTrigger::kConnect, WorkerState::kConnected},
    {WorkerState::kGone, WorkerTrigger::kGiveUp, WorkerState::kLost},
    {WorkerState::kLost, WorkerTrigger::kConnect, WorkerState::kConnected},
}};

constexpr std::array<Row<DeviceState, DeviceTrigger>, 16> kDevice = {{
    {DeviceState::kActive, DeviceTrigger::kDrain, DeviceState::kDraining},
    {DeviceState::kActive, DeviceTrigger::kUndrain, DeviceState::kActive},
    {DeviceState::kActive, DeviceTrigger::kQuarantine, DeviceState::kQuarantined},
    {DeviceState::kActive, DeviceTrigger::kLose, DeviceState::kLost},
    {DeviceState::kDraining, DeviceTrigger::kDrain, DeviceState::kDraining},
    {DeviceState::kDraining, DeviceTrigger::kEmptied, DeviceState::kDrained},
    {DeviceState::kDraining, DeviceTrigger::kUndrain, DeviceState::kActive},
    {DeviceState::kDraining, DeviceTrigger::kLose, DeviceState::kLost},
    {DeviceState::kDrained, DeviceTrigger::kDrain, DeviceState::kDrained},
    {DeviceState::kDrained, DeviceTrigger::kUndrain, DeviceState::kActive},
    {DeviceState::kDrained, DeviceTrigger::kLose, DeviceState::kLost},
    {DeviceState::kQuarantined, DeviceTrigger::kUndrain, DeviceState::kActive},
    {DeviceState::kQuarantined, DeviceTrigger::kProbed, DeviceState::kActive},
    {DeviceState::kQuarantined, DeviceTrigger::kLose, DeviceState::kLost},
    {DeviceState::kLost, DeviceTrigger::kUndrain, DeviceState::kActive},
    {DeviceState::kLost, DeviceTrigger::kProbed, DeviceState::kActive},
}};

constexpr std::array<std::string_view, 6> kSessionStates = {"waiting",  "running",   "cancelling",
                                                            "finished", "cancelled", "failed"};
constexpr std::array<std::string_view, 5> kSessionTriggers = {"begin", "cancel", "emptied", "end",
                                                              "fail"};
constexpr std::array<std::string_view, 4> kAttemptStates = {"waiting", "leased", "answered",
                                                            "closed"};
constexpr std::array<std::string_view, 7> kAttemptTriggers = {
    "grant", "take back", "answer", "condemn", "commit", "drop", "built"};
constexpr std::array<std::string_view, 9> kLeaseStates = {
    "granted", "started", "answered", "done", "expired", "returned", "revoked", "lost", "built"};
constexpr std::array<std::string_view, 8> kLeaseTriggers = {
    "start", "answer", "commit", "expire", "give back", "revoke", "lose", "built"};
constexpr std::array<std::string_view, 4> kWorkerStates = {"connected", "draining", "gone", "lost"};
constexpr std::array<std::string_view, 4> kWorkerTriggers = {"connect", "drain", "disconnect",
                                                             "give up"};
constexpr std::array<std::string_view, 5> kDeviceStates = {"active", "draining", "drained",
                                                           "quarantined", "lost"};
constexpr std::array<std::string_view, 6> kDeviceTriggers = {"drain",      "emptied", "undrain",
                                                             "quarantine", "lose",    "probed"};

template <typename Rows, typename State, typename Trigger>
std::optional<State> Find(const Rows& rows, State state, Trigger trigger) {
  for (const auto& row : rows) {
    if (row.from == state && row.trigger == trigger) return row.to;
  }
  return std::nullopt;
}

template <typename Rows, typename States, typename Triggers>
void AddText(std::string_view machine, const Rows& rows, const States& states,
             const Triggers& triggers, std::vector<TransitionText>& out) {
  for (const auto& row : rows) {
    out.push_back({machine, states.at(static_cast<size_t>(row.from)),
                   triggers.at(static_cast<size_t>(row.trigger)),
                   states.at(static_cast<size_t>(row.to))});
  }
}

}  // namespace

std::optional<SessionState> Next(SessionState state, SessionTrigger trigger) {
  return Find(kSession, state, trigger);
}
std::optional<AttemptState> Next(AttemptState state, AttemptTrigger trigger) {
  return Find(kAttempt, state, trigger);
}
std::optional<LeaseState> Next(LeaseState state, LeaseTrigger trigger) {
  return Find(kLease, state, trigger);
}
std::optional<WorkerState> Next(WorkerState state, WorkerTrigger trigger) {
  return Find(kWorker, state, trigger);
}
std::optional<DeviceState> Next(DeviceState state, DeviceTrigger trigger) {
  return Find(kDevice, state, trigger);
}

template <typename State, typename Trigger>
void Move(State& state, Trigger trigger) {
  const std::optional<State> next = Next(state, trigger);
  HONE_CHECK(next.has_value()) << "no transition of state " << static_cast<int>(state)
                               << " by trigger " << static_cast<int>(trigger);
  state = *next;
}
template void Move(SessionState&, SessionTrigger);
template void Move(AttemptState&, AttemptTrigger);
template void Move(LeaseState&, LeaseTrigger);
template void Move(WorkerState&, WorkerTrigger);
template void Move(DeviceState&, DeviceTrigger);

std::span<const TransitionText> AllTransitions() {
  static const std::vector<TransitionText> kAll = [] {
    std::vector<TransitionText> all;
    AddText("session", kSession, kSessionStates, kSessionTriggers, all);
    AddText("attempt", kAttempt, kAttemptStates, kAttemptTriggers, all);
    AddText("lease", kLease, kLeaseStates, kLeaseTriggers, all);
    AddText("worker", kWorker, kWorkerStates, kWorkerTriggers, all);
    AddText("device", kDevice, kDeviceStates, kDeviceTriggers, all);
    return all;
  }();
  return kAll;
}

std::string_view NameOf(SessionState state) {
  return kSessionStates.at(static_cast<size_t>(state));
}
std::string_view NameOf(LeaseState state) { return kLeaseStates.at(static_cast<size_t>(state)); }
std::string_view NameOf(DeviceState state) { return kDeviceStates.at(static_cast<size_t>(state)); }

}  // namespace hone::server

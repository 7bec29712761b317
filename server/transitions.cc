#include "server/transitions.h"

#include <array>
#include <vector>

#include "base/core/check.h"

namespace hone::server {
namespace {

template <typename State, typename Event>
struct Row {
  State from;
  Event event;
  State to;
};

constexpr std::array<Row<SessionState, SessionEvent>, 9> kSession = {{
    {SessionState::kWaiting, SessionEvent::kBegin, SessionState::kRunning},
    {SessionState::kWaiting, SessionEvent::kCancel, SessionState::kCancelling},
    {SessionState::kWaiting, SessionEvent::kFail, SessionState::kFailed},
    {SessionState::kRunning, SessionEvent::kBegin, SessionState::kRunning},  // after a restart
    {SessionState::kRunning, SessionEvent::kCancel, SessionState::kCancelling},
    {SessionState::kRunning, SessionEvent::kEnd, SessionState::kFinished},
    {SessionState::kRunning, SessionEvent::kFail, SessionState::kFailed},
    {SessionState::kCancelling, SessionEvent::kCancel, SessionState::kCancelling},
    {SessionState::kCancelling, SessionEvent::kEmptied, SessionState::kCancelled},
}};

constexpr std::array<Row<AttemptState, AttemptEvent>, 9> kAttempt = {{
    {AttemptState::kWaiting, AttemptEvent::kGrant, AttemptState::kLeased},
    {AttemptState::kWaiting, AttemptEvent::kCondemn, AttemptState::kAnswered},
    {AttemptState::kWaiting, AttemptEvent::kDrop, AttemptState::kClosed},
    {AttemptState::kLeased, AttemptEvent::kTakeBack, AttemptState::kWaiting},
    {AttemptState::kLeased, AttemptEvent::kAnswer, AttemptState::kAnswered},
    {AttemptState::kLeased, AttemptEvent::kBuilt, AttemptState::kWaiting},
    {AttemptState::kLeased, AttemptEvent::kDrop, AttemptState::kClosed},
    {AttemptState::kAnswered, AttemptEvent::kCommit, AttemptState::kClosed},
    {AttemptState::kAnswered, AttemptEvent::kDrop, AttemptState::kClosed},
}};

constexpr std::array<Row<LeaseState, LeaseEvent>, 14> kLease = {{
    {LeaseState::kGranted, LeaseEvent::kStart, LeaseState::kStarted},
    {LeaseState::kGranted, LeaseEvent::kAnswer, LeaseState::kAnswered},
    {LeaseState::kGranted, LeaseEvent::kBuilt, LeaseState::kBuilt},
    {LeaseState::kGranted, LeaseEvent::kExpire, LeaseState::kExpired},
    {LeaseState::kGranted, LeaseEvent::kGiveBack, LeaseState::kReturned},
    {LeaseState::kGranted, LeaseEvent::kRevoke, LeaseState::kRevoked},
    {LeaseState::kGranted, LeaseEvent::kLose, LeaseState::kLost},
    {LeaseState::kStarted, LeaseEvent::kAnswer, LeaseState::kAnswered},
    {LeaseState::kStarted, LeaseEvent::kExpire, LeaseState::kExpired},
    {LeaseState::kStarted, LeaseEvent::kGiveBack, LeaseState::kReturned},
    {LeaseState::kStarted, LeaseEvent::kRevoke, LeaseState::kRevoked},
    {LeaseState::kStarted, LeaseEvent::kLose, LeaseState::kLost},
    {LeaseState::kAnswered, LeaseEvent::kCommit, LeaseState::kDone},
    {LeaseState::kAnswered, LeaseEvent::kRevoke, LeaseState::kRevoked},
}};

constexpr std::array<Row<WorkerState, WorkerEvent>, 9> kWorker = {{
    {WorkerState::kConnected, WorkerEvent::kConnect, WorkerState::kConnected},
    {WorkerState::kConnected, WorkerEvent::kDrain, WorkerState::kDraining},
    {WorkerState::kConnected, WorkerEvent::kDisconnect, WorkerState::kGone},
    {WorkerState::kDraining, WorkerEvent::kConnect, WorkerState::kConnected},
    {WorkerState::kDraining, WorkerEvent::kDrain, WorkerState::kDraining},
    {WorkerState::kDraining, WorkerEvent::kDisconnect, WorkerState::kGone},
    {WorkerState::kGone, WorkerEvent::kConnect, WorkerState::kConnected},
    {WorkerState::kGone, WorkerEvent::kGiveUp, WorkerState::kLost},
    {WorkerState::kLost, WorkerEvent::kConnect, WorkerState::kConnected},
}};

constexpr std::array<Row<DeviceState, DeviceEvent>, 16> kDevice = {{
    {DeviceState::kActive, DeviceEvent::kDrain, DeviceState::kDraining},
    {DeviceState::kActive, DeviceEvent::kUndrain, DeviceState::kActive},
    {DeviceState::kActive, DeviceEvent::kQuarantine, DeviceState::kQuarantined},
    {DeviceState::kActive, DeviceEvent::kLose, DeviceState::kLost},
    {DeviceState::kDraining, DeviceEvent::kDrain, DeviceState::kDraining},
    {DeviceState::kDraining, DeviceEvent::kEmptied, DeviceState::kDrained},
    {DeviceState::kDraining, DeviceEvent::kUndrain, DeviceState::kActive},
    {DeviceState::kDraining, DeviceEvent::kLose, DeviceState::kLost},
    {DeviceState::kDrained, DeviceEvent::kDrain, DeviceState::kDrained},
    {DeviceState::kDrained, DeviceEvent::kUndrain, DeviceState::kActive},
    {DeviceState::kDrained, DeviceEvent::kLose, DeviceState::kLost},
    {DeviceState::kQuarantined, DeviceEvent::kUndrain, DeviceState::kActive},
    {DeviceState::kQuarantined, DeviceEvent::kProbed, DeviceState::kActive},
    {DeviceState::kQuarantined, DeviceEvent::kLose, DeviceState::kLost},
    {DeviceState::kLost, DeviceEvent::kUndrain, DeviceState::kActive},
    {DeviceState::kLost, DeviceEvent::kProbed, DeviceState::kActive},
}};

constexpr std::array<std::string_view, 6> kSessionStates = {"waiting",  "running",   "cancelling",
                                                            "finished", "cancelled", "failed"};
constexpr std::array<std::string_view, 5> kSessionEvents = {"begin", "cancel", "emptied", "end",
                                                            "fail"};
constexpr std::array<std::string_view, 4> kAttemptStates = {"waiting", "leased", "answered",
                                                            "closed"};
constexpr std::array<std::string_view, 7> kAttemptEvents = {
    "grant", "take back", "answer", "condemn", "commit", "drop", "built"};
constexpr std::array<std::string_view, 9> kLeaseStates = {
    "granted", "started", "answered", "done", "expired", "returned", "revoked", "lost", "built"};
constexpr std::array<std::string_view, 8> kLeaseEvents = {"start",     "answer", "commit", "expire",
                                                          "give back", "revoke", "lose",   "built"};
constexpr std::array<std::string_view, 4> kWorkerStates = {"connected", "draining", "gone", "lost"};
constexpr std::array<std::string_view, 4> kWorkerEvents = {"connect", "drain", "disconnect",
                                                           "give up"};
constexpr std::array<std::string_view, 5> kDeviceStates = {"active", "draining", "drained",
                                                           "quarantined", "lost"};
constexpr std::array<std::string_view, 6> kDeviceEvents = {"drain",      "emptied", "undrain",
                                                           "quarantine", "lose",    "probed"};

template <typename Rows, typename State, typename Event>
std::optional<State> Find(const Rows& rows, State state, Event event) {
  for (const auto& row : rows) {
    if (row.from == state && row.event == event) return row.to;
  }
  return std::nullopt;
}

template <typename Rows, typename States, typename Events>
void AddText(std::string_view machine, const Rows& rows, const States& states, const Events& events,
             std::vector<TransitionText>& out) {
  for (const auto& row : rows) {
    out.push_back({machine, states.at(static_cast<size_t>(row.from)),
                   events.at(static_cast<size_t>(row.event)),
                   states.at(static_cast<size_t>(row.to))});
  }
}

}  // namespace

std::optional<SessionState> Next(SessionState state, SessionEvent event) {
  return Find(kSession, state, event);
}
std::optional<AttemptState> Next(AttemptState state, AttemptEvent event) {
  return Find(kAttempt, state, event);
}
std::optional<LeaseState> Next(LeaseState state, LeaseEvent event) {
  return Find(kLease, state, event);
}
std::optional<WorkerState> Next(WorkerState state, WorkerEvent event) {
  return Find(kWorker, state, event);
}
std::optional<DeviceState> Next(DeviceState state, DeviceEvent event) {
  return Find(kDevice, state, event);
}

template <typename State, typename Event>
void Move(State& state, Event event) {
  const std::optional<State> next = Next(state, event);
  HONE_CHECK(next.has_value()) << "no transition of state " << static_cast<int>(state)
                               << " by event " << static_cast<int>(event);
  state = *next;
}
template void Move(SessionState&, SessionEvent);
template void Move(AttemptState&, AttemptEvent);
template void Move(LeaseState&, LeaseEvent);
template void Move(WorkerState&, WorkerEvent);
template void Move(DeviceState&, DeviceEvent);

std::span<const TransitionText> AllTransitions() {
  static const std::vector<TransitionText> kAll = [] {
    std::vector<TransitionText> all;
    AddText("session", kSession, kSessionStates, kSessionEvents, all);
    AddText("attempt", kAttempt, kAttemptStates, kAttemptEvents, all);
    AddText("lease", kLease, kLeaseStates, kLeaseEvents, all);
    AddText("worker", kWorker, kWorkerStates, kWorkerEvents, all);
    AddText("device", kDevice, kDeviceStates, kDeviceEvents, all);
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

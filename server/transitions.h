#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "db/farm_store.h"

// The farm's state machines as tables: the only transitions that the code makes are looked up here,
// and docs/formats/farm.md shows the same tables (tests/server compares them).
namespace hone::server {

using db::DeviceState;
using db::LeaseState;
using db::SessionState;

enum class AttemptState : uint8_t { kWaiting, kLeased, kAnswered, kClosed };
enum class WorkerState : uint8_t { kConnected, kDraining, kGone, kLost };

enum class SessionTrigger : uint8_t { kBegin, kCancel, kEmptied, kEnd, kFail };
enum class AttemptTrigger : uint8_t {
  kGrant,
  kTakeBack,
  kAnswer,
  kCondemn,
  kCommit,
  kDrop,
  kBuilt
};
enum class LeaseTrigger : uint8_t {
  kStart,
  kAnswer,
  kCommit,
  kExpire,
  kGiveBack,
  kRevoke,
  kLose,
  kBuilt
};
enum class WorkerTrigger : uint8_t { kConnect, kDrain, kDisconnect, kGiveUp };
enum class DeviceTrigger : uint8_t { kDrain, kEmptied, kUndrain, kQuarantine, kLose, kProbed };

/// What follows, or nothing: the trigger cannot come in that state.
std::optional<SessionState> Next(SessionState state, SessionTrigger trigger);
std::optional<AttemptState> Next(AttemptState state, AttemptTrigger trigger);
std::optional<LeaseState> Next(LeaseState state, LeaseTrigger trigger);
std::optional<WorkerState> Next(WorkerState state, WorkerTrigger trigger);
std::optional<DeviceState> Next(DeviceState state, DeviceTrigger trigger);

/// Makes the transition; one that the table does not have is a programmer error.
template <typename State, typename Trigger>
void Move(State& state, Trigger trigger);

/// A row of any table, for documents and tests: "lease", "granted", "start", "started".
struct TransitionText {
  std::string_view machine, from, event, to;
};
std::span<const TransitionText> AllTransitions();

std::string_view NameOf(SessionState state);
std::string_view NameOf(LeaseState state);
std::string_view NameOf(DeviceState state);

}  // namespace hone::server

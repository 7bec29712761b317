#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "db/log_file.h"

// The state of a farm in the `farm_*` tables of the log's own file (docs/formats/farm.md). Not
// facts: what stands here changes, and no snapshot or merge carries it.
namespace hone::db {

/// Stored: do not renumber. Transitions: docs/formats/farm.md.
enum class SessionState : uint8_t {
  kWaiting = 0,  ///< accepted; no device of its class was seen yet
  kRunning = 1,
  kCancelling = 2,  ///< its leases are being taken back
  kFinished = 3,
  kCancelled = 4,
  kFailed = 5,
};

/// Stored: do not renumber.
enum class LeaseState : uint8_t {
  kGranted = 0,   ///< the worker may build; nothing of it has run
  kStarted = 1,   ///< its code runs
  kAnswered = 2,  ///< a result came and is being committed (in memory alone)
  kDone = 3,      ///< closed by its result
  kExpired = 4,   ///< a limit passed
  kReturned = 5,  ///< the worker gave it back
  kRevoked = 6,   ///< taken back: cancelled, drained, revoked
  kLost = 7,      ///< its worker is gone
  kBuilt = 8,     ///< a build lease: its artifacts came
};

/// Stored: do not renumber.
enum class DeviceState : uint8_t {
  kActive = 0,
  kDraining = 1,  ///< gets nothing new
  kDrained = 2,   ///< and has nothing left
  kQuarantined = 3,
  kLost = 4,  ///< a child of it could not be killed
};

struct FarmSession {
  Hash128 id;
  std::string owner;    ///< who asked: NAME of a submit certificate, ROLE/NAME of another
  std::string project;  ///< whose share pays
  std::string digest;   ///< of the request: the same one again joins
  std::string spec;     ///< bytes of proto's SessionSpec
  SessionState state = SessionState::kWaiting;
  std::string reason;        ///< why it ended
  std::string device_class;  ///< empty until a device was chosen
  std::string fingerprint;
  int64_t created_ms = 0;

  bool operator==(const FarmSession&) const = default;
};

struct FarmLease {
  Hash128 token;  ///< high: the start of honed that issued it, low: a counter
  Hash128 session;
  int64_t attempt = 0;
  std::string worker, device;
  Hash128 instance;  ///< of the worker's process
  LeaseState state = LeaseState::kGranted;
  std::string content;  ///< kDone: digest of the result
  int64_t charge_ns = 0;

  bool operator==(const FarmLease&) const = default;
};

/// Stands in place of an attempt's number in the row that counts how many starts of honed ended
/// while it computed the Spaces of a session's tasks.
inline constexpr int64_t kSpacesOfSession = -1;

/// An attempt whose worker was lost while it ran.
struct FarmSuspect {
  Hash128 session;
  int64_t attempt = 0;
  int losses = 0;
  bool condemned = false;
  std::string reason;

  bool operator==(const FarmSuspect&) const = default;
};

struct FarmProject {
  std::string project;
  int64_t share = 1;
  int64_t charged_ns = 0;

  bool operator==(const FarmProject&) const = default;
};

struct FarmDevice {
  std::string worker, device;
  DeviceState state = DeviceState::kActive;
  std::string reason;

  bool operator==(const FarmDevice&) const = default;
};

/// A unary request that was answered.
struct FarmRequest {
  std::string caller, id;
  std::string digest;  ///< of the body
  std::string answer;
  int64_t created_ms = 0;

  bool operator==(const FarmRequest&) const = default;
};

struct FarmAudit {
  int64_t at_ms = 0;
  std::string actor, action, subject, detail;

  bool operator==(const FarmAudit&) const = default;
};

// Changes. Those that name what is absent, or end what has ended, are refused with
// kFailedPrecondition.
struct AddFarmSession {
  FarmSession session;
};
/// A session that is being cancelled is refused to run again.
struct SetFarmSession {
  Hash128 id;
  SessionState state = SessionState::kRunning;
  std::string reason;
  std::string device_class, fingerprint;  ///< empty: as they are
};
struct AddFarmLease {
  FarmLease lease;
};
/// Its code runs: a granted lease's alone.
struct StartFarmLease {
  Hash128 token;
};
struct EndFarmLease {
  Hash128 token;
  LeaseState state = LeaseState::kDone;
  std::string content;
  int64_t charge_ns = 0;  ///< added to the project of its session too
};
struct PutFarmSuspect {
  FarmSuspect suspect;
};
struct DropFarmSuspect {
  Hash128 session;
  int64_t attempt = 0;
};
struct PutFarmDevice {
  FarmDevice device;
};
struct PutFarmProject {
  std::string project;
  int64_t share = 1;
};
struct RevokeFarmIdentity {
  std::string identity;
  int64_t since_ms = 0;
};
using FarmChange = std::variant<AddFarmSession, SetFarmSession, AddFarmLease, StartFarmLease,
                                EndFarmLease, PutFarmSuspect, DropFarmSuspect, PutFarmDevice,
                                PutFarmProject, RevokeFarmIdentity, FarmRequest, FarmAudit>;

/// What becomes durable together, or not at all.
struct FarmUnit {
  std::vector<FarmChange> changes;
  Batch facts;
};

/// What a starting honed finds.
struct FarmState {
  std::vector<FarmSession> sessions;  ///< that have not ended, in the order they came
  std::vector<FarmLease> leases;      ///< open
  std::vector<FarmSuspect> suspects;  ///< attempts of those sessions
  std::vector<FarmProject> projects;
  std::vector<FarmDevice> devices;  ///< not active
  std::vector<std::string> revoked;
};

/// Reads and writes the farm's tables through the one connection of an open log. One thread at a
/// time, the same as the log's. Errors: as Database.
class FarmStore {
 public:
  virtual ~FarmStore() = default;

  /// The store in a log opened for writing, which must outlive it.
  static absl::StatusOr<std::unique_ptr<FarmStore>> Open(LogFile& log);

  /// Records a start of honed. `start` is random: a restored or copied log never issues a token
  /// twice.
  virtual absl::Status AddStart(uint64_t start, int64_t started_ms) = 0;
  virtual absl::StatusOr<FarmState> Load() = 0;

  /// One transaction for all units, synced when it returns ok. Each unit is whole or refused with
  /// its own status (in the result, in order); an error of the log itself refuses all, and they
  /// may be committed again.
  virtual absl::StatusOr<std::vector<absl::Status>> Commit(
      const std::vector<const FarmUnit*>& units) = 0;

  /// What Commit would say of a log that was moved or removed, without one: for a farm that has
  /// nothing to commit.
  virtual absl::Status CheckInPlace() = 0;

  virtual absl::StatusOr<std::optional<FarmLease>> FindLease(const Hash128& token) = 0;
  virtual absl::StatusOr<std::optional<FarmRequest>> FindRequest(const std::string& caller,
                                                                 const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<FarmSession>> FindFarmSession(const Hash128& id) = 0;
  virtual absl::StatusOr<std::optional<FarmSuspect>> FindSuspect(const Hash128& session,
                                                                 int64_t attempt) = 0;
  /// Newest first, without their specs, which may be megabytes each. `owner` empty: anybody's;
  /// `after`: only those older than that session, none where there is no such one.
  virtual absl::StatusOr<std::vector<FarmSession>> LatestSessions(
      int limit, const std::string& owner = "", const std::optional<Hash128>& after = {}) = 0;
  /// The same of all that have not ended, and of the `ended` newest others.
  virtual absl::StatusOr<std::vector<FarmSession>> OpenAndLatestSessions(int ended) = 0;
  /// How many attempts of a session below this number were answered.
  virtual absl::StatusOr<int64_t> CountAnswers(const Hash128& session, int64_t below) = 0;
  /// Numbers from `first` on of a session's answered attempts.
  virtual absl::StatusOr<std::vector<int64_t>> AnswersFrom(const Hash128& session,
                                                           int64_t first) = 0;
  /// Every lease of a session, by token; reads all leases.
  virtual absl::StatusOr<std::vector<FarmLease>> LeasesOf(const Hash128& session) = 0;
  virtual absl::StatusOr<std::vector<FarmAudit>> Audit(int limit) = 0;
  /// Forgets answered requests older than this.
  virtual absl::Status ForgetRequests(int64_t before_ms) = 0;
};

}  // namespace hone::db

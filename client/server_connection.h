#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "proto/farm_messages.h"

namespace hone::client {

/// Where a farm's server is and who asks.
struct ServerAddress {
  std::string address;           ///< "coordinator:7421"
  std::string tls_folder;        ///< ca.pem, cert.pem, key.pem
  bool plaintext = false;        ///< loopback only
  int64_t deadline_ms = 10'000;  ///< of one try of a call
  int64_t retry_for_ms = 8'000;  ///< what is not answered is asked again for this long
  /// The same where nothing listens, and nothing did since the object was made: no restart.
  int64_t refused_for_ms = 1'500;
};

/// Calls of the service Tuning, each with a deadline; what is not answered is asked again with the
/// same request id for a while. Errors carry exit code kServer and say what to do. Thread-safe.
class ServerConnection {
 public:
  /// The name under which Snapshot writes until all of it is there.
  static std::string TemporaryOf(const std::string& path) { return path + ".tmp"; }

  /// Dials nothing yet. Errors of the credentials.
  static absl::StatusOr<std::unique_ptr<ServerConnection>> Open(const ServerAddress& address);
  virtual ~ServerConnection() = default;

  struct Started {
    Hash128 session;
    bool joined = false;
  };
  virtual absl::StatusOr<Started> StartSession(const proto::SessionSpec& spec) = 0;
  virtual absl::Status CancelSession(const Hash128& session) = 0;
  /// The newest so many, over as many calls as it takes. An older server has a thousand at most.
  virtual absl::StatusOr<std::vector<proto::SessionInfo>> ListSessions(int limit) = 0;
  virtual absl::StatusOr<proto::SessionInfo> FindSession(const Hash128& session) = 0;

  /// Every event after `*sequence`, which it moves on; over as many connections as it takes, until
  /// the session has ended (ok) or `stop`, called on another thread, returns true (kCancelled). An
  /// unreachable server is an error after `patience_ns` without a word.
  using OnEvent = std::function<void(const proto::SessionEvent& event)>;
  virtual absl::Status Watch(const Hash128& session, int64_t* sequence, const OnEvent& on_event,
                             const std::function<bool()>& stop, int64_t patience_ns) = 0;

  struct Found {
    std::vector<db::RankedRecord> records;
    std::vector<std::string> workloads;
    std::vector<db::ModelVerdict> verdicts;  ///< none from a server that does not know of them
  };
  virtual absl::StatusOr<Found> FindRecords(const proto::FindRecords& question) = 0;
  /// Writes a snapshot of the server's log to a file, whole or not at all; its SHA-256. The server
  /// is told whether it is kept, or only read.
  enum class Use : uint8_t { kKept, kRead };
  virtual absl::StatusOr<std::string> Snapshot(const std::string& path, Use use) = 0;

  /// Leaves a package without its constants (measure/seeded_package.h) with the server, for
  /// JudgeModel; its SHA-256.
  virtual absl::StatusOr<std::string> PutPackage(const std::string& bytes) = 0;
  struct ModelQuestion {
    Hash128 session;  ///< that has finished
    std::string default_package, tuned_package;
    /// kTuning, or kBranches: the packages differ in how branches run alone, in turn in the first.
    db::ModelVerdict::Subject subject = db::ModelVerdict::Subject::kTuning;
    std::vector<Hash128> tuned;  ///< Workloads whose schedules differ between them
    double seconds = 1;          ///< of one comparison
    bool may_put_back = false;   ///< ModelAnswer::losing may be the answer
    std::string mended_package;  ///< the tuned one, but by default in `put_back`; empty: none
    std::vector<Hash128> put_back;
  };
  struct ModelAnswer {
    bool done = false;                        ///< else: ask again
    std::optional<db::ModelVerdict> verdict;  ///< none: see `losing`, then `reason`
    std::string reason;
    std::vector<Hash128> losing;  ///< to be put back, before anything is decided
  };
  /// Has a device compare two packages, or says how far that is.
  virtual absl::StatusOr<ModelAnswer> JudgeModel(const ModelQuestion& question) = 0;

  virtual absl::StatusOr<std::vector<proto::DeviceInfo>> ListDevices() = 0;
  virtual absl::Status SetDevice(const std::string& worker, const std::string& device,
                                 proto::DeviceAction action) = 0;

  virtual const std::string& address() const = 0;
};

}  // namespace hone::client

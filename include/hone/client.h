#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hone/status.h"

/// The C++ client of a Hone farm (libhone_client): asks `honed` for tuning sessions, follows them,
/// looks records and devices up and fetches snapshots. It needs no header but these two.
///
///   std::unique_ptr<hone::Client> client;
///   hone::Status status = hone::Client::Connect({.address = "tuner:7421", .tls_folder = "alice"},
///                                               &client);
///   hone::SessionRequest request{.model = "resnet18", .seconds = 600};
///   status = client->TasksOfModel("resnet18.onnx", {}, &request);   // here; nothing is sent
///   hone::StartedSession session;
///   status = client->StartSession(request, &session);
///   status = client->WatchSession(session.id, 0, [](const hone::SessionEvent& e) { return true;
///   });
///
/// Errors: every call returns a Status whose message says what, where, why and what to do. A call
/// that fails leaves its outputs as they were. kUnavailable, kDeadlineExceeded: no server with a
/// certificate of this authority answers there, or not in time. kPermissionDenied,
/// kUnauthenticated: the caller may not do this. kInvalidArgument: the request is wrong, or larger
/// than 4 MiB. kNotFound: no such session. kResourceExhausted: the server's disk is full, or it is
/// overloaded: ask again later. (gRPC also gives this code to programs made from farm.proto alone
/// for a message over 4 MiB.) A farm of another version of Hone may answer kFailedPrecondition.
///
/// Ids of sessions and records are 32 hexadecimal digits. Durations and times are in the unit of
/// their name.
namespace hone {

struct ClientOptions {
  std::string address;  ///< "tuner:7421"; without a port: 7421
  std::string
      tls_folder;  ///< ca.pem, cert.pem and key.pem, as `honed issue submit NAME` writes them
  /// Plaintext, without credentials: only a server on this machine's loopback.
  bool insecure_loopback = false;
  int64_t deadline_ms = 10'000;  ///< of one try of a call, 1 to 3,600,000
  /// While the server does not answer, a call is tried again for this long after its first try,
  /// with the same request id, so that the server carries it out once. 0: one try.
  int64_t retry_for_ms = 8'000;
  /// The program hone-builder, for TasksOfModel alone; empty: libexec/hone/hone-builder beside this
  /// library's folder.
  std::string builder_program;
};

/// What a model leaves open, for its import.
struct ModelOptions {
  std::map<std::string, int64_t> dims;                 ///< symbolic dimension to extent
  std::map<std::string, std::vector<int64_t>> shapes;  ///< input to whole shape
  std::map<std::string, std::string> binds;            ///< input to the .npy file of its value
  /// What the session is tuned for, as "cpu:avx512,threads=8"; native: this machine, all its cores.
  std::string target = "cpu:native";
};

/// How far results may be from the default schedule's. kStrict: 1e-5 of the largest value and 1e-4
/// of the value; kDefault: 1e-4 and 1e-3; kFast: more. Records of a class serve all laxer ones.
enum class Accuracy : int { kStrict = 0, kDefault = 1, kFast = 2 };

/// A kernel to tune.
struct SessionTask {
  std::string workload;  ///< canonical text (docs/formats/workload.md)
  std::string name;      ///< for people
  int32_t count = 1;     ///< how often it occurs in the model, from 1
  double flop = 0;       ///< of one run; 0: unknown
  double bound_ns = 0;   ///< nominal: no schedule can be faster; 0: unknown
};

/// At least one of seconds, trials and until_unix_ms is not 0, or the request is refused
/// (kInvalidArgument). A session ends before its limit when no further gain is expected.
struct SessionRequest {
  std::string model;       ///< name, for people
  std::string model_hash;  ///< SHA-256 of its file in hexadecimal; TasksOfModel sets it
  std::vector<SessionTask> tasks;
  std::string target;         ///< resolved, with threads; TasksOfModel sets it
  std::string device_class;   ///< empty: that of the first device that can run the target
  double seconds = 0;         ///< of tuning, at most 365 days; 0: no such limit
  int64_t trials = 0;         ///< at most 2^32; 0: no such limit
  int64_t until_unix_ms = 0;  ///< by the server's clock; 0: no such limit
  uint64_t seed = 0;
  Accuracy accuracy = Accuracy::kDefault;
  int32_t priority = 0;  ///< -100 to 100, among the sessions of one project
  std::string project;   ///< its share of the devices is used; empty: the caller's name
};

struct StartedSession {
  std::string id;
  bool joined = false;  ///< an equal session of the same caller runs already; this is it
};

enum class SessionState : int {
  kWaiting = 0,  ///< no device of its class was seen yet
  kRunning = 1,
  kCancelling = 2,
  kFinished = 3,
  kCancelled = 4,
  kFailed = 5,
};

struct SessionInfo {
  std::string id, owner, project;
  SessionState state = SessionState::kWaiting;
  std::string reason;  ///< why it ended or waits
  std::string model, target, device_class;
  int64_t created_unix_ms = 0;
  int64_t attempts = 0;  ///< candidates answered
  int32_t tasks = 0;
};

/// Something that happened to a session; durable before it is shown.
struct SessionEvent {
  enum class Kind : int {
    kState = 0,     ///< `info`; first of each watch
    kProposed = 1,  ///< `attempt`, `task`
    kMeasured = 2,  ///< `attempt`, `outcome`, `median_ns`
    kDecided = 3,   ///< `task`, `replaced`, `default_ns`, `best_ns`: finalists were compared
    kEnded = 4,     ///< `info`; last
  };
  Kind kind = Kind::kState;
  int64_t sequence = 0;  ///< grows; where a later watch goes on
  int64_t attempt = 0;
  int32_t task = 0;     ///< index into SessionRequest::tasks
  std::string outcome;  ///< "ok", "wrong_answer", …
  double median_ns = 0;
  bool replaced = false;
  double default_ns = 0, best_ns = 0;
  SessionInfo info;
};

struct RecordQuery {
  std::string workload;  ///< canonical text
  std::string target;    ///< resolved
  std::string device_class;
  int32_t limit = 1;  ///< 1 to 64
  Accuracy accuracy = Accuracy::kDefault;
};

/// A schedule with what it was measured at.
struct Record {
  std::string id;
  std::string trace;  ///< text; check it (`hone check`) before you believe it
  std::string target, device_class, builder_version;
  std::string rigor;  ///< "screened", "verified", "confirmed", "predicted"
  double median_ns = 0, low_ns = 0, high_ns = 0;
  int64_t created_unix_ms = 0;
};

enum class DeviceState : int { kActive = 0, kDraining, kDrained, kQuarantined, kLost };

/// A device of a worker.
struct DeviceInfo {
  std::string worker;  ///< name of its certificate
  std::string device;  ///< "cpu:0"
  std::string device_class, target, driver;
  int32_t cores = 0;
  int64_t memory_bytes = 0;
  DeviceState state = DeviceState::kActive;
  std::string reason;  ///< why it is not active, or what is unusual about it
  bool connected = false;
  bool sandboxed = true;  ///< false: candidates run without the sandbox there
  int32_t leases = 0;
  int64_t results = 0;  ///< since the start of honed
  double busy_seconds = 0;
  std::string program_version;
  /// As its worker probed it; 0: not yet. The first is of one core, noise a share of the median.
  double flop_per_second = 0, memory_bytes_per_second = 0, noise = 0;
  std::map<std::string, std::string> labels;  ///< of its worker: hone-worker --labels K=V
};

enum class DeviceAction : int {
  kDrain = 1,    ///< it finishes what it has and gets nothing more
  kUndrain = 2,  ///< it gets work again
  kProbe = 3,    ///< its worker probes it; a quarantined one as fast as its class gets work again
};

/// A connection to one farm. Thread-safe: any number of calls from any number of threads. It starts
/// threads of gRPC's; do not fork after Connect without exec.
class Client {
 public:
  /// Reads the credentials; the first call dials. kPermissionDenied: other users can read the key;
  /// kInvalidArgument: the three files do not belong together, or are not those of a client.
  static Status Connect(const ClientOptions& options, std::unique_ptr<Client>* client);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Imports a model and sets tasks, target, model (where it is empty) and model_hash of a request.
  /// All of it happens here: neither the model nor its constants are ever sent.
  Status TasksOfModel(const std::string& path, const ModelOptions& options,
                      SessionRequest* request) const;

  /// Starts a session. If the caller already has a running session for an equal request, joins that
  /// one.
  Status StartSession(const SessionRequest& request, StartedSession* session);
  /// Ends a session and takes its work back from the workers; what was measured stays in the log.
  /// Only the session's owner and an admin may.
  Status CancelSession(const std::string& id);
  /// The newest first, at most `limit`. Callers with the role submit see only their own.
  Status ListSessions(int limit, std::vector<SessionInfo>* sessions);
  Status FindSession(const std::string& id, SessionInfo* session);

  /// Calls `on_event`, on this thread, with every event after `after_sequence`, in order and once
  /// each, over as many connections as it takes. Ends ok with the session; kCancelled when
  /// `on_event` returned false, or within a second of `stop` (called on another thread; may be
  /// empty) returning true; the error when nothing was heard for `patience_ms`.
  Status WatchSession(const std::string& id, int64_t after_sequence,
                      const std::function<bool(const SessionEvent&)>& on_event,
                      int64_t patience_ms = 600'000, const std::function<bool()>& stop = nullptr);

  /// The best records of a key, best first. None is not an error.
  Status FindRecords(const RecordQuery& query, std::vector<Record>* records);

  /// Every device seen since the start of honed.
  Status ListDevices(std::vector<DeviceInfo>* devices);
  /// Needs an admin's credentials. kNotFound: no such device; kFailedPrecondition: its state does
  /// not allow this, or the device to be probed is not connected. Does not wait for the result.
  Status SetDevice(const std::string& worker, const std::string& device, DeviceAction action);

  /// Writes a snapshot of the farm's log, whole or not at all, over a file that is there:
  /// `path`.tmp is renamed. kInvalidArgument: `path` is a device, a pipe or a folder. Its SHA-256
  /// in hexadecimal is what `hone compile --snapshot FILE@sha256:DIGEST` pins.
  Status Snapshot(const std::string& path, std::string* sha256);

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone

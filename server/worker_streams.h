#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "server/call_identity.h"
#include "server/farm_loop.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace hone::server {

/// The service Workers: a stream each worker, its messages in turn to the loop. Thread-safe.
class WorkerStreams {
 public:
  /// `most_unsent_bytes`: for a worker that does not read; it is not heard meanwhile.
  WorkerStreams(Transport transport, const WallClock& wall_clock, size_t most_unsent_bytes);
  ~WorkerStreams();

  /// The loop that takes the messages; set before anybody calls.
  void SetLoop(FarmLoop* loop) { loop_ = loop; }
  grpc::Service* service();

  void Send(StreamId stream, const proto::ServerMessage& message);
  void Close(StreamId stream, const absl::Status& status);
  /// Ends streams whose certificate has expired or is refused, and those that never said who they
  /// are, and cuts those that do not end; call it every second.
  void EndExpired();
  void CloseAll();

  /// Names that are refused from now on.
  void Refuse(const std::string& uri);
  bool Refused(const std::string& uri) const;
  /// Who has shown a certificate, one for each; but for refused names.
  std::vector<Identity> KnownCallers() const;
  /// The caller's identity; a refusal is counted and logged.
  absl::StatusOr<Identity> Admit(const grpc::ServerContextBase& context,
                                 std::initializer_list<CallerRole> roles, std::string_view call);
  static constexpr std::string_view kHandshake = "handshake";
  void CountRefused(Refusal why, std::string_view call, const std::string& peer,
                    const std::string& text);
  /// Connections, streams and calls that were refused for who called.
  int64_t refused(Refusal why) const;
  int64_t connected() const;

 private:
  class Stream;
  class Service;

  std::shared_ptr<Stream> Find(StreamId id) const;
  void Remove(StreamId id);

  const Transport transport_;
  const WallClock& wall_clock_;
  const size_t most_unsent_bytes_;
  KnownCertificates certificates_;
  FarmLoop* loop_ = nullptr;
  std::unique_ptr<Service> service_;
  std::array<std::atomic<int64_t>, kNumRefusals> refused_{};
  std::atomic<int64_t> handshake_logged_ns_{INT64_MIN / 2};  ///< when one was last logged
  mutable std::mutex mutex_;
  StreamId next_ = 1;                                    // guarded by mutex_
  std::map<StreamId, std::shared_ptr<Stream>> streams_;  // guarded by mutex_
  std::set<std::string> refused_names_;                  // guarded by mutex_
};

}  // namespace hone::server

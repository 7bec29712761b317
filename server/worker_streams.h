#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

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
  WorkerStreams(Transport transport, const WallClock& wall_clock);
  ~WorkerStreams();

  /// The loop that takes the messages; set before anybody calls.
  void SetLoop(FarmLoop* loop) { loop_ = loop; }
  grpc::Service* service();

  void Send(StreamId stream, const proto::ServerMessage& message);
  void Close(StreamId stream, const absl::Status& status);
  /// Ends streams whose certificate has expired or is refused; call it every few seconds.
  void EndExpired();
  void CloseAll();

  /// Names that are refused from now on.
  void Refuse(const std::string& uri);
  bool Refused(const std::string& uri) const;
  /// Hellos and calls that were refused for who called.
  int64_t refused() const { return refused_.load(); }
  void CountRefused() { ++refused_; }
  int64_t connected() const;

 private:
  class Stream;
  class Service;

  std::shared_ptr<Stream> Find(StreamId id) const;
  void Remove(StreamId id);

  const Transport transport_;
  const WallClock& wall_clock_;
  FarmLoop* loop_ = nullptr;
  std::unique_ptr<Service> service_;
  std::atomic<int64_t> refused_{0};
  mutable std::mutex mutex_;
  StreamId next_ = 1;                                    // guarded by mutex_
  std::map<StreamId, std::shared_ptr<Stream>> streams_;  // guarded by mutex_
  std::set<std::string> refused_names_;                  // guarded by mutex_
};

}  // namespace hone::server

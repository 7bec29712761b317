#pragma once

#include <cstdint>
#include <mutex>

#include "absl/status/status.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace hone::server {

/// How a stream of the server ends. Its status is sent behind what was written before, so a peer
/// that reads nothing would keep it open for as long as it likes: a few seconds after an error was
/// to end it, its call is cancelled. Thread-safe, so that cutting one waits for nobody's reading.
class StreamEnd {
 public:
  /// `context` is touched until Done.
  explicit StreamEnd(grpc::CallbackServerContext* context) : context_(context) {}

  /// True the first time: then the stream shall finish, with this status.
  bool Begin(const absl::Status& status, int64_t now_ns);
  bool begun() const;
  /// Call it every second or so.
  void CutWhenLate(int64_t now_ns);
  /// The call is over, and its context goes: for OnDone.
  void Done();

 private:
  mutable std::mutex mutex_;
  grpc::CallbackServerContext* context_;  // guarded by mutex_, as all below
  bool begun_ = false;
  int64_t cut_at_ns_ = INT64_MAX;
};

}  // namespace hone::server

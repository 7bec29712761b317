#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "server/call_identity.h"
#include "server/farm_loop.h"
#include "server/worker_streams.h"

namespace grpc {
template <class Response>
class ServerWriteReactor;
class CallbackServerContext;
}  // namespace grpc
namespace hone::v1 {
class SnapshotChunk;
}  // namespace hone::v1

namespace hone::server {

/// Copies of the log on their way to clients. One thread copies, so that nobody else waits for it;
/// at most 2 are open for a caller and 8 in all, kResourceExhausted beyond: each holds disk space.
/// Thread-safe.
class SnapshotStreams {
 public:
  struct Context {
    const WallClock& wall_clock;
    FarmLoop& loop;
    WorkerStreams& workers;  ///< knows who is refused
    std::string log_path;
  };
  explicit SnapshotStreams(Context context);
  ~SnapshotStreams();

  /// The stream of this call of this caller, or of one who is refused.
  grpc::ServerWriteReactor<v1::SnapshotChunk>* Open(grpc::CallbackServerContext* context,
                                                    const absl::StatusOr<Identity>& caller);
  /// Ends streams whose caller's certificate has expired or is refused, and cuts those that do not
  /// end; call it every second.
  void EndExpired();
  /// Ends all of them.
  void Stop();

 private:
  class Stream;
  class Copier;
  std::unique_ptr<Copier> copier_;
};

}  // namespace hone::server

#pragma once

#include <memory>
#include <string>

#include "base/core/clock.h"
#include "server/call_identity.h"
#include "server/session_book.h"
#include "server/work_pool.h"
#include "server/worker_streams.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace hone::server {

/// The service Tuning: what clients ask. Thread-safe.
class TuningService {
 public:
  struct Context {
    Transport transport = Transport::kMutualTls;
    const WallClock& wall_clock;
    FarmLoop& loop;
    SharedReader& reader;
    SessionBook& book;
    WorkerStreams& workers;
    std::string log_path;
  };
  explicit TuningService(Context context);
  ~TuningService();

  grpc::Service* service();
  /// Something became durable: watchers look again, soon.
  void Changed();
  /// Ends watches and snapshots whose caller's certificate has expired or is refused, and cuts
  /// those that do not end; call it every second.
  void EndExpired();
  /// Ends every call that is under way.
  void Stop();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace hone::server

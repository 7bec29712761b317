#pragma once

#include <memory>

#include "base/core/clock.h"
#include "server/model_judgements.h"
#include "server/worker_streams.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace hone::server {

/// The service Judging: comparisons of whole models that clients ask for. Thread-safe.
class JudgingService {
 public:
  /// Both must outlive it.
  JudgingService(WorkerStreams& workers, ModelJudgements& judgements);
  ~JudgingService();

  grpc::Service* service();
  /// Ends every call that is under way.
  void Stop();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace hone::server

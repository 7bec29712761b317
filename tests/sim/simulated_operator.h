#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "proto/farm_messages.h"
#include "server/farm_types.h"

// What operators of a simulated farm do while it works, and what its network does with streams.
namespace hone::sim {

struct OperatorActs {
  std::set<std::string> refused;           ///< names of workers that honed turns away
  std::set<std::string> revoked, drained;  ///< names, durably, whatever honed makes of it
  int names = 0;                           ///< given to workers whose first one was revoked
  /// What a worker said on a stream that it gave up since, and honed has not yet.
  struct Late {
    int64_t arrives_ns = 0;
    server::StreamId stream = 0;
    std::string worker;
    proto::WorkerMessage message;
  };
  std::deque<Late> late;
};

}  // namespace hone::sim

#pragma once

#include <optional>

#include "server/farm.h"
#include "server/farm_loop.h"

// A Farm's surroundings where no worker has a part in the test.
namespace hone::server {

/// Nobody hears anything.
class NoSink final : public FarmSink {
 public:
  void Send(StreamId, const proto::ServerMessage&) override {}
  void Close(StreamId, const absl::Status&) override {}
  void Deliver(const Delivery&) override {}
  void Changed() override {}
};

/// No lease has ended.
class NoLeases final : public LeaseReader {
 public:
  std::optional<db::FarmLease> FindLease(const Hash128&) override { return std::nullopt; }
};

}  // namespace hone::server

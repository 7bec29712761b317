#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/server_connection.h"

namespace hone::client::testing {

/// A server that refuses every call: tests override those that they need.
class ServerStub : public ServerConnection {
 public:
  absl::Status Watch(const Hash128&, int64_t*, const OnEvent&, const std::function<bool()>&,
                     int64_t) override {
    return No();
  }
  absl::StatusOr<proto::SessionInfo> FindSession(const Hash128&) override { return No(); }
  absl::StatusOr<Started> StartSession(const proto::SessionSpec&) override { return No(); }
  absl::Status CancelSession(const Hash128&) override { return No(); }
  absl::StatusOr<std::vector<proto::SessionInfo>> ListSessions(int) override { return No(); }
  absl::StatusOr<Found> FindRecords(const proto::FindRecords&) override { return No(); }
  absl::StatusOr<std::string> Snapshot(const std::string&, Use) override { return No(); }
  absl::StatusOr<std::string> PutPackage(const std::string&) override { return No(); }
  absl::StatusOr<ModelAnswer> JudgeModel(const ModelQuestion&) override { return No(); }
  absl::StatusOr<std::vector<proto::DeviceInfo>> ListDevices() override { return No(); }
  absl::Status SetDevice(const std::string&, const std::string&, proto::DeviceAction) override {
    return No();
  }
  const std::string& address() const override { return address_; }

 private:
  static absl::Status No() { return absl::UnimplementedError("no part of this test"); }
  const std::string address_ = "stub";
};

}  // namespace hone::client::testing

#include "client/server_connection.h"

#include <memory>
#include <string>
#include <tuple>

#include "gtest/gtest.h"

#include "base/versions.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "proto/field_check.h"
#include "proto/limits.h"

// What a client says to a honed, which is this test's.
namespace hone::client {
namespace {

class OwnHoned : public ::testing::Test, public v1::Tuning::Service {
 protected:
  OwnHoned() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    connection_ =
        ServerConnection::Open({.address = "127.0.0.1:" + std::to_string(port), .plaintext = true})
            .value();
  }
  ~OwnHoned() override { server_->Shutdown(); }

  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerConnection> connection_;
};

class Protocol : public OwnHoned {
 protected:
  grpc::Status ListDevices(grpc::ServerContext* context, const v1::ListDevicesRequest*,
                           v1::ListDevicesReply*) override {
    for (const char* key : {"hone-protocol", "hone-version"}) {
      const auto said = context->client_metadata().find(key);
      if (said == context->client_metadata().end()) continue;
      said_ += std::string(said->second.data(), said->second.size()) + ";";
    }
    return grpc::Status::OK;
  }
  std::string said_;
};

TEST_F(Protocol, IsSaidWithEachCall) {
  ASSERT_TRUE(connection_->ListDevices().ok());
  EXPECT_EQ(said_, std::to_string(kProtocolVersion) + ";" + kProgramVersion + ";");
}

TEST(WhyNoConnection, IsSaidWhereGrpcTellsAndNowhereElse) {
  const auto why = [](const char* text, proto::Dialled dialled = proto::Dialled::kTls) {
    return proto::WhyNoConnection(absl::UnavailableError(text), dialled);
  };
  EXPECT_NE(why("last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SSL: "
                "error:0A000086:SSL routines::certificate verify failed")
                .find("not of the authority in ca.pem"),
            std::string::npos);
  const char* const closed = "failed to connect to all addresses; last error: Socket closed";
  EXPECT_NE(why(closed).find("see whether the certificates"), std::string::npos);
  // Nobody looked at a certificate, and honed's log says nothing.
  EXPECT_NE(why(closed, proto::Dialled::kPlaintext).find("leave --insecure-loopback away"),
            std::string::npos);
  EXPECT_EQ(why(closed, proto::Dialled::kPlaintext).find("event="), std::string::npos);
  EXPECT_NE(why("failed to connect to all addresses; last error: Connection refused")
                .find("nothing listens there"),
            std::string::npos);
  EXPECT_NE(why("last error: UNKNOWN: ipv4:127.0.0.1:1: Trying to connect an http1.x server")
                .find("not of its page or metrics"),
            std::string::npos);
  EXPECT_NE(why("DNS resolution failed for x:1: C-ares status is not ARES_SUCCESS")
                .find("no machine of that name"),
            std::string::npos);
  EXPECT_EQ(why("Socket closed"), "") << "a connection that was";
  // A second live process of a worker's name: its certificate is well.
  EXPECT_EQ(proto::WhyNoConnection(absl::AlreadyExistsError("another live process is w1")), "");
}

/// Has three devices, and says one at a time.
class Pages : public OwnHoned {
 protected:
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest* request,
                           v1::ListDevicesReply* reply) override {
    int next = 1;
    if (!request->after_worker().empty()) {
      EXPECT_EQ(request->after_device(), "cpu:0");
      next = request->after_worker().back() - '0' + 1;
    }
    v1::DeviceInfo* row = reply->add_devices();
    row->set_worker("w" + std::to_string(next));
    row->mutable_device()->set_name("cpu:0");
    row->set_state(v1::DEVICE_STATE_ACTIVE);
    reply->set_more(next < 3);
    return grpc::Status::OK;
  }
};

/// Has 1,500 sessions, numbered from the newest on.
class SessionPages : public OwnHoned {
 protected:
  grpc::Status ListSessions(grpc::ServerContext*, const v1::ListSessionsRequest* request,
                            v1::ListSessionsReply* reply) override {
    EXPECT_LE(request->limit(), proto::kMaxListed);
    uint64_t next = 1;
    if (!request->after_session().empty()) {
      next = proto::IdFromBytes(request->after_session(), "after")->low + 1;
    }
    for (int i = 0; i < request->limit() && next <= 1500; ++i, ++next) {
      proto::ToWire(proto::SessionInfo{.id = {1, next}, .owner = "o", .project = "p", .model = "m"},
                    reply->add_sessions());
    }
    reply->set_more(next <= 1500);
    ++asked_;
    return grpc::Status::OK;
  }
  int asked_ = 0;
};

TEST_F(SessionPages, AreAskedForUntilThereAreEnough) {
  for (const auto& [limit, sessions, calls] :
       {std::tuple(100, size_t{100}, 1), {1200, 1200, 2}, {1'000'000, 1500, 2}}) {
    asked_ = 0;
    const auto infos = connection_->ListSessions(limit);
    ASSERT_TRUE(infos.ok()) << infos.status();
    EXPECT_EQ(infos->size(), sessions);
    EXPECT_EQ(infos->back().id.low, sessions);
    EXPECT_EQ(asked_, calls) << limit;
  }
}

TEST_F(Pages, AreAllAskedFor) {
  const auto devices = connection_->ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 3u);
  EXPECT_EQ((*devices)[2].worker, "w3");
}

}  // namespace
}  // namespace hone::client

#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/credentials.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "server/ca.h"
#include "server/honed.h"
#include "tests/server/temporary_folder.h"

// Who may ask gRPC's health service over mutual TLS.
namespace hone::server {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    const std::string ca = folder_ / "ca";
    EXPECT_TRUE(InitCa(ca, now_s_).ok());
    options_.log_path = folder_ / "t.db";
    options_.listen = "127.0.0.1:0";
    options_.credentials = Issued(ca, CallerRole::kServer, "honed", 3600);
    options_.builder_version = "b";
    options_.versions = "{}";
    honed_ = Honed::Start(options_, clock_, wall_clock_).value();
  }
  Credentials Issued(const std::string& ca, CallerRole role, const std::string& name,
                     int64_t seconds) {
    const std::string out = folder_ / (name + "-of-" + std::to_string(++issued_));
    const absl::Status status = Issue({.ca_folder = ca,
                                       .role = role,
                                       .name = name,
                                       .out_folder = out,
                                       .now_unix_s = now_s_,
                                       .seconds = seconds});
    EXPECT_TRUE(status.ok()) << status;
    return ReadCredentials(out).value();
  }
  grpc::Status Ask(const Credentials& who, const std::string& method) {
    grpc::SslCredentialsOptions tls;
    // honed's own authority: it is the caller who is a stranger, if anybody.
    tls.pem_root_certs = options_.credentials.ca;
    tls.pem_private_key = who.key;
    tls.pem_cert_chain = who.certificate;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(kServerName);
    grpc::GenericStub stub(grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                                     grpc::SslCredentials(tls), arguments));
    grpc::ClientContext context;
    context.set_deadline(gpr_timespec{20, 0, GPR_TIMESPAN});
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &reply,
                   [&](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  SystemWallClock wall_clock_;
  const int64_t now_s_ = wall_clock_.UnixNs() / kNsPerSecond;
  int issued_ = 0;
  HonedOptions options_;
  std::unique_ptr<Honed> honed_;
};

TEST_F(HealthTest, ItAnswersEveryCertificateOfTheAuthorityAndNoOther) {
  constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
  constexpr char kList[] = "/hone.v1.Tuning/ListDevices";
  const std::string ca = folder_ / "ca";
  for (const auto& [role, seconds] :
       {std::pair(CallerRole::kMeasure, 3600), std::pair(CallerRole::kSubmit, -60)}) {
    const Credentials who = Issued(ca, role, "somebody", seconds);
    EXPECT_TRUE(Ask(who, kHealth).ok()) << RoleName(role);
    EXPECT_FALSE(Ask(who, kList).ok()) << RoleName(role) << ": this asks for role and date";
  }
  const std::string other = folder_ / "other";
  ASSERT_TRUE(InitCa(other, now_s_).ok());
  EXPECT_EQ(Ask(Issued(other, CallerRole::kSubmit, "mallory", 3600), kHealth).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace hone::server

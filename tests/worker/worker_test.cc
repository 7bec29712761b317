#include "worker/worker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <filesystem>
#include <future>
#include <thread>

#include "gtest/gtest.h"

#include "base/core/unique_fd.h"
#include "grpcpp/grpcpp.h"
#include "measure/device_lock.h"
#include "proto/farm_service.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

// A worker against a honed of this test.
namespace hone::worker {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr Hash128 kToken{1, 1};
constexpr int64_t kRunByMs = 1'500;

/// Grants one lease, and tells when its code runs.
class OneLease final : public v1::Workers::Service {
 public:
  grpc::Status Work(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::WorkerMessage>* stream) override {
    const auto say = [&](const proto::ServerMessage& message) {
      v1::ServerMessage wire;
      proto::ToWire(message, &wire);
      stream->Write(wire);
    };
    v1::WorkerMessage wire;
    bool granted = false;
    while (stream->Read(&wire)) {
      const auto message = proto::FromWire(wire);
      if (!message.ok()) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "what?");
      if (std::holds_alternative<proto::Hello>(*message)) {
        say(proto::Welcome{.heartbeat_ms = 100});
        say(proto::ServerCredit{10});
      } else if (std::holds_alternative<proto::WorkerCredit>(*message) && !granted) {
        granted = true;
        proto::Grant grant{.token = kToken, .session = {2, 2}, .attempt = 1};
        grant.job = {.workload = measure::kGemm,
                     .target = "cpu:avx2,threads=1",
                     .traces = {measure::kPacked},
                     .seed = 7};
        grant.start_by_ms = 60'000;
        grant.run_by_ms = kRunByMs;
        say(grant);
      } else if (std::holds_alternative<proto::Started>(*message)) {
        started.set_value();
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the test's honed ends");
      } else if (const auto* result = std::get_if<proto::WorkResult>(&*message)) {
        results.push_back(*result);
        say(proto::Acknowledgement{result->token, proto::Verdict::kAccepted});
      }
    }
    return grpc::Status::OK;
  }
  std::promise<void> started;
  std::vector<proto::WorkResult> results;
};

/// Grants leases and takes a result, but never says that it has it, as one whose disk is full;
/// `deaf`: it does not even read on, so that the worker cannot write any more.
class NeverAcknowledges final : public v1::Workers::Service {
 public:
  explicit NeverAcknowledges(bool deaf) : deaf_(deaf) {}
  grpc::Status Work(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::WorkerMessage>* stream) override {
    const auto say = [&](const proto::ServerMessage& message) {
      v1::ServerMessage wire;
      proto::ToWire(message, &wire);
      stream->Write(wire);
    };
    v1::WorkerMessage wire;
    bool granted = false;
    while (stream->Read(&wire)) {
      if (wire.has_hello()) {
        say(proto::Welcome{.heartbeat_ms = 100});
        say(proto::ServerCredit{kLeases});
      } else if (wire.has_credit() && !granted) {
        granted = true;
        for (uint64_t i = 1; i <= kLeases; ++i) {
          proto::Grant grant{.token = {1, i}, .session = {2, 2}, .attempt = 1};
          grant.job = {.workload = "none", .target = "cpu:avx2,threads=1", .traces = {"t"}};
          grant.start_by_ms = grant.run_by_ms = 60'000;
          say(grant);
        }
      } else if (wire.has_result()) {
        if (!answered_.exchange(true)) answered.set_value();
        while (deaf_ && !context->IsCancelled()) SystemMonotonicClock().SleepNs(10 * kNsPerMs);
      }
    }
    return grpc::Status::OK;
  }
  std::promise<void> answered;
  static constexpr int kLeases = 60;

 private:
  const bool deaf_;
  std::atomic<bool> answered_ = false;
};

/// Listens there and never says a word: who dials waits.
class Silence {
 public:
  explicit Silence(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
  }

 private:
  const UniqueFd fd_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-worker-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
    const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
    options_.plaintext = true;
    options_.name = "w1";
    options_.hello.instance = {9, 9};
    options_.hello.device = {.name = "cpu:0",
                             .device_class = "class",
                             .fingerprint = "f",
                             .target = "cpu:avx2,threads=1",
                             .cores = 1};
    options_.measurer.builder.program = programs + "hone-builder";
    options_.measurer.builder.processes = 1;
    options_.measurer.runner.program = programs + "hone-runner";
    options_.measurer.runner.test_hooks = true;
    options_.measurer.run_hook = [](const measure::MeasureInput&) { return "hang"; };
    options_.lock_folder = folder_;
    options_.lock = "cpu:0";
  }
  ~WorkerTest() override { std::filesystem::remove_all(folder_); }

  const SystemMonotonicClock clock_;
  std::string folder_;
  WorkerOptions options_;
};

// A worker that waits for a connection keeps the time of what runs all the same: honed takes the
// lease back soon, and the device must be free by then.
TEST_F(WorkerTest, ItKillsInTimeWithoutAStream) {
  OneLease service;
  auto started = service.started.get_future();
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  options_.server = "127.0.0.1:" + std::to_string(port);
  std::atomic<bool> ending = false;
  absl::Status ended;
  std::thread worker([&] { ended = RunWorker(options_, clock_, ending); });

  ASSERT_EQ(started.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  const int64_t start_ns = clock_.NowNs();
  server->Shutdown(gpr_timespec{0, 0, GPR_TIMESPAN});
  server.reset();
  auto silence = std::make_unique<Silence>(port);
  // Whoever holds the device's lock has the device.
  auto lock = measure::DeviceLock::Open(folder_, "cpu:0");
  ASSERT_TRUE(lock.ok()) << lock.status();
  lock->Take();
  const int64_t took_ns = clock_.NowNs() - start_ns;
  lock->Free();
  EXPECT_GT(took_ns, kRunByMs / 2 * kNsPerMs) << "it did not run";
  EXPECT_LT(took_ns, 10'000 * kNsPerMs) << "dialling takes 20 s, the candidate's limit is 15";

  silence.reset();
  ending = true;
  // Its result is kept until honed has it.
  OneLease again;
  grpc::ServerBuilder rebuilder;
  rebuilder.AddListeningPort(options_.server, grpc::InsecureServerCredentials());
  rebuilder.RegisterService(&again);
  server = rebuilder.BuildAndStart();
  worker.join();
  EXPECT_TRUE(ended.ok()) << ended;
  ASSERT_EQ(again.results.size(), 1u);
  EXPECT_EQ(again.results[0].token, kToken);
  EXPECT_EQ(again.results[0].outcome, measure::Outcome::kRunTimeout);
}

class Refuses final : public v1::Workers::Service {
 public:
  explicit Refuses(grpc::StatusCode code) : code_(code) {}
  grpc::Status Work(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::ServerMessage, v1::WorkerMessage>*) override {
    return grpc::Status(code_, "the test's reason");
  }

 private:
  const grpc::StatusCode code_;
};

// Its exit code would keep a service manager from starting it again if it were the command line's.
TEST_F(WorkerTest, ARefusalEndsItSoThatItIsStartedAgain) {
  for (const auto code : {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::FAILED_PRECONDITION,
                          grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED}) {
    Refuses service(code);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    options_.server = "127.0.0.1:" + std::to_string(port);
    const absl::Status ended = RunWorker(options_, clock_, std::atomic<bool>(false));
    EXPECT_EQ(ended.code(), absl::StatusCode::kFailedPrecondition) << "RunDaemon makes it 1";
    EXPECT_NE(ended.message().find("refuses this worker: the test's reason"), std::string::npos)
        << ended;
    server->Shutdown(gpr_timespec{0, 0, GPR_TIMESPAN});
  }
}

// An end that was asked for comes, whatever honed does not do.
TEST_F(WorkerTest, ItEndsInTimeThoughNobodyAcknowledges) {
  options_.drain_ms = 500;
  options_.desk.ahead = NeverAcknowledges::kLeases;
  for (const bool deaf : {false, true}) {
    SCOPED_TRACE(deaf);
    NeverAcknowledges service(deaf);
    auto answered = service.answered.get_future();
    int port = 0;
    grpc::ServerBuilder builder;
    // What is not read stays with the worker.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 10);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    options_.server = "127.0.0.1:" + std::to_string(port);
    std::atomic<bool> ending = false;
    absl::Status ended;
    std::promise<void> over;
    std::thread worker([&] {
      ended = RunWorker(options_, clock_, ending);
      over.set_value();
    });
    EXPECT_EQ(answered.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    const int64_t start_ns = clock_.NowNs();
    ending = true;
    const auto waited = over.get_future().wait_for(std::chrono::seconds(30));
    EXPECT_EQ(waited, std::future_status::ready) << "it goes on";
    EXPECT_GE(clock_.NowNs() - start_ns, 400 * kNsPerMs) << "it did not wait for its answer";
    server->Shutdown(gpr_timespec{0, 0, GPR_TIMESPAN});
    worker.join();
    EXPECT_TRUE(ended.ok()) << ended;
  }
}

}  // namespace
}  // namespace hone::worker

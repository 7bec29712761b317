#include "hone/client.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/farm/farm_processes.h"

// The public client library against a real honed over mutual TLS.
namespace hone {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ClientLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    farm_.Issue("submit", "alice");
    farm_.Issue("measure", "w1");
    honed_.Start();
    client_ = Connect("alice");
    ASSERT_NE(client_, nullptr);
    std::vector<SessionInfo> none;
    ASSERT_TRUE(client_->ListSessions(1, &none).ok()) << honed_.Said();
  }

  std::unique_ptr<Client> Connect(const std::string& who) {
    std::unique_ptr<Client> client;
    const Status status =
        Client::Connect({.address = farm_.Address(), .tls_folder = farm_.Path(who)}, &client);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return client;
  }
  SessionRequest RequestFor(double seconds) {
    const std::string model = farm_.Path("mlp.onnx");
    EXPECT_EQ(farm::RunToEnd({farm::Program("hone"), "zoo", "mlp", "-o", model}).code, 0);
    SessionRequest request;
    request.seconds = seconds;
    const Status status =
        client_->TasksOfModel(model, {.target = "cpu:avx2+vnni,threads=1"}, &request);
    EXPECT_TRUE(status.ok()) << status.ToString();
    // What no kernel can use is not asked of devices.
    EXPECT_EQ(request.target, "cpu:avx2,threads=1");
    return request;
  }

  farm::FarmFolder farm_;
  farm::Daemon honed_{"honed", farm_.HonedArgv(), farm_.Path("honed.log")};
  std::unique_ptr<Client> client_;
};

TEST_F(ClientLibrary, StartsJoinsListsWatchesAndCancels) {
  const SessionRequest request = RequestFor(3600);
  EXPECT_EQ(request.model, "mlp");
  EXPECT_EQ(request.target, "cpu:avx2,threads=1");
  EXPECT_EQ(request.model_hash, Sha256Hex(*ReadFile(farm_.Path("mlp.onnx"))));
  ASSERT_GE(request.tasks.size(), 2u);
  for (const SessionTask& task : request.tasks) {
    EXPECT_FALSE(task.workload.empty());
    EXPECT_GE(task.count, 1);
  }
  StartedSession first, second;
  ASSERT_TRUE(client_->StartSession(request, &first).ok());
  EXPECT_FALSE(first.joined);
  ASSERT_TRUE(client_->StartSession(request, &second).ok());
  EXPECT_TRUE(second.joined);
  EXPECT_EQ(first.id, second.id);

  std::vector<SessionInfo> sessions;
  ASSERT_TRUE(client_->ListSessions(10, &sessions).ok());
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].id, first.id);
  EXPECT_EQ(sessions[0].owner, "alice");
  EXPECT_EQ(sessions[0].state, SessionState::kWaiting) << "there is no worker";
  EXPECT_EQ(sessions[0].tasks, static_cast<int>(request.tasks.size()));

  std::vector<SessionEvent> events;
  std::atomic<int> heard{0};
  Status watched;
  std::thread watcher([&] {
    watched = client_->WatchSession(first.id, 0, [&](const SessionEvent& event) {
      events.push_back(event);
      ++heard;
      return true;
    });
  });
  const SystemMonotonicClock clock;
  for (int i = 0; i < 200 && heard == 0; ++i) clock.SleepNs(20'000'000);
  EXPECT_TRUE(client_->CancelSession(first.id).ok());
  watcher.join();
  EXPECT_TRUE(watched.ok()) << watched.ToString();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.front().kind, SessionEvent::Kind::kState);
  EXPECT_EQ(events.back().kind, SessionEvent::Kind::kEnded);
  EXPECT_EQ(events.back().info.state, SessionState::kCancelled);
  SessionInfo after;
  ASSERT_TRUE(client_->FindSession(first.id, &after).ok());
  EXPECT_EQ(after.state, SessionState::kCancelled);
}

TEST_F(ClientLibrary, SetsAllThatTheCommandCan) {
  SessionRequest request = RequestFor(3600);
  StartedSession first, strict, other;
  ASSERT_TRUE(client_->StartSession(request, &first).ok());
  request.accuracy = Accuracy::kStrict;
  ASSERT_TRUE(client_->StartSession(request, &strict).ok());
  EXPECT_FALSE(strict.joined) << "another accuracy is another session";
  request.project = "vision";
  request.priority = 7;
  request.device_class = "of no device";
  ASSERT_TRUE(client_->StartSession(request, &other).ok());
  SessionInfo info;
  ASSERT_TRUE(client_->FindSession(other.id, &info).ok());
  EXPECT_EQ(info.project, "vision");
  EXPECT_EQ(info.device_class, "of no device");
  // A bound input is a constant of the model: the file must be there and be one.
  const Status absent = client_->TasksOfModel(farm_.Path("mlp.onnx"),
                                              {.binds = {{"x", farm_.Path("none.npy")}}}, &request);
  EXPECT_EQ(absent.code(), StatusCode::kNotFound) << absent.ToString();
}

TEST_F(ClientLibrary, ListsAndSetsDevices) {
  std::vector<DeviceInfo> devices = {DeviceInfo{.worker = "old"}};
  ASSERT_TRUE(client_->ListDevices(&devices).ok());
  EXPECT_TRUE(devices.empty());
  farm::Daemon worker{"w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log")};
  worker.Start();
  const SystemMonotonicClock clock;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(client_->ListDevices(&devices).ok());
    if (!devices.empty() && devices[0].flop_per_second > 0) break;
    clock.SleepNs(50'000'000);
  }
  ASSERT_EQ(devices.size(), 1u) << worker.Said();
  const DeviceInfo& device = devices[0];
  EXPECT_EQ(device.worker, "w1");
  EXPECT_EQ(device.device, "cpu:0");
  EXPECT_EQ(device.state, DeviceState::kActive);
  EXPECT_TRUE(device.connected);
  EXPECT_GE(device.cores, 1);
  EXPECT_THAT(device.driver, HasSubstr("Linux"));
  EXPECT_FALSE(device.program_version.empty());
  EXPECT_GT(device.flop_per_second, 1e8) << "as it was probed";
  EXPECT_GT(device.memory_bytes_per_second, 1e8);
  EXPECT_EQ(client_->SetDevice("w1", "cpu:0", DeviceAction::kDrain).code(),
            StatusCode::kPermissionDenied);
  farm_.Issue("admin", "root");
  const std::unique_ptr<Client> admin = Connect("root");
  EXPECT_EQ(admin->SetDevice("w2", "cpu:0", DeviceAction::kDrain).code(), StatusCode::kNotFound);
  ASSERT_TRUE(admin->SetDevice("w1", "cpu:0", DeviceAction::kDrain).ok());
  ASSERT_TRUE(client_->ListDevices(&devices).ok());
  EXPECT_NE(devices[0].state, DeviceState::kActive);
  ASSERT_TRUE(admin->SetDevice("w1", "cpu:0", DeviceAction::kUndrain).ok());
  // The command waits for the answer of a probe.
  const farm::Ran probed =
      farm::RunToEnd({farm::Program("hone"), "device", "probe", "w1/cpu:0", "--json", "--server",
                      farm_.Address(), "--tls", farm_.Path("root")});
  EXPECT_EQ(probed.code, 0) << probed.err;
  EXPECT_THAT(probed.out, HasSubstr("\"number\":2"));
}

TEST_F(ClientLibrary, AWatchEndsWhenItsCallerHasEnough) {
  StartedSession session;
  ASSERT_TRUE(client_->StartSession(RequestFor(3600), &session).ok());
  int calls = 0;
  EXPECT_EQ(
      client_->WatchSession(session.id, 0, [&](const SessionEvent&) { return ++calls < 1; }).code(),
      StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
  const SystemMonotonicClock clock;
  const int64_t begin_ns = clock.NowNs();
  EXPECT_EQ(
      client_
          ->WatchSession(
              session.id, 0, [](const SessionEvent&) { return true; }, 600'000, [] { return true; })
          .code(),
      StatusCode::kCancelled);
  EXPECT_LT(clock.NowNs() - begin_ns, 5'000'000'000);
}

TEST_F(ClientLibrary, LooksUpAndFetchesASnapshot) {
  std::vector<Record> records = {Record{.id = "old"}};
  const RecordQuery query = {.workload = RequestFor(1).tasks[0].workload,
                             .target = "cpu:avx2,threads=1",
                             .device_class = "none"};
  ASSERT_TRUE(client_->FindRecords(query, &records).ok());
  EXPECT_TRUE(records.empty()) << "nothing was measured";
  std::string sha256;
  const Status status = client_->Snapshot(farm_.Path("snap.db"), &sha256);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(sha256, Sha256Hex(*ReadFile(farm_.Path("snap.db"))));
  EXPECT_FALSE(std::filesystem::exists(farm_.Path("snap.db.tmp")));
  // A pipe stands for /dev/null, which a mistake here would take from the whole machine.
  const std::string pipe = farm_.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(client_->Snapshot(pipe, &sha256).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(std::filesystem::exists(pipe + ".tmp"));
}

TEST_F(ClientLibrary, SaysWhatIsWrongAndLeavesItsOutputs) {
  SessionInfo info{.id = "kept"};
  EXPECT_EQ(client_->FindSession("xyz", &info).code(), StatusCode::kInvalidArgument);
  const Status missing = client_->FindSession(std::string(32, '0'), &info);
  EXPECT_EQ(missing.code(), StatusCode::kNotFound) << missing.ToString();
  EXPECT_EQ(info.id, "kept");
  StartedSession session{.id = "kept"};
  EXPECT_EQ(client_->StartSession({}, &session).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session.id, "kept");
  // What a session has to have, and how much it may.
  SessionRequest unlimited = RequestFor(0);
  const Status endless = client_->StartSession(unlimited, &session);
  EXPECT_EQ(endless.code(), StatusCode::kInvalidArgument) << endless.ToString();
  EXPECT_THAT(endless.ToString(), HasSubstr("one must limit the session"));
  unlimited.trials = 1;
  unlimited.project = "no \xff UTF-8";
  EXPECT_THAT(client_->StartSession(unlimited, &session).ToString(),
              HasSubstr("project: has characters that do not print"));
  unlimited.project.clear();
  unlimited.tasks.assign(5, {.workload = std::string(1 << 20, 'x'), .name = "large"});
  const Status large = client_->StartSession(unlimited, &session);
  EXPECT_EQ(large.code(), StatusCode::kInvalidArgument) << "no full disk: " << large.ToString();
  EXPECT_THAT(large.ToString(), HasSubstr("4194304 at most"));
  EXPECT_EQ(session.id, "kept");
  EXPECT_THAT(client_->SetDevice("w\xff", "cpu:0", DeviceAction::kDrain).ToString(),
              HasSubstr("worker: has characters that do not print"));
  SessionRequest request{.model = "kept"};
  EXPECT_EQ(client_->TasksOfModel(farm_.Path("none.onnx"), {}, &request).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(client_->TasksOfModel(farm_.Path("none.onnx"), {.target = "gpu:9"}, &request).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(request.tasks.empty());
  std::vector<Record> records;
  EXPECT_EQ(client_->FindRecords({.limit = 1000}, &records).code(), StatusCode::kInvalidArgument);
  std::unique_ptr<Client> worker;
  const Status refused =
      Client::Connect({.address = farm_.Address(), .tls_folder = farm_.Path("w1")}, &worker);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.ToString();
  EXPECT_THAT(refused.ToString(), HasSubstr("it takes the role submit"));
}

TEST_F(ClientLibrary, IsCalledFromManyThreads) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::vector<SessionInfo> sessions;
        if (client_->ListSessions(5, &sessions).ok()) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 160);
}

TEST(ClientLibraryAlone, RefusesOptionsThatCannotBe) {
  std::unique_ptr<Client> client;
  EXPECT_EQ(Client::Connect({}, &client).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Client::Connect({.address = "h:1", .tls_folder = "/x", .deadline_ms = 0}, &client).code(),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect({.address = "far:1", .insecure_loopback = true}, &client).code(),
            StatusCode::kInvalidArgument);
  const Status none = Client::Connect({.address = "h:1", .tls_folder = "/no/such"}, &client);
  EXPECT_THAT(none.ToString(), HasSubstr("honed issue submit"));
  EXPECT_EQ(client, nullptr);
}

TEST(ClientLibraryAlone, GivesUpAtItsDeadline) {
  std::unique_ptr<Client> client;
  ASSERT_TRUE(Client::Connect({.address = "127.0.0.1:" + std::to_string(farm::FreePort()),
                               .insecure_loopback = true,
                               .deadline_ms = 300,
                               .retry_for_ms = 0},
                              &client)
                  .ok());
  const SystemMonotonicClock clock;
  const int64_t begin_ns = clock.NowNs();
  std::vector<SessionInfo> sessions;
  EXPECT_THAT(client->ListSessions(1, &sessions).code(),
              AnyOf(StatusCode::kUnavailable, StatusCode::kDeadlineExceeded));
  EXPECT_LT(clock.NowNs() - begin_ns, 5'000'000'000);
}

}  // namespace
}  // namespace hone

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/versions.h"
#include "db/farm_store.h"
#include "db/log_file.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"
#include "proto/limits.h"
#include "server/honed.h"
#include "tests/server/temporary_folder.h"

// What callers cannot do to a honed by opening streams and leaving them open.
namespace hone::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CallsTest : public ::testing::Test {
 protected:
  /// `more`: goes into the log too.
  explicit CallsTest(const db::FarmUnit& more = {}) {
    FillLog(more);
    HonedOptions options{.log_path = folder_ / "t.db", .listen = "127.0.0.1:0"};
    options.transport = Transport::kPlaintext;
    options.builder_version = "b";
    options.versions = "{}";
    options.unsent_bytes = size_t{64} << 10;
    honed_ = Honed::Start(options, clock_, wall_clock_).value();
    // What is not asked for is not taken off the server's hands.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 10);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                         grpc::InsecureChannelCredentials(), arguments);
  }

  /// Larger than what a transport takes without a reader.
  void FillLog(const db::FarmUnit& more) {
    const auto log = db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
    db::Batch batch;
    for (uint64_t i = 1; i <= 40; ++i) {
      batch.sessions.push_back({.id = {i, i},
                                .request = R"({"x":")" + std::string(400'000, 'x') + R"("})",
                                .versions = "{}"});
    }
    for (uint64_t i = 1; i <= 15'000; ++i) {
      batch.events.push_back(
          {.id = {7, i}, .session = kSession, .type = "proposed", .payload = "1 0 0 uncertainty"});
    }
    batch.sessions.push_back({.id = kSession, .request = "{}", .versions = "{}"});
    ASSERT_TRUE(log->Append(batch).ok());
    db::FarmUnit unit = more;
    unit.changes.push_back(db::AddFarmSession{
        {.id = kSession, .owner = "b", .project = "p", .state = db::SessionState::kFinished}});
    const auto store = db::FarmStore::Open(*log).value();
    ASSERT_TRUE(store->Commit({&unit}).value().at(0).ok());
  }

  /// What a client gets who only lists sessions.
  grpc::Status List(const std::string& name) {
    const auto stub = v1::Tuning::NewStub(channel_);
    grpc::ClientContext context;
    context.AddMetadata("hone-name", name);
    v1::ListSessionsRequest request;
    v1::ListSessionsReply reply;
    request.set_limit(1);
    return stub->ListSessions(&context, request, &reply);
  }
  /// From now on nobody of this role and name is served.
  void Revoke(const std::string& identity) {
    const auto stub = v1::Tuning::NewStub(channel_);
    grpc::ClientContext context;
    v1::RevokeRequest request;
    v1::RevokeReply reply;
    request.set_identity("spiffe://hone/" + identity);
    request.set_request_id(identity);
    const grpc::Status status = stub->Revoke(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  /// A stream of w1's, up to its Welcome; the context must outlive it.
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>> OpenWorker(
      v1::Workers::Stub& stub, grpc::ClientContext& context) {
    context.AddMetadata("hone-name", "w1");
    auto stream = stub.Work(&context);
    proto::Hello hello{.protocol = kProtocolVersion, .builder_version = "b"};
    hello.measurement_policy = kCpuVersions.measurement_policy;
    hello.instance = {1, 1};
    hello.device = {"cpu:0", "class", "f", "cpu:avx2,threads=1", 1, 5, "Linux"};
    v1::WorkerMessage message;
    proto::ToWire(proto::WorkerMessage(hello), &message);
    EXPECT_TRUE(stream->Write(message));
    v1::ServerMessage welcome;
    EXPECT_TRUE(stream->Read(&welcome));
    return stream;
  }
  /// Asks and asks, without reading an answer, until nothing more is taken; how often. Each is
  /// answered: there is no such lease. Transports take some of it, a few MB at most.
  template <typename Stream>
  int AskUntilNotHeard(Stream& stream, std::atomic<int>& asked, std::thread* writer) {
    *writer = std::thread([&] {
      v1::WorkerMessage message;
      proto::ToWire(proto::WorkerMessage(proto::Fetch{{7, 7}, std::string(64, 'a'), 0}), &message);
      while (asked < kQuestions && stream.Write(message)) ++asked;
    });
    int before = -1;
    for (int still = 0; still < 4 && asked < kQuestions;) {
      clock_.SleepNs(500'000'000);
      still = asked == before ? still + 1 : 0;
      before = asked;
    }
    return before;
  }
  static constexpr int kQuestions = 500'000;
  static constexpr Hash128 kSession{900, 900};

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  SystemWallClock wall_clock_;
  std::unique_ptr<Honed> honed_;
  std::shared_ptr<grpc::Channel> channel_;
};

/// The log has more devices and sessions than a message holds.
class LargeRepliesTest : public CallsTest {
 protected:
  static constexpr int kDevices = 1100, kSessions = 1000;
  LargeRepliesTest() : CallsTest(Many()) {}
  static db::FarmUnit Many() {
    db::FarmUnit unit;
    const std::string reason(proto::kMaxTextBytes, 'r');
    for (uint64_t i = 1; i <= kSessions; ++i) {
      unit.changes.push_back(db::AddFarmSession{
          {.id = {800, i},
           .owner = "o",
           .project = std::string(250, 'p'),
           .spec = "?",
           .state = i == 1 ? db::SessionState::kRunning : db::SessionState::kFailed,
           .reason = reason,
           .created_ms = 1}});
    }
    for (uint64_t i = 1; i <= kDevices; ++i) {
      const std::string worker = "w" + std::to_string(i);
      unit.changes.push_back(
          db::PutFarmDevice{{worker, "cpu:0", db::DeviceState::kDraining, reason}});
      // It is listed for what it holds, of a session that was running.
      unit.changes.push_back(db::AddFarmLease{{.token = {1, i},
                                               .session = {800, 1},
                                               .attempt = static_cast<int64_t>(i),
                                               .worker = worker,
                                               .device = "cpu:0",
                                               .instance = {1, 1}}});
    }
    return unit;
  }
};

TEST_F(LargeRepliesTest, EachFitsIntoAMessage) {
  const auto stub = v1::Tuning::NewStub(channel_);
  v1::ListDevicesRequest devices;
  v1::ListDevicesReply page;
  std::set<std::string> seen;
  int pages = 0;
  do {
    grpc::ClientContext context;
    const grpc::Status status = stub->ListDevices(&context, devices, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_GT(page.devices_size(), 0);
    for (const v1::DeviceInfo& device : page.devices()) seen.insert(device.worker());
    devices.set_after_worker(page.devices().rbegin()->worker());
    devices.set_after_device(page.devices().rbegin()->device().name());
    ++pages;
  } while (page.more());
  EXPECT_EQ(seen.size(), size_t{kDevices});
  EXPECT_EQ(pages, 2);

  grpc::ClientContext all, one;
  all.AddMetadata("hone-name", "o");
  one.AddMetadata("hone-name", "o");
  v1::ListSessionsRequest sessions;
  v1::ListSessionsReply list;
  sessions.set_limit(kSessions);
  const grpc::Status listed = stub->ListSessions(&all, sessions, &list);
  ASSERT_TRUE(listed.ok()) << listed.error_message();
  EXPECT_EQ(list.sessions_size(), kSessions);
  EXPECT_EQ(list.sessions(0).reason().size(), proto::kMaxListedReasonBytes);
  sessions.set_session(list.sessions(0).session());
  ASSERT_TRUE(stub->ListSessions(&one, sessions, &list).ok());
  EXPECT_EQ(list.sessions(0).reason().size(), proto::kMaxTextBytes) << "of one it is whole";

  // Page by page, each begins behind the last row of the one before.
  std::set<std::string> ids;
  v1::ListSessionsRequest page_request;
  page_request.set_limit(600);
  std::vector<int> sizes;
  do {
    grpc::ClientContext context;
    context.AddMetadata("hone-name", "o");
    ASSERT_TRUE(stub->ListSessions(&context, page_request, &list).ok());
    for (const v1::SessionInfo& session : list.sessions()) ids.insert(session.session());
    sizes.push_back(list.sessions_size());
    page_request.set_after_session(list.sessions().rbegin()->session());
  } while (list.more());
  EXPECT_EQ(sizes, (std::vector<int>{600, 400}));
  EXPECT_EQ(ids.size(), size_t{kSessions});
}

/// A snapshot that is not read on.
struct OpenSnapshot {
  OpenSnapshot(v1::Tuning::Stub& stub, const std::string& name) {
    context.AddMetadata("hone-name", name);
    reader = stub.Snapshot(&context, {});
  }
  /// Whether anything came.
  bool First() {
    v1::SnapshotChunk chunk;
    return reader->Read(&chunk);
  }
  grpc::Status Rest() {
    v1::SnapshotChunk chunk;
    while (reader->Read(&chunk)) {
    }
    return reader->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::SnapshotChunk>> reader;
};

TEST_F(CallsTest, SnapshotsOnTheirWayAreBoundedAndHoldNobodyUp) {
  const auto stub = v1::Tuning::NewStub(channel_);
  std::vector<std::unique_ptr<OpenSnapshot>> open;
  for (const char* name : {"a", "a", "b", "b", "c", "c", "d", "d"}) {
    open.push_back(std::make_unique<OpenSnapshot>(*stub, name));
    ASSERT_TRUE(open.back()->First()) << name;
  }
  for (const auto& [name, why] : {std::pair{"a", "fetches 2 snapshots already"},
                                  std::pair{"e", "8 snapshots are on their way"}}) {
    const grpc::Status refused = OpenSnapshot(*stub, name).Rest();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused.error_message(), HasSubstr(why));
  }
  // Others are answered meanwhile.
  grpc::ClientContext context;
  context.set_deadline(gpr_timespec{20, 0, GPR_TIMESPAN});
  v1::ListDevicesReply devices;
  EXPECT_TRUE(stub->ListDevices(&context, {}, &devices).ok());
  // One that was read to its end makes room.
  EXPECT_TRUE(open[0]->Rest().ok());
  grpc::Status again;
  for (int tries = 0; tries < 100; ++tries) {
    again = OpenSnapshot(*stub, "a").Rest();
    if (again.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) break;
    clock_.SleepNs(50'000'000);  // its end is being told
  }
  EXPECT_TRUE(again.ok()) << again.error_message();
  honed_->Stop();
  EXPECT_FALSE(open[7]->Rest().ok());
}

// Not as a command of its own machine would: the farm goes on when its log is back.
TEST_F(CallsTest, ASnapshotOfALogThatIsGoneIsRefusedAsAllElse) {
  const auto stub = v1::Tuning::NewStub(channel_);
  std::filesystem::rename(folder_ / "t.db", folder_ / "aside.db");
  const grpc::Status refused = OpenSnapshot(*stub, "a").Rest();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("was moved or removed"));
  std::filesystem::rename(folder_ / "aside.db", folder_ / "t.db");
  grpc::Status again;
  for (int tries = 0; tries < 100; ++tries) {
    again = OpenSnapshot(*stub, "a").Rest();
    if (again.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) break;
    clock_.SleepNs(50'000'000);  // the loop tries a few times a second
  }
  EXPECT_TRUE(again.ok()) << again.error_message();
}

/// A watch that is not read on.
struct OpenWatch {
  OpenWatch(v1::Tuning::Stub& stub, const std::string& name, const Hash128& session) {
    context.AddMetadata("hone-name", name);
    v1::WatchSessionRequest request;
    request.set_session(proto::IdBytes(session));
    reader = stub.WatchSession(&context, request);
  }
  bool First() {
    v1::SessionEvent event;
    return reader->Read(&event);
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> reader;
};

TEST_F(CallsTest, WatchesAreBoundedForEachCaller) {
  const auto stub = v1::Tuning::NewStub(channel_);
  std::vector<std::unique_ptr<OpenWatch>> open;
  for (int i = 0; i < proto::kMaxWatches; ++i) {
    open.push_back(std::make_unique<OpenWatch>(*stub, "b", kSession));
    ASSERT_TRUE(open.back()->First()) << i;
  }
  OpenWatch refused(*stub, "b", kSession);
  EXPECT_FALSE(refused.First());
  const grpc::Status why = refused.reader->Finish();
  EXPECT_EQ(why.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(why.error_message(), HasSubstr("watches 64 sessions already"));
  // One that ends makes room.
  open.front()->context.TryCancel();
  bool taken = false;
  for (int tries = 0; tries < 100 && !taken; ++tries) {
    taken = OpenWatch(*stub, "b", kSession).First();
    if (!taken) clock_.SleepNs(50'000'000);  // its end is being told
  }
  EXPECT_TRUE(taken);
  for (const auto& watch : open) watch->context.TryCancel();
}

TEST_F(CallsTest, AClientOfAnotherProtocolIsToldWhichSideToUpgrade) {
  const auto stub = v1::Tuning::NewStub(channel_);
  const auto call = [&](const std::string& protocol, bool stream) {
    grpc::ClientContext context;
    context.AddMetadata("hone-name", "alice");
    if (!protocol.empty()) {
      context.AddMetadata("hone-protocol", protocol);
      context.AddMetadata("hone-version", "7.8.9");
    }
    v1::ListDevicesReply reply;
    if (!stream) return stub->ListDevices(&context, {}, &reply);
    const auto reader = stub->Snapshot(&context, {});
    v1::SnapshotChunk chunk;
    while (reader->Read(&chunk)) {
    }
    return reader->Finish();
  };
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream);
    EXPECT_TRUE(call(std::to_string(kProtocolVersion), stream).ok());
    EXPECT_TRUE(call("", stream).ok()) << "made from farm.proto alone";
    for (const auto& [protocol, upgrade] :
         {std::pair{kProtocolVersion + 1, "upgrade honed"},
          std::pair{kProtocolVersion - 1, "upgrade the client"}}) {
      const grpc::Status refused = call(std::to_string(protocol), stream);
      EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_THAT(refused.error_message(),
                  AllOf(HasSubstr("spiffe://hone/submit/alice (hone 7.8.9) speaks protocol " +
                                  std::to_string(protocol)),
                        HasSubstr(std::string("honed (hone ") + kProgramVersion + ") speaks " +
                                  std::to_string(kProtocolVersion)),
                        HasSubstr(upgrade)));
    }
  }
}

TEST_F(CallsTest, AStreamThatNeverSaysWhoItIsEnds) {
  const auto stub = v1::Workers::NewStub(channel_);
  grpc::ClientContext context;
  context.set_deadline(gpr_timespec{30, 0, GPR_TIMESPAN});
  const auto stream = stub->Work(&context);
  v1::ServerMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("no Hello within 10 s"));
}

// A small question may have a large answer: whoever reads none is not heard any more.
TEST_F(CallsTest, AWorkerThatDoesNotReadIsNotHeardAnyMore) {
  const auto stub = v1::Workers::NewStub(channel_);
  grpc::ClientContext context;
  const auto stream = OpenWorker(*stub, context);
  std::atomic<int> asked{0};
  std::thread writer;
  const int before = AskUntilNotHeard(*stream, asked, &writer);
  EXPECT_LT(before, kQuestions) << "all was heard, and its answers are kept";
  // Once it reads, it goes on.
  v1::ServerMessage reply;
  while (asked <= before && stream->Read(&reply)) {
  }
  EXPECT_GT(asked, before);
  context.TryCancel();
  while (stream->Read(&reply)) {
  }
  writer.join();
}

// What could never be made durable does not hold until the next restart.
TEST_F(CallsTest, ARevocationWithoutARequestIdRevokesNobody) {
  const auto stub = v1::Tuning::NewStub(channel_);
  v1::RevokeRequest request;
  request.set_identity("spiffe://hone/submit/c");
  for (const bool named : {false, true}) {
    if (named) request.set_request_id("r");
    grpc::ClientContext context;
    v1::RevokeReply reply;
    EXPECT_EQ(stub->Revoke(&context, request, &reply).ok(), named);
    EXPECT_EQ(List("c").ok(), !named) << List("c").error_message();
  }
}

TEST_F(CallsTest, ARevocationUnderTheIdOfAnotherRevokesNobody) {
  const auto stub = v1::Tuning::NewStub(channel_);
  for (const char* name : {"c", "d"}) {
    v1::RevokeRequest request;
    request.set_identity("spiffe://hone/submit/" + std::string(name));
    request.set_request_id("r");
    grpc::ClientContext context;
    v1::RevokeReply reply;
    const grpc::Status status = stub->Revoke(&context, request, &reply);
    const bool first = std::string_view(name) == "c";
    EXPECT_EQ(status.error_code(), first ? grpc::StatusCode::OK : grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(List(name).ok(), !first) << name;
  }
}

// The status of a stream waits behind what its peer has not read: a revoked one could stay.
TEST_F(CallsTest, WhoIsRevokedAndDoesNotReadIsCutOff) {
  const auto stub = v1::Tuning::NewStub(channel_);
  OpenSnapshot snapshot(*stub, "a");
  grpc::ClientContext watch_context;
  watch_context.AddMetadata("hone-name", "b");
  v1::WatchSessionRequest request;
  request.set_session(proto::IdBytes(kSession));
  const auto watch = stub->WatchSession(&watch_context, request);
  const auto workers = v1::Workers::NewStub(channel_);
  grpc::ClientContext context;
  const auto stream = OpenWorker(*workers, context);
  std::atomic<int> asked{0};
  std::thread writer;
  AskUntilNotHeard(*stream, asked, &writer);

  const int64_t start_ns = clock_.NowNs();
  for (const char* identity : {"submit/a", "submit/b", "measure/w1"}) Revoke(identity);
  writer.join();  // its writes fail once the stream is no more
  // Some seconds were promised; a loaded machine gets twice as many.
  EXPECT_LT(clock_.NowNs() - start_ns, 20'000'000'000);
  clock_.SleepNs(6'000'000'000);
  // What came before is read now, and then that the call was cancelled; one that still waited to
  // tell its own status would tell it.
  EXPECT_EQ(snapshot.Rest().error_code(), grpc::StatusCode::CANCELLED);
  v1::SessionEvent event;
  while (watch->Read(&event)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace hone::server

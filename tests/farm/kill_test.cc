#include <map>
#include <set>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/core/random_id.h"
#include "base/file.h"
#include "db/farm_store.h"
#include "server/remote_measurer.h"
#include "server/session_book.h"
#include "tests/farm/farm_processes.h"

// honed, two workers and a client over mutual TLS tune `mlp`, again and again with another seed;
// each is killed with SIGKILL at random. Afterwards the log equals what the workers and the client
// wrote down of every acknowledgement that they received.
namespace hone::farm {
namespace {

constexpr int kKillsEach = 10;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kTrials = 40;

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    seed_ = RandomId().low;
    if (const char* given = std::getenv("HONE_SEED")) seed_ = std::strtoull(given, nullptr, 10);
    std::printf("seed %llu (HONE_SEED=… repeats it)\n", static_cast<unsigned long long>(seed_));
    for (const char* name : {"w1", "w2"}) farm_.Issue("measure", name);
    farm_.Issue("submit", "alice");
    const Ran zoo = RunToEnd({Program("hone"), "zoo", "mlp", "-o", Model()});
    EXPECT_EQ(zoo.code, 0) << zoo.err;
  }

  std::string Model() const { return farm_.Path("mlp.onnx"); }
  std::vector<std::string> With(std::vector<std::string> words) const {
    words.insert(words.begin(), Program("hone"));
    for (const std::string& word : farm_.ServerWords("alice")) words.push_back(word);
    return words;
  }
  std::unique_ptr<Daemon> Client(int number) const {
    return std::make_unique<Daemon>(
        "client",
        With(std::vector<std::string>{"tune", Model(), "--target", "cpu:avx2", "--threads", "1",
                                      "--trials", std::to_string(kTrials), "--seed",
                                      std::to_string(number), "--journal",
                                      farm_.Journal("client")}),
        farm_.Path("client.log"));
  }
  /// The bytes of the package that `hone compile` makes with these words.
  std::string Compile(std::vector<std::string> words, const std::string& name) const {
    std::vector<std::string> argv = {
        Program("hone"), "compile",   Model(), "-o",        farm_.Path(name), "--target",
        "cpu:avx2",      "--threads", "1",     "--require", "exact"};
    argv.insert(argv.end(), words.begin(), words.end());
    const Ran ran = RunToEnd(argv);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ReadFile(farm_.Path(name)).value_or("");
  }

  void CheckLog();
  void CheckSession(db::LogFile& log, db::FarmStore& store, const db::FarmSession& session);

  uint64_t seed_ = 0;
  FarmFolder farm_;
  const SystemMonotonicClock clock_;
  std::map<std::string, db::FarmLease> done_;                             // by token
  std::map<std::string, std::map<int64_t, proto::SessionEvent>> events_;  // by session, sequence
};

void KillTest::CheckSession(db::LogFile& log, db::FarmStore& store,
                            const db::FarmSession& session) {
  const std::string id = session.id.ToHex();
  SCOPED_TRACE("session " + id);
  EXPECT_EQ(session.state, db::SessionState::kFinished) << session.reason;
  std::map<int64_t, int> answers;
  const std::vector<db::FarmLease> leases = store.LeasesOf(session.id).value();
  for (const db::FarmLease& lease : leases) {
    EXPECT_GE(lease.state, db::LeaseState::kDone) << "an open lease of an ended session";
    if (lease.state != db::LeaseState::kDone) continue;
    done_[lease.token.ToHex()] = lease;
    if (lease.attempt < server::kFirstComparison) ++answers[lease.attempt];
  }
  std::map<int64_t, int> results;
  const std::vector<db::Event> events = log.EventsOf(session.id).value();
  for (const db::Event& event : events) {
    const auto e = server::EventOf(event);
    if (!e) continue;
    events_[id][e->sequence] = *e;
    if (e->kind == proto::SessionEvent::Kind::kMeasured) ++results[e->attempt];
  }
  for (const auto& [attempt, count] : results) EXPECT_EQ(count, 1) << "attempt " << attempt;
  // What a worker answered is a result; a result without an answer was condemned by honed.
  for (const auto& [attempt, count] : answers) {
    EXPECT_EQ(count, 1);
    EXPECT_TRUE(results.contains(attempt)) << "attempt " << attempt;
  }
  int64_t attempts = 0, condemned = 0;
  EXPECT_TRUE(log.ScanAttempts({.session = session.id},
                               [&](const db::Attempt& attempt) {
                                 ++attempts;
                                 condemned += attempt.message.find("its worker was lost") == 0;
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(attempts, static_cast<int64_t>(results.size()));
  EXPECT_EQ(static_cast<int64_t>(results.size() - answers.size()), condemned);
  EXPECT_LE(attempts, kTrials);
}

void KillTest::CheckLog() {
  auto log = db::OpenLog(farm_.LogPath(), {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->Verify().value().problems, std::vector<std::string>());
  const auto store = db::FarmStore::Open(**log).value();
  const std::vector<db::FarmSession> sessions = store->LatestSessions(1000).value();
  for (const db::FarmSession& session : sessions) CheckSession(**log, *store, session);
  // The workers' journals: each accepted result is in the log, once and with that content.
  std::set<std::string> sent, accepted;
  for (const char* worker : {"w1", "w2"}) {
    for (const auto& words : LinesOf(farm_.Journal(worker))) {
      if (words.size() == 3 && words[0] == "result") sent.insert(words[1] + " " + words[2]);
      if (words.size() != 6 || words[0] != "ack" || words[5] != "1") continue;
      const auto lease = done_.find(words[1]);
      ASSERT_NE(lease, done_.end()) << "acknowledged and not in the log: " << words[1];
      EXPECT_EQ(lease->second.content, words[4]);
      EXPECT_EQ(lease->second.session.ToHex(), words[2]);
      EXPECT_EQ(std::to_string(lease->second.attempt), words[3]);
      EXPECT_TRUE(accepted.insert(words[1]).second) << "acknowledged twice: " << words[1];
    }
  }
  for (const auto& [token, lease] : done_) {
    EXPECT_TRUE(sent.contains(token + " " + lease.content)) << "nobody measured " << token;
  }
  // A worker that is killed after the commit and before it wrote the acknowledgement down.
  const size_t unheard = done_.size() - accepted.size();
  std::printf("%zu results in the log, %zu acknowledgements journalled\n", done_.size(),
              accepted.size());
  EXPECT_LE(unheard, static_cast<size_t>(4 * kKillsEach * 3));
  // The client's journal.
  std::string session;
  int ended = 0, seen = 0;
  for (const auto& words : LinesOf(farm_.Journal("client"))) {
    if (words.size() == 2 && words[0] == "session") session = words[1];
    if (words.size() == 2 && words[0] == "ended") {
      ++ended;
      EXPECT_EQ(words[1], std::to_string(static_cast<int>(db::SessionState::kFinished)));
    }
    if (words.size() != 5 || words[0] != "measured") continue;
    ++seen;
    const auto event = events_[session].find(std::stoll(words[1]));
    ASSERT_NE(event, events_[session].end()) << "shown and not in the log: " << words[1];
    EXPECT_EQ(std::to_string(event->second.attempt), words[2]);
    EXPECT_EQ(std::to_string(static_cast<int>(event->second.outcome)), words[3]);
    EXPECT_EQ(fmt::format("{}", event->second.median_ns), words[4]);
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(seen, 0);
}

TEST_F(KillTest, NothingAcknowledgedIsLostAndNothingIsCountedTwice) {
  Random random(seed_);
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon w1("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  Daemon w2("w2", farm_.WorkerArgv("w2"), farm_.Path("w2.log"));
  for (Daemon* daemon : {&honed, &w1, &w2}) daemon->Start();
  int sessions = 0, client_kills = 0;
  std::unique_ptr<Daemon> client = Client(sessions);
  client->Start();
  const auto next_client = [&] {
    client = Client(++sessions);
    client->Start();
  };

  std::vector<int> victims;
  for (int i = 0; i < kKillsEach; ++i) {
    for (int who = 0; who < 4; ++who) victims.push_back(who);
  }
  random.Shuffle(victims);
  for (const int victim : victims) {
    clock_.SleepNs(random.Between(20, 400) * kNsPerMs);
    if (const auto code = client->Ended()) {
      ASSERT_EQ(*code, 0) << client->Said();
      next_client();
    }
    Daemon* const daemon = victim == 0 ? &honed : victim == 1 ? &w1 : victim == 2 ? &w2 : &*client;
    ASSERT_TRUE(daemon->running()) << daemon->name() << " ended: " << daemon->Said();
    ASSERT_FALSE(daemon != &*client && daemon->Ended().has_value())
        << daemon->name() << " ended: " << daemon->Said();
    if (daemon == &*client) ++client_kills;
    daemon->Kill();
    clock_.SleepNs(random.Between(0, 150) * kNsPerMs);
    daemon->Start();
  }
  EXPECT_EQ(honed.kills() + w1.kills() + w2.kills() + client_kills, 4 * kKillsEach);
  // The last session ends by itself.
  const int64_t until_ns = clock_.NowNs() + 40'000 * kNsPerMs;
  std::optional<int> code;
  while (!(code = client->Ended()) && clock_.NowNs() < until_ns) clock_.SleepNs(50 * kNsPerMs);
  ASSERT_EQ(code, 0) << client->Said() << honed.Said() << w1.Said();

  const std::string from_server = Compile(farm_.ServerWords("alice"), "server.hone");
  const Ran snapshot = RunToEnd(With({"db", "snapshot", "-o", farm_.Path("snapshot.db")}));
  EXPECT_EQ(snapshot.code, 0) << snapshot.err;
  for (Daemon* daemon : {&w1, &w2, &honed}) {
    EXPECT_EQ(daemon->Terminate(), 0) << daemon->name() << ": " << daemon->Said();
  }
  std::printf("%d sessions, %d kills\n", sessions + 1, 4 * kKillsEach);
  EXPECT_EQ(Compile({"--db", farm_.LogPath()}, "local.hone"), from_server);
  EXPECT_EQ(Compile({"--db", farm_.Path("snapshot.db")}, "snapshot.hone"), from_server);
  EXPECT_FALSE(from_server.empty());
  // A snapshot says nothing of the farm.
  const auto copy = db::OpenLog(farm_.Path("snapshot.db"), {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(db::FarmStore::Open(**copy).value()->LatestSessions(10).value().empty());
  EXPECT_EQ((*copy)->Verify().value().problems, std::vector<std::string>());
  CheckLog();
}

}  // namespace
}  // namespace hone::farm

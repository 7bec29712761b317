#include "tests/farm/tuned_farm.h"

#include <cstdlib>
#include <regex>
#include <sstream>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/core/sanitizer.h"
#include "base/file.h"
#include "server/remote_measurer.h"
#include "server/session_book.h"

namespace hone::farm {
namespace {

constexpr int64_t kPollNs = 50'000'000;

}  // namespace

TunedFarm::TunedFarm(std::vector<std::string> workers, std::string model)
    : workers_(std::move(workers)), model_(std::move(model)) {
  seed_ = RandomId().low;
  if (const char* given = std::getenv("HONE_SEED")) seed_ = std::strtoull(given, nullptr, 10);
  std::printf("seed %llu (HONE_SEED=… repeats it)\n", static_cast<unsigned long long>(seed_));
  for (const std::string& name : workers_) farm_.Issue("measure", name);
  farm_.Issue("submit", "alice");
  farm_.Issue("admin", "root");
  const Ran zoo = RunToEnd({Program("hone"), "zoo", model_, "-o", Model()});
  EXPECT_EQ(zoo.code, 0) << zoo.err;
}

std::vector<std::string> TunedFarm::Hone(std::vector<std::string> words) const {
  words.insert(words.begin(), Program("hone"));
  for (const std::string& word : farm_.ServerWords("alice")) words.push_back(word);
  return words;
}

std::unique_ptr<Daemon> TunedFarm::Client(int number) const {
  return std::make_unique<Daemon>(
      "client",
      Hone({"tune", Model(), "--target", "cpu:avx2", "--threads", "1", "--trials",
            std::to_string(trials_), "--seed", std::to_string(number), "--journal",
            farm_.Journal("client")}),
      farm_.Path("client.log"));
}

bool TunedFarm::KeepTuning() {
  if (client_ != nullptr && client_->running()) {
    const std::optional<int> code = client_->Ended();
    if (!code) return true;
    EXPECT_EQ(*code, 0) << client_->Said();
    if (*code != 0) return false;
  }
  client_ = Client(sessions_++);
  client_->Start();
  return true;
}

void TunedFarm::AwaitSession(int64_t timeout_ns) {
  std::optional<int> code;
  EXPECT_TRUE(Eventually([&] { return (code = client_->Ended()).has_value(); }, timeout_ns));
  EXPECT_EQ(code, 0) << client_->Said();
}

bool TunedFarm::Eventually(const std::function<bool()>& holds, int64_t timeout_ns) const {
  // What a sanitizer checks takes several times as long.
  const int64_t until_ns = clock_.NowNs() + (kSanitized ? 6 : 1) * timeout_ns;
  while (!holds()) {
    if (clock_.NowNs() >= until_ns) return false;
    clock_.SleepNs(kPollNs);
  }
  return true;
}

void TunedFarm::LetBack(const Daemon& honed) {
  if (letting_back_ != nullptr) {
    const std::optional<int> code = letting_back_->Ended();
    if (!code) return;
    let_back_ += *code == 0;  // or honed was dead
    letting_back_.reset();
  }
  std::istringstream said(honed.Said());
  std::vector<std::string> devices;
  for (std::string line; std::getline(said, line);) {
    std::smatch found;
    static const std::regex kQuarantined("event=device_quarantined worker=([^ ]+) device=([^ ]+)");
    if (std::regex_search(line, found, kQuarantined))
      devices.push_back(found.str(1) + "/" + found.str(2));
  }
  if (devices.size() <= let_back_) return;
  std::vector<std::string> argv = {Program("hone"), "device", "undrain", devices[let_back_]};
  for (const std::string& word : farm_.ServerWords("root")) argv.push_back(word);
  letting_back_ = std::make_unique<Daemon>("let back", argv, farm_.Path("let_back.log"));
  letting_back_->Start();
}

size_t TunedFarm::Answered() const {
  size_t answered = 0;
  for (const std::string& worker : workers_) {
    for (const auto& words : LinesOf(farm_.Journal(worker))) {
      answered += words.size() == 6 && words[0] == "ack" && words[5] == "1";
    }
  }
  return answered;
}

std::string TunedFarm::Compile(std::vector<std::string> words, const std::string& name) const {
  std::vector<std::string> argv = {Program("hone"), "compile",  Model(),     "-o", farm_.Path(name),
                                   "--target",      "cpu:avx2", "--threads", "1"};
  if (model_ == "mlp") argv.insert(argv.end(), {"--require", "exact"});
  argv.insert(argv.end(), words.begin(), words.end());
  const Ran ran = RunToEnd(argv);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ReadFile(farm_.Path(name)).value_or("");
}

void TunedFarm::CheckPackages(Daemon& honed, const std::vector<Daemon*>& workers) {
  const std::string from_server = Compile(farm_.ServerWords("alice"), "server.hone");
  EXPECT_FALSE(from_server.empty());
  const Ran snapshot = RunToEnd(Hone({"db", "snapshot", "-o", farm_.Path("snapshot.db")}));
  EXPECT_EQ(snapshot.code, 0) << snapshot.err;
  for (Daemon* worker : workers) {
    EXPECT_EQ(worker->Terminate(), 0) << worker->name() << ": " << worker->Said();
  }
  EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
  EXPECT_EQ(Compile({"--db", farm_.LogPath()}, "local.hone"), from_server);
  EXPECT_EQ(Compile({"--db", farm_.Path("snapshot.db")}, "snapshot.hone"), from_server);
  // A snapshot says nothing of the farm.
  const auto copy = db::OpenLog(farm_.Path("snapshot.db"), {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(db::FarmStore::Open(**copy).value()->LatestSessions(10).value().empty());
  EXPECT_EQ((*copy)->Verify().value().problems, std::vector<std::string>());
}

void TunedFarm::CheckSession(db::LogFile& log, db::FarmStore& store,
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
    charges_[session.project] += lease.charge_ns;
    if (lease.attempt < server::kFirstComparison) ++answers[lease.attempt];
  }
  std::map<int64_t, int> results;
  measured_[id];
  const std::vector<db::Event> events = log.EventsOf(session.id).value();
  for (const db::Event& event : events) {
    const auto e = server::EventOf(event);
    if (!e || e->kind != proto::SessionEvent::Kind::kMeasured) continue;
    measured_[id][e->sequence] = *e;
    ++results[e->attempt];
  }
  for (const auto& [attempt, count] : results) EXPECT_EQ(count, 1) << "attempt " << attempt;
  // What a worker answered is a result; a result without an answer was condemned by honed.
  for (const auto& [attempt, count] : answers) {
    EXPECT_EQ(count, 1);
    EXPECT_TRUE(results.contains(attempt)) << "attempt " << attempt;
  }
  int64_t attempts = 0, condemned = 0, paid = 0;
  std::set<std::pair<std::string, std::string>> measured;
  EXPECT_TRUE(
      log.ScanAttempts({.session = session.id},
                       [&](const db::Attempt& a) {
                         ++attempts;
                         condemned += a.message.find("its worker was lost") == 0;
                         if (a.outcome == db::Outcome::kWorkerLost) return absl::OkStatus();
                         ++paid;
                         EXPECT_TRUE(measured.insert({a.key.workload.ToHex(), a.trace}).second)
                             << "measured twice: " << a.trace;
                         return absl::OkStatus();
                       })
          .ok());
  EXPECT_EQ(attempts, static_cast<int64_t>(results.size()));
  EXPECT_EQ(static_cast<int64_t>(results.size() - answers.size()), condemned);
  EXPECT_LE(paid, trials_);
}

void TunedFarm::CheckWorkerJournals(size_t worker_kills) {
  // Each accepted result is in the log, once and with that content.
  std::set<std::string> sent, accepted;
  for (const std::string& worker : workers_) {
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
  // A worker that is killed after the commit and before it wrote the acknowledgement down: of what
  // it measured last, and while honed was dead. The others were heard, whoever else was killed.
  const size_t unheard = done_.size() - accepted.size();
  std::printf("%zu results in the log, %zu acknowledgements journalled, %zu workers killed\n",
              done_.size(), accepted.size(), worker_kills);
  EXPECT_LE(unheard, 3 * worker_kills);
  EXPECT_GT(accepted.size(), done_.size() / 2);
}

void TunedFarm::CheckClientJournal() {
  // What one client process was told of its session, from its first word to its last.
  std::string session;
  std::set<int64_t> told;
  int ended = 0, seen = 0;
  for (const auto& words : LinesOf(farm_.Journal("client"))) {
    if (words.size() == 2 && words[0] == "session") {
      session = words[1];
      told.clear();
      EXPECT_TRUE(measured_.contains(session)) << "begun and not in the log: " << session;
    }
    if (words.size() == 2 && words[0] == "ended") {
      ++ended;
      EXPECT_EQ(words[1], std::to_string(static_cast<int>(db::SessionState::kFinished)));
      EXPECT_EQ(told.size(), measured_[session].size()) << "not all was shown of " << session;
    }
    if (words.size() != 5 || words[0] != "measured") continue;
    ++seen;
    const int64_t sequence = std::stoll(words[1]);
    EXPECT_TRUE(told.empty() || sequence > *told.rbegin()) << "again, or late: " << sequence;
    told.insert(sequence);
    const auto event = measured_[session].find(sequence);
    ASSERT_NE(event, measured_[session].end()) << "shown and not in the log: " << sequence;
    EXPECT_EQ(std::to_string(event->second.attempt), words[2]);
    EXPECT_EQ(std::to_string(static_cast<int>(event->second.outcome)), words[3]);
    EXPECT_EQ(fmt::format("{}", event->second.median_ns), words[4]);
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(seen, 0);
}

void TunedFarm::CheckLog(size_t worker_kills) {
  auto log = db::OpenLog(farm_.LogPath(), {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->Verify().value().problems, std::vector<std::string>());
  const auto store = db::FarmStore::Open(**log).value();
  const std::vector<db::FarmSession> sessions = store->LatestSessions(1000).value();
  for (const db::FarmSession& session : sessions) CheckSession(**log, *store, session);
  const db::FarmState left = store->Load().value();
  EXPECT_EQ(left.projects.size(), charges_.size());
  EXPECT_FALSE(charges_.empty());
  for (const db::FarmProject& project : left.projects) {
    EXPECT_EQ(project.charged_ns, charges_[project.project]) << project.project;
  }
  CheckWorkerJournals(worker_kills);
  CheckClientJournal();
}

}  // namespace hone::farm

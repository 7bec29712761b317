#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "db/farm_store.h"
#include "search/search_event.h"
#include "tests/farm/farm_processes.h"

// Two people tune the same model at once: their sessions are members of one search, and no
// candidate is measured for both.
namespace hone::farm {
namespace {

constexpr int kTrials = 60;

TEST(SharedSearchTest, NoCandidateIsMeasuredForTwoSessions) {
  FarmFolder farm;
  farm.Issue("measure", "w1");
  for (const char* name : {"alice", "bob"}) farm.Issue("submit", name);
  const std::string model = farm.Path("mlp.onnx");
  const Ran zoo = RunToEnd({Program("hone"), "zoo", "mlp", "-o", model});
  ASSERT_EQ(zoo.code, 0) << zoo.err;
  Daemon honed("honed", farm.HonedArgv(), farm.Path("honed.log"));
  Daemon worker("w1", farm.WorkerArgv("w1"), farm.Path("w1.log"));
  honed.Start();
  const auto client = [&](const char* name) {
    std::vector<std::string> argv = {
        Program("hone"),        "tune", model, "--target", "cpu:avx2", "--threads", "1", "--trials",
        std::to_string(kTrials)};
    for (const std::string& word : farm.ServerWords(name)) argv.push_back(word);
    return std::make_unique<Daemon>(name, argv, farm.Path(std::string(name) + ".log"));
  };
  const auto alice = client("alice"), bob = client("bob");
  alice->Start();
  bob->Start();
  // All of mlp is 36 candidates: who came late would find them measured.
  const SystemMonotonicClock clock;
  const auto begun = [](const Daemon& one) {
    return one.Said().find(" session ") != std::string::npos;
  };
  for (int i = 0; i < 300 && !(begun(*alice) && begun(*bob)); ++i) clock.SleepNs(100'000'000);
  ASSERT_TRUE(begun(*alice) && begun(*bob)) << alice->Said() << bob->Said();
  worker.Start();
  for (Daemon* one : {&*alice, &*bob}) {
    std::optional<int> code;
    for (int i = 0; i < 600 && !code; ++i, clock.SleepNs(100'000'000)) code = one->Ended();
    EXPECT_EQ(code, 0) << one->Said();
  }
  EXPECT_EQ(worker.Terminate(), 0);
  EXPECT_EQ(honed.Terminate(), 0);

  const auto log = db::OpenLog(farm.LogPath(), {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  std::set<std::pair<std::string, std::string>> measured;
  std::map<std::string, int> by_session;
  ASSERT_TRUE(
      (*log)
          ->ScanAttempts({},
                         [&](const db::Attempt& a) {
                           if (a.outcome == measure::Outcome::kWorkerLost) {
                             return absl::OkStatus();
                           }
                           ++by_session[a.session.ToHex()];
                           EXPECT_TRUE(measured.insert({a.key.workload.ToHex(), a.trace}).second)
                               << "measured twice: " << a.trace;
                           return absl::OkStatus();
                         })
          .ok());
  EXPECT_EQ(by_session.size(), 2u);
  for (const auto& [session, count] : by_session) EXPECT_LE(count, kTrials);
  // One search had both at once.
  size_t most = 0;
  const auto sessions = (*log)->Sessions().value();
  for (const db::StoredSession& s : sessions) {
    if (s.session.request.find("farm_search") == std::string::npos) continue;
    std::set<Hash128> members;
    const auto events = (*log)->EventsOf(s.session.id).value();
    for (const db::Event& e : events) {
      if (const auto joined = search::EventAs<search::MemberEvent>(e)) {
        members.insert(joined->member);
      } else if (const auto left = search::EventAs<search::LeaveEvent>(e)) {
        members.erase(left->member);
      }
      most = std::max(most, members.size());
    }
  }
  EXPECT_EQ(most, 2u);
}

}  // namespace
}  // namespace hone::farm

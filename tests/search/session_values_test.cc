#include <map>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "db/memory_database.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

TEST(SessionValues, TheLogSaysOfEveryTraceWhatItWasWrittenFrom) {
  FakeClock clock;
  db::MemoryDatabase log;
  FakeMeasurer measurer(2, {.fail = 0.2});
  TuningSession session(log, measurer, clock, clock, Options(30));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  std::map<std::pair<Hash128, Hash128>, std::string> texts;  // by workload and Trace
  ASSERT_TRUE(log.ScanValues({},
                             [&](const db::TraceValues& values) {
                               EXPECT_EQ(values.target, TestTarget().text);
                               texts[{values.workload, values.trace}] = values.text;
                               return absl::OkStatus();
                             })
                  .ok());
  int attempts = 0;
  ASSERT_TRUE(
      log.ScanAttempts({},
                       [&](const db::Attempt& attempt) {
                         ++attempts;
                         for (int i = 0; i < session.tuner().num_tasks(); ++i) {
                           if (session.tuner().task(i).hash != attempt.key.workload) continue;
                           const schedule::Space& space = session.tuner().search(i).space();
                           const auto id = space.Locate(attempt.trace);
                           EXPECT_TRUE(id) << attempt.trace;
                           EXPECT_EQ((texts[{attempt.key.workload, db::TraceHash(attempt.trace)}]),
                                     space.ValuesText(id.value_or(0)));
                         }
                         return absl::OkStatus();
                       })
          .ok());
  EXPECT_EQ(attempts, 30);
}

}  // namespace
}  // namespace hone::search

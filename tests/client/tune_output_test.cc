// What hone tune says of a session, in words before and while it runs and as JSON at its end: of a
// new one, and of one that goes on.

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <regex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random_id.h"
#include "db/log_file.h"
#include "graph/onnx_export/zoo_layers.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;

constexpr int64_t kDay = int64_t{24} * 3600;

class TuneOutputTest : public testing::SmallTuning {
 protected:
  /// As if the only session of the log had run for so long already.
  void AgeSession(const std::string& seconds) const {
    auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    const auto sessions = (*log)->Sessions();
    ASSERT_TRUE(sessions.ok() && sessions->size() == 1);
    db::Batch batch;
    batch.events.push_back({.id = RandomId(),
                            .session = sessions->front().session.id,
                            .type = "elapsed",
                            .payload = seconds});
    ASSERT_TRUE((*log)->Append(batch).ok());
  }
};

/// Seconds from now to the time of day that a text names; -1: it names none.
int64_t SecondsUntil(const std::string& text) {
  std::smatch found;
  static const std::regex kEnd(
      "ends (?:about )?(?:[0-9]+-[0-9]+-[0-9]+ )?([0-9]+):([0-9]+):([0-9]+)");
  if (!std::regex_search(text, found, kEnd)) return -1;
  // Rounded as the time that is printed: a floor would read one second too many.
  const std::time_t now = (SystemWallClock().UnixNs() + 500'000'000) / 1'000'000'000;
  std::tm local = {};
  ::localtime_r(&now, &local);
  const int64_t end = (std::stoi(found[1]) * 60 + std::stoi(found[2])) * 60 + std::stoi(found[3]);
  return (end - ((local.tm_hour * 60 + local.tm_min) * 60 + local.tm_sec) + kDay) % kDay;
}

/// The same where it may have passed, by less than half a day.
int64_t Signed(int64_t seconds) { return seconds < kDay / 2 ? seconds : seconds - kDay; }

std::string BeforeItStarts(const ProgramRun& run) {
  return run.err.substr(0, run.err.find(" candidates"));
}

TEST_F(TuneOutputTest, TasksBudgetAndEndAreToldBeforeItStarts) {
  const ProgramRun run = Tune({"--seconds", "4"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string before = BeforeItStarts(run);
  EXPECT_THAT(before, HasSubstr("3 tasks for cpu:avx2,threads=1"));
  EXPECT_THAT(before, ContainsRegex("budget 0:04, ends .* at the latest\n"));
  EXPECT_THAT(before, ContainsRegex("\n  x1   conv 3x3 \\+ relu [^\n]*  [0-9.]+ MFLOP\n  x1   "));
  EXPECT_THAT(run.err, ContainsRegex("[0-9]:[0-9]+, [0-9]:[0-9]+ left  [0-9]+ candidates"));
}

TEST_F(TuneOutputTest, TimeThatEarlierRunsUsedBringsTheEndNearer) {
  TuneAndKill({"--seconds", "300"}, 24);
  AgeSession("296.000");
  const ProgramRun dry = Tune({"--seconds", "300", "--dry-run"});
  EXPECT_THAT(Signed(SecondsUntil(dry.err)), AllOf(Ge(-120), Le(5))) << dry.err;
  const ProgramRun run = Tune({"--seconds", "300"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("going on with session"));
  const std::string before = BeforeItStarts(run);
  EXPECT_THAT(before, ContainsRegex("budget 5:00, ends .* at the latest\n"));
  // It has passed by now, or is about to.
  EXPECT_THAT(Signed(SecondsUntil(before)), AllOf(Ge(-120), Le(4))) << before;
  EXPECT_THAT(before, HasSubstr(" MFLOP\n"));
}

TEST_F(TuneOutputTest, ANumberOfCandidatesHasAnEstimateToo) {
  const SystemMonotonicClock clock;
  const int64_t start_ns = clock.NowNs();
  const ProgramRun dry = Tune({"--trials", "400", "--dry-run"});
  EXPECT_THAT(dry.err, HasSubstr("budget 400 trials, ends about "));
  EXPECT_THAT(dry.err, HasSubstr(", at 20 candidates a second"));
  // Since it began: a machine may be slow.
  const int64_t left = Signed(SecondsUntil(dry.err));
  EXPECT_LE(left, 20) << dry.err;
  EXPECT_GE(left, 20 - 5 - (clock.NowNs() - start_ns) / 1'000'000'000) << dry.err;
  EXPECT_EQ(Parse(Tune({"--trials", "400", "--dry-run", "--json"}))["ends_at_the_latest"], false);
  EXPECT_EQ(Parse(Tune({"--dry-run", "--json"}))["ends_at_the_latest"], true);
  // Once candidates were measured, by what they took.
  TuneAndKill({"--trials", "60"}, 10);
  AgeSession("600.000");
  const ProgramRun run = Tune({"--trials", "60"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::smatch rate;
  const std::regex ends("ends about .*, at (0\\.[0-9]+) candidates a second");
  ASSERT_TRUE(std::regex_search(run.err, rate, ends)) << run.err;
  EXPECT_LT(std::stod(rate[1]), 0.1);
  EXPECT_THAT(run.err,
              ContainsRegex("10:[0-9]+, about [0-9]+:[0-9]+ left  [0-9]+ candidates of 60"));
}

TEST_F(TuneOutputTest, ASketchThatIsRefusedIsNamedWithTheReason) {
  InstallRefusingBuilder();
  const ProgramRun run = Tune({"--trials", "24", "--seed", "1", "--cache-mb", "0"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              ContainsRegex("\nillegal: [0-9]+ candidates of [a-z_0-9]*winograd[^ ]* for conv "
                            "3x3 [^\n]* \\([0-9a-f]{12}\\): the code generator refuses it\n"));
}

/// The names of a JSON object with the sums of what several have under them.
void AddCounts(const json& object, std::map<std::string, int64_t>& sums) {
  for (const auto& [name, n] : object.items()) sums[name] += n.get<int64_t>();
}

// The report counts the same from the attempts of the log, by another way.
TEST_F(TuneOutputTest, JsonTellsWinsAndRankCorrelationAlsoAfterAKill) {
  for (const size_t killed_after : {size_t{0}, size_t{40}}) {
    SCOPED_TRACE(killed_after);
    if (killed_after > 0) TuneAndKill({"--trials", "160", "--seed", "1"}, killed_after);
    const json object =
        Parse(Tune({"--trials", "160", "--json", "--seed", killed_after > 0 ? "1" : "0"}));
    EXPECT_EQ(object["resumed"], killed_after > 0);
    const json report = Parse(RunHone({"report", "--db", log_, "-o", folder_.Path("r.html"),
                                       "--session", object["session"], "--json"}));
    int64_t candidates = 0, wins = 0;
    for (const auto& [name, counts] : object["proposers"].items()) {
      candidates += counts["candidates"].get<int64_t>();
      wins += counts["wins"].get<int64_t>();
      if (counts["candidates"] == 0) continue;
      EXPECT_EQ(counts, report["proposers"][name]) << name;
    }
    EXPECT_EQ(candidates, 160);
    EXPECT_GE(wins, 1);
    const json& correlations = object["rank_correlation_on_random"];
    ASSERT_FALSE(correlations.empty());
    for (const json& each : correlations) {
      EXPECT_LE(std::abs(each["spearman"].get<double>()), 1);
      EXPECT_TRUE(
          std::any_of(object["tasks"].begin(), object["tasks"].end(),
                      [&](const json& task) { return task["workload"] == each["workload"]; }));
    }
  }
}

// 2.7 GFLOP: tens of milliseconds.
TEST_F(TuneOutputTest, JsonShowsHowPartsOfASlowKernelRank) {
  graph::OnnxWriter writer("slow", 1);
  const std::string x = writer.Input("input", ir::DType::kF32, {1, 64, 192, 192});
  graph::Relu(writer, "output",
              graph::Convolution(writer, "conv", x, {.in = 64, .out = 64, .kernel = 3, .pad = 1}));
  writer.Output("output", ir::DType::kF32, {1, 64, 192, 192});
  ASSERT_TRUE(writer.Save(model_).ok());
  const json object = Parse(Tune({"--trials", "48", "--json"}));
  ASSERT_EQ(object["tasks"].size(), 1u);
  const json& task = object["tasks"][0];
  EXPECT_EQ(task["failures"], json::object());
  ASSERT_TRUE(task.contains("parts")) << task;
  const json& parts = task["parts"];
  EXPECT_GT(parts["on_part"], 0) << parts;
  EXPECT_GT(parts["both_ways"], 0) << parts;
  EXPECT_LE(parts["on_part"].get<int>() + parts["both_ways"].get<int>(), 48) << parts;
  const json& correlation = parts["rank_correlation"];
  EXPECT_TRUE(correlation.is_null() || std::abs(correlation.get<double>()) <= 1) << parts;
  auto log = db::OpenLog(log_, {});
  ASSERT_TRUE(log.ok()) << log.status();
  int on_part = 0;
  ASSERT_TRUE((*log)
                  ->ScanAttempts({},
                                 [&](const db::Attempt& attempt) {
                                   on_part += attempt.record == Hash128{} ? 1 : 0;
                                   return absl::OkStatus();
                                 })
                  .ok());
  EXPECT_EQ(on_part, parts["on_part"].get<int>()) << "they have no record";
  const json report =
      Parse(RunHone({"report", "--db", log_, "-o", folder_.Path("r.html"), "--json"}));
  EXPECT_EQ(report["tasks"][0]["failed"], 0);
  EXPECT_EQ(report["tasks"][0]["tried"], 48);
}

TEST_F(TuneOutputTest, JsonCountsFailuresOfEarlierRunsToo) {
  InstallLyingBuilder();
  TuneAndKill({"--trials", "90", "--cache-mb", "0"}, 40);
  const json object = Parse(Tune({"--trials", "90", "--cache-mb", "0", "--json"}));
  EXPECT_EQ(object["resumed"], true);
  std::map<std::string, int64_t> of_tasks, of_session, of_log;
  for (const json& task : object["tasks"]) AddCounts(task["failures"], of_tasks);
  AddCounts(object["failures"], of_session);
  const json report =
      Parse(RunHone({"report", "--db", log_, "-o", folder_.Path("r.html"), "--json"}));
  AddCounts(report["outcomes"], of_log);
  of_log.erase("ok");
  EXPECT_EQ(of_session, of_log);
  EXPECT_GT(of_session["wrong_answer"], 20);
  EXPECT_EQ(of_tasks["wrong_answer"], of_session["wrong_answer"]);
}

}  // namespace
}  // namespace hone::client

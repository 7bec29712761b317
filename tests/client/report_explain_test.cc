// hone explain and hone report on a log that hone tune has just written.

#include <algorithm>
#include <filesystem>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/random.h"
#include "base/core/random_id.h"
#include "base/file.h"
#include "base/sha256.h"
#include "client/report_chart.h"
#include "client/report_page.h"
#include "client/session_report.h"
#include "costmodel/xgboost_model.h"
#include "db/log_file.h"
#include "db/memory_database.h"
#include "db/merge.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// One session of forty candidates for all tests of this file.
class TunedLog : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    ASSERT_EQ(RunHone({"zoo", "mlp", "-o", Model()}).exit_code, 0);
    const ProgramRun tuned = RunHone({"tune", Model(), "--db", Log(), "--trials", "40", "--seconds",
                                      "20", "--threads", "1", "--json"});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    tuned_ = new json(json::parse(tuned.out));
  }
  static void TearDownTestSuite() {
    delete tuned_;
    delete folder_;
    tuned_ = nullptr;
    folder_ = nullptr;
  }
  static std::string Model() { return folder_->Path("mlp.onnx"); }
  static std::string Log() { return folder_->Path("t.db"); }

  static TemporaryFolder* folder_;
  static json* tuned_;
};
TemporaryFolder* TunedLog::folder_ = nullptr;
json* TunedLog::tuned_ = nullptr;

TEST_F(TunedLog, ExplainTellsSpaceBestTraceAndWhy) {
  const ProgramRun run =
      RunHone({"explain", Model(), "--db", Log(), "--threads", "1", "--json", "--top", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = json::parse(run.out);
  ASSERT_EQ(object["tasks"].size(), (*tuned_)["tasks"].size());
  int64_t tried = 0;
  for (const json& task : object["tasks"]) {
    EXPECT_GE(task["space"]["product"], task["space"]["admitted"]);
    uint64_t points = 0;
    for (const json& sketch : task["space"]["sketches"]) points += sketch["points"].get<uint64_t>();
    EXPECT_EQ(points, task["space"]["product"].get<uint64_t>());
    for (const json& count : task["outcomes"]) tried += count.get<int64_t>();
    ASSERT_FALSE(task["best"].empty());
    EXPECT_LE(task["best"].size(), 2U);
    const json& best = task["best"][0];
    EXPECT_GT(best["median_us"], 0);
    EXPECT_GT(best["analytic"]["total_us"], 0);
    EXPECT_GE(best["analytic"]["place"], 1);
    EXPECT_LE(best["analytic"]["place"], task["located"]);
  }
  EXPECT_EQ(tried, (*tuned_)["attempts"].get<int64_t>());
}

TEST_F(TunedLog, RatiosStandBetweenTimesOfOneComparisonAlone) {
  const std::vector<std::string> words = {"explain",   Model(), "--db",  Log(),
                                          "--threads", "1",     "--top", "12"};
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  const json object = json::parse(RunHone(with_json).out);
  size_t ratios = 0;
  for (size_t i = 0; i < object["tasks"].size(); ++i) {
    const json& tuned = (*tuned_)["tasks"][i];
    for (const json& best : object["tasks"][i]["best"]) {
      const json& by_default = best["compared_default_us"];
      if (best["rigor"] == "screened") {
        EXPECT_TRUE(by_default.is_null()) << best;
      }
      if (by_default.is_null()) continue;
      ++ratios;
      EXPECT_EQ(tuned["compared"], true);
      EXPECT_NEAR(by_default.get<double>(), tuned["default_us"].get<double>(), 1e-3);
      EXPECT_NEAR(best["median_us"].get<double>(), tuned["best_us"].get<double>(), 1e-3);
    }
    EXPECT_EQ(object["tasks"][i]["workload"], tuned["workload"]);
  }
  const std::string text = RunHone(words).out;
  size_t told = 0;
  for (size_t at = 0; (at = text.find(" x as fast as the default (", at)) != std::string::npos;
       ++at)
    ++told;
  EXPECT_EQ(told, ratios);
  EXPECT_THAT(text, Not(HasSubstr(" x the default")));
}

TEST_F(TunedLog, ExplainTellsWhatTheTreesSay) {
  // Forty candidates of a small network train no trees: put some into a copy of the log.
  const std::string copy = folder_->Path("trees.db");
  {
    auto log = db::OpenLog(copy, {.mode = db::OpenMode::kWrite});
    auto from = db::OpenLog(Log(), {});
    ASSERT_TRUE(log.ok() && from.ok()) << log.status() << from.status();
    ASSERT_TRUE(db::MergeLog(**log, **from).ok());
    Random random(1);
    costmodel::TrainingTask task;
    for (int i = 0; i < 64; ++i) {
      costmodel::FeatureVector features(44);
      for (float& x : features) x = static_cast<float>(random.Uniform() * 8);
      task.labels.push_back(features[11] / 8);  // vectors
      task.features.push_back(features);
    }
    const auto trained = costmodel::XgboostModel::Train({task}, 0);
    ASSERT_TRUE(trained.ok()) << trained.status();
    const std::string& bytes = *trained;
    db::Batch batch;
    batch.blobs.push_back({Sha256Hex(bytes), bytes});
    batch.events.push_back(
        {.id = RandomId(), .type = "model", .payload = Sha256Hex(bytes) + " 64"});
    ASSERT_TRUE((*log)->Append(batch).ok());
  }
  const ProgramRun run =
      RunHone({"explain", Model(), "--db", copy, "--threads", "1", "--json", "--top", "12"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  int explained = 0, by_vectors = 0;
  const json object = json::parse(run.out);
  for (const json& task : object["tasks"]) {
    for (const json& trace : task["best"]) {
      ASSERT_TRUE(trace.contains("model"));
      EXPECT_GE(trace["model"]["place"], 1);
      EXPECT_LE(trace["model"]["place"], task["located"]);
      if (trace["why"].empty()) continue;  // the default itself
      ++explained;
      by_vectors += trace["why"][0]["feature"] == "vectors" ? 1 : 0;
    }
  }
  EXPECT_GT(explained, 10);
  // Among some forty features this one is named first for most of those in which it differs from
  // the default's; how many of the best differ in it, the measurements of the tuning decide.
  EXPECT_GT(3 * by_vectors, explained);
  const ProgramRun text = RunHone({"explain", Model(), "--db", copy, "--threads", "1"});
  EXPECT_THAT(text.out, HasSubstr("trees: score"));
  EXPECT_THAT(text.out, HasSubstr("rank correlation with"));
}

TEST_F(TunedLog, ExplainPrintsLoopNestAndCode) {
  const std::string hash = (*tuned_)["tasks"][0]["workload"];
  const ProgramRun nest = RunHone({"explain", hash, "--db", Log(), "--emit", "nest"});
  ASSERT_EQ(nest.exit_code, 0) << nest.err;
  EXPECT_THAT(nest.out, HasSubstr("parallel v"));
  const ProgramRun code = RunHone({"explain", hash, "--db", Log(), "--emit", "code"});
  ASSERT_EQ(code.exit_code, 0) << code.err;
  EXPECT_THAT(code.out, HasSubstr("kernel_p0:"));
  const ProgramRun ptx =
      RunHone({"explain", Model(), "--db", Log(), "--target", "cuda:sm_90a", "--emit", "ptx"});
  ASSERT_EQ(ptx.exit_code, 0) << ptx.err;
  EXPECT_THAT(ptx.out, HasSubstr(".visible .entry kernel_p0"));
  EXPECT_THAT(ptx.out, HasSubstr(".target sm_90a"));
  const ProgramRun none = RunHone({"explain", hash, "--db", Log(), "--emit", "ptx"});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("has no PTX; give a GPU"));
}

TEST_F(TunedLog, ExplainOfOneTaskByTheBeginningOfItsHash) {
  const std::string hash = (*tuned_)["tasks"][0]["workload"];
  const ProgramRun run = RunHone({"explain", hash.substr(0, 10), "--db", Log()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("task " + hash));
  EXPECT_THAT(run.out, HasSubstr("workload\n"));
  EXPECT_THAT(run.out, HasSubstr("trace\n"));
  EXPECT_THAT(run.out, HasSubstr("threads=1"));  // the target that the log has records of
}

TEST_F(TunedLog, ExplainRefusesWhatIsNeitherFileNorTask) {
  const ProgramRun unknown = RunHone({"explain", "0123456789abcdef", "--db", Log()});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("lists a model's tasks"));
  const ProgramRun absent = RunHone({"explain", "no/such.onnx", "--db", Log()});
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_THAT(absent.err, HasSubstr("neither a file nor"));
}

TEST_F(TunedLog, ReportIsOnePageWithEverythingInside) {
  const std::string page = folder_->Path("report.html");
  const ProgramRun run = RunHone({"report", "--db", Log(), "-o", page, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = json::parse(run.out);
  EXPECT_EQ(object["session"], (*tuned_)["session"]);
  EXPECT_EQ(object["model"], "mlp");
  const json& verdict = object["verdict"];
  EXPECT_EQ(verdict.is_object() ? verdict["verdict"] : json(), (*tuned_)["model"]["verdict"]);
  ASSERT_EQ(object["tasks"].size(), (*tuned_)["tasks"].size());
  for (const json& task : object["tasks"]) {
    EXPECT_LE(task["gain_low"], task["gain"]);
    EXPECT_LE(task["gain"], task["gain_high"]);
    EXPECT_GT(task["roofline_share"], 0);
  }
  const auto html = ReadFile(page);
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, HasSubstr("<!DOCTYPE html>"));
  // One curve of the model, one a group.
  EXPECT_EQ(CountOf(*html, "aria-label=\"best latency so far\"><line class=\"grid\""), 1);
  EXPECT_EQ(CountOf(*html, "<svg class=\"small\" viewBox=\"0 0 120 36\""), object["tasks"].size());
  EXPECT_EQ(CountOf(*html, "<div class=\"meter\">"), object["tasks"].size()) << "roofline";
  for (const json& task : object["tasks"]) {
    EXPECT_THAT(*html, HasSubstr(fmt::format(
                           "{:.2f} ×<small>{:.2f} to {:.2f}</small>", task["gain"].get<double>(),
                           task["gain_low"].get<double>(), task["gain_high"].get<double>())));
    EXPECT_THAT(*html, HasSubstr(fmt::format("</i></div>{:.0f} %</div>",
                                             100 * task["roofline_share"].get<double>())));
    EXPECT_THAT(*html, HasSubstr(TimeText(task["best"]["low_us"]) + " to " +
                                 TimeText(task["best"]["high_us"])));
  }
  // The newest and the fastest of each group; forty in all are fewer than are shown.
  EXPECT_EQ(CountOf(*html, "<div class=\"trial\" style="), (*tuned_)["attempts"].get<size_t>());
  for (const auto& [name, counts] : object["proposers"].items()) {
    EXPECT_THAT(*html, HasSubstr(fmt::format(
                           "<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>", name,
                           counts["candidates"].get<int>(), counts["wins"].get<int>())));
  }
  EXPECT_THAT(*html, HasSubstr("<td>ok</td><td class=\"n\">"));
  EXPECT_THAT(*html, HasSubstr("<td>seed</td><td><code>0</code></td>"));
  EXPECT_THAT(*html, HasSubstr(object["session"].get<std::string>()));
  EXPECT_THAT(*html, HasSubstr("hone tune mlp.onnx --target"));
  EXPECT_THAT(*html, HasSubstr("builder"));  // versions
  for (const char* outside :
       {"http://", "https://", "src=", "href=", "<script", "@import", "url("}) {
    EXPECT_THAT(*html, Not(HasSubstr(outside)));
  }
}

TEST_F(TunedLog, ReportOfAnUnknownSessionNamesThoseThereAre) {
  const ProgramRun run = RunHone({"report", "--db", Log(), "--session", "ffff"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr((*tuned_)["session"].get<std::string>()));
}

TEST_F(TunedLog, ReportOfOneOfTwoSessionsAndTheCommandsThatRepeatThem) {
  const std::string log = folder_->Path("two.db"), page = folder_->Path("two.html");
  const std::string inputs = folder_->Path("it's mine.npz");
  std::filesystem::copy_file(Log(), log);
  std::filesystem::copy_file(folder_->Path("mlp.inputs.npz"), inputs);
  const ProgramRun tuned =
      RunHone({"tune", Model(), "--db", log, "--trials", "3", "--threads", "1", "--seed", "8",
               "--until", "2099-01-02 03:04", "--inputs", inputs, "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto report = [&](const std::string& session) {
    return json::parse(
        RunHone({"report", "--db", log, "-o", page, "--session", session, "--json"}).out);
  };
  const std::string first = (*tuned_)["session"], second = json::parse(tuned.out)["session"];
  EXPECT_EQ(report(second)["seed"], 8);
  const json of_first = report(first.substr(0, 8));
  EXPECT_EQ(of_first["session"], first);
  EXPECT_EQ(of_first["seed"], 0);
  const auto html = ReadFile(page);
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, HasSubstr(first));
  EXPECT_THAT(*html, Not(HasSubstr(second)));
  EXPECT_THAT(of_first["command"].get<std::string>(), HasSubstr(" --seconds 20 --trials 40"));
  // A shell reads the second one's as it was meant.
  const std::string command = report(second)["command"];
  EXPECT_THAT(command, HasSubstr(" --until '2099-01-02 03:04'"));
  const ProgramRun again = testing::RunProcess(
      {"/bin/sh", "-c",
       "cd \"$1\" && hone() { \"$0\" \"$@\" --db two.db --dry-run --json; } && " + command,
       testing::HoneProgram(), folder_->path()},
      "/dev/null");
  ASSERT_EQ(again.exit_code, 0) << command << again.err;
  const json object = json::parse(again.out);
  EXPECT_EQ(object["trials"], 3);
  EXPECT_EQ(object["seed"], 8);
  EXPECT_EQ(object["ends"], "2099-01-02 03:04:00");
}

TEST(SessionReport, EmptyLogSaysWhatToDo) {
  db::MemoryDatabase log;
  const auto report = ReadSessionReport(
      log, "", [](const ir::Target&) { return std::string(); }, SystemMonotonicClock());
  EXPECT_EQ(report.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("hone tune"));
}

TEST(SessionReport, GainsAndTheirIntervals) {
  ReportTask task;
  EXPECT_EQ(task.Gain(), 1);
  task.by_default = {200, 180, 220};
  task.best = {100, 90, 110};
  EXPECT_DOUBLE_EQ(task.Gain(), 2);
  EXPECT_DOUBLE_EQ(task.GainLow(), 180.0 / 110);
  EXPECT_DOUBLE_EQ(task.GainHigh(), 220.0 / 90);
  SessionReport report;
  task.count = 3;
  report.tasks = {task, ReportTask{}};
  EXPECT_DOUBLE_EQ(report.ByDefault().median_us, 600);
  EXPECT_DOUBLE_EQ(report.Best().high_us, 330);
  // A sum says what it is of, and has a ratio where all of that ran in turns.
  EXPECT_EQ(report.SumOf(), "1 of 2 kernels");
  EXPECT_FALSE(report.Compared());
  report.tasks.front().compared = true;
  EXPECT_TRUE(report.Compared());
  report.tasks.pop_back();
  EXPECT_EQ(report.SumOf(), "");
}

TEST(ReportPage, NamesCannotBreakThePage) {
  SessionReport report;
  report.model = "<script>alert(1)</script>";
  report.command = "hone tune 'a&b'";
  report.tasks.push_back({.name = "Conv \"x\" <b>"});
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("a&amp;b"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
}

TEST(ReportPage, BeginsWithTheVerdictOfTheModel) {
  SessionReport report;
  const auto before_cards = [&] {
    const std::string page = ReportPage(report);
    return page.substr(page.find("<h1>"), page.find("<div class=\"cards\">") - page.find("<h1>"));
  };
  EXPECT_THAT(before_cards(), HasSubstr("no verdict"));
  report.verdict = db::ModelVerdict{.default_ns = 15.5e6,
                                    .tuned_ns = 8.4e6,
                                    .ratio = 1.85,
                                    .ratio_low = 1.83,
                                    .ratio_high = 1.86};
  EXPECT_THAT(before_cards(),
              HasSubstr("verdict won\">model: 15.5 → 8.40 ms, 1.85 × faster [1.83, 1.86]<"));
  report.verdict->keeps_defaults = true;
  EXPECT_THAT(before_cards(), HasSubstr("keeps its defaults"));
  EXPECT_THAT(before_cards(), Not(HasSubstr("verdict won")));
}

TEST(ReportPage, CandidatesAreSortedByStyleAlone) {
  SessionReport report;
  report.tasks = {{.name = "conv"}, {.name = "gemm"}};
  report.trials = {
      {.number = 3, .task = 0, .seconds = 90, .proposer = "random", .outcome = "run_crashed"},
      {.number = 2, .task = 1, .seconds = 2, .us = 30, .proposer = "model", .outcome = "ok"},
      {.number = 1, .task = 0, .seconds = 1, .us = 40, .proposer = "default", .outcome = "ok"}};
  const std::string page = ReportPage(report);
  const auto row = [&](const std::string& places) {
    const size_t at = page.find("<div class=\"trial\" style=\"" + places + "\">");
    return at == std::string::npos ? "" : page.substr(at, page.find('\n', at) - at);
  };
  EXPECT_THAT(row("--new:1;--group:2;--time:3;--outcome:3"),
              AllOf(HasSubstr(">conv<"), HasSubstr(">1 min 30 s<"), HasSubstr(">run_crashed<")));
  EXPECT_THAT(row("--new:2;--group:3;--time:1;--outcome:1"), HasSubstr(">30.0 µs<"));
  EXPECT_THAT(row("--new:3;--group:1;--time:2;--outcome:2"), HasSubstr(">default<"));
  for (const char* by : {"new", "group", "time", "outcome"}) {
    EXPECT_THAT(page, HasSubstr("id=\"by-" + std::string(by) + "\""));
  }
}

TEST(ReportPage, FailuresAreToldByKindAndByGroup) {
  SessionReport report;
  report.outcomes = {{"ok", 30}, {"wrong_answer", 4}, {"run_crashed", 1}};
  report.tasks.push_back({.name = "conv", .tried = 35, .failed = 5});
  const std::string page = ReportPage(report);
  EXPECT_THAT(page, HasSubstr("<td>wrong_answer</td><td class=\"n\">4</td>"));
  EXPECT_THAT(page, HasSubstr("<td>run_crashed</td><td class=\"n\">1</td>"));
  EXPECT_THAT(page, HasSubstr("35<small>5 failed</small>"));
}

TEST(ReportChart, TimesHaveThreeDigits) {
  EXPECT_EQ(TimeText(1.234), "1.23 µs");
  EXPECT_EQ(TimeText(45.67), "45.7 µs");
  EXPECT_EQ(TimeText(12'345), "12.3 ms");
  EXPECT_EQ(TimeText(2'500'000), "2.50 s");
}

TEST(ReportChart, CurveFallsInSteps) {
  const std::string svg = LargeCurve({{1, 100}, {2, 50}, {3, 20}}, 10, 120);
  const size_t path = svg.find("class=\"line\" d=\"");
  ASSERT_NE(path, std::string::npos);
  const std::string d = svg.substr(path, svg.find('"', path + 16) - path);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'V'), 2);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'H'), 3);
  EXPECT_THAT(LargeCurve({}, 1, 0), HasSubstr("No curve"));
}

TEST(ReportChart, TimesOfTheAxisHaveTheUnitOfTheirStep) {
  const auto axis = [](double seconds) { return LargeCurve({{0.1, 100}, {0.2, 50}}, seconds, 0); };
  EXPECT_THAT(axis(60), AllOf(HasSubstr(">10 s<"), HasSubstr(">60 s<")));
  EXPECT_THAT(axis(600), AllOf(HasSubstr(">2 min<"), HasSubstr(">10 min<"), Not(HasSubstr(" s<"))));
  EXPECT_THAT(axis(3 * 3600), AllOf(HasSubstr(">0.5 h<"), HasSubstr(">3 h<")));
}

}  // namespace
}  // namespace hone::client

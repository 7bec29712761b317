// hone query, and the look-up of compile, on a log of a small network.

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/versions.h"
#include "client/log_trace_source.h"
#include "db/log_file.h"
#include "graph/onnx_export/zoo_layers.h"
#include "ir/text.h"
#include "tests/client/logged_network.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

class QueryCommandTest : public testing::LoggedNetwork {
 protected:
  /// The answer of `hone query` for the first kernel.
  json Query(std::vector<std::string> options) {
    std::vector<std::string> words = {"query", model_, "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const json object = Parse(run);
    for (const json& kernel : object["kernels"]) {
      if (kernel["workload"] == hash_) return kernel;
    }
    ADD_FAILURE() << run.out;
    return {};
  }
};

TEST_F(QueryCommandTest, TellsTheRungTheRecordAndItsLatency) {
  const json exact = Query({"--db", log_, "--target", kTarget, "--device-class", "class-a"});
  EXPECT_EQ(exact["rung"], "exact");
  EXPECT_DOUBLE_EQ(exact["median_us"], 5.0);
  EXPECT_EQ(exact["record"], (Hash128{1, 5000}).ToHex());
  const json other = Query({"--db", log_, "--target", kTarget, "--device-class", "class-b"});
  EXPECT_EQ(other["rung"], "threads");
  EXPECT_THAT(other["why"].get<std::string>(), HasSubstr("class-a"));
  const json none = Query({"--db", log_, "--target", "cpu:avx512,threads=1"});
  EXPECT_EQ(none["rung"], "default");
  EXPECT_TRUE(none["record"].is_null());
}

TEST_F(QueryCommandTest, WithoutALogItReadsTheOneThatTuneWrites) {
  const std::vector<std::string> words = {"query", model_, "--json", "--target", kTarget};
  const json named = Parse(RunHone(words, "/dev/null", {"HONE_DB=" + log_}));
  const json& kernel = named["kernels"][0];
  EXPECT_EQ(kernel["workload"], hash_);
  EXPECT_EQ(kernel["rung"], "threads") << "the log's record is of another device class";
  std::filesystem::create_directory(folder_.Path("hone"));
  std::filesystem::rename(log_, folder_.Path("hone/tune.db"));
  EXPECT_EQ(Parse(RunHone(words, "/dev/null", {"XDG_DATA_HOME=" + folder_.path()})), named);
}

TEST_F(QueryCommandTest, ARecordThatNoLongerReplaysIsStale) {
  Append("no trace at all", 1000);
  const json kernel = Query({"--db", log_, "--target", kTarget, "--device-class", "class-a"});
  EXPECT_EQ(kernel["rung"], "exact");
  EXPECT_DOUBLE_EQ(kernel["median_us"], 5.0);
  ASSERT_EQ(kernel["stale"].size(), 1U);
  EXPECT_EQ(kernel["stale"][0]["record"], (Hash128{1, 1000}).ToHex());
}

TEST_F(QueryCommandTest, CompileTakesTheLogsRungsAndRefusesLowerOnes) {
  const std::vector<std::string> compile = {"compile", model_,     "-o",   folder_.Path("m.hone"),
                                            "--json",  "--target", kTarget};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), compile.begin(), compile.end());
    return RunHone(more);
  };
  const json object = Parse(with({"--db", log_, "--device-class", "class-a"}));
  int exact = 0;
  for (const json& kernel : object["kernels"]) exact += kernel["rung"] == "exact" ? 1 : 0;
  EXPECT_EQ(exact, 1);
  const ProgramRun refused = with({"--db", log_, "--require", "exact"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_EQ(Parse(refused)["error"]["name"], "record_missing");
}

TEST_F(QueryCommandTest, CheckRunsEachKernelByDefaultAndByTheLog) {
  const auto rungs = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"check", model_, "--json", "--target", kTarget};
    words.insert(words.end(), more.begin(), more.end());
    const json object = Parse(RunHone(words));
    EXPECT_EQ(object["ok"], true);
    std::vector<std::string> found;
    for (const json& step : object["steps"]) {
      found.push_back(std::to_string(step["step"].get<int>()) + " " +
                      step["rung"].get<std::string>());
    }
    return found;
  };
  // The log's schedule is the default one.
  EXPECT_THAT(
      RunHone({"check", model_, "--target", kTarget, "--db", log_}).out,
      HasSubstr("3 steps are right by default, 1 also by the schedule of '" + log_ + "'\n"));
  EXPECT_THAT(rungs({}), ::testing::ElementsAre("0 default", "1 default", "2 default"));
  EXPECT_THAT(rungs({"--db", log_, "--device-class", "class-a"}),
              ::testing::ElementsAre("0 default", "0 exact", "1 default", "2 default"));
}

TEST_F(QueryCommandTest, RequireWithoutALogIsRefused) {
  const std::string package = folder_.Path("m.hone");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--require", "exact"},
        {"--require", "nearest"},
        {"--require", "exact", "--traces", folder_.path()},
        {"--traces", folder_.path(), "--db", log_},
        {"--traces", folder_.path(), "--accuracy", "strict"}}) {
    std::vector<std::string> words = {"compile", model_, "-o", package};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(RunHone(words).exit_code, 2) << more[1];
    EXPECT_FALSE(std::filesystem::exists(package)) << more[1];
  }
  EXPECT_EQ(RunHone({"compile", model_, "-o", package, "--require", "default"}).exit_code, 0);
  EXPECT_EQ(RunHone({"bench", package, "--require", "exact"}).exit_code, 2);
}

TEST_F(QueryCommandTest, CompileSaysForEachKernelWhichRungAnsweredAndWhy) {
  const ProgramRun run = RunHone({"compile", "-v", model_, "-o", folder_.Path("m.hone"), "--db",
                                  log_, "--target", kTarget, "--device-class", "class-a"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(hash_.substr(0, 12) + "  x1   exact"));
  EXPECT_THAT(run.out, HasSubstr("(2 default, 1 exact)"));
  const ProgramRun other = RunHone({"compile", "-v", model_, "-o", folder_.Path("m.hone"), "--db",
                                    log_, "--target", kTarget, "--device-class", "class-b"});
  EXPECT_THAT(other.out, HasSubstr(hash_.substr(0, 12) + "  x1   threads"));
  EXPECT_THAT(other.out, HasSubstr("class-a"));
  const json object = Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_,
                                     "--target", kTarget, "--device-class", "class-b", "--json"}));
  EXPECT_THAT(object["kernels"][0]["why"].get<std::string>(), HasSubstr("class-a"));
  EXPECT_THAT(RunHone({"compile", model_, "-o", folder_.Path("m.hone")}).out,
              ::testing::Not(HasSubstr(hash_.substr(0, 12))))
      << "without a log there is nothing to say";
}

TEST_F(QueryCommandTest, APinnedSnapshotAnswersAndAnotherFileIsRefused) {
  const json made = Parse(RunHone({"db", "snapshot", log_, "-o", folder_.Path("s.db"), "--json"}));
  const std::string pin = made["pin"].get<std::string>();
  EXPECT_EQ(Query({"--snapshot", pin, "--target", kTarget, "--device-class", "class-a"})["rung"],
            "exact");
  std::string wrong = pin;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(RunHone({"query", model_, "--snapshot", wrong}).exit_code, 3);
  EXPECT_EQ(RunHone({"query", model_, "--snapshot", folder_.Path("s.db")}).exit_code, 2);
  EXPECT_EQ(RunHone({"query", model_, "--snapshot", pin, "--db", log_}).exit_code, 2);
  EXPECT_EQ(RunHone({"query", model_, "--db", folder_.Path("absent.db")}).exit_code, 3);
}

/// Two linear layers for rows of 64.
void WriteTwoLayers(const std::string& path, int64_t batch) {
  graph::OnnxWriter writer("layers", 1);
  std::string x = writer.Input("input", ir::DType::kF32, {batch, 64});
  x = Relu(writer, "relu", Linear(writer, "hidden", x, 64, 96, 1.41));
  Linear(writer, "output", x, 96, 32);
  writer.Output("output", ir::DType::kF32, {batch, 32});
  ASSERT_TRUE(writer.Save(path).ok());
}

// What was found for one batch serves another, whose workloads nobody has tuned.
TEST(NearestRungTest, AnswersForAnotherBatchAndAlwaysTheSame) {
  const TemporaryFolder folder;
  const std::string tuned = folder.Path("tuned.onnx"), model = folder.Path("other.onnx");
  const std::string log = folder.Path("tune.db"), target = "cpu:avx2,threads=1";
  WriteTwoLayers(tuned, 8);
  WriteTwoLayers(model, 12);
  ASSERT_EQ(RunHone({"tune", tuned, "--db", log, "--target", target, "--trials", "16"}).exit_code,
            0);
  const json query = Parse(RunHone({"query", model, "--db", log, "--target", target, "--json"}));
  ASSERT_EQ(query["kernels"].size(), 2U);
  EXPECT_EQ(query["rungs"], json({{"nearest", 2}}));
  for (const json& kernel : query["kernels"]) {
    EXPECT_FALSE(kernel["record"].is_null());
    EXPECT_FALSE(kernel["why"].get<std::string>().empty());
  }
  const auto compile = [&](const std::string& rung, const std::string& output) {
    return RunHone({"compile", model, "--db", log, "--target", target, "--require", rung, "-o",
                    folder.Path(output), "--json"});
  };
  const ProgramRun first = compile("nearest", "first.hone");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const json compiled = Parse(first);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(compiled["kernels"][i]["rung"], "nearest");
    EXPECT_EQ(compiled["kernels"][i]["why"], query["kernels"][i]["why"]);
  }
  EXPECT_EQ(compile("nearest", "second.hone").exit_code, 0);
  EXPECT_EQ(*ReadFile(folder.Path("first.hone")), *ReadFile(folder.Path("second.hone")));
  EXPECT_EQ(compile("exact", "third.hone").exit_code, 4);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("third.hone")));
  // Computed right, too.
  EXPECT_EQ(RunHone({"check", model, "--db", log, "--target", target}).exit_code, 0);
}

/// Two models with the same first kernel, and what one log says of it to each.
class TwoModelsTest : public QueryCommandTest {
 protected:
  void SetUp() override {
    QueryCommandTest::SetUp();
    graph::OnnxWriter writer("other", 1);
    std::string x = writer.Input("input", ir::DType::kF32, {1, 784});
    x = graph::Relu(writer, "relu1", graph::Linear(writer, "fc1", x, 784, 256));
    graph::Linear(writer, "last", x, 256, 3);
    writer.Output("last", ir::DType::kF32, {1, 3});
    ASSERT_TRUE(writer.Save(other_).ok());
  }

  json KernelsOf(const std::string& model, const std::vector<std::string>& log) {
    std::vector<std::string> words = {"query",          model,    "--json", "--target", kTarget,
                                      "--device-class", "class-a"};
    words.insert(words.end(), log.begin(), log.end());
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Parse(run)["kernels"];
  }
  /// The rung of the kernel that both models have, and why.
  std::pair<std::string, std::string> Rung(const std::string& model,
                                           const std::vector<std::string>& log) {
    for (const json& kernel : KernelsOf(model, log)) {
      if (kernel["workload"] == hash_) return {kernel["rung"], kernel["why"]};
    }
    ADD_FAILURE() << model << " lacks the kernel";
    return {};
  }
  int Compile(const std::string& model, const std::string& require) {
    return RunHone({"compile", model, "--db", log_, "--target", kTarget, "--device-class",
                    "class-a", "--require", require, "-o", folder_.Path("m.hone")})
        .exit_code;
  }

  void Judge(const std::string& model, db::ModelVerdict verdict) {
    std::vector<std::pair<Hash128, int64_t>> tasks;
    for (const json& kernel : KernelsOf(model, {"--db", log_})) {
      tasks.emplace_back(*Hash128::FromHex(kernel["workload"].get<std::string>()), kernel["count"]);
    }
    verdict.model = db::ModelHash(tasks);
    verdict.target = kTarget;
    verdict.device_class = "class-a";
    verdict.measurement_policy = kCpuVersions.measurement_policy;
    verdict.session = {7, 7};
    auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append({.events = {db::EventOf(verdict)}}).ok());
  }

  const std::string other_ = folder_.Path("other.onnx");
};

TEST_F(TwoModelsTest, AVerdictBindsTheLookUpsOfItsModelAlone) {
  const std::vector<std::string> db = {"--db", log_};
  const auto rung = [&](const std::string& model) { return Rung(model, db).first; };
  EXPECT_EQ(rung(model_), "exact");
  EXPECT_EQ(rung(other_), "exact");
  // One loses, the other wins.
  Judge(model_, {.put_back = {HashBytes(workload_)}});
  Judge(other_, {.tuned = {HashBytes(workload_)}});
  EXPECT_EQ(rung(model_), "default");
  EXPECT_THAT(Rung(model_, db).second, HasSubstr("put back"));
  EXPECT_EQ(rung(other_), "exact");
  // In a snapshot and where it is merged into, too.
  const std::string merged = folder_.Path("merged.db"), snapshot = folder_.Path("s.db");
  ASSERT_EQ(RunHone({"db", "merge", merged, log_}).exit_code, 0);
  const json pin = Parse(RunHone({"db", "snapshot", merged, "-o", snapshot, "--json"}))["pin"];
  for (const std::vector<std::string>& log :
       {std::vector<std::string>{"--db", merged}, {"--snapshot", pin.get<std::string>()}}) {
    SCOPED_TRACE(log[1]);
    EXPECT_EQ(Rung(model_, log).first, "default");
    EXPECT_EQ(Rung(other_, log).first, "exact");
  }
  // Judged again, it may have it again.
  Judge(model_, {.tuned = {HashBytes(workload_)}});
  EXPECT_EQ(rung(model_), "exact");
}

TEST_F(TwoModelsTest, ExplainTellsWhatAVerdictBinds) {
  Judge(model_, {.put_back = {HashBytes(workload_)}});
  Judge(other_,
        {.ratio = 1.5, .ratio_low = 1.4, .ratio_high = 1.6, .tuned = {HashBytes(workload_)}});
  const auto explain = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"explain",  model,   "--db",           log_,
                                      "--target", kTarget, "--device-class", "class-a"};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  };
  const auto judged = [&](const std::string& model) {
    const json tasks = Parse(explain(model, {"--json"}))["tasks"];
    for (const json& task : tasks) {
      if (task["workload"] == hash_) return task["judged"];
    }
    return json("no such task");
  };
  EXPECT_THAT(judged(model_).get<std::string>(), HasSubstr("put back: in this model"));
  EXPECT_EQ(judged(other_), nullptr);
  EXPECT_EQ(Parse(explain(other_, {"--json"}))["model"]["verdict"], "won");
  EXPECT_THAT(explain(model_, {}).out, HasSubstr("\nlook-ups of this model: default; put back"));
  EXPECT_THAT(explain(other_, {}).out, HasSubstr("1.50 × faster [1.40, 1.60] (session "));
  // A task alone is in many models: no verdict is told.
  EXPECT_THAT(explain(hash_, {}).out, Not(HasSubstr("model: ")));
}

TEST_F(TwoModelsTest, AModelThatIsNotFasterKeepsItsDefaults) {
  EXPECT_EQ(Compile(model_, "exact"), 4) << "one kernel has a record, the others have none";
  Judge(model_, {.keeps_defaults = true, .ratio = 0.98, .ratio_low = 0.96, .ratio_high = 0.99});
  for (const json& kernel : KernelsOf(model_, {"--db", log_})) {
    EXPECT_EQ(kernel["rung"], "default");
    EXPECT_THAT(kernel["why"].get<std::string>(), HasSubstr("0.98 x as fast [0.96, 0.99]"));
  }
  EXPECT_EQ(Rung(other_, {"--db", log_}).first, "exact");
  // What is asked of the log is there: the default is the better one.
  EXPECT_EQ(Compile(model_, "exact"), 0);
  EXPECT_EQ(Compile(model_, "nearest"), 0);
  const json package = Parse(RunHone({"inspect", folder_.Path("m.hone"), "--json"}));
  EXPECT_EQ(package.dump().find("exact"), std::string::npos) << package;
  // And it is not advised to tune what was tuned.
  const ProgramRun compiled = RunHone({"compile", model_, "--target", kTarget, "--device-class",
                                       "class-a", "-o", folder_.Path("m.hone")},
                                      "/dev/null", {"HONE_DB=" + log_});
  EXPECT_THAT(compiled.out + compiled.err,
              HasSubstr("keeps its default schedules by a verdict in"));
  EXPECT_THAT(compiled.out + compiled.err, Not(HasSubstr("hone tune")));
}

TEST_F(QueryCommandTest, AModelSeesOneStateOfTheLogUntilItsKernelsAreLookedUp) {
  const auto workload = ir::ParseWorkload(workload_);
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::string error;
  ir::Target target;
  ASSERT_TRUE(ir::ParseTarget(kTarget, &target, &error)) << error;
  auto log = db::OpenLog(log_, {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(log.ok()) << log.status();
  auto source = LogTraceSource::Create(*std::move(log), {.device_class = "class-a"});
  ASSERT_TRUE(source.ok()) << source.status();
  const auto median_ns = [&]() -> double {
    const auto answer = (*source)->Look(*workload, hash_, target);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->median_ns : 0;
  };
  EXPECT_EQ(median_ns(), 5000);
  Append(trace_, 4000);
  EXPECT_EQ(median_ns(), 5000);
  (*source)->EndLookUps();
  EXPECT_EQ(median_ns(), 4000);
}

}  // namespace
}  // namespace hone::client

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/file.h"
#include "client/server_connection.h"
#include "compiler/compile_model.h"
#include "graph/onnx_import/import.h"
#include "measure/seeded_package.h"
#include "tests/farm/tuned_farm.h"
#include "tests/graph/onnx_model.h"
#include "tests/test_paths.h"

// `hone tune --server --judge` with real programs: packages without constants travel to a worker,
// which runs them in its sandbox.
namespace hone::farm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// The default for all kernels but the first, whose loops are as they are written.
class NaiveTraces final : public compiler::TraceSource {
 public:
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target&) override {
    if (!slow.empty() && slow != hash) return compiler::FoundTrace{.rung = "default"};
    slow = hash;
    const std::string last = std::to_string(workload.stages.size() - 1);
    return compiler::FoundTrace{.trace = "parallel(s" + last + ".i0, 1)\n", .rung = "exact"};
  }
  std::string slow;
};

class ModelJudgeTest : public TunedFarm {
 protected:
  ModelJudgeTest() : TunedFarm({"w1"}) {}

  std::string Cut(compiler::TraceSource& traces) const {
    auto graph = graph::ImportOnnxFile(Model(), {});
    EXPECT_TRUE(graph.ok()) << graph.status();
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    measure::BuilderClient builder(options, clock_);
    const auto model =
        compiler::CompileModel(*std::move(graph), {"cpu:avx2,threads=1", ""}, builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    EXPECT_FALSE(model->package.constants.empty());
    const auto cut = measure::CutConstants(model->package);
    EXPECT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_LT(cut->size(), model->package.constants.size() / 2) << "its weights are not in it";
    return *cut;
  }
};

TEST_F(ModelJudgeTest, ADeviceComparesTheWholeModelAndTheVerdictLeads) {
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon worker("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  honed.Start();
  worker.Start();
  const Ran tuned = RunToEnd(Hone(
      {"tune", Model(), "--target", "cpu:avx2", "--threads", "1", "--trials", "40", "--judge"}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  // What the search found, and who else runs here, is not the test's to say.
  EXPECT_THAT(tuned.out.substr(0, tuned.out.find('\n')),
              AnyOf(HasSubstr(" × "), HasSubstr("no verdict, other programs disturbed it"),
                    HasSubstr("no verdict, every kernel keeps its default schedule")))
      << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("\nnext: hone compile "));

  compiler::DefaultTraceSource defaults;
  NaiveTraces naive;
  client::ServerAddress address{.address = farm_.Address()};
  const std::vector<std::string> words = farm_.ServerWords("alice");
  address.tls_folder = *(std::find(words.begin(), words.end(), "--tls") + 1);
  const auto server = client::ServerConnection::Open(address);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto sessions = (*server)->ListSessions(1);
  ASSERT_TRUE(sessions.ok()) << sessions.status();
  client::ServerConnection::ModelQuestion question{.session = sessions->front().id, .seconds = 0.2};
  question.default_package = (*server)->PutPackage(Cut(defaults)).value();
  question.tuned_package = (*server)->PutPackage(Cut(naive)).value();
  question.tuned = {Hash128::FromHex(naive.slow).value()};
  client::ServerConnection::ModelAnswer answer;
  const auto done = [&] {
    auto asked = (*server)->JudgeModel(question);
    EXPECT_TRUE(asked.ok()) << asked.status();
    if (asked.ok()) answer = *std::move(asked);
    return answer.done || !asked.ok();
  };
  question.may_put_back = true;
  ASSERT_TRUE(Eventually(done)) << answer.reason << worker.Said();
  if (answer.losing.empty()) {
    EXPECT_THAT(answer.reason, HasSubstr("other programs disturbed it"));
  } else {
    // The device timed each kernel: this one is slower in the model.
    EXPECT_EQ(answer.losing, question.tuned);
    EXPECT_FALSE(answer.verdict.has_value());
  }
  question.may_put_back = false;
  answer = {};
  ASSERT_TRUE(Eventually(done)) << answer.reason << worker.Said();
  if (!answer.verdict) {
    EXPECT_THAT(answer.reason, HasSubstr("other programs disturbed it"));
  } else {
    EXPECT_TRUE(answer.verdict->keeps_defaults) << "loops as they are written are slower";
    EXPECT_LT(answer.verdict->ratio_high, 1);
    // It binds what is compiled of this model from now on, and leads what is said of the session.
    const Ran compiled =
        RunToEnd(Hone({"compile", Model(), "--target", "cpu:avx2", "--threads", "1", "--json", "-o",
                       farm_.Path("m.hone"), "--device-class", answer.verdict->device_class}));
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    for (const auto& kernel : nlohmann::json::parse(compiled.out).at("kernels")) {
      EXPECT_EQ(kernel.at("rung"), "default") << kernel;
    }
  }
  EXPECT_EQ(worker.Terminate(), 0) << worker.Said();
  EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
}

/// Two towers of short products, which meet in longer ones: these have the peak of the memory.
void WriteTowers(const std::string& path) {
  graph::OnnxModel model;
  model.Input("a", {"1", "64"}).Input("b", {"1", "64"}).Input("s", {"1", "2048"}).Output("y");
  model.Weights("w", {64, 64}).Weights("v", {128, 2048}).Weights("u", {2048, 64});
  std::vector<std::string> ends;
  for (const std::string tower : {"a", "b"}) {
    std::string at = tower;
    for (int i = 0; i < 8; ++i) {
      const std::string next = tower + std::to_string(i);
      model.Node("MatMul", {at, "w"}, {next});
      model.Node("Softmax", {next}, {next + "s"});
      at = next + "s";
    }
    ends.push_back(at);
  }
  graph::SetInt(model.Node("Concat", ends, {"c"}), "axis", 1);
  model.Node("MatMul", {"c", "v"}, {"d"});
  model.Node("Add", {"d", "s"}, {"e"});
  model.Node("MatMul", {"e", "u"}, {"y"});
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
}

TEST_F(ModelJudgeTest, ADeviceComparesBranchesToo) {
  if (UsableCores() < 2) GTEST_SKIP() << "branches beside each other take two cores";
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon worker("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  honed.Start();
  worker.Start();
  const std::string model = farm_.Path("towers.onnx");
  WriteTowers(model);
  const std::vector<std::string> on = {model, "--target", "cpu:avx2", "--threads", "2", "--json"};
  const auto json_of = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 1, on.begin(), on.end());
    const Ran ran = RunToEnd(Hone(words));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const nlohmann::json tuned = json_of({"tune", "--trials", "4", "--judge"});
  const nlohmann::json branches = tuned.at("model").at("branches");
  ASSERT_TRUE(branches.is_object()) << tuned;
  const nlohmann::json compiled = json_of({"compile", "-o", farm_.Path("m.hone"), "--device-class",
                                           tuned.at("device_class").get<std::string>()})
                                      .at("branches");
  if (branches.contains("skipped")) {
    EXPECT_THAT(branches["skipped"].get<std::string>(), HasSubstr("other programs disturbed it"));
    EXPECT_EQ(compiled.at("judged"), false);
  } else {
    EXPECT_EQ(compiled.at("judged"), true) << compiled;
    EXPECT_EQ(compiled.at("run"), branches.at("run"));
    EXPECT_EQ(branches.at("run") == "beside", branches.at("ratio_low").get<double>() > 1);
  }
  EXPECT_EQ(worker.Terminate(), 0) << worker.Said();
  EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
}

}  // namespace
}  // namespace hone::farm

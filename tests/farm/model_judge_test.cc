#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "client/server_connection.h"
#include "compiler/compile_model.h"
#include "graph/onnx_import/import.h"
#include "measure/seeded_package.h"
#include "tests/farm/tuned_farm.h"
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

}  // namespace
}  // namespace hone::farm

// How branches run is measured by `hone tune`, and kept in the log for those who compile that
// model.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/versions.h"
#include "db/log_file.h"
#include "db/model_verdict.h"
#include "tests/client/small_tuning.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

constexpr char kTarget[] = "cpu:avx2,threads=2";
constexpr char kClass[] = "class-a";

/// Two towers of short products, which meet in longer ones.
class BranchVerdictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write(model_, 8);
    Write(other_, 9);
    ASSERT_TRUE(db::OpenLog(log_, {.mode = db::OpenMode::kWrite}).ok());
  }

  static void Write(const std::string& path, int length) {
    graph::OnnxModel model;
    model.Input("a", {"1", "64"}).Input("b", {"1", "64"}).Input("s", {"1", "2048"}).Output("y");
    model.Zeros("w", {64, 64}).Zeros("v", {128, 2048}).Zeros("u", {2048, 64});
    std::vector<std::string> ends;
    for (const std::string tower : {"a", "b"}) {
      std::string at = tower;
      for (int i = 0; i < length; ++i) {
        const std::string next = tower + std::to_string(i);
        model.Node("MatMul", {at, "w"}, {next});
        model.Node("Softmax", {next}, {next + "s"});
        at = next + "s";
      }
      ends.push_back(at);
    }
    graph::SetInt(model.Node("Concat", ends, {"c"}), "axis", 1);
    model.Node("MatMul", {"c", "v"}, {"d"});
    model.Node("Add", {"d", "s"}, {"e"});  // not known to be zero, hence not left out
    model.Node("MatMul", {"e", "u"}, {"y"});
    ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  }

  json Compiled(const std::string& model, const std::string& branches = "auto",
                const std::string& device = kClass) const {
    return Parse(RunHone({"compile", model, "-o", folder_.Path("m.hone"), "--db", log_, "--json",
                          "--target", kTarget, "--branches", branches, "--device-class", device}));
  }

  Hash128 Model() const {
    std::vector<std::pair<Hash128, int64_t>> tasks;
    const json kernels = Compiled(model_)["kernels"];
    for (const json& kernel : kernels) {
      tasks.emplace_back(*Hash128::FromHex(kernel["workload"].get<std::string>()),
                         kernel["count"].get<int64_t>());
    }
    return db::ModelHash(std::move(tasks));
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx"), other_ = folder_.Path("o.onnx");
  const std::string log_ = folder_.Path("tune.db");
};

TEST_F(BranchVerdictTest, CompileRunsThemAsItWasMeasuredOfThisModelAlone) {
  const json before = Compiled(model_)["branches"];
  EXPECT_EQ(before["run"], "turn");
  EXPECT_EQ(before["judged"], false);
  EXPECT_GE(before["possible_forks"].get<int>(), 1);
  EXPECT_EQ(Compiled(model_, "beside")["branches"]["run"], "beside") << "by hand";
  EXPECT_THAT(RunHone({"inspect", folder_.Path("m.hone")}).out,
              HasSubstr("forks run side by side"));

  auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  db::Batch batch;
  batch.sessions.push_back({{7, 7}, "{}", 0, "{}", 1});
  batch.events.push_back(db::EventOf({.model = Model(),
                                      .target = kTarget,
                                      .device_class = kClass,
                                      .measurement_policy = kCpuVersions.measurement_policy,
                                      .subject = db::ModelVerdict::Subject::kBranches,
                                      .default_ns = 3e6,
                                      .tuned_ns = 2.4e6,
                                      .ratio = 1.25,
                                      .ratio_low = 1.23,
                                      .ratio_high = 1.27,
                                      .rounds = 9,
                                      .session = {7, 7}}));
  ASSERT_TRUE((*log)->Append(batch).ok());
  log->reset();

  const json beside = Compiled(model_)["branches"];
  EXPECT_EQ(beside["run"], "beside");
  EXPECT_EQ(beside["judged"], true);
  EXPECT_THAT(beside["why"].get<std::string>(),
              HasSubstr("side by side it is 1.25 × as fast [1.23, 1.27]"));
  EXPECT_EQ(Compiled(model_, "turn")["branches"]["run"], "turn") << "by hand";
  EXPECT_EQ(Compiled(model_, "auto", "other")["branches"]["run"], "turn");
  EXPECT_EQ(Compiled(other_)["branches"]["judged"], false) << "another model";
}

TEST_F(BranchVerdictTest, TuneComparesBothWaysAndTheLogKeepsWhatItFound) {
  const ProgramRun run = RunHone({"tune", model_, "--db", log_, "--seconds", "25", "--trials", "4",
                                  "--threads", "2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json branches = Parse(run)["model"]["branches"];
  ASSERT_TRUE(branches.is_object()) << run.out;
  const json compiled = Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db",
                                       log_, "--json", "--threads", "2"}))["branches"];
  if (branches.contains("skipped")) {  // beside other programs
    EXPECT_EQ(compiled["judged"], false);
    return;
  }
  EXPECT_EQ(compiled["judged"], true);
  EXPECT_EQ(compiled["run"], branches["run"]);
  EXPECT_EQ(branches["run"] == "beside", branches["ratio_low"].get<double>() > 1);
  EXPECT_THAT(RunHone({"report", "--db", log_}).out, HasSubstr("branches: in turn "));
}

}  // namespace
}  // namespace hone::client

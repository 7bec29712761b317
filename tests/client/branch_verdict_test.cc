// How branches run is measured by `hone tune`, and kept in the log for those who compile that
// model.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "db/model_verdict.h"
#include "tests/client/judged_ways.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::JudgedWays;
using testing::RunHone;

constexpr char kTarget[] = "cpu:avx2,threads=2";

/// Two towers of short products, which meet in longer ones.
class BranchVerdictTest : public JudgedWays {
 protected:
  void SetUp() override {
    WriteModel(model_, 8);
    WriteModel(other_, 9);
    JudgedWays::SetUp();
  }

  static void WriteModel(const std::string& path, int length) {
    graph::OnnxModel model;
    model.Input("a", {"1", "64"}).Input("b", {"1", "64"}).Input("s", {"1", "2048"}).Output("y");
    model.Weights("w", {64, 64}).Weights("v", {128, 2048}).Weights("u", {2048, 64});
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
    model.Node("Add", {"d", "s"}, {"e"});
    model.Node("MatMul", {"e", "u"}, {"y"});
    ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  }

  json Compiled(const std::string& model, const std::string& branches = "auto",
                const std::string& device = kClass) const {
    return JudgedWays::Compiled(model, kTarget, {"--branches", branches, "--device-class", device});
  }

  const std::string other_ = folder_.Path("o.onnx");
};

TEST_F(BranchVerdictTest, CompileRunsThemAsItWasMeasuredOfThisModelAlone) {
  const json before = Compiled(model_)["branches"];
  EXPECT_EQ(before["run"], "turn");
  EXPECT_EQ(before["judged"], false);
  EXPECT_GE(before["possible_forks"].get<int>(), 1);
  EXPECT_EQ(Compiled(model_, "beside")["branches"]["run"], "beside") << "by hand";
  EXPECT_THAT(RunHone({"inspect", folder_.Path("m.hone")}).out,
              HasSubstr("forks run side by side"));

  Write({.model = ModelOf(Compiled(model_)),
         .target = kTarget,
         .subject = db::ModelVerdict::Subject::kBranches,
         .ratio = 1.25});

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
  json branches, compiled;
  ASSERT_NO_FATAL_FAILURE(Tune("branches", 2, &branches, &compiled));
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

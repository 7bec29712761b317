// How a batch runs is measured by `hone tune`, and kept in the log for those who compile.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "db/model_verdict.h"
#include "tests/client/judged_ways.h"
#include "tests/client/small_tuning.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::JudgedWays;
using testing::Parse;
using testing::RunHone;

constexpr char kTarget[] = "cpu:avx2,threads=1";

/// Three images that do not meet and fit every cache: nominal times say "together".
class BatchVerdictTest : public JudgedWays {
 protected:
  void SetUp() override {
    graph::OnnxModel model;
    model.Input("x", {"3", "10", "7"}).Output("y");
    model.Node("Softmax", {"x"}, {"a"});
    model.Node("Mul", {"a", "x"}, {"y"});
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
    JudgedWays::SetUp();
  }

  json Compiled(const std::string& batch = "auto", const std::string& device = kClass) const {
    return JudgedWays::Compiled(model_, kTarget, {"--batch", batch, "--device-class", device});
  }

  /// A session that found image by image `ratio` times as fast.
  void Write(bool stays_together, double ratio) const {
    JudgedWays::Write({.model = ModelOf(Compiled("together")),
                       .target = kTarget,
                       .subject = db::ModelVerdict::Subject::kBatch,
                       .keeps_defaults = stays_together,
                       .ratio = ratio});
  }
};

TEST_F(BatchVerdictTest, CompileRunsABatchAsItWasMeasured) {
  const json nominal = Compiled();
  EXPECT_EQ(nominal["batch"]["run"], "together");
  EXPECT_EQ(nominal["batch"]["judged"], false);

  Write(/*stays_together=*/false, 1.25);
  const json each = Compiled();
  EXPECT_EQ(each["images"], 3);
  EXPECT_EQ(each["batch"]["judged"], true);
  EXPECT_THAT(each["batch"]["why"].get<std::string>(), HasSubstr("1.25 × as fast [1.23, 1.27]"));
  EXPECT_EQ(Compiled("together")["images"], 1) << "by hand";
  EXPECT_EQ(Compiled("auto", "other")["images"], 1);

  Write(/*stays_together=*/true, 0.8);
  const json together = Compiled();
  EXPECT_EQ(together["images"], 1);
  EXPECT_EQ(together["batch"]["judged"], true);
}

TEST_F(BatchVerdictTest, QueryAsksForTheKernelsThatWillRun) {
  const std::vector<std::string> query = {"query",          model_, "--db",     log_,   "--json",
                                          "--device-class", kClass, "--target", kTarget};
  const json together = Parse(RunHone(query))["kernels"];
  Write(/*stays_together=*/false, 1.25);
  const json each = Parse(RunHone(query))["kernels"];
  ASSERT_FALSE(each.empty());
  EXPECT_NE(each[0]["workload"], together[0]["workload"]);
  EXPECT_EQ(each[0]["workload"], Compiled()["kernels"][0]["workload"]);
}

TEST_F(BatchVerdictTest, TuneComparesBothWaysAndTheLogKeepsWhatItFound) {
  json batch, compiled;
  ASSERT_NO_FATAL_FAILURE(Tune("batch", 1, &batch, &compiled));
  if (batch.contains("skipped")) {  // beside other programs
    EXPECT_EQ(compiled["judged"], false);
    return;
  }
  EXPECT_EQ(compiled["judged"], true);
  EXPECT_EQ(compiled["run"], batch["run"]);
  EXPECT_EQ(batch["run"] == "each", batch["ratio_low"].get<double>() > 1);
  EXPECT_THAT(RunHone({"report", "--db", log_}).out, HasSubstr("batch: together "));
}

}  // namespace
}  // namespace hone::client

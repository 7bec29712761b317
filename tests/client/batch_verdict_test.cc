// How a batch runs is measured by `hone tune`, and kept in the log for those who compile.
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
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

constexpr char kTarget[] = "cpu:avx2,threads=1";
constexpr char kClass[] = "class-a";

/// Three images that do not meet and fit every cache: nominal times say "together".
class BatchVerdictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph::OnnxModel model;
    model.Input("x", {"3", "10", "7"}).Output("y");
    model.Node("Softmax", {"x"}, {"a"});
    model.Node("Mul", {"a", "x"}, {"y"});
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
    ASSERT_TRUE(db::OpenLog(log_, {.mode = db::OpenMode::kWrite}).ok());
  }

  json Compiled(const std::string& batch = "auto", const std::string& device = kClass) const {
    return Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_, "--json",
                          "--target", kTarget, "--batch", batch, "--device-class", device}));
  }

  /// The hash of the model as look-ups know it when its images run together.
  Hash128 Model() const {
    std::vector<std::pair<Hash128, int64_t>> tasks;
    const json together = Compiled("together")["kernels"];
    for (const json& kernel : together) {
      tasks.emplace_back(*Hash128::FromHex(kernel["workload"].get<std::string>()),
                         kernel["count"].get<int64_t>());
    }
    return db::ModelHash(std::move(tasks));
  }

  /// A session that found image by image `ratio` times as fast.
  void Write(bool stays_together, double ratio) const {
    auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    db::Batch batch;
    batch.sessions.push_back({{7, 7}, "{}", 0, "{}", 1});
    batch.events.push_back(db::EventOf({.model = Model(),
                                        .target = kTarget,
                                        .device_class = kClass,
                                        .measurement_policy = kCpuVersions.measurement_policy,
                                        .subject = db::ModelVerdict::Subject::kBatch,
                                        .keeps_defaults = stays_together,
                                        .default_ns = 3e6,
                                        .tuned_ns = 3e6 / ratio,
                                        .ratio = ratio,
                                        .ratio_low = ratio - 0.02,
                                        .ratio_high = ratio + 0.02,
                                        .rounds = 9,
                                        .session = {7, 7}}));
    const auto appended = (*log)->Append(batch);
    ASSERT_TRUE(appended.ok()) << appended.status();
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string log_ = folder_.Path("tune.db");
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
  const ProgramRun run = RunHone({"tune", model_, "--db", log_, "--seconds", "20", "--trials", "4",
                                  "--threads", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json batch = Parse(run)["model"]["batch"];
  ASSERT_TRUE(batch.is_object()) << run.out;
  const json compiled = Parse(RunHone(
      {"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_, "--json", "--threads", "1"}));
  if (batch.contains("skipped")) {  // beside other programs
    EXPECT_EQ(compiled["batch"]["judged"], false);
    return;
  }
  EXPECT_EQ(compiled["batch"]["judged"], true);
  EXPECT_EQ(compiled["batch"]["run"], batch["run"]);
  EXPECT_EQ(batch["run"] == "each", batch["ratio_low"].get<double>() > 1);
  EXPECT_THAT(RunHone({"report", "--db", log_}).out, HasSubstr("batch: together "));
}

}  // namespace
}  // namespace hone::client

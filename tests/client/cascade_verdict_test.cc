// Whether chains of layers run in bands is measured by `hone tune`, and kept in the log for those
// who compile that model.
#include <algorithm>
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

/// A product and a depthwise convolution over pixels, whose tensors do not fit any last cache.
class CascadeVerdictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write(model_, 24);
    Write(other_, 28);
    ASSERT_TRUE(db::OpenLog(log_, {.mode = db::OpenMode::kWrite}).ok());
  }

  static void Write(const std::string& path, int64_t wide, const std::string& images = "1",
                    const std::string& size = "640") {
    graph::OnnxModel model;
    model.Input("x", {images, "4", size, size}).Output("y");
    model.Weights("w", {wide, 4, 1, 1}).Weights("d", {wide, 1, 3, 3});
    model.Weights("p", {4, wide, 1, 1});
    model.Node("Conv", {"x", "w"}, {"a"});
    model.Node("Sigmoid", {"a"}, {"b"});
    onnx::NodeProto& depthwise = model.Node("Conv", {"b", "d"}, {"c"});
    graph::SetInts(depthwise, "pads", {1, 1, 1, 1});
    graph::SetInt(depthwise, "group", wide);
    model.Node("Conv", {"c", "p"}, {"e"});
    model.Node("GlobalAveragePool", {"e"}, {"y"});
    ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  }

  json Compiled(const std::string& model, const std::string& cascades = "auto",
                const std::string& device = kClass) const {
    return Parse(RunHone({"compile", model, "-o", folder_.Path("m.hone"), "--db", log_, "--json",
                          "--target", kTarget, "--cascades", cascades, "--device-class", device}));
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

TEST_F(CascadeVerdictTest, CompileJoinsThemAsItWasMeasuredOfThisModelAlone) {
  const json apart = Compiled(model_), before = apart["cascades"];
  EXPECT_EQ(before["run"], "off");
  EXPECT_EQ(before["judged"], false);
  EXPECT_EQ(before["possible"], 1);
  const json by_hand = Compiled(model_, "on");
  EXPECT_EQ(by_hand["cascades"]["run"], "on");
  EXPECT_LT(by_hand["arena_bytes"].get<int64_t>(), apart["arena_bytes"].get<int64_t>() / 2);

  auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(log.ok()) << log.status();
  db::Batch batch;
  batch.sessions.push_back({{7, 7}, "{}", 0, "{}", 1});
  batch.events.push_back(db::EventOf({.model = Model(),
                                      .target = kTarget,
                                      .device_class = kClass,
                                      .measurement_policy = kCpuVersions.measurement_policy,
                                      .subject = db::ModelVerdict::Subject::kCascades,
                                      .default_ns = 3e6,
                                      .tuned_ns = 2.4e6,
                                      .ratio = 1.25,
                                      .ratio_low = 1.23,
                                      .ratio_high = 1.27,
                                      .rounds = 9,
                                      .session = {7, 7}}));
  ASSERT_TRUE((*log)->Append(batch).ok());
  log->reset();

  const json joined = Compiled(model_)["cascades"];
  EXPECT_EQ(joined["run"], "on");
  EXPECT_EQ(joined["judged"], true);
  EXPECT_THAT(joined["why"].get<std::string>(),
              HasSubstr("in bands it is 1.25 × as fast [1.23, 1.27]"));
  EXPECT_EQ(Compiled(model_, "off")["cascades"], nullptr) << "by hand";
  EXPECT_EQ(Compiled(model_, "auto", "other")["cascades"]["run"], "off");
  EXPECT_EQ(Compiled(other_)["cascades"]["judged"], false) << "another model";
}

TEST_F(CascadeVerdictTest, TuneComparesBothWaysAndTheLogKeepsWhatItFound) {
  const ProgramRun run = RunHone({"tune", model_, "--db", log_, "--seconds", "30", "--trials", "4",
                                  "--threads", "2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json told = Parse(run);
  EXPECT_TRUE(std::ranges::any_of(told["tasks"],
                                  [](const json& task) {
                                    return task["count"] == 0 && task["other_count"] == 1 &&
                                           task["trials"] >= 1;
                                  }))
      << "the chain is searched beside its layers: " << run.out;
  const json cascades = told["model"]["cascades"];
  ASSERT_TRUE(cascades.is_object()) << run.out;
  const json compiled = Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db",
                                       log_, "--json", "--threads", "2"}))["cascades"];
  if (cascades.contains("skipped")) {  // beside other programs
    EXPECT_EQ(compiled["judged"], false);
    return;
  }
  EXPECT_EQ(compiled["judged"], true);
  EXPECT_EQ(compiled["run"], cascades["run"]);
  EXPECT_EQ(cascades["run"] == "on", cascades["ratio_low"].get<double>() > 1);
  EXPECT_THAT(RunHone({"report", "--db", log_}).out, HasSubstr("cascades: layer by layer "));
}

TEST_F(CascadeVerdictTest, TuneComparesThemForEitherWayToRunABatch) {
  // Tensors of one image fit the caches and have no chains; those of four do not.
  Write(model_, 24, "4", "256");
  ASSERT_EQ(Compiled(model_)["images"], 4);
  ASSERT_EQ(Compiled(model_)["cascades"], nullptr);
  const json told = Parse(RunHone({"tune", model_, "--db", log_, "--seconds", "30", "--trials", "4",
                                   "--threads", "2", "--json"}))["model"];
  ASSERT_TRUE(told["batch"].is_object()) << told;
  const json together =
      Parse(RunHone({"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_, "--json",
                     "--threads", "2", "--batch", "together"}))["cascades"];
  const bool skipped = told["cascades"].contains("skipped");  // beside other programs
  EXPECT_EQ(together["judged"], !skipped) << told;
  if (skipped || told["batch"].contains("skipped")) return;
  // What is told is of the way that was chosen.
  const json chosen = Parse(RunHone(
      {"compile", model_, "-o", folder_.Path("m.hone"), "--db", log_, "--json", "--threads", "2"}));
  EXPECT_EQ(chosen["cascades"].is_null(), told["cascades"].is_null()) << chosen << told;
}

}  // namespace
}  // namespace hone::client

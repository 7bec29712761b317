#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "client/model_inputs.h"
#include "client/npz.h"
#include "graph/onnx_export/zoo_layers.h"
#include "tests/mock_cuda/mock_machine.h"

// `hone tune --target cuda:native` on the mock driver: from a model to a package, by the programs.
namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::ProgramRun;
using testing::RunHone;

class CudaTuneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph::OnnxWriter writer("small", 1);
    std::string x = writer.Input("x", ir::DType::kF32, {4, 16});
    x = graph::Relu(writer, "relu", Linear(writer, "hidden", x, 16, 24));
    Linear(writer, "y", x, 24, 10);
    writer.Output("y", ir::DType::kF32, {4, 10});
    ASSERT_TRUE(writer.Save(model_).ok());
  }

  ProgramRun Hone(std::vector<std::string> words) const {
    return RunHone(std::move(words), machine_.Path("home"), machine_.variables());
  }
  ProgramRun Tune(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"tune", model_, "--target",      "cuda:native",
                                      "--db", log_,   "--lock-folder", machine_.Path("locks")};
    // A tenth of that at most is spent waiting for other programs.
    words.insert(words.end(), {"--seconds", "40"});
    words.insert(words.end(), more.begin(), more.end());
    return Hone(words);
  }
  static json Parsed(const ProgramRun& run) {
    const json object = json::parse(run.out, nullptr, false);
    EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
    return object;
  }

  const MockMachine machine_;
  const std::string model_ = machine_.Path("small.onnx"), log_ = machine_.Path("tune.db");
};

TEST_F(CudaTuneTest, FromModelToPackageByMeasurements) {
  const json tuned = Parsed(Tune({"--trials", "8", "--json"}));
  EXPECT_EQ(tuned["measure"], "measured");
  EXPECT_EQ(tuned["answered"], 8);
  for (const json& task : tuned["tasks"]) EXPECT_GT(task["best_us"], 0);
  const std::string package = machine_.Path("small.hone");
  const json compiled = Parsed(Hone({"compile", model_, "--target", "cuda:native", "--db", log_,
                                     "--require", "exact", "-o", package, "--json"}));
  for (const json& kernel : compiled["kernels"]) EXPECT_EQ(kernel["rung"], "exact");
  const json told = Parsed(Hone({"inspect", package, "--json"}));
  EXPECT_EQ(told["target"], "cuda:sm_90a");
  EXPECT_EQ(told["device_class"], "cuda-1:mock-GPU-sm90x1-mem1G-l2.32K");
  const std::string host = machine_.Path("host.npz"), inputs = machine_.Path("in.npz");
  const InputSpec x{.name = "x", .type = {ir::DType::kF32, {4, 16}}, .range = {-1, 1}};
  ASSERT_TRUE(WriteNpz(inputs, {{"x", DrawInput(x, 0, 1)}}).ok());
  const ProgramRun on_host =
      Hone({"run", model_, "--no-log", "--inputs", inputs, "--outputs", host});
  ASSERT_EQ(on_host.exit_code, 0) << on_host.err;
  const ProgramRun on_card = Hone({"run", package, "--inputs", inputs, "--expect", host});
  EXPECT_EQ(on_card.exit_code, 0) << on_card.err;
}

TEST_F(CudaTuneTest, AModelTooLargeForTheDeviceIsRefused) {
  const std::string package = machine_.Path("small.hone");
  ASSERT_EQ(
      Hone({"compile", model_, "--target", "cuda:sm_90a", "--no-log", "-o", package}).exit_code, 0);
  machine_.SetScript("memory 512\n");
  const ProgramRun run = Hone({"bench", package, "--seconds", "0.1"});
  EXPECT_EQ(run.exit_code, 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the model needs 1 MiB of the GPU's memory"));
}

TEST_F(CudaTuneTest, ADeviceThatStaysBadIsLeftAlone) {
  // It can be opened, and whatever runs there then is lost.
  machine_.SetScript("time real\nfault cuGraphInstantiateWithFlags 1 46\n");
  const ProgramRun bad = Tune({"--trials", "8"});
  EXPECT_EQ(bad.exit_code, 8) << bad.err;
  const std::string lock = machine_.Path("locks/hone-GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_TRUE(std::filesystem::exists(lock + ".lock"));
  EXPECT_THAT(bad.err, HasSubstr("is in quarantine: "));
  EXPECT_THAT(bad.err, HasSubstr("the CUDA driver says 46"));
  machine_.SetScript("time real\n");
  const ProgramRun again = Tune({"--trials", "8"});
  EXPECT_EQ(again.exit_code, 8) << again.err;
  EXPECT_THAT(again.err, HasSubstr("remove '" + lock + ".quarantine'"));
  std::filesystem::remove(lock + ".quarantine");
  EXPECT_EQ(Tune({"--trials", "4"}).exit_code, 0);
  // What is not the same any more is said.
  machine_.SetScript("time real\ndriver 560.1\npower 600000\n");
  const ProgramRun later = Tune({"--trials", "5"});
  EXPECT_EQ(later.exit_code, 0) << later.err;
  EXPECT_THAT(later.err, HasSubstr("with driver 'NVIDIA 550.54.15, CUDA 12.0'; its driver is "
                                   "'NVIDIA 560.1, CUDA 12.0' now"));
  EXPECT_THAT(later.err, HasSubstr("a power limit of 700 W; its limit is 600 W now"));
}

// Another driver: the winners are measured again, and what is found then answers.
TEST_F(CudaTuneTest, AnotherDriverIsRechecked) {
  ASSERT_EQ(Tune({"--trials", "6"}).exit_code, 0);
  const auto recheck = [&] {
    return Parsed(Hone({"db", "recheck", log_, "--lock-folder", machine_.Path("locks"), "--json"}));
  };
  EXPECT_TRUE(recheck()["rechecked"].empty());
  machine_.SetScript("time real\ndriver 560.1\n");
  const json changed = recheck();
  ASSERT_GE(changed["rechecked"].size(), 1U) << changed.dump(1);
  EXPECT_EQ(changed["unchanged"], 0);
  for (const json& each : changed["rechecked"]) {
    EXPECT_EQ(each["target"], "cuda:sm_90a");
    EXPECT_EQ(each["error"], "");
    EXPECT_GT(each["now_us"], 0);
  }
  EXPECT_TRUE(recheck()["rechecked"].empty()) << "what answers was measured by this driver";
  machine_.SetScript("time real\ndriver 565.1\n");
  const ProgramRun tuned = Tune({"--trials", "7"});
  EXPECT_THAT(tuned.err, HasSubstr("`hone db recheck` measures the best of those again"));
  // Another card of the same class knows nothing of this one's driver.
  machine_.SetScript("time real\ndriver 570.1\nuuid 9\n");
  EXPECT_TRUE(recheck()["rechecked"].empty());
}

}  // namespace
}  // namespace hone::client

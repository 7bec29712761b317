// A log of a version that computed attention in two kernels, asked by one that computes it in one.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "tests/client/logged_network.h"
#include "tests/client/small_tuning.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;

constexpr char kLine[] =
    "the log has records of attention in two kernels, which this version computes in one (1 of 2 "
    "kernels); `hone tune` finds schedules for it\n";

/// Attention and a product after it. Probabilities that are an output need two kernels.
void WriteModel(const std::string& path, bool tells_probabilities) {
  graph::OnnxModel model;
  model.Input("q", {"2", "32", "16"}).Input("k", {"2", "16", "48"}).Input("v", {"2", "48", "16"});
  model.Weights("w", {16, 8}).Output("y");
  model.Node("MatMul", {"q", "k"}, {"scores"});
  graph::SetInt(model.Node("Softmax", {"scores"}, {"p"}), "axis", -1);
  model.Node("MatMul", {"p", "v"}, {"a"});
  model.Node("MatMul", {"a", "w"}, {"y"});
  if (tells_probabilities) model.Output("p");
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
}

class StaleAttentionTest : public testing::LoggedNetwork {
 protected:
  void SetUp() override {
    LoggedNetwork::SetUp();
    WriteModel(one_, false);
    WriteModel(two_, true);
  }

  ProgramRun Run(const std::string& command, const std::string& model,
                 std::vector<std::string> more = {}, const std::string& device = "class-a") const {
    std::vector<std::string> words = {command,    model,   "--db",           log_,
                                      "--target", kTarget, "--device-class", device};
    if (command == "compile") more.insert(more.end(), {"-o", package_});
    words.insert(words.end(), more.begin(), more.end());
    ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run;
  }
  /// The line is on standard error of one, the number in the JSON of the other.
  void ExpectToldIs(bool told, const std::string& model,
                    const std::string& device = "class-a") const {
    const std::string err = Run("compile", model, {}, device).err;
    if (told) {
      EXPECT_THAT(err, HasSubstr(kLine));
    } else {
      EXPECT_THAT(err, Not(HasSubstr("attention")));
    }
    EXPECT_EQ(Parse(Run("query", model, {"--json"}, device))["stale_attention"], told ? 1 : 0);
  }

  const std::string one_ = folder_.Path("one.onnx"), two_ = folder_.Path("two.onnx");
  const std::string package_ = folder_.Path("m.hone");
};

TEST_F(StaleAttentionTest, IsToldUntilTheOneKernelHasARecord) {
  ASSERT_NO_FATAL_FAILURE(ExpectToldIs(false, one_));
  const std::string before = *ReadFile(package_);
  for (const size_t kernel : {0U, 1U}) {
    TakeKernel(two_, kernel);
    Append(trace_, 6000 + static_cast<double>(kernel));
    ExpectToldIs(true, one_);
  }
  EXPECT_EQ(*ReadFile(package_), before) << "nothing else changes";
  ExpectToldIs(false, two_);
  ExpectToldIs(false, model_);
  ExpectToldIs(false, one_, "class-b");
  EXPECT_THAT(Run("query", one_).err, HasSubstr(kLine));
  EXPECT_EQ(Parse(Run("compile", one_, {"--json"}))["stale_attention"], 1);
  TakeKernel(one_, 0);
  Append(trace_, 7000);
  ExpectToldIs(false, one_);
}

TEST_F(StaleAttentionTest, OneOfTheTwoIsEnoughAndAProductBesideItIsNot) {
  TakeKernel(two_, 2);
  Append(trace_, 6000);
  ExpectToldIs(false, one_);
  TakeKernel(two_, 1);
  Append(trace_, 7000);
  ExpectToldIs(true, one_);
}

}  // namespace
}  // namespace hone::client

// `hone prune --structure head`, and the update of what is left, as a program beside ONNX Runtime.

#include <filesystem>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/random.h"
#include "base/file.h"
#include "client/npz.h"
#include "tests/client/python.h"
#include "tests/client/run_hone.h"
#include "tests/quantise/small_network.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using graph::OnnxModel;
using graph::SetInt;
using graph::SetInts;
using nlohmann::json;
using testing::AddWeights;
using testing::Drawn;
using ::testing::HasSubstr;
using testing::ProgramRun;
using testing::RunHone;
using testing::SaveTensors;
using testing::TemporaryFolder;

/// SQNR of the written file against the source by ONNX Runtime, run by run, and the shapes of its
/// weights.
constexpr char kCompare[] = R"(
import sys, numpy as np, onnx, onnxruntime as ort
source, written, data, rows = *sys.argv[1:4], int(sys.argv[4])
onnx.checker.check_model(written, full_check=True)
def run(path):
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.load(data)["x"]
    parts = np.split(x, len(x) // rows)
    return np.concatenate([session.run(None, {"x": part})[0] for part in parts])
e, q = run(source), run(written)
print(10 * np.log10((e ** 2).sum() / max(((q - e) ** 2).sum(), 1e-30)))
print(*sorted(tuple(t.dims) for t in onnx.load(written).graph.initializer if len(t.dims) == 2))
)";

class PruneHeadsCommandTest : public ::testing::Test {
 protected:
  /// x[1,6,16] → one product to queries, keys and values of 4 heads of 8 → "project", to y[1,6,16].
  void WriteAttention() {
    OnnxModel model(17);
    model.Input("x", {"1", "6", "16"});
    AddWeights(model, "qkv.w", {16, 96}, 1);
    // Values of the second head are made of the last channel alone, which the data leave zero.
    onnx::TensorProto& weights = *model.graph().mutable_initializer(0);
    for (int row = 0; row < 16; ++row)
      for (int column = 72; column < 80; ++column)
        weights.set_float_data(row * 96 + column, row == 15 ? 3.0F : 0.0F);
    AddWeights(model, "project.w", {32, 16}, 2);
    AddWeights(model, "project.b", {16}, 3);
    model.Node("MatMul", {"x", "qkv.w"}, {"qkv"}).set_name("qkv");
    SetInt(model.Node("Split", {"qkv"}, {"q", "k", "v"}), "axis", 2);
    model.Ints("apart", {1, 6, 4, 8}).Ints("joined", {1, 6, 32});
    for (const std::string name : {"q", "k", "v"}) {
      model.Node("Reshape", {name, "apart"}, {name + ".s"});
      SetInts(model.Node("Transpose", {name + ".s"}, {name + ".h"}), "perm",
              name == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
    }
    model.Node("MatMul", {"q.h", "k.h"}, {"scores"});
    model.Node("Softmax", {"scores"}, {"shares"});
    model.Node("MatMul", {"shares", "v.h"}, {"mixed"});
    SetInts(model.Node("Transpose", {"mixed"}, {"mixed.t"}), "perm", {0, 2, 1, 3});
    model.Node("Reshape", {"mixed.t", "joined"}, {"all"});
    model.Node("MatMul", {"all", "project.w"}, {"y.m"}).set_name("project");
    model.Node("Add", {"y.m", "project.b"}, {"y"});
    model.Output("y");
    Declare(model, {1, 6, 16});
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
    std::vector<double> values = Drawn(8 * 6 * 16, 7, 1);
    for (size_t i = 15; i < values.size(); i += 16) values[i] = 0;
    SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {8, 6, 16}, values)}});
  }

  /// x[64,24] → 40 → y[64,10]; each row of the data is mixed of 4 numbers.
  void WriteCorrelated() {
    OnnxModel model(17);
    model.Input("x", {"64", "24"});
    AddWeights(model, "w1", {24, 40}, 1);
    AddWeights(model, "w2", {40, 10}, 2);
    model.Node("MatMul", {"x", "w1"}, {"m"}).set_name("first");
    model.Node("Relu", {"m"}, {"r"});
    model.Node("MatMul", {"r", "w2"}, {"y"}).set_name("second");
    model.Output("y");
    Declare(model, {64, 10});
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
    const std::vector<double> mix = Drawn(4 * 24, 3, 1);
    Random random(4);
    std::vector<double> values;
    for (int row = 0; row < 512; ++row) {
      double few[4];
      for (double& each : few) each = 2 * random.Uniform() - 1;
      for (size_t c = 0; c < 24; ++c) {
        double sum = 0.05 * (2 * random.Uniform() - 1);
        for (size_t k = 0; k < 4; ++k) sum += few[k] * mix[k * 24 + c];
        values.push_back(sum);
      }
    }
    SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {512, 24}, values)}});
  }

  static void Declare(OnnxModel& model, const std::vector<int64_t>& shape) {
    auto& dims =
        *model.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const int64_t extent : shape) dims.add_dim()->set_dim_value(extent);
  }

  ProgramRun Prune(std::vector<std::string> more) const {
    std::vector<std::string> words = {"prune", model_, "-o", output_, "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  }
  json Pruned(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const ProgramRun run = Prune(more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const json object = json::parse(run.out, nullptr, false);
    return object.is_discarded() ? json() : object;
  }
  std::vector<int64_t> Gone(const json& report) const {
    std::vector<int64_t> gone;
    for (const json& head : report["heads"])
      if (head["gone"]) gone.push_back(head["head"]);
    return gone;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string output_ = folder_.Path("p.onnx");
  const std::string data_ = folder_.Path("x.npz");
};

TEST_F(PruneHeadsCommandTest, TakesTheHeadThatCarriesNothingOutOfTheFile) {
  WriteAttention();
  const std::vector<std::string> how = {"--structure", "head", "--sparsity", "0.25"};
  // By size the second head is the greatest of all.
  EXPECT_NE(Gone(Pruned(how)), std::vector<int64_t>{1});
  std::vector<std::string> with_data = how;
  with_data.insert(with_data.end(), {"--calibrate", data_});
  const json report = Pruned(with_data);
  EXPECT_EQ(Gone(report), std::vector<int64_t>{1});
  ASSERT_EQ(report["heads"].size(), 4U);
  EXPECT_EQ(report["heads"][1]["layer"], "project");
  EXPECT_EQ(report["heads"][1]["saliency"], 0.0);
  EXPECT_GT(report["written"]["sqnr_db"], 100.0);
  EXPECT_EQ(report["layers"][0]["why"], "it reads no attention's output");
  EXPECT_NEAR(report["layers"][0]["sparsity"], 0.25, 1e-9);
  EXPECT_NEAR(report["layers"][1]["sparsity"], 0.25, 1e-9);
  const ProgramRun text = Prune(with_data);
  EXPECT_THAT(text.out, HasSubstr("HEAD OF"));
  EXPECT_THAT(text.out, HasSubstr("gone"));
  HONE_SKIP_WITHOUT_PYTHON();
  const ProgramRun python = testing::RunPython(kCompare, {model_, output_, data_, "1"});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  double theirs = 0;
  std::string shapes;
  std::istringstream lines(python.out);
  ASSERT_TRUE(lines >> theirs && std::getline(lines >> std::ws, shapes)) << python.out;
  EXPECT_GT(theirs, 100);
  EXPECT_EQ(shapes, "(16, 72) (24, 16)");
}

TEST_F(PruneHeadsCommandTest, RefusesWhatHasNoHeadsAndWhatLeavesNone) {
  WriteAttention();
  const ProgramRun none = Prune({"--structure", "head", "--sparsity", "0.9"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("--sparsity 0.9 leaves none of the 4 heads that MatMul project"));
  testing::WriteSmallNetwork(model_);
  const ProgramRun other = Prune({"--structure", "head", "--sparsity", "0.5"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err,
              HasSubstr("no head can be pruned: no MatMul, Gemm or Conv with known weights"));
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(PruneHeadsCommandTest, WhatIsLeftMakesUpForWhatWentWhereDataSayHow) {
  WriteCorrelated();
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--sparsity", "0.6"},
                                              {"--structure", "2:4"},
                                              {"--structure", "channel", "--sparsity", "0.5"}}) {
    std::vector<std::string> words = how;
    words.insert(words.end(), {"--calibrate", data_});
    const json report = Pruned(words);
    ASSERT_TRUE(report.contains("update")) << report;
    const double before = report["update"]["before_db"], after = report["update"]["after_db"];
    EXPECT_GT(after, before + 3) << report;
    EXPECT_NEAR(report["written"]["sqnr_db"], after, 0.5);
    EXPECT_EQ(report["layers"][1]["updated"], true) << report;
    EXPECT_NEAR(report["layers"][1]["sparsity"], report["asked"], 0.03);
    HONE_SKIP_WITHOUT_PYTHON();
    const ProgramRun python = testing::RunPython(kCompare, {model_, output_, data_, "64"});
    ASSERT_EQ(python.exit_code, 0) << python.err;
    double theirs = 0;
    ASSERT_TRUE(std::istringstream(python.out) >> theirs) << python.out;
    EXPECT_NEAR(theirs, report["written"]["sqnr_db"], 0.1);
  }
  // Without data there is nothing to go by.
  const json blind = Pruned({"--sparsity", "0.6"});
  EXPECT_FALSE(blind.contains("update"));
  EXPECT_EQ(blind["layers"][1]["updated"], false);
}

TEST_F(PruneHeadsCommandTest, SaysWhichLayersWereNotUpdated) {
  WriteCorrelated();
  SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {64, 24}, Drawn(1536, 1, 1))}});
  const json report = Pruned({"--sparsity", "0.5", "--calibrate", data_});
  EXPECT_EQ(report["layers"][1]["why_not_updated"],
            "each channel was seen 64 times, fewer than 2 for each of its 40 terms");
}

TEST_F(PruneHeadsCommandTest, HalfOfTheHeadsOfBertLeaveAFileThatIsAsPredicted) {
  const std::string bert = hone::testing::ModelsDir() + "/bert_small.onnx";
  if (!std::filesystem::exists(bert))
    GTEST_SKIP() << bert << " is not there (scripts/models.sh makes it)";
  const ProgramRun run = RunHone({"prune", bert, "-o", output_, "--threads", "1", "--structure",
                                  "head", "--sparsity", "0.5", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = json::parse(run.out);
  EXPECT_EQ(report["heads"].size(), 16U);
  EXPECT_EQ(Gone(report).size(), 8U);
  // The probe has zeros where the file has nothing.
  EXPECT_NEAR(report["predicted"]["sqnr_db"], report["written"]["sqnr_db"], 0.05);
  EXPECT_LT(report["output_bytes"], 0.96 * static_cast<double>(report["model_bytes"]));
}

}  // namespace
}  // namespace hone::client

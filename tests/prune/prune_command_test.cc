// `hone prune` as a program, on a small network whose files ONNX Runtime reads too.

#include <filesystem>
#include <iterator>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "client/npz.h"
#include "tests/client/python.h"
#include "tests/client/run_hone.h"
#include "tests/quantise/small_network.h"

namespace hone::client {
namespace {

using nlohmann::json;
using testing::Drawn;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::SaveTensors;
using testing::TemporaryFolder;

json Parse(const ProgramRun& run) {
  const json object = json::parse(run.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
  return object;
}

// What the file says by ONNX Runtime without its optimisations: SQNR against the source, SQNR
// against Hone's own run of it, and the share of zeros of each weight by the onnx package.
constexpr char kCompare[] = R"(
import sys, numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper
source, written, data, mine = sys.argv[1:5]
onnx.checker.check_model(written, full_check=True)
def run(path, x):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
def db(signal, noise): return 10 * np.log10((signal ** 2).sum() / max((noise ** 2).sum(), 1e-30))
x = np.load(data)["x"]
parts = np.split(x, len(x) // 2)
e, q = (np.concatenate([run(path, part) for part in parts]) for path in (source, written))
print(db(e, q - e))
print(db(q[:2], q[:2] - np.load(mine)["y"]))
tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(written).graph.initializer}
for name in ("w1", "w2", "w3"): print((tensors[name] == 0).mean(), *tensors[name].shape)
)";

class PruneCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::WriteSmallNetwork(model_);
    SaveTensors(data_,
                {{"x", *graph::MakeConstant(ir::DType::kF32, {8, 8, 6, 6}, Drawn(2304, 7, 1))}});
  }

  ProgramRun Prune(std::vector<std::string> more) const {
    std::vector<std::string> words = {"prune", model_, "-o", output_, "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  }
  void ExpectRefused(const std::vector<std::string>& more, const std::string& message,
                     int exit_code = 3) const {
    const ProgramRun run = Prune(more);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(output_)) << "a refused call must write nothing";
  }

  /// Runs the written file on the first run of the data, into y.npz, and gives it to kCompare.
  ProgramRun Compare() const {
    const auto read = ReadNpz(data_);
    EXPECT_TRUE(read.ok());
    graph::TensorData data = (*read)[0].second;
    data.type.shape[0] = 2;
    data.bytes = data.bytes.first(static_cast<size_t>(data.type.Bytes()));
    SaveTensors(folder_.Path("one.npz"), {{"x", data}});
    EXPECT_EQ(RunHone({"run", output_, "--inputs", folder_.Path("one.npz"), "--outputs",
                       folder_.Path("y.npz"), "--threads", "1"})
                  .exit_code,
              0);
    return testing::RunPython(kCompare, {model_, output_, data_, folder_.Path("y.npz")});
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string output_ = folder_.Path("p.onnx");
  const std::string data_ = folder_.Path("x.npz");
};

class PruneStructureCommandTest : public PruneCommandTest,
                                  public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(PruneStructureCommandTest, OnnxRuntimeReadsTheFileAndAgrees) {
  std::vector<std::string> words = {"--json"};
  words.insert(words.end(), GetParam().begin(), GetParam().end());
  for (std::string& word : words)
    if (word == "DATA") word = data_;
  const ProgramRun run = Prune(words);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = Parse(run);
  const double said = report["written"]["sqnr_db"];
  EXPECT_NEAR(report["predicted"]["sqnr_db"], said, 0.1);
  ASSERT_EQ(report["layers"].size(), 3U);
  HONE_SKIP_WITHOUT_PYTHON();
  double theirs = 0, apart = 0;
  const ProgramRun python = Compare();
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  ASSERT_TRUE(lines >> theirs >> apart) << python.out;
  if (!report["drawn"]) {
    EXPECT_NEAR(theirs, said, 0.1);
  }
  EXPECT_GT(apart, 100) << "the same file by both";
  for (const json& layer : report["layers"]) {
    std::string line;
    double zeros = 0;
    ASSERT_TRUE(std::getline(lines >> std::ws, line) && std::istringstream(line) >> zeros);
    EXPECT_NEAR(layer["sparsity"], zeros, 1e-9) << layer;
    EXPECT_NEAR(zeros, report["asked"], 0.03) << layer;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PruneStructureCommandTest,
    ::testing::Values(std::vector<std::string>{"--sparsity", "0.6"},
                      std::vector<std::string>{"--sparsity", "0.6", "--calibrate", "DATA"},
                      std::vector<std::string>{"--structure", "2:4", "--calibrate", "DATA"},
                      std::vector<std::string>{"--structure", "block:4x2", "--sparsity", "0.5"}));

TEST_F(PruneCommandTest, ChannelsAreTakenOutOfTheFile) {
  const ProgramRun run =
      Prune({"--structure", "channel", "--sparsity", "0.5", "--calibrate", data_, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = Parse(run);
  // The probe has zeros where the file has nothing.
  EXPECT_NEAR(report["predicted"]["sqnr_db"], report["written"]["sqnr_db"], 0.1);
  const json& layers = report["layers"];
  EXPECT_EQ(layers[0]["why"], "its input channels are not computed and read by layers only");
  EXPECT_NEAR(layers[0]["sparsity"], 0.5, 1e-9) << "its columns are gone";
  EXPECT_NEAR(layers[1]["sparsity"], 0.75, 1e-9);
  EXPECT_NEAR(layers[2]["sparsity"], 0.5, 1e-9);
  std::filesystem::remove(output_);
  ExpectRefused({"--structure", "channel", "--sparsity", "0.99"},
                "--sparsity 0.99 leaves none of the 16 channels that MatMul second reads");
  ASSERT_EQ(Prune({"--structure", "channel", "--sparsity", "0.5", "--calibrate", data_}).exit_code,
            0);
  HONE_SKIP_WITHOUT_PYTHON();
  double theirs = 0, apart = 0;
  const ProgramRun python = Compare();
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::istringstream lines(python.out);
  ASSERT_TRUE(lines >> theirs >> apart) << python.out;
  EXPECT_NEAR(theirs, report["written"]["sqnr_db"], 0.1);
  EXPECT_GT(apart, 100);
  std::string rest((std::istreambuf_iterator<char>(lines)), std::istreambuf_iterator<char>());
  EXPECT_EQ(rest, "\n0.0 8 8 3 3\n0.0 8 16\n0.0 10 16\n");
}

TEST_F(PruneCommandTest, DataMakeTheModelMoreExact) {
  // One input channel in eight carries nearly everything.
  std::vector<double> values = Drawn(2304, 7, 1);
  for (size_t i = 0; i < values.size(); ++i)
    if (i / 36 % 8 != 3) values[i] *= 0.01;
  SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {8, 8, 6, 6}, values)}});
  const auto outputs = [&](const std::string& model) {
    const std::string y = folder_.Path("y.npz"), one = folder_.Path("one.npz");
    values.resize(576);
    SaveTensors(one, {{"x", *graph::MakeConstant(ir::DType::kF32, {2, 8, 6, 6}, values)}});
    EXPECT_EQ(RunHone({"run", model, "--inputs", one, "--outputs", y, "--threads", "1"}).exit_code,
              0);
    const auto read = ReadNpz(y);
    return read.ok() ? (*read)[0].second.AsDoubles() : std::vector<double>();
  };
  const std::vector<double> right = outputs(model_);
  const auto noise = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--sparsity", "0.7", "--keep", "second", "--keep", "third"});
    EXPECT_EQ(Prune(more).exit_code, 0);
    const std::vector<double> got = outputs(output_);
    double sum = 0;
    for (size_t i = 0; i < right.size(); ++i) sum += (got[i] - right[i]) * (got[i] - right[i]);
    return sum;
  };
  EXPECT_LT(noise({"--calibrate", data_}), 0.2 * noise({}));
}

TEST_F(PruneCommandTest, BiasesLearnNoAnswersByHeart) {
  // Four runs of two rows: what the last two layers read has 8 numbers a channel.
  const json report =
      Parse(Prune({"--sparsity", "0.7", "--calibrate", data_, "--keep", "first", "--json"}));
  EXPECT_EQ(report["bias_corrected"], false);
  EXPECT_LT(report["written"]["sqnr_db"], 30.0);
}

TEST_F(PruneCommandTest, KeepsWhatItIsToldAndMeetsATarget) {
  const ProgramRun run =
      Prune({"--sparsity", "0.5", "--calibrate", data_, "--keep", "first", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json kept = Parse(run);
  EXPECT_EQ(kept["layers"][0]["why"], "asked for by --keep");
  EXPECT_EQ(kept["layers"][0]["sparsity"], 0.0);
  EXPECT_NEAR(kept["layers"][1]["sparsity"], 0.5, 1e-9);
  const std::string page = folder_.Path("front.html");
  const double target = static_cast<double>(kept["predicted"]["sqnr_db"]) + 1;
  const ProgramRun met =
      Prune({"--sparsity", "0.5", "--calibrate", data_, "--target-sqnr", std::to_string(target),
             "--report", page, "--seconds", "0.02", "--json"});
  ASSERT_EQ(met.exit_code, 0) << met.err;
  const json report = Parse(met);
  EXPECT_GE(report["predicted"]["sqnr_db"], target);
  EXPECT_GE(report["front"].size(), 3U) << "none kept, some, all";
  const auto html = ReadFile(page);
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, HasSubstr("<svg"));
  EXPECT_THAT(*html, HasSubstr("zero or gone"));
  EXPECT_THAT(*html, HasSubstr("dense (written)"));
  std::filesystem::remove(output_);
  ExpectRefused({"--sparsity", "0.5", "--calibrate", data_, "--target-sqnr", "149"},
                "no layer can be pruned within --target-sqnr");
}

TEST_F(PruneCommandTest, WithoutZerosTheModelStays) {
  const ProgramRun run = Prune({"--sparsity", "0", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Parse(run)["sparsity"], 0.0);
  EXPECT_GT(Parse(run)["written"]["sqnr_db"], 120.0);
}

TEST_F(PruneCommandTest, RefusesWhatDoesNotFitAndSaysWhy) {
  ExpectRefused({}, "--sparsity S is needed", 2);
  for (const char* wrong : {"1", "1.5", "-0.1"})
    ExpectRefused({std::string("--sparsity=") + wrong}, "is not from 0 to below 1", 2);
  ExpectRefused({"--sparsity", "0.5", "--structure", "rows"}, "--structure rows: choose none", 2);
  ExpectRefused({"--sparsity", "0.4", "--structure", "2:4"}, "makes 0.5 of the weights zero", 2);
  ExpectRefused({"--sparsity", "0.5", "--structure", "block:5x2"},
                "Conv first has sums of 72 terms in 16 columns");
  ExpectRefused({"--structure", "2:5"}, "Conv first has sums over 8 input channels");
  ExpectRefused({"--sparsity", "0.99"}, "--sparsity 0.99 leaves no weight of MatMul second");
  ExpectRefused({"--sparsity", "0.5", "--keep", "fourth"},
                "has no layer of that name; it has first");
  ExpectRefused({"--sparsity", "0.5", "--max-drop", "1"},
                "--max-drop needs the right answers: --labels", 2);
  ExpectRefused({"--sparsity", "0.5", "--keep", "first", "--keep", "second", "--keep", "third"},
                "no layer can be pruned");
  const std::string bad = folder_.Path("bad.npz");
  SaveTensors(bad,
              {{"input", *graph::MakeConstant(ir::DType::kF32, {2, 8, 6, 6}, Drawn(576, 1, 1))}});
  ExpectRefused({"--sparsity", "0.5", "--calibrate", bad},
                "has an array \"input\", which is no input of the model");
  SaveTensors(bad, {{"x", *graph::MakeConstant(ir::DType::kF32, {3, 8, 6, 6}, Drawn(864, 1, 1))}});
  ExpectRefused({"--sparsity", "0.5", "--calibrate", bad},
                "array x is f32[3,8,6,6], the model wants f32[2,8,6,6]");
}

TEST_F(PruneCommandTest, InterruptedItLeavesNoHalfFile) {
  constexpr int64_t kRows = 32'000;
  SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {kRows, 8, 6, 6},
                                                 Drawn(kRows * 8 * 6 * 6, 7, 1))}});
  // As soon as it says that it calibrates. A shell's background ignores SIGINT.
  const ProgramRun run = testing::RunProcess(
      {"/bin/bash", "-c",
       "\"$0\" prune \"$@\" 2>\"$SAID\" & until grep -qs running \"$SAID\"; do sleep 0.005; "
       "done; kill -TERM $!; wait $!; code=$?; cat \"$SAID\" >&2; rm \"$SAID\"; exit $code",
       testing::HoneProgram(), model_, "--sparsity", "0.5", "--calibrate", data_, "-o", output_,
       "--threads", "1"},
      "/dev/null", {"SAID=" + folder_.Path("said")});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_THAT(run.err, HasSubstr("hone prune: interrupted; nothing was kept"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("p.onnx")));
}

}  // namespace
}  // namespace hone::client

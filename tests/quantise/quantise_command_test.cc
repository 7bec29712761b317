// `hone quantize` as a program, on a small network whose files ONNX Runtime reads too.

#include <cmath>
#include <filesystem>
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
using testing::WriteSmallNetwork;

json Parse(const ProgramRun& run) {
  const json object = json::parse(run.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
  return object;
}

class QuantiseCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteSmallNetwork(model_);
    SaveTensors(data_,
                {{"x", *graph::MakeConstant(ir::DType::kF32, {8, 8, 6, 6}, Drawn(2304, 7, 1))}});
  }

  ProgramRun Quantise(std::vector<std::string> more) const {
    std::vector<std::string> words = {"quantize", model_, "-o", output_, "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return RunHone(words);
  }
  void ExpectRefused(const std::vector<std::string>& more, const std::string& message,
                     int exit_code = 3) const {
    const ProgramRun run = Quantise(more);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(output_)) << "a refused call must write nothing";
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string output_ = folder_.Path("q.onnx");
  const std::string data_ = folder_.Path("x.npz");
};

// ONNX Runtime without its optimisations computes what the file says, but for MatMulInteger on a
// processor without VNNI: there sums of u8 * s8 saturate at 16 bits unless an optimisation makes
// the weights u8. It must be as near to f32 as the command says of the file, and the same as Hone's
// within some steps of the narrow numbers.
constexpr char kCompare[] = R"(
import sys, numpy as np, onnx, onnxruntime as ort
source, written, data, mine = sys.argv[1:5]
onnx.checker.check_model(written, full_check=True)
def run(path, x):
    o = ort.SessionOptions()
    o.add_session_config_entry("session.x64quantprecision", "1")
    if all(node.op_type != "MatMulInteger" for node in onnx.load(path).graph.node):
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
x = np.load(data)["x"]
noise = signal = 0
for part in np.split(x, len(x) // 2):
    e, q = run(source, part), run(written, part)
    noise += ((q - e) ** 2).sum(); signal += (e ** 2).sum()
print(10 * np.log10(signal / noise))
q, h = run(written, x[:2]), np.load(mine)["y"]
print(10 * np.log10((q ** 2).sum() / max(((q - h) ** 2).sum(), 1e-30)))
)";

class QuantiseSchemeTest : public QuantiseCommandTest,
                           public ::testing::WithParamInterface<std::pair<const char*, double>> {};

TEST_P(QuantiseSchemeTest, OnnxRuntimeReadsTheFileAndAgrees) {
  const auto [scheme, least_db] = GetParam();
  const ProgramRun run = Quantise({"--scheme", scheme, "--calibrate", data_, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = Parse(run);
  const double said = report["written"]["sqnr_db"];
  EXPECT_GT(said, least_db);
  EXPECT_NEAR(report["predicted"]["sqnr_db"], said, 1.5);
  EXPECT_EQ(report["layers"].size(), 3U);
  HONE_SKIP_WITHOUT_PYTHON();
  const auto all = ReadNpz(data_);
  ASSERT_TRUE(all.ok());
  graph::TensorData first = (*all)[0].second;
  first.type.shape[0] = 2;
  first.bytes = first.bytes.first(static_cast<size_t>(first.type.Bytes()));
  SaveTensors(folder_.Path("one.npz"), {{"x", first}});
  ASSERT_EQ(RunHone({"run", output_, "--inputs", folder_.Path("one.npz"), "--outputs",
                     folder_.Path("y.npz"), "--threads", "1"})
                .exit_code,
            0);
  const ProgramRun python =
      testing::RunPython(kCompare, {model_, output_, data_, folder_.Path("y.npz")});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  double theirs = 0, apart = 0;
  ASSERT_TRUE(std::istringstream(python.out) >> theirs >> apart) << python.out;
  EXPECT_NEAR(theirs, said, 1.5);
  EXPECT_GT(apart, said + 3) << "the same file by both must differ by less than from f32";
}

INSTANTIATE_TEST_SUITE_P(All, QuantiseSchemeTest,
                         ::testing::Values(std::pair("int8", 25.0), std::pair("int8-dynamic", 25.0),
                                           std::pair("int8-weights", 30.0),
                                           std::pair("int4-weights", 12.0), std::pair("bf16", 40.0),
                                           std::pair("f16", 55.0)));

TEST_F(QuantiseCommandTest, EveryMethodGivesAWorkingModel) {
  for (const char* method : {"minmax", "percentile", "mse", "entropy"}) {
    const ProgramRun run = Quantise({"--method", method, "--calibrate", data_, "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(Parse(run)["written"]["sqnr_db"], 15.0) << method;
  }
}

TEST_F(QuantiseCommandTest, KeepsWhatItIsTold) {
  const ProgramRun run =
      Quantise({"--calibrate", data_, "--keep", "first", "--keep", "third", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json layers = Parse(run)["layers"];
  EXPECT_EQ(layers[0]["why"], "asked for by --keep");
  EXPECT_EQ(layers[1]["kept"], false);
  EXPECT_EQ(layers[2]["kept"], true);
  EXPECT_NEAR(layers[1]["share"], 1, 1e-9) << "all noise is of the only layer";
}

TEST_F(QuantiseCommandTest, MeetsATargetWithFewLayersInF32AndDrawsTheFront) {
  const double all = Parse(Quantise({"--calibrate", data_, "--json"}))["predicted"]["sqnr_db"];
  const std::string page = folder_.Path("front.html");
  const ProgramRun run = Quantise({"--calibrate", data_, "--target-sqnr", std::to_string(all + 1),
                                   "--report", page, "--seconds", "0.05", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = Parse(run);
  EXPECT_GE(report["predicted"]["sqnr_db"], all + 1);
  int kept = 0, chosen = 0;
  for (const json& layer : report["layers"]) kept += layer["kept"] ? 1 : 0;
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 3);
  for (const json& point : report["front"]) {
    chosen += point["chosen"] ? 1 : 0;
    EXPECT_GT(point["time"]["median_ms"], 0.0);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_GE(report["front"].size(), 3U) << "none kept, some, all";
  const auto html = ReadFile(page);
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, HasSubstr("<svg"));
  EXPECT_THAT(*html, HasSubstr("second"));
  EXPECT_THAT(*html, HasSubstr("name=\"viewport\"")) << "readable on a telephone";
  EXPECT_THAT(*html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(*html, HasSubstr(std::to_string(kept) + " in f32 (written)"));
  std::filesystem::remove(output_);
  ExpectRefused({"--calibrate", data_, "--target-sqnr", "149"},
                "no layer can be narrowed within --target-sqnr", 3);
}

TEST_F(QuantiseCommandTest, CountsRightAnswers) {
  ASSERT_EQ(
      RunHone({"quantize", model_, "--scheme", "f16", "--threads", "1", "-o", output_}).exit_code,
      0);
  std::filesystem::remove(output_);
  const std::string labels = folder_.Path("l.npz");
  SaveTensors(labels, {{"labels", *graph::MakeInt64s({8}, {0, 1, 2, 3, 4, 5, 6, 7})}});
  const ProgramRun run = Quantise({"--calibrate", data_, "--labels", labels, "--max-drop", "100",
                                   "--seconds", "0.02", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = Parse(run);
  const double right = report["top1_in_f32"];
  EXPECT_NEAR(right * 8, std::round(right * 8), 1e-9);
  EXPECT_TRUE(report["written"]["top1"].is_number());
  std::filesystem::remove(output_);
  SaveTensors(labels, {{"labels", *graph::MakeInt64s({3}, {0, 1, 2})}});
  ExpectRefused({"--calibrate", data_, "--labels", labels}, "3 labels for 8 rows");
  SaveTensors(labels, {{"labels", *graph::MakeInt64s({8}, {0, 1, 2, 3, 4, 5, 6, 10})}});
  ExpectRefused({"--calibrate", data_, "--labels", labels}, "label 7 is 10");
  SaveTensors(labels, {{"right", *graph::MakeInt64s({8}, {0, 1, 2, 3, 4, 5, 6, 7})}});
  ExpectRefused({"--calibrate", data_, "--labels", labels}, "has no array \"labels\"");
}

TEST_F(QuantiseCommandTest, RefusesBadDataAndSaysWhich) {
  const std::string bad = folder_.Path("bad.npz");
  const auto f32 = [](std::vector<int64_t> shape) {
    const int64_t count = graph::TensorType{ir::DType::kF32, shape}.NumElements();
    return *graph::MakeConstant(ir::DType::kF32, std::move(shape),
                                std::vector<double>(static_cast<size_t>(count), 0.5));
  };
  SaveTensors(bad, {{"input", f32({2, 8, 6, 6})}});
  ExpectRefused({"--calibrate", bad}, "has an array \"input\", which is no input of the model");
  SaveTensors(bad, {{"labels", f32({2})}});
  ExpectRefused({"--calibrate", bad}, "has no array for the input x: f32[2,8,6,6]");
  SaveTensors(bad, {{"x", f32({3, 8, 6, 6})}});
  ExpectRefused({"--calibrate", bad}, "array x is f32[3,8,6,6], the model wants f32[2,8,6,6]");
  SaveTensors(bad, {{"x", f32({0, 8, 6, 6})}});
  ExpectRefused({"--calibrate", bad}, "it has no elements");
  SaveTensors(bad, {{"x", *graph::MakeConstant(ir::DType::kF64, {2, 8, 6, 6}, Drawn(576, 1, 1))}});
  ExpectRefused({"--calibrate", bad}, "is f64[2,8,6,6], the model wants f32[2,8,6,6]");
  std::vector<double> values = Drawn(576, 1, 1);
  values[5] = std::nan("");
  SaveTensors(bad, {{"x", *graph::MakeConstant(ir::DType::kF32, {2, 8, 6, 6}, values)}});
  ExpectRefused({"--calibrate", bad}, "array x: element 5 is nan");
  std::filesystem::create_directory(folder_.Path("empty"));
  ExpectRefused({"--calibrate", folder_.Path("empty")}, "has no .npz file in it");
  ExpectRefused({"--calibrate", folder_.Path("absent.npz")}, "absent.npz");
}

TEST_F(QuantiseCommandTest, RefusesOptionsThatDoNotFit) {
  ExpectRefused({}, "--scheme int8 needs typical inputs", 2);
  ExpectRefused({"--calibrate", data_, "--keep", "fourth"},
                "has no layer of that name; it has first");
  ExpectRefused({"--scheme", "int8-weights", "--method", "mse"}, "--method has no meaning", 2);
  ExpectRefused({"--scheme", "int8-weights", "--group", "32"}, "--group has no meaning", 2);
  ExpectRefused({"--scheme", "int4-weights", "--group", "48"}, "is no power of two", 2);
  ExpectRefused({"--scheme", "int4-weights", "--group", "32"},
                "MatMul second has sums of 16 terms, which it does not divide");
  ExpectRefused({"--calibrate", data_, "--max-drop", "1"},
                "--max-drop needs the right answers: --labels", 2);
  ExpectRefused({"--calibrate", data_, "--keep", "first", "--keep", "second", "--keep", "third"},
                "no layer can be narrowed");
}

TEST_F(QuantiseCommandTest, RefusesModelsThatHaveNothingToNarrow) {
  ASSERT_EQ(Quantise({"--calibrate", data_}).exit_code, 0);
  const std::string twice = folder_.Path("twice.onnx");
  const ProgramRun again =
      RunHone({"quantize", output_, "--calibrate", data_, "-o", twice, "--threads", "1"});
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.err, HasSubstr("the model is quantised already"));
  EXPECT_FALSE(std::filesystem::exists(twice));
}

TEST_F(QuantiseCommandTest, WritesOverNothingThatItReads) {
  const ProgramRun run = RunHone({"quantize", model_, "--calibrate", data_, "-o", data_});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("this command reads"));
}

TEST_F(QuantiseCommandTest, InterruptedItLeavesNoHalfFile) {
  constexpr int64_t kRows = 32'000;
  SaveTensors(data_, {{"x", *graph::MakeConstant(ir::DType::kF32, {kRows, 8, 6, 6},
                                                 Drawn(kRows * 8 * 6 * 6, 7, 1))}});
  // As soon as it says that it calibrates. A shell's background ignores SIGINT.
  const ProgramRun run = testing::RunProcess(
      {"/bin/bash", "-c",
       "\"$0\" quantize \"$@\" 2>\"$SAID\" & until grep -qs running \"$SAID\"; do sleep 0.005; "
       "done; kill -TERM $!; wait $!; code=$?; cat \"$SAID\" >&2; rm \"$SAID\"; exit $code",
       testing::HoneProgram(), model_, "--calibrate", data_, "-o", output_, "--threads", "1"},
      "/dev/null", {"SAID=" + folder_.Path("said")});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_THAT(run.err, HasSubstr("hone quantize: interrupted; nothing was kept"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("q.onnx")));
}

TEST_F(QuantiseCommandTest, ReadsAFolderOfData) {
  std::filesystem::create_directory(folder_.Path("set"));
  for (const char* name : {"a.npz", "b.npz"})
    std::filesystem::copy_file(data_, folder_.Path(std::string("set/") + name));
  const ProgramRun run = Quantise({"--calibrate", folder_.Path("set"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Parse(run)["runs"], 8);
}

}  // namespace
}  // namespace hone::client

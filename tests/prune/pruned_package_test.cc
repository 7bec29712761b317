// From `hone prune` to a package whose kernel multiplies by what is left alone, beside ONNX Runtime
// on the pruned file.

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "client/npz.h"
#include "ir/target.h"
#include "tests/client/python.h"
#include "tests/client/run_hone.h"
#include "tests/quantise/small_network.h"

namespace hone::client {
namespace {

using nlohmann::json;
using testing::AddWeights;
using testing::Drawn;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::SaveTensors;
using testing::TemporaryFolder;

struct Case {
  const char* name;
  int64_t rows, terms, columns;
  std::vector<std::string> prune;  ///< how
  double zeros;
  const char* algorithm;
  const char* target;
};

/// The worst difference of ONNX Runtime's output of the pruned file from Hone's, as a share of the
/// largest value; the share of the file's weights that are zero; the worst difference of the source
/// model's output, which must be far off.
constexpr char kCompare[] = R"(
import sys, numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper
source, pruned, data, mine = sys.argv[1:5]
x, y = np.load(data)["x"], np.load(mine)["y"]
def run(path):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
def apart(path):
    theirs = run(path)
    return np.abs(theirs - y).max() / np.abs(theirs).max()
w = next(numpy_helper.to_array(t) for t in onnx.load(pruned).graph.initializer if t.name == "w")
print(apart(pruned), (w == 0).mean(), apart(source))
)";

class PrunedPackageTest : public ::testing::TestWithParam<Case> {
 protected:
  /// x[rows,terms] · w + b → Relu → y.
  void WriteModel() const {
    const Case& c = GetParam();
    graph::OnnxModel model(17);
    model.Input("x", {std::to_string(c.rows), std::to_string(c.terms)});
    AddWeights(model, "w", {c.terms, c.columns}, 11);
    AddWeights(model, "b", {c.columns}, 12);
    model.Node("MatMul", {"x", "w"}, {"m"}).set_name("product");
    model.Node("Add", {"m", "b"}, {"a"});
    model.Node("Relu", {"a"}, {"y"});
    model.Output("y");
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
    SaveTensors(data_, {{"x", *graph::MakeConstant(
                                  ir::DType::kF32, {c.rows, c.terms},
                                  Drawn(static_cast<size_t>(c.rows * c.terms), 13, 1))}});
  }

  /// The texts and traces of a model's kernels as they are compiled for the case's target.
  static std::string Traces(const std::string& model) {
    const auto run = [&](std::initializer_list<const char*> more) {
      std::vector<std::string> all = {"inspect", model, "--no-log", "--target", GetParam().target};
      all.insert(all.end(), more.begin(), more.end());
      const ProgramRun inspect = RunHone(all);
      EXPECT_EQ(inspect.exit_code, 0) << inspect.err;
      return inspect.out;
    };
    std::string texts;
    const json report = json::parse(run({"--json"}));
    for (const json& kernel : report["kernels"])
      texts += run({"--kernel", kernel["workload"].get<std::string>().c_str()});
    return texts;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx");
  const std::string pruned_ = folder_.Path("p.onnx");
  const std::string package_ = folder_.Path("p.hone");
  const std::string data_ = folder_.Path("x.npz");
  const std::string output_ = folder_.Path("y.npz");
};

TEST_P(PrunedPackageTest, LeavesZerosOutAndAgreesWithOnnxRuntime) {
  const Case& c = GetParam();
  WriteModel();
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::string> words = {"prune", model_, "-o", pruned_, "--threads", "1", "--json"};
  words.insert(words.end(), c.prune.begin(), c.prune.end());
  const ProgramRun prune = RunHone(words);
  ASSERT_EQ(prune.exit_code, 0) << prune.err;
  EXPECT_NEAR(json::parse(prune.out)["layers"][0]["sparsity"], c.zeros, 0.01);

  EXPECT_THAT(Traces(pruned_), HasSubstr(c.algorithm));
  EXPECT_THAT(Traces(model_), Not(HasSubstr("algorithm(")));

  const ProgramRun compile =
      RunHone({"compile", pruned_, "--no-log", "--target", c.target, "-o", package_, "--json"});
  ASSERT_EQ(compile.exit_code, 0) << compile.err;
  // What is left of the weights, and where it belongs: no dense copy beside it.
  const double dense = 4.0 * static_cast<double>(c.terms * c.columns);
  EXPECT_LT(json::parse(compile.out)["constant_bytes"], 0.6 * dense);

  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget(c.target, &target, &why)) << why;
  if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
  const ProgramRun run = RunHone({"run", package_, "--inputs", data_, "--outputs", output_});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  HONE_SKIP_WITHOUT_PYTHON();
  const ProgramRun python = testing::RunPython(kCompare, {model_, pruned_, data_, output_});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  double apart = 1, zeros = 0, from_dense = 0;
  ASSERT_TRUE(std::istringstream(python.out) >> apart >> zeros >> from_dense) << python.out;
  EXPECT_LT(apart, 1e-5);
  EXPECT_NEAR(zeros, c.zeros, 0.01);
  EXPECT_GT(from_dense, 0.01) << "the zeros count";
}

INSTANTIATE_TEST_SUITE_P(
    All, PrunedPackageTest,
    ::testing::Values(Case{"panels", 24, 256, 192,
                           {"--structure", "block:1x16", "--sparsity", "0.8"}, 0.8,
                           "algorithm(s0, panels, 16)", "cpu:avx512,threads=1"},
                      Case{"panels_avx2", 24, 256, 192,
                           {"--structure", "block:1x16", "--sparsity", "0.8"}, 0.8,
                           "algorithm(s0, panels, 16)", "cpu:avx2,threads=2"},
                      Case{"bitmask", 1, 1024, 512, {"--sparsity", "0.7"}, 0.7,
                           "algorithm(s0, bitmask, 16)", "cpu:avx512,threads=2"}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace hone::client

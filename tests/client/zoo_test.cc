#include "graph/onnx_export/zoo.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "client/option_table.h"
#include "tests/client/python.h"

namespace hone::graph {
namespace {

using client::testing::RunHone;
using client::testing::RunPython;
using client::testing::TemporaryFolder;

// The checker of the onnx package, its shape inference against the stated outputs, the number of
// parameters, and a run of ONNX Runtime whose outputs must be finite and not constant.
constexpr char kCheck[] = R"(
import sys, numpy as np, onnx
path, parameters, run = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "run"
onnx.checker.check_model(path, full_check=True)
m = onnx.load(path, load_external_data=False)
floats = [t for t in m.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
n = sum(int(np.prod(t.dims)) for t in floats)
assert n == parameters, (n, parameters)
if run:
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    rng, feeds = np.random.default_rng(0), {}
    for v in m.graph.input:
        t = v.type.tensor_type
        shape = [d.dim_value for d in t.shape.dim]
        if t.elem_type == onnx.TensorProto.INT64:
            low, high = (int(p.split("=")[1]) for p in v.doc_string.split(","))
            feeds[v.name] = rng.integers(low, high, shape)
        else:
            feeds[v.name] = rng.uniform(-1, 1, shape).astype(np.float32)
    for v, y in zip(m.graph.output, s.run(None, feeds)):
        assert list(y.shape) == [d.dim_value for d in v.type.tensor_type.shape.dim], v.name
        spread, largest = y.std(), np.abs(y).max()
        assert np.isfinite(y).all() and spread > 1e-3 and largest < 1e4, (v.name, spread, largest)
)";

/// Published parameter counts in thousands, batch norm statistics included, less the positions
/// beyond 128 and the second token type (BERT 109482, GPT-2 124439).
struct ZooCase {
  const char* name;
  int64_t thousands;
};

class ZooTest : public ::testing::TestWithParam<ZooCase> {};

TEST_P(ZooTest, OnnxRuntimeAcceptsIt) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("m.onnx");
  const auto model = WriteZooModel(GetParam().name, 0, path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->parameters / 1000, GetParam().thousands);
  EXPECT_EQ(std::filesystem::exists(path + ".data"), model->parameters > 25'000'000);
  HONE_SKIP_WITHOUT_PYTHON();
  // The two large ones are only checked: loading them takes seconds.
  const bool run = model->parameters < 50'000'000;
  const auto check =
      RunPython(kCheck, {path, std::to_string(model->parameters), run ? "run" : "check"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, ZooTest,
    ::testing::Values(ZooCase{"resnet18", 11699}, ZooCase{"resnet50", 25610},
                      ZooCase{"mobilenet_v2", 3538}, ZooCase{"squeezenet", 1235},
                      ZooCase{"bert_small", 11072}, ZooCase{"bert_base", 109186},
                      ZooCase{"gpt2_small", 123768}, ZooCase{"vit_small", 22050},
                      ZooCase{"lstm", 9327}, ZooCase{"mlp", 235}, ZooCase{"unet", 7768}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(ZooTest, EveryNameIsTestedAndInTheOptionTable) {
  const auto choices =
      SplitChoices(client::FindCommand("zoo")->positionals.front().choices);
  std::vector<std::string> names = {"list"};
  for (const ZooNetwork& network : ZooNetworks()) names.emplace_back(network.name);
  EXPECT_EQ(names, choices);
  EXPECT_EQ(choices.size(), 12U);
}

TEST(ZooTest, TheSameSeedGivesTheSameBytesAndAnotherDoesNot) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteZooModel("mlp", 0, folder.Path("a.onnx")).ok());
  ASSERT_TRUE(WriteZooModel("mlp", 0, folder.Path("b.onnx")).ok());
  ASSERT_TRUE(WriteZooModel("mlp", 1, folder.Path("c.onnx")).ok());
  EXPECT_EQ(*ReadFile(folder.Path("a.onnx")), *ReadFile(folder.Path("b.onnx")));
  EXPECT_NE(*ReadFile(folder.Path("a.onnx")), *ReadFile(folder.Path("c.onnx")));
}

TEST(ZooTest, TheCommandWritesWhereItSays) {
  const TemporaryFolder folder;
  const auto run = RunHone({"zoo", "mlp", "-o", folder.Path("x.onnx")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::HasSubstr("x.onnx (0.2 M parameters)"));
  EXPECT_TRUE(std::filesystem::exists(folder.Path("x.onnx")));
}

}  // namespace
}  // namespace hone::graph

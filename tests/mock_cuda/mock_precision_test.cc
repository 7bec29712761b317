#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/check.h"
#include "base/core/clock.h"
#include "base/core/random.h"
#include "base/status.h"
#include "compiler/compile_model.h"
#include "measure/builder_client.h"
#include "runtime/executable.h"
#include "schedule/cuda/wgmma.h"
#include "schedule/trace_writer.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/mock_cuda/mock_driver.h"
#include "tests/test_paths.h"

// Networks with products of narrow numbers as packages for GPUs, run on the mock: tensor cores
// where both factors are narrow. The interpreter of the same graph in f32 decides.
namespace hone {
namespace {

using compiler::GraphMaker;
using graph::Graph;
using graph::ValueId;
using Ints = std::vector<int64_t>;

class MockPrecisionTest : public ::testing::Test {
 protected:
  MockPrecisionTest() {
    static void* const driver =
        dlopen((testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1").c_str(), RTLD_NOW);
    HONE_CHECK(driver != nullptr) << dlerror();
    fault_ = reinterpret_cast<decltype(&MockCudaFault)>(dlsym(driver, "MockCudaFault"));
    last_error_ =
        reinterpret_cast<decltype(&MockCudaLastError)>(dlsym(driver, "MockCudaLastError"));
    fault_("", 0, 0);
  }

  static compiler::CompiledModel Compile(Graph graph, ir::DType precision,
                                         const std::string& target) {
    compiler::DefaultTraceSource traces;
    return Compile(std::move(graph), precision, target, traces);
  }

  static compiler::CompiledModel Compile(Graph graph, ir::DType precision,
                                         const std::string& target, compiler::TraceSource& traces) {
    const SystemMonotonicClock clock;
    measure::BuilderOptions options;
    options.program = testing::BuildDir() + "/libexec/hone/hone-builder";
    measure::BuilderClient builder(options, clock);
    graph.precision = precision;
    auto model = compiler::CompileModel(std::move(graph), {.target = target}, builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : compiler::CompiledModel();
  }

  /// The largest difference from the graph in f32 as a share of the largest value.
  double WorstShare(const Graph& graph, const compiler::CompiledModel& model, uint64_t seed) const {
    const auto inputs = compiler::RandomInputs(graph, seed);
    const auto expected = compiler::RunNodeByNode(graph, inputs);
    EXPECT_TRUE(expected.ok()) << expected.status();
    Result<std::string> bytes = runtime::SerializePackage(model.package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    const auto actual = compiler::RunPackage(*bytes, inputs);
    EXPECT_TRUE(actual.ok()) << actual.status() << "\n" << last_error_();
    if (!actual.ok() || !expected.ok()) return 1;
    double worst = 0, largest = 0;
    for (size_t k = 0; k < expected->size(); ++k) {
      const std::vector<double> got = (*actual)[k]->AsDoubles(), want = (*expected)[k]->AsDoubles();
      EXPECT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(std::isfinite(got[i]));
        worst = std::max(worst, std::abs(got[i] - want[i]));
        largest = std::max(largest, std::abs(want[i]));
      }
    }
    return worst / largest;
  }

  static size_t CountOf(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++count;
    return count;
  }

  decltype(&MockCudaFault) fault_ = nullptr;
  decltype(&MockCudaLastError) last_error_ = nullptr;
};

/// Two heads of attention, a residual and a feed-forward network, 20 positions of 32 numbers.
Graph Transformer() {
  GraphMaker maker(21);
  const ValueId x = maker.Input("x", {20, 32});
  const auto project = [&](ValueId from, int64_t in, int64_t out) {
    const ValueId y = maker.Node("MatMul", {}, {from, maker.Weights({in, out})});
    return maker.Node("Binary", {{"fn", "add"}}, {y, maker.Weights({out})});
  };
  const auto heads = [&](ValueId from) {
    const ValueId split = maker.Node("Reshape", {{"shape", Ints{20, 2, 16}}}, {from});
    return maker.Node("Transpose", {{"perm", Ints{1, 0, 2}}}, {split});
  };
  const ValueId q = heads(project(x, 32, 32)), k = heads(project(x, 32, 32)),
                v = heads(project(x, 32, 32));
  ValueId scores = maker.Node("MatMul", {{"transpose_b", int64_t{1}}}, {q, k});
  scores = maker.Node("Binary", {{"fn", "mul"}}, {scores, maker.Scalar(0.25)});
  const ValueId shares = maker.Node("Softmax", {{"axis", int64_t{2}}}, {scores});
  ValueId y = maker.Node("MatMul", {}, {shares, v});
  y = maker.Node("Transpose", {{"perm", Ints{1, 0, 2}}}, {y});
  y = project(maker.Node("Reshape", {{"shape", Ints{20, 32}}}, {y}), 32, 32);
  const ValueId h = maker.Node("Binary", {{"fn", "add"}}, {x, y});
  const ValueId inner = maker.Unary("tanh", project(h, 32, 64));
  return maker.Finish({maker.Node("Binary", {{"fn", "add"}}, {h, project(inner, 64, 32)})});
}

/// A padded 3 x 3, a 1 x 1 with a residual, and a classifier.
Graph Convolutions() {
  GraphMaker maker(22);
  const ValueId x = maker.Input("x", {1, 16, 9, 7});
  const auto conv = [&](ValueId from, int64_t in, int64_t out, int64_t size) {
    const int64_t pad = size / 2;
    return maker.Node("Conv",
                      {{"strides", Ints{1, 1}},
                       {"pads", Ints{pad, pad, pad, pad}},
                       {"dilations", Ints{1, 1}},
                       {"group", int64_t{1}}},
                      {from, maker.Weights({out, in, size, size}), maker.Weights({out})});
  };
  const ValueId a = maker.Unary("tanh", conv(x, 16, 32, 3));
  ValueId h = maker.Node("Binary", {{"fn", "add"}}, {conv(a, 32, 32, 1), a});
  h = conv(maker.Node("Binary", {{"fn", "max"}}, {h, maker.Scalar(0)}), 32, 24, 3);
  const ValueId mean =
      maker.Node("Reduce", {{"fn", "mean"}, {"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}}, {h});
  return maker.Finish({maker.Node("MatMul", {}, {mean, maker.Weights({24, 10})})});
}

TEST_F(MockPrecisionTest, NetworksInBf16UseTensorCores) {
  for (const auto& [name, graph, least] : {std::tuple{"transformer", Transformer(), 6},
                                           std::tuple{"convolutions", Convolutions(), 3}}) {
    for (const char* target : {"cuda:sm_80", "cuda:sm_90a"}) {
      SCOPED_TRACE(std::string(name) + " for " + target);
      const compiler::CompiledModel model = Compile(graph, ir::DType::kBF16, target);
      // A kernel has at least one tile of a warp.
      EXPECT_GE(CountOf(model.code, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
                static_cast<size_t>(least));
      // Bits of a factor, and what sums of such products make of them.
      EXPECT_LT(WorstShare(graph, model, 1), 0.02);
      EXPECT_LT(WorstShare(graph, model, 2), 0.02);
    }
  }
}

/// Tiles of warpgroups, however small the products are.
class Warpgroups final : public compiler::TraceSource {
 public:
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string&,
                                            const ir::Target& target) override {
    compiler::FoundTrace found{.rung = "default"};
    const auto sketch = schedule::WgmmaSketch(workload, target);
    if (!sketch) return found;
    schedule::TraceWriter writer(workload);
    HONE_RETURN_IF_ERROR(sketch->rule->Emit(*sketch, *sketch->rule->Default(*sketch), writer));
    found.trace = schedule::ToText(writer.trace());
    return found;
  }
};

// Its slices come as boxes of tensors: weights, an input and what the first layer made.
TEST_F(MockPrecisionTest, PackagesBringTheMapsOfTheirBoxes) {
  GraphMaker maker(29);
  const ValueId x = maker.Input("x", {40, 192});
  ValueId h = maker.Node("MatMul", {}, {x, maker.Weights({192, 128})});
  h = maker.Node("Binary", {{"fn", "max"}}, {h, maker.Scalar(0)});
  const Graph graph = maker.Finish({maker.Node("MatMul", {}, {h, maker.Weights({128, 64})})});
  Warpgroups traces;
  const compiler::CompiledModel model = Compile(graph, ir::DType::kBF16, "cuda:sm_90a", traces);
  EXPECT_GE(CountOf(model.code, "wgmma.mma_async.sync.aligned"), 2U);
  EXPECT_GE(CountOf(model.code, "cp.async.bulk.tensor.2d"), 2U);
  EXPECT_LT(WorstShare(graph, model, 1), 0.02);
}

/// What importers make of a QDQ model: a padded 3 x 3 whose bytes have a zero point, a 1 x 1 and a
/// classifier, each of bytes, with bytes between them.
Graph Quantised() {
  GraphMaker maker(23);
  Random random(24);
  const auto binary = [&](const char* fn, ValueId a, ValueId b) {
    return maker.Node("Binary", {{"fn", std::string(fn)}}, {a, b});
  };
  const auto cast = [&](ValueId x, const char* to) {
    return maker.Node("Cast", {{"to", std::string(to)}}, {x});
  };
  const auto known = [&](ir::DType dtype, double value) {
    return maker.Constant(graph::MakeConstant(dtype, {}, {value}));
  };
  const auto dequantise = [&](ValueId bytes, double scale, double zero) {
    const ValueId wide = binary("sub", cast(bytes, "i32"), known(ir::DType::kI32, zero));
    return binary("mul", cast(wide, "f32"), maker.Scalar(scale));
  };
  const auto quantise = [&](ValueId x, double scale, double zero) {
    const ValueId rounded = maker.Unary("round", binary("div", x, maker.Scalar(scale)));
    const ValueId bytes = cast(binary("add", rounded, known(ir::DType::kF32, zero)), "u8");
    return dequantise(bytes, scale, zero);
  };
  const auto weights = [&](const Ints& shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<double>(random.Below(255)) - 127);
    const ValueId bytes = maker.Constant(graph::MakeConstant(ir::DType::kI8, shape, values));
    return binary("mul", cast(bytes, "f32"), maker.Scalar(1.0 / 256));
  };
  const auto conv = [&](ValueId from, int64_t in, int64_t out, int64_t size) {
    const int64_t pad = size / 2;
    return maker.Node("Conv",
                      {{"strides", Ints{1, 1}},
                       {"pads", Ints{pad, pad, pad, pad}},
                       {"dilations", Ints{1, 1}},
                       {"group", int64_t{1}}},
                      {from, weights({out, in, size, size}), maker.Weights({out})});
  };
  const ValueId x = maker.Input("x", {1, 32, 6, 5});
  ValueId h = quantise(conv(quantise(x, 1.0 / 64, 128), 32, 32, 3), 1.0 / 8, 120);
  h = binary("max", conv(h, 32, 32, 1), maker.Scalar(0));
  h = maker.Node("Transpose", {{"perm", Ints{0, 2, 3, 1}}}, {h});
  h = quantise(maker.Node("Reshape", {{"shape", Ints{30, 32}}}, {h}), 1.0 / 4, 0);
  return maker.Finish({maker.Node("MatMul", {}, {h, weights({32, 24})})});
}

// A rounding to bytes may fall the other way where the interpreter's sum is not rounded to f32.
TEST_F(MockPrecisionTest, NetworksOfBytesUseTensorCores) {
  const Graph graph = Quantised();
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a"}) {
    const compiler::CompiledModel model = Compile(graph, ir::DType::kF32, target);
    EXPECT_GE(CountOf(model.code, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"), 3U);
    EXPECT_LT(WorstShare(graph, model, 1), 0.01);
    EXPECT_LT(WorstShare(graph, model, 2), 0.01);
  }
}

// Weights alone are f16 there, so the products stay with threads; both are tiles.
TEST_F(MockPrecisionTest, NetworksInF16AreTilesOfThreads) {
  for (const Graph& graph : {Transformer(), Convolutions()}) {
    const compiler::CompiledModel model = Compile(graph, ir::DType::kF16, "cuda:sm_80");
    EXPECT_EQ(CountOf(model.code, "mma.sync"), 0U);
    EXPECT_LT(WorstShare(graph, model, 1), 0.003);
  }
}

}  // namespace
}  // namespace hone

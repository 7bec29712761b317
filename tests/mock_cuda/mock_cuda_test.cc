#include <dlfcn.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/fake_clock.h"
#include "base/status.h"
#include "compiler/compile_model.h"
#include "graph/op.h"
#include "ir/cuda/cuda_driver.h"
#include "runtime/context.h"
#include "runtime/executable.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/mock_cuda/mock_driver.h"
#include "tests/test_paths.h"

// Packages for GPUs run on a driver that executes their PTX and fails by script.
namespace hone {
namespace {

using compiler::GraphMaker;
using graph::Graph;
using graph::ValueId;
using ::testing::HasSubstr;

/// Loads the mock under the driver's name before anybody asks for it.
template <typename Function>
Function* Mock(const char* name) {
  static void* const driver =
      dlopen((testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1").c_str(), RTLD_NOW);
  HONE_CHECK(driver != nullptr) << dlerror();
  return reinterpret_cast<Function*>(dlsym(driver, name));
}

class MockCudaTest : public ::testing::Test {
 protected:
  MockCudaTest() { Fault("", 0, 0); }

  static void Fault(const char* call, int after, int code) {
    Mock<decltype(MockCudaFault)>("MockCudaFault")(call, after, code);
  }
  static size_t UsedBytes() { return Mock<decltype(MockCudaUsedBytes)>("MockCudaUsedBytes")(); }
  static std::string LastError() {
    return Mock<decltype(MockCudaLastError)>("MockCudaLastError")();
  }

  /// Products, a softmax and a norm, two phases and more a kernel.
  static Graph Network() {
    GraphMaker maker(3);
    const ValueId x = maker.Input("x", {4, 24});
    ValueId h = maker.Node("MatMul", {}, {x, maker.Weights({24, 40})});
    h = maker.Node("Binary", {{"fn", "add"}}, {h, maker.Weights({40})});
    h = maker.Unary("tanh", h);
    ValueId y = maker.Node("MatMul", {}, {h, maker.Weights({40, 10})});
    y = maker.Node("Softmax", {{"axis", int64_t{1}}}, {y});
    return maker.Finish({maker.Unary("sigmoid", y)});
  }

  /// tanh(table[ids]) of a table of 10 rows.
  static Graph LookUp() {
    Graph graph;
    const auto input = [&](const char* name, graph::TensorType type) {
      graph.inputs.push_back(graph.AddValue({.name = name, .type = std::move(type)}));
      return graph.inputs.back();
    };
    const auto node = [&](graph::Node made) {
      made.origin = "the " + made.op;
      return graph::AppendNode(graph, std::move(made))->front();
    };
    const ValueId table = input("table", {ir::DType::kF32, {10, 6}});
    const ValueId ids = input("ids", {ir::DType::kI64, {5}});
    const ValueId rows =
        node({.op = "Gather", .attributes = {{"axis", int64_t{0}}}, .inputs = {table, ids}});
    graph.outputs = {
        node({.op = "Unary", .attributes = {{"fn", std::string("tanh")}}, .inputs = {rows}})};
    graph.values[graph.outputs[0]].name = "y";
    return graph;
  }

  static std::string PackageOf(const Graph& graph, const std::string& target = "cuda:sm_90a") {
    const SystemMonotonicClock clock;
    measure::BuilderOptions options;
    options.program = testing::BuildDir() + "/libexec/hone/hone-builder";
    measure::BuilderClient builder(options, clock);
    compiler::DefaultTraceSource traces;
    auto model = compiler::CompileModel(graph, {.target = target}, builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return "";
    Result<std::string> bytes = runtime::SerializePackage(model->package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }

  static void ExpectEqual(const graph::ConstantPtr& got, const graph::ConstantPtr& want) {
    const std::vector<double> a = got->AsDoubles(), b = want->AsDoubles();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << i;
  }
};

// RunPackage runs three times on one context, with a poisoned arena.
TEST_F(MockCudaTest, APackageComputesWhatTheInterpreterDoes) {
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a"}) {
    SCOPED_TRACE(target);
    const Graph graph = Network();
    const std::string package = PackageOf(graph, target);
    for (const uint64_t seed : {1, 2}) {
      const auto inputs = compiler::RandomInputs(graph, seed);
      const auto expected = compiler::RunNodeByNode(graph, inputs);
      ASSERT_TRUE(expected.ok()) << expected.status();
      const auto actual = compiler::RunPackage(package, inputs);
      ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << LastError();
      ExpectEqual((*actual)[0], (*expected)[0]);
    }
  }
  EXPECT_EQ(UsedBytes(), 0U);
}

TEST_F(MockCudaTest, AnIndexOutOfRangeIsFoundBeforeItIsUsed) {
  const Graph graph = LookUp();
  const std::string package = PackageOf(graph);
  auto inputs = compiler::RandomInputs(graph, 1);
  inputs[1] = graph::MakeInt64s({5}, {0, 9, -1, 3, 4});
  const auto expected = compiler::RunNodeByNode(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = compiler::RunPackage(package, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << LastError();
  ExpectEqual((*actual)[0], (*expected)[0]);
  for (const int64_t bad : {int64_t{10}, int64_t{-11}, int64_t{1} << 40}) {
    inputs[1] = graph::MakeInt64s({5}, {0, 1, bad, 3, 4});
    const absl::Status status = compiler::RunPackage(package, inputs).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(StatusMessage(status), HasSubstr("node 'the Gather': an index in the model's input "
                                                 "'ids' is out of range"));
  }
}

TEST_F(MockCudaTest, StepsAreTimedByTheDevice) {
  const Graph graph = Network();
  const std::string package = PackageOf(graph);
  const auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(package)), {});
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  const FakeClock clock;
  auto context = runtime::Context::Create(*executable, {.profile_clock = &clock});
  ASSERT_TRUE(context.ok()) << context.status().ToString();
  std::vector<float> x(4 * 24), y(4 * 10);
  const runtime::InputBuffer in{x.data(), x.size() * 4};
  const runtime::OutputBuffer out{y.data(), y.size() * 4};
  ASSERT_TRUE((*context)->Run({&in, 1}, {&out, 1}).ok()) << LastError();
  const auto times_ns = (*context)->step_times_ns();
  ASSERT_EQ(times_ns.size(), (*executable)->plan().steps.size());
  for (const int64_t ns : times_ns) EXPECT_EQ(ns % 250'000, 0);
  EXPECT_GE(times_ns[0], 250'000);
}

TEST_F(MockCudaTest, EveryCallOfTheDriverMayFail) {
  const Graph graph = Network();
  const std::string package = PackageOf(graph);
  const auto inputs = compiler::RandomInputs(graph, 1);
  const char* const calls[] = {
      "cuDeviceGet",          "cuDevicePrimaryCtxRetain",    "cuCtxSetCurrent",
      "cuModuleLoadDataEx",   "cuModuleGetFunction",         "cuMemAlloc_v2",
      "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",        "cuMemsetD8Async",
      "cuStreamCreate",       "cuStreamSynchronize",         "cuStreamBeginCapture_v2",
      "cuStreamEndCapture",   "cuGraphInstantiateWithFlags", "cuGraphLaunch",
      "cuLaunchKernel"};
  for (const char* call : calls) {
    for (const int after : {1, 2, 3}) {
      SCOPED_TRACE(std::string(call) + " the " + std::to_string(after) + ". time");
      Fault(call, after, 1);
      const absl::Status status = compiler::RunPackage(package, inputs).status();
      if (after == 1) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
      }
      if (!status.ok()) {
        EXPECT_THAT(StatusMessage(status), HasSubstr("the CUDA driver says 1"));
      }
      Fault("", 0, 0);
      EXPECT_EQ(UsedBytes(), 0U);
    }
  }
  EXPECT_TRUE(compiler::RunPackage(package, inputs).ok()) << LastError();
}

TEST_F(MockCudaTest, MemoryThatIsMissingIsCounted) {
  const Graph graph = Network();
  const std::string package = PackageOf(graph);
  Fault("cuMemAlloc_v2", 1, 2);
  const absl::Status status =
      compiler::RunPackage(package, compiler::RandomInputs(graph, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(StatusMessage(status),
              HasSubstr("MiB are wanted, 1024 of the device's 1024 MiB are free"));
}

TEST_F(MockCudaTest, ALostDeviceIsTold) {
  const Graph graph = Network();
  const std::string package = PackageOf(graph);
  Fault("cuGraphLaunch", 2, 719);
  const absl::Status status =
      compiler::RunPackage(package, compiler::RandomInputs(graph, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(StatusMessage(status), HasSubstr("cannot use the device any more"));
  Fault("", 0, 0);
}

TEST_F(MockCudaTest, CodeForAnotherChipIsRefused) {
  const std::string package = PackageOf(Network(), "cuda:sm_100a");
  const auto refused = runtime::Executable::OpenMemory(std::as_bytes(std::span(package)), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("needs a GPU of compute capability 10.0, this machine's has 9.0"));
}

}  // namespace
}  // namespace hone

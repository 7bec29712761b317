#include <dlfcn.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/fake_clock.h"
#include "base/status.h"
#include "compiler/compile_model.h"
#include "graph/op.h"
#include "hone/hone.h"
#include "ir/cuda/cuda_driver.h"
#include "runtime/context.h"
#include "runtime/cuda/memory_need.h"
#include "runtime/executable.h"
#include "runtime/package.h"
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

// A product of all inputs before the scan, the scan, and what it gives: no launch a step.
TEST_F(MockCudaTest, RecurrentLayersAreOneLaunch) {
  for (const auto& [op, gates] : {std::pair{"LSTM", 4}, std::pair{"GRU", 3}}) {
    SCOPED_TRACE(op);
    GraphMaker maker(3);
    const ValueId x = maker.Input("x", {9, 2, 12});
    const ValueId w = maker.Weights({1, gates * 20, 12}), r = maker.Weights({1, gates * 20, 20});
    const ValueId y = maker.Node(op, {{"hidden_size", int64_t{20}}}, {x, w, r});
    const Graph graph = maker.Finish({y});
    const std::string package = PackageOf(graph, "cuda:sm_80");
    const auto inputs = compiler::RandomInputs(graph, 5);
    const auto expected = compiler::RunNodeByNode(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = compiler::RunPackage(package, inputs);
    ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << LastError();
    ExpectEqual((*actual)[0], (*expected)[0]);
    const auto opened = runtime::ParsePackage(std::as_bytes(std::span(package)));
    ASSERT_TRUE(opened.ok());
    for (const ir::Artifact& kernel : opened->plan.kernels) {
      for (const ir::ArtifactStep& step : kernel.steps) EXPECT_EQ(step.repeats, 1);
    }
  }
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
      "cuLaunchKernelEx"};
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

TEST_F(MockCudaTest, AModelTooLargeSaysHowMuchItNeedsAndWhereMost) {
  // Step 1 holds the first result, step 2 both of them, step 3 the second one.
  ir::Plan plan;
  plan.arena_bytes = 700 << 20;
  plan.inputs = {{.name = "x", .dtype = ir::DType::kU8, .shape = {100 << 20}}};
  plan.buffers = {{.offset = 0, .bytes = 300 << 20}, {.offset = 300 << 20, .bytes = 400 << 20}};
  plan.kernels.resize(1);
  plan.kernels[0].workload_hash = "c0ffee";
  plan.steps.resize(3);
  for (ir::PlanStep& step : plan.steps) step.kernel = 0;
  plan.steps[0].buffers = {0};
  plan.steps[1].buffers = {0, 1};
  plan.steps[2].buffers = {1};
  const runtime::MemoryNeed need = runtime::MemoryNeedOf(plan, 200 << 20);
  EXPECT_EQ(need.total(), size_t{1000} << 20);
  EXPECT_EQ(need.peak_step, 1U);
  EXPECT_TRUE(runtime::CheckMemory(need, plan, size_t{1} << 30, size_t{1} << 30).ok());
  const Status small = runtime::CheckMemory(need, plan, 800 << 20, 900 << 20);
  EXPECT_EQ(small.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      small.message(),
      "the model needs 1000 MiB of the GPU's memory: 200 for constants, 700 for intermediate "
      "results (most at step 2 of 3, workload c0ffee), 100 for inputs and outputs; the device "
      "has 900; compile the model for a smaller batch, or take a GPU with more memory");
  const Status used = runtime::CheckMemory(need, plan, 800 << 20, size_t{1} << 30);
  EXPECT_EQ(used.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(used.message(), HasSubstr("; 800 of the device's 1024 MiB are free; end other"));
}

/// Buffers in the device's memory, through the C API.
class DevicePointerTest : public MockCudaTest {
 protected:
  void SetUp() override {
    const std::string package = PackageOf(network_);
    ASSERT_EQ(hone_model_open_memory(package.data(), package.size(), nullptr, &model_), HONE_OK);
    ASSERT_EQ(hone_context_create(model_, nullptr, &context_), HONE_OK) << hone_last_error();
  }
  void TearDown() override {
    hone_context_destroy(context_);
    hone_model_close(model_);
  }

  static uint64_t Allocate(size_t bytes) {
    uint64_t at = 0;
    EXPECT_EQ(Mock<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&at, bytes), 0);
    return at;
  }
  static void Upload(uint64_t at, const std::vector<float>& values) {
    const auto copy = Mock<int(uint64_t, const void*, size_t, void*)>("cuMemcpyHtoDAsync_v2");
    EXPECT_EQ(copy(at, values.data(), values.size() * 4, nullptr), 0);
    Wait(nullptr);
  }
  static std::vector<float> Download(uint64_t at, size_t count) {
    std::vector<float> values(count);
    const auto copy = Mock<int(void*, uint64_t, size_t, void*)>("cuMemcpyDtoHAsync_v2");
    EXPECT_EQ(copy(values.data(), at, count * 4, nullptr), 0);
    Wait(nullptr);
    return values;
  }
  static void Wait(void* stream) { EXPECT_EQ(Mock<int(void*)>("cuStreamSynchronize")(stream), 0); }
  static const void* In(uint64_t at) { return reinterpret_cast<const void*>(at); }
  static void* Out(uint64_t at) { return reinterpret_cast<void*>(at); }

  hone_status Run(const void* x, void* y) const {
    const hone_input input{x, kIn * 4};
    const hone_output output{y, kOut * 4};
    return hone_context_run(context_, &input, 1, &output, 1);
  }
  std::vector<float> Expected(const std::vector<float>& x) const {
    std::vector<float> y(kOut);
    EXPECT_EQ(Run(x.data(), y.data()), HONE_OK) << hone_last_error();
    return y;
  }
  static std::vector<float> Values(float scale) {
    std::vector<float> x(kIn);
    for (size_t i = 0; i < x.size(); ++i) x[i] = scale * static_cast<float>(i % 13) - 0.5F;
    return x;
  }

  static constexpr size_t kIn = 4 * 24, kOut = 4 * 10;
  const Graph network_ = Network();
  hone_model* model_ = nullptr;
  hone_context* context_ = nullptr;
};

TEST_F(DevicePointerTest, MemoryOfTheDeviceIsUsedWhereItIs) {
  const std::vector<float> first = Values(0.1F), second = Values(0.2F);
  const std::vector<float> want_first = Expected(first), want_second = Expected(second);
  ASSERT_NE(want_first, want_second);
  const uint64_t x = Allocate(kIn * 4), other = Allocate(kIn * 4), y = Allocate(kOut * 4);
  Upload(x, first);
  Upload(other, second);
  // Other addresses take other graphs; those of before come back.
  for (const bool one : {true, false, true, true}) {
    ASSERT_EQ(Run(In(one ? x : other), Out(y)), HONE_OK) << hone_last_error() << LastError();
    EXPECT_EQ(Download(y, kOut), one ? want_first : want_second);
  }
  // Mixed with memory of the host.
  std::vector<float> here(kOut);
  ASSERT_EQ(Run(In(other), here.data()), HONE_OK) << hone_last_error();
  EXPECT_EQ(here, want_second);
  ASSERT_EQ(Run(first.data(), Out(y)), HONE_OK) << hone_last_error();
  EXPECT_EQ(Download(y, kOut), want_first);
}

TEST_F(DevicePointerTest, WhatIsNotAlignedIsCopiedThere) {
  const std::vector<float> values = Values(0.3F);
  const std::vector<float> want = Expected(values);
  const uint64_t x = Allocate(kIn * 4 + 4), y = Allocate(kOut * 4 + 4);
  Upload(x + 4, values);
  ASSERT_EQ(Run(In(x + 4), Out(y + 4)), HONE_OK) << hone_last_error() << LastError();
  EXPECT_EQ(Download(y + 4, kOut), want);
}

// The mock does what is in a stream when somebody waits for it.
TEST_F(DevicePointerTest, RunsAreOrderedInTheCallersStream) {
  const std::vector<float> values = Values(0.1F), none(kOut, 7.0F);
  const std::vector<float> want = Expected(values);
  void* stream = nullptr;
  ASSERT_EQ(Mock<int(void**, unsigned)>("cuStreamCreate")(&stream, 1), 0);
  ASSERT_EQ(hone_context_set_stream(context_, stream), HONE_OK) << hone_last_error();
  const uint64_t x = Allocate(kIn * 4), y = Allocate(kOut * 4);
  Upload(y, none);
  // The input is written in the stream too: no run may read it earlier.
  const auto copy = Mock<int(uint64_t, const void*, size_t, void*)>("cuMemcpyHtoDAsync_v2");
  ASSERT_EQ(copy(x, values.data(), values.size() * 4, stream), 0);
  ASSERT_EQ(Run(In(x), Out(y)), HONE_OK) << hone_last_error() << LastError();
  EXPECT_EQ(Download(y, kOut), none) << "nobody has waited yet";
  Wait(stream);
  EXPECT_EQ(Download(y, kOut), want);
  // With memory of the host the answer is there when the run returns.
  std::vector<float> here(kOut);
  ASSERT_EQ(Run(In(x), here.data()), HONE_OK) << hone_last_error();
  EXPECT_EQ(here, want);
  ASSERT_EQ(hone_context_set_stream(context_, nullptr), HONE_OK);
  ASSERT_EQ(Run(In(x), here.data()), HONE_OK);
  EXPECT_EQ(Mock<int(void*)>("cuStreamDestroy_v2")(stream), 0);
}

TEST_F(DevicePointerTest, APackageOfTheHostHasNoStream) {
  const std::string package = PackageOf(network_, "cpu:avx2,threads=1");
  hone_model* model = nullptr;
  ASSERT_EQ(hone_model_open_memory(package.data(), package.size(), nullptr, &model), HONE_OK);
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model, nullptr, &context), HONE_OK);
  EXPECT_EQ(hone_context_set_stream(context, this), HONE_FAILED_PRECONDITION);
  EXPECT_THAT(hone_last_error(), HasSubstr("for the host, which has no streams"));
  hone_context_destroy(context);
  hone_model_close(model);
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

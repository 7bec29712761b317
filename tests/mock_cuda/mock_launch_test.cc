#include <dlfcn.h>

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "base/versions.h"
#include "compiler/compile_model.h"
#include "hone/hone.h"
#include "ir/cuda/cuda_code.h"
#include "runtime/cuda/phase_launch.h"
#include "runtime/package.h"
#include "schedule/cuda/products.h"
#include "schedule/trace_writer.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/mock_cuda/mock_driver.h"
#include "tests/test_paths.h"

// How phases are launched: three dimensions, clusters, shared memory beyond what code declares, and
// descriptors of tensors, on the mock driver, which refuses what was not permitted before.
namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr char kCode[] = R"(.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 given[];
.visible .entry number(.param .u64 out, .param .u64 step, .param .u64 result)
{
.reg .b32 %r<20>;
.reg .b64 %d<6>;
ld.param.u64 %d1, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r3, %ctaid.z;
mov.u32 %r4, %nctaid.x;
mov.u32 %r5, %nctaid.y;
mad.lo.s32 %r6, %r3, %r5, %r2;
mad.lo.s32 %r6, %r6, %r4, %r1;
mov.u32 %r7, %tid.x;
mov.u32 %r8, %tid.y;
mov.u32 %r9, %tid.z;
mov.u32 %r10, %ntid.x;
mov.u32 %r11, %ntid.y;
mov.u32 %r12, %ntid.z;
mad.lo.s32 %r13, %r9, %r11, %r8;
mad.lo.s32 %r13, %r13, %r10, %r7;
mul.lo.s32 %r14, %r10, %r11;
mul.lo.s32 %r14, %r14, %r12;
mad.lo.s32 %r15, %r6, %r14, %r13;
mul.wide.u32 %d2, %r15, 4;
add.s64 %d3, %d1, %d2;
st.global.b32 [%d3], %r15;
ret;
}
.visible .entry reach(.param .u64 out, .param .u64 step, .param .u64 result)
{
.reg .b32 %r<3>;
.reg .b64 %d<5>;
ld.param.u64 %d1, [out];
ld.param.u64 %d2, [step];
mov.u64 %d3, given;
add.s64 %d4, %d3, %d2;
mov.b32 %r1, 77;
st.shared.b32 [%d4], %r1;
ld.shared.b32 %r2, [%d4];
st.global.b32 [%d1], %r2;
ret;
}
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u64 step, .param .u64 result,
                     .param .align 64 .b8 map[128])
{
.reg .b32 %r<3>;
.reg .b64 %d<6>;
ld.param.u64 %d1, [map+8];
ld.param.u64 %d2, [to];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d3, %r1, 4;
add.s64 %d4, %d1, %d3;
add.s64 %d5, %d2, %d3;
ld.global.b32 %r2, [%d4];
st.global.b32 [%d5], %r2;
ret;
}
)";

constexpr size_t kFloats = 64;

/// 4 x 16 numbers, by boxes of two rows and a half.
ir::Descriptor Rows() {
  return {.argument = 0,
          .dtype = ir::DType::kF32,
          .shape = {4, 16},
          .strides = {64},
          .box = {2, 8},
          .swizzle = ir::Swizzle::k32};
}

class MockLaunchTest : public ::testing::Test {
 protected:
  MockLaunchTest() {
    const std::string mock = testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1";
    mock_ = dlopen(mock.c_str(), RTLD_NOW);
    HONE_CHECK(mock_ != nullptr) << dlerror();
    Function<decltype(MockCudaFault)>("MockCudaFault")("", 0, 0);
    const auto driver = runtime::CudaDriver::Find();
    HONE_CHECK(driver.ok()) << driver.status().ToString();
    driver_ = *driver;
    HONE_CHECK(driver_->cuModuleLoadDataEx(&module_, kCode, 0, nullptr, nullptr) == 0) << Error();
  }

  template <typename Signature>
  Signature* Function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(mock_, name));
  }
  std::string Error() const { return Function<decltype(MockCudaLastError)>("MockCudaLastError")(); }

  runtime::CuHandle Kernel(const char* name) const {
    runtime::CuHandle function = nullptr;
    EXPECT_EQ(driver_->cuModuleGetFunction(&function, module_, name), 0) << name;
    return function;
  }
  runtime::CuPointer Memory(size_t bytes) const {
    runtime::CuPointer at = 0;
    EXPECT_EQ(driver_->cuMemAlloc_v2(&at, bytes), 0);
    return at;
  }
  std::vector<int32_t> Numbers(runtime::CuPointer at, size_t count) const {
    std::vector<int32_t> numbers(count);
    EXPECT_EQ(driver_->cuMemcpyDtoHAsync_v2(numbers.data(), at, 4 * count, nullptr), 0);
    EXPECT_EQ(driver_->cuStreamSynchronize(nullptr), 0) << Error();
    return numbers;
  }
  int Launch(runtime::CuHandle function, const ir::Launch& launch,
             std::vector<uint64_t> values) const {
    return runtime::LaunchPhase(*driver_, function, launch, std::move(values), nullptr);
  }

  void* mock_ = nullptr;
  const runtime::CudaDriver* driver_ = nullptr;
  runtime::CuHandle module_ = nullptr;
};

TEST_F(MockLaunchTest, ThreeDimensionsOfBlocksAndThreads) {
  const ir::Launch launch = {
      .grid_x = 2, .grid_y = 3, .grid_z = 4, .block_x = 4, .block_y = 2, .block_z = 3};
  const size_t count = 24 * 24;
  const runtime::CuPointer out = Memory(4 * count);
  ASSERT_EQ(Launch(Kernel("number"), launch, {out, 0, 0}), 0);
  const std::vector<int32_t> numbers = Numbers(out, count);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], static_cast<int32_t>(i));
}

TEST_F(MockLaunchTest, SharedMemoryBeyondWhatCodeDeclaresIsPermittedFirst) {
  const runtime::CuPointer out = Memory(4);
  const runtime::CuHandle function = Kernel("reach");
  ir::Launch launch;
  launch.shared_bytes = 60'000;
  EXPECT_EQ(Launch(function, launch, {out, 59'996, 0}), 1) << "nobody permitted it";
  ASSERT_EQ(runtime::PermitLaunch(*driver_, function, launch), 0);
  ASSERT_EQ(Launch(function, launch, {out, 59'996, 0}), 0);
  EXPECT_EQ(Numbers(out, 1)[0], 77);
  launch.shared_bytes += 4;
  EXPECT_EQ(Launch(function, launch, {out, 0, 0}), 1) << "less was permitted";
  launch.shared_bytes = (227 << 10) + 1;
  EXPECT_EQ(runtime::PermitLaunch(*driver_, function, launch), 1) << "the device has not so much";
  EXPECT_EQ(runtime::WhyNotLaunched(*driver_, 0, launch),
            "its blocks want 232449 bytes of shared memory, this machine's GPU gives them 232448");
  launch.shared_bytes = 227 << 10;
  EXPECT_EQ(runtime::WhyNotLaunched(*driver_, 0, launch), "");
  EXPECT_EQ(runtime::PermitLaunch(*driver_, function, launch), 0);
}

TEST_F(MockLaunchTest, ABlockHasNoMoreThanItWasGiven) {
  const runtime::CuPointer out = Memory(4);
  ir::Launch launch;
  launch.shared_bytes = 1024;
  ASSERT_EQ(Launch(Kernel("reach"), launch, {out, 1024, 0}), 0);
  EXPECT_EQ(driver_->cuStreamSynchronize(nullptr), 700);
  EXPECT_THAT(Error(), HasSubstr("outside of all memory"));
}

TEST_F(MockLaunchTest, ClustersDivideTheGrid) {
  const runtime::CuPointer out = Memory(4 * 64);
  const runtime::CuHandle function = Kernel("number");
  ir::Launch launch = {.grid_x = 4, .grid_y = 8, .grid_z = 2, .cluster_x = 2, .cluster_z = 2};
  ASSERT_EQ(Launch(function, launch, {out, 0, 0}), 0);
  EXPECT_EQ(Numbers(out, 64)[63], 63);
  launch.cluster_y = 3;
  EXPECT_EQ(Launch(function, launch, {out, 0, 0}), 912);
  launch.cluster_y = 4;
  EXPECT_EQ(Launch(function, launch, {out, 0, 0}), 912) << "more than 8 blocks, not permitted";
  ASSERT_EQ(runtime::PermitLaunch(*driver_, function, launch), 0);
  EXPECT_EQ(Launch(function, launch, {out, 0, 0}), 0);
}

TEST_F(MockLaunchTest, DescriptorsAreTensorMapsOfTheArgument) {
  const runtime::CuPointer from = Memory(4 * kFloats), to = Memory(4 * kFloats);
  std::vector<int32_t> numbers(kFloats);
  for (size_t i = 0; i < kFloats; ++i) numbers[i] = static_cast<int32_t>(3 * i);
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync_v2(from, numbers.data(), 4 * kFloats, nullptr), 0);
  ir::Launch launch = {.block_x = kFloats, .descriptors = {Rows()}};
  ASSERT_EQ(Launch(Kernel("copy"), launch, {from, to, 0, 0}), 0);
  EXPECT_EQ(Numbers(to, kFloats), numbers);
  launch.descriptors[0].box = {2, 16};
  EXPECT_EQ(Launch(Kernel("copy"), launch, {from, to, 0, 0}), 1) << "a row of 64 bytes, of 32";
  launch.descriptors[0].swizzle = ir::Swizzle::k64;
  EXPECT_EQ(Launch(Kernel("copy"), launch, {from, to, 0, 0}), 0);
  launch.descriptors[0].strides = {60};
  EXPECT_EQ(Launch(Kernel("copy"), launch, {from, to, 0, 0}), 1) << "16 bytes do not divide it";
}

/// y = x, by the descriptor of x.
std::string CopyPackage(const std::string& code) {
  runtime::Package package;
  package.info.target = "cuda:sm_90a";
  package.info.program = kProgramVersion;
  package.info.kernels = {{"default", "", "", "copy", {}, 0}};
  const ir::ArtifactBuffer buffer = {.shape = {kFloats}, .bytes = 4 * kFloats};
  ir::Artifact kernel;
  kernel.target = package.info.target;
  kernel.builder = kBuilderVersion;
  kernel.workload_hash = kernel.trace_hash = std::string(32, '1');
  ir::ArtifactPhase phase = {.symbol = "copy"};
  phase.launch = {.block_x = kFloats, .shared_bytes = 100'000, .descriptors = {Rows()}};
  kernel.phases = {phase};
  kernel.steps = {{0, 1, 1}};
  kernel.inputs = kernel.outputs = {buffer};
  package.plan.inputs = {{"x", ir::DType::kF32, {kFloats}}};
  package.plan.outputs = {{"y", ir::DType::kF32, {kFloats}}};
  package.plan.buffers = {{ir::PlanBufferKind::kInput, 0, 4 * kFloats},
                          {ir::PlanBufferKind::kOutput, 0, 4 * kFloats}};
  package.plan.kernels = {kernel};
  package.plan.steps.resize(1);
  package.plan.steps[0].kernel = 0;
  package.plan.steps[0].buffers = {0, 1};
  package.code = std::as_bytes(std::span(code));
  const auto bytes = runtime::SerializePackage(package);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

// A tensor map holds an address: the graph of a run on other memory has another one.
TEST_F(MockLaunchTest, APackagesGraphsHaveMapsOfTheBuffersOfTheRun) {
  const std::string package = CopyPackage(ir::PackCudaModules({kCode}));
  hone_model* model = nullptr;
  hone_context* context = nullptr;
  ASSERT_EQ(hone_model_open_memory(package.data(), package.size(), nullptr, &model), HONE_OK)
      << hone_last_error();
  ASSERT_EQ(hone_context_create(model, nullptr, &context), HONE_OK) << hone_last_error();
  std::vector<runtime::CuPointer> memory = {Memory(4 * kFloats), Memory(4 * kFloats)};
  for (int run = 0; run < 4; ++run) {
    std::vector<float> x(kFloats, static_cast<float>(run) + 0.5F), y(kFloats);
    const void* from = x.data();
    if (run > 0) {
      const runtime::CuPointer at = memory[static_cast<size_t>(run % 2)];
      ASSERT_EQ(driver_->cuMemcpyHtoDAsync_v2(at, x.data(), 4 * kFloats, nullptr), 0);
      ASSERT_EQ(driver_->cuStreamSynchronize(nullptr), 0);
      from = reinterpret_cast<const void*>(at);
    }
    const hone_input input{from, 4 * kFloats};
    const hone_output output{y.data(), 4 * kFloats};
    ASSERT_EQ(hone_context_run(context, &input, 1, &output, 1), HONE_OK)
        << hone_last_error() << Error();
    EXPECT_EQ(y, x) << run;
  }
  hone_context_destroy(context);
  hone_model_close(model);
}

/// Answers with a Trace of the products rule.
class TileTrace final : public compiler::TraceSource {
 public:
  explicit TileTrace(schedule::Values values) : values_(std::move(values)) {}

  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string&,
                                            const ir::Target& target) override {
    const auto sketch = schedule::ProductsSketch(workload, target);
    if (!sketch) return absl::InvalidArgumentError("no product");
    if (const auto why = sketch->rule->Refusal(*sketch, values_); !why.empty())
      return absl::InvalidArgumentError(std::string(why));
    schedule::TraceWriter writer(workload);
    HONE_RETURN_IF_ERROR(sketch->rule->Emit(*sketch, values_, writer));
    return compiler::FoundTrace{.trace = schedule::ToText(writer.trace()), .rung = "exact"};
  }

 private:
  const schedule::Values values_;
};

// Four slices of a product, one after the other on their way: 70 KB of shared memory.
TEST_F(MockLaunchTest, ATileBeyond48KiBRunsInAPackage) {
  compiler::GraphMaker maker(3);
  const graph::ValueId x = maker.Input("x", {64, 128});
  const graph::Graph graph =
      maker.Finish({maker.Node("MatMul", {}, {x, maker.Weights({128, 64})})});
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = testing::BuildDir() + "/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  TileTrace traces({8, 8, 8, 2, 32, 1, 4});
  const auto model = compiler::CompileModel(graph, {.target = "cuda:sm_86"}, builder, traces);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->package.plan.kernels.size(), 1U);
  const ir::Launch& launch = model->package.plan.kernels[0].phases.back().launch;
  EXPECT_GT(launch.shared_bytes, 48 << 10);
  EXPECT_LT(launch.shared_bytes, 99 << 10);
  const auto package = runtime::SerializePackage(model->package);
  ASSERT_TRUE(package.ok()) << package.status().ToString();
  const auto inputs = compiler::RandomInputs(graph, 1);
  const auto expected = compiler::RunNodeByNode(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = compiler::RunPackage(*package, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << Error();
  const std::vector<double> want = (*expected)[0]->AsDoubles(), got = (*actual)[0]->AsDoubles();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
}

}  // namespace
}  // namespace hone

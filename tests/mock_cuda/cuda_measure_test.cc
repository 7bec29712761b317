#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/check.h"
#include "ir/text.h"
#include "measure/candidate_builder.h"
#include "measure/device.h"
#include "measure/local_measurer.h"
#include "measure/sandbox.h"
#include "schedule/cuda/products.h"
#include "schedule/trace_writer.h"
#include "tests/mock_cuda/mock_machine.h"
#include "tests/test_paths.h"

// Candidates on the mock driver in the runner's process, with faults by script: what each costs.
namespace hone::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTarget[] = "cuda:sm_90a";
constexpr char kAdd[] =
    "workload 1\n"
    "x0: f32[16,32] input range(-1,1)\n"
    "x1: f32[32] constant\n"
    "s0: f32[16,32] output = (x0[i0, i1] + x1[i1])\n";

/// Every `from` in the code becomes `to`, of the same length.
void Replace(std::string& code, std::string_view from, std::string_view to) {
  HONE_CHECK(from.size() == to.size());
  for (size_t at = code.find(from); at != std::string::npos; at = code.find(from, at + 1)) {
    code.replace(at, from.size(), to);
  }
}

class CudaMeasureTest : public ::testing::Test {
 protected:
  CudaMeasureTest() {
    // This process asks the driver too; in it the mock is as without a script.
    const std::string mock = hone::testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1";
    HONE_CHECK(dlopen(mock.c_str(), RTLD_NOW) != nullptr) << dlerror();
    HONE_CHECK(::setenv("LD_LIBRARY_PATH", machine_.drivers().c_str(), 1) == 0);
    absl::StatusOr<ir::Workload> parsed = ir::ParseWorkload(kAdd);
    HONE_CHECK(parsed.ok()) << parsed.status();
    workload_ = std::make_shared<ir::Workload>(*std::move(parsed));
    const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
    options_.builder.program = programs + "hone-builder";
    options_.builder.processes = 1;
    client_ = std::make_unique<BuilderClient>(options_.builder, clock_);
    builder_ = std::make_unique<CandidateBuilder>(*client_, clock_);
    options_.runner.program = programs + "hone-runner";
    options_.runner.device = "cuda:0";
    options_.runner.test_hooks = true;
    options_.build = [this](const MeasureInput& input) {
      BuiltCandidate built =
          builder_->Build(*input.workload, input.target, input.trace, input.seed, "");
      if (input.id == kBad && spoil_) spoil_(built.job.kernel);
      return built;
    };
  }
  ~CudaMeasureTest() override { ::unsetenv("LD_LIBRARY_PATH"); }

  /// Candidate 2 of 3; the default that all are compared with has no id.
  static constexpr int64_t kBad = 2;

  MeasureResult Measure(LocalMeasurer& measurer, int64_t id) const {
    MeasureInput input;
    input.id = id;
    input.workload = workload_;
    input.target = kTarget;
    input.trace = trace_;
    input.seed = 7;
    measurer.Submit(input);
    std::vector<MeasureResult> results = measurer.Collect(-1);
    EXPECT_EQ(results.size(), 1U);
    return results.empty() ? MeasureResult() : std::move(results.front());
  }
  /// One after the other, so that it is clear whose fault costs whom.
  std::map<int64_t, MeasureResult> MeasureThree() {
    LocalMeasurer measurer(options_, clock_);
    std::map<int64_t, MeasureResult> results;
    for (int64_t id = 1; id <= 3; ++id) results[id] = Measure(measurer, id);
    return results;
  }
  void ExpectCostsOnlyItself(Outcome outcome, const std::string& says) {
    for (const auto& [id, result] : MeasureThree()) {
      const Outcome wanted = id == kBad ? outcome : Outcome::kOk;
      EXPECT_EQ(ToString(result.outcome), ToString(wanted)) << id << ": " << result.message;
      if (id != kBad) continue;
      EXPECT_THAT(result.message, HasSubstr(says));
    }
  }

  const MockMachine machine_;
  const SystemMonotonicClock clock_;
  LocalMeasurerOptions options_;
  std::unique_ptr<BuilderClient> client_;
  std::unique_ptr<CandidateBuilder> builder_;
  std::shared_ptr<const ir::Workload> workload_;
  std::string trace_;  ///< empty: the default's
  std::function<void(RunKernel&)> spoil_;
};

TEST_F(CudaMeasureTest, TimesAreTheDevicesAndBelieved) {
  for (const auto& [id, result] : MeasureThree()) {
    ASSERT_EQ(result.outcome, Outcome::kOk) << result.message;
    EXPECT_GE(result.samples_ns.size(), 1U);
    for (const int64_t ns : result.samples_ns) EXPECT_GT(ns, 0);
    EXPECT_EQ(result.message, "1980 MHz, 41 C, 350 W");
  }
}

TEST_F(CudaMeasureTest, AWrongAnswerCostsOnlyItself) {
  spoil_ = [](RunKernel& kernel) { Replace(kernel.shared_object, "add.rn.f32", "sub.rn.f32"); };
  ExpectCostsOnlyItself(Outcome::kWrongAnswer, "");
}

TEST_F(CudaMeasureTest, WritingOutsideOfItsBuffersIsSeen) {
  spoil_ = [](RunKernel& kernel) { kernel.artifact.outputs[0].bytes -= 4; };
  ExpectCostsOnlyItself(Outcome::kRunCrashed, "the kernel wrote outside of its buffers");
}

TEST_F(CudaMeasureTest, AStickyErrorReplacesTheProcess) {
  machine_.SetScript("time real\nlose losecards\n");
  spoil_ = [](RunKernel& kernel) {
    Replace(kernel.shared_object, "candidate", "losecards");
    for (ir::ArtifactPhase& phase : kernel.artifact.phases)
      Replace(phase.symbol, "candidate", "losecards");
  };
  ExpectCostsOnlyItself(Outcome::kRunCrashed, "the CUDA driver says 719");
}

TEST_F(CudaMeasureTest, AKernelThatHangsIsEndedWithItsProcess) {
  options_.runner.prepare_timeout_ns = 4'000'000'000;
  machine_.SetScript("time real\nhang hangscard\n");
  spoil_ = [](RunKernel& kernel) {
    Replace(kernel.shared_object, "candidate", "hangscard");
    for (ir::ArtifactPhase& phase : kernel.artifact.phases)
      Replace(phase.symbol, "candidate", "hangscard");
  };
  ExpectCostsOnlyItself(Outcome::kRunTimeout, "did not finish within 4.0 s");
}

TEST_F(CudaMeasureTest, MemoryThatIsMissingIsTheCandidates) {
  spoil_ = [](RunKernel& kernel) {
    kernel.artifact.workspace.emplace_back().bytes = int64_t{1} << 31;
  };
  ExpectCostsOnlyItself(Outcome::kOutOfMemory, "2048 MiB are wanted");
}

TEST_F(CudaMeasureTest, CodeThatTheDriverRefusesIsABuildThatFailed) {
  spoil_ = [](RunKernel& kernel) { Replace(kernel.shared_object, "add.rn.f32", "gone.n.f32"); };
  ExpectCostsOnlyItself(Outcome::kBuildFailed, "loading the kernel");
}

// Four slices of a product on their way are 70 KB of shared memory: more than code may declare.
TEST_F(CudaMeasureTest, ATileBeyond48KiBIsMeasured) {
  const auto parsed = ir::ParseWorkload(
      "workload 1\n"
      "x0: f32[64,128] input range(-1,1)\n"
      "x1: f32[128,64] constant\n"
      "s0: f32[64,64] output = sum[r0:128] (x0[i0, r0] * x1[r0, i1])\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  workload_ = std::make_shared<ir::Workload>(*parsed);
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget(kTarget, &target, &why)) << why;
  const auto sketch = schedule::ProductsSketch(*workload_, target);
  ASSERT_TRUE(sketch.has_value());
  schedule::TraceWriter writer(*workload_);
  ASSERT_TRUE(sketch->rule->Emit(*sketch, {8, 8, 8, 2, 32, 1, 4}, writer).ok());
  trace_ = schedule::ToText(writer.trace());
  LocalMeasurer measurer(options_, clock_);
  const MeasureResult result = Measure(measurer, 1);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.message;
  // More than any card has is the candidate's fault.
  spoil_ = [](RunKernel& kernel) {
    EXPECT_GT(kernel.artifact.phases.back().launch.shared_bytes, 48 << 10);
    kernel.artifact.phases.back().launch.shared_bytes = 228 << 10;
  };
  const MeasureResult spoilt = Measure(measurer, kBad);
  EXPECT_EQ(ToString(spoilt.outcome), ToString(Outcome::kBuildFailed)) << spoilt.message;
  EXPECT_THAT(spoilt.message, HasSubstr("233472 bytes of shared memory"));
}

TEST_F(CudaMeasureTest, ASlowClockIsNoisy) {
  options_.runner.jobs_per_process = 1;
  LocalMeasurer measurer(options_, clock_);
  EXPECT_EQ(Measure(measurer, 1).outcome, Outcome::kOk);
  machine_.SetScript("time real\nslow 30\n");
  const MeasureResult slow = Measure(measurer, 1);
  EXPECT_EQ(slow.outcome, Outcome::kOk) << slow.message;
  EXPECT_TRUE(slow.noisy);
}

TEST_F(CudaMeasureTest, ADeviceWhoseClockLiesIsNotBelieved) {
  machine_.SetScript("lie 1000000\ntime real\n");
  options_.screen.min_samples = options_.screen.max_samples = 8;
  LocalMeasurer measurer(options_, clock_);
  const MeasureResult result = Measure(measurer, 1);
  EXPECT_EQ(ToString(result.outcome), ToString(Outcome::kWrongAnswer)) << result.message;
  EXPECT_THAT(result.message, HasSubstr("but the answer took"));
}

TEST_F(CudaMeasureTest, ADeviceThatCannotBeOpenedIsNoCandidatesFault) {
  machine_.SetScript("dead 0\n");
  std::vector<std::string> told;
  options_.on_bad_device = [&](const std::string& why) { told.push_back(why); };
  for (const auto& [id, result] : MeasureThree()) {
    EXPECT_EQ(ToString(result.outcome), ToString(Outcome::kWorkerLost)) << id;
    EXPECT_THAT(result.message, HasSubstr("the GPU's context: the CUDA driver says 46"));
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("the CUDA driver says 46")));
}

TEST_F(CudaMeasureTest, TheSandboxRefusesWhatADriverDoesNotNeed) {
  if (!SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  for (const char* hook : {"socket", "exec", "fork", "write", "read", "order"}) {
    if (hook == std::string("read") && !CanHideFiles().ok()) continue;
    options_.run_hook = [hook](const MeasureInput& input) {
      return input.id == kBad ? hook : std::string();
    };
    SCOPED_TRACE(hook);
    for (const auto& [id, result] : MeasureThree())
      EXPECT_EQ(result.outcome, Outcome::kOk) << result.message;
  }
}

TEST(CudaDevicesTest, ADeviceIsItsNameSizeAndMemory) {
  const std::string mock = hone::testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1";
  ASSERT_NE(dlopen(mock.c_str(), RTLD_NOW), nullptr) << dlerror();
  const auto device = DescribeDevice("cuda:0");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->device_class, "cuda-1:mock-GPU-sm90x1-mem1G-l2.32K");
  EXPECT_EQ(device->target, kTarget);
  EXPECT_EQ(device->lock, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_THAT(device->fingerprint, HasSubstr("uuid: GPU-00000000-0000-0000-0000-000000000001\n"));
  const auto second = DescribeDevice("cuda:1");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(second.status().message(), HasSubstr("no GPU of number 1"));
}

}  // namespace
}  // namespace hone::measure

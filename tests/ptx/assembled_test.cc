#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "codegen/codegen.h"
#include "schedule/lower.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/examples.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// NVIDIA's own assembler takes what is emitted, for every chip, and needs no memory to spill to.
namespace hone::ptx {
namespace {

constexpr const char* kChips[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"};

class AssembledTest : public testing::Test {
 protected:
  void Expect(const ir::Workload& workload, const schedule::Trace& trace, const char* chip) {
    const ir::Target target = CudaTarget(chip);
    const auto lowered = schedule::LowerTrace(workload, trace, target, {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto text = codegen::Assembly({&lowered->nest}, target);
    ASSERT_TRUE(text.ok()) << text.status();
    for (const auto& assembler : assemblers_) {
      const auto made = assembler->Assemble(*text, chip);
      ASSERT_TRUE(made.ok()) << chip << ": " << made.status() << "\n" << *text;
      EXPECT_EQ(codegen::AssemblerRefusal(made->log), "");
      EXPECT_EQ(made->log.kernels.size(), lowered->nest.phases.size());
      for (const codegen::KernelUsage& usage : made->log.kernels) {
        EXPECT_EQ(usage.spill_store_bytes, 0) << usage.kernel;
        most_registers_ = std::max(most_registers_, usage.registers);
      }
    }
  }

  SystemMonotonicClock clock_;
  const std::vector<std::unique_ptr<codegen::Assembler>> assemblers_ =
      codegen::AssemblersHere(clock_);
  int most_registers_ = 0;
};

TEST_F(AssembledTest, ProductsWithSharedMemory) {
  if (assemblers_.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  for (const schedule::Example& e : schedule::ReadExamples()) {
    if (e.section != "gpu_gemm") continue;
    for (const char* chip : kChips)
      Expect(schedule::WorkloadOf(e.workload), schedule::TraceOf(e.trace), chip);
  }
}

TEST_F(AssembledTest, GridsOfEveryWorkload) {
  if (assemblers_.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  Random seeds(99);
  for (size_t n = 0; n < 40 && !HasFailure(); ++n) {
    Random random(seeds.Next());
    const schedule::RandomWorkload made = schedule::MakeWorkload(random);
    SCOPED_TRACE(made.text);
    const ir::Workload workload = schedule::WorkloadOf(made.text);
    const char* chip = kChips[n % std::size(kChips)];
    const auto trace = schedule::DefaultTrace(workload, CudaTarget(chip));
    ASSERT_TRUE(trace.ok()) << trace.status();
    Expect(workload, *trace, chip);
  }
  EXPECT_GT(most_registers_, 0);
}

// A block of 1,024 threads leaves 64 registers to each.
TEST_F(AssembledTest, AScanOnAWholeBlock) {
  if (assemblers_.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  const ir::Workload workload = schedule::WorkloadOf(
      "workload 1\nx0: f32[16,1,1200] input range(-1,1)\nx1: f32[1200,300] constant\n"
      "s0: f32[16,1,1200] scan 0 = sum[r0:300] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.0) * "
      "x1[i2, r0])\ns1: f32[16,1,300] output scan 0 = sigmoid(x0[i0, i1, i2] + s0[i0, i1, i2]) * "
      "tanh(x0[i0, i1, i2 + 900] + s0[i0, i1, i2 + 900])\n");
  for (const char* chip : kChips) {
    const auto trace = schedule::DefaultTrace(workload, CudaTarget(chip));
    ASSERT_TRUE(trace.ok()) << trace.status();
    Expect(workload, *trace, chip);
  }
  EXPECT_LE(most_registers_, 64);
}

}  // namespace
}  // namespace hone::ptx

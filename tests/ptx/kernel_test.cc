#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/launch.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/examples.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_trace.h"
#include "tests/schedule/random_workload.h"

// Kernels as they ship: the PTX that is emitted for a loop nest, executed, equals the interpreter
// in double on the same Workload.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using schedule::CheckOptions;
using schedule::CheckResult;
using testing::HasSubstr;

CheckOptions OnGpu(const std::string& chip, uint64_t seed) {
  CheckOptions options;
  options.seed = seed;
  options.also_run = [chip, seed](const ir::LoopNest& nest,
                                  std::vector<std::vector<uint8_t>>* buffers) {
    return RunPtx(nest, chip, seed, buffers);
  };
  return options;
}

void ExpectEqual(const std::string& workload, const std::string& trace,
                 const std::string& chip = "sm_80") {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const CheckResult result = schedule::CheckTexts(workload, trace, OnGpu(chip, seed));
    EXPECT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << "\n" << result.why;
    if (testing::Test::HasFailure()) return;
  }
}

std::string Map(const std::string& expression) {
  return "workload 1\nx0: f32[9,40] input range(-3,3)\nx1: f32[40] input range(0.1,2)\n"
         "s0: f32[9,40] output = " +
         expression + "\n";
}

constexpr char kMapTrace[] =
    "split(s0.i1, 4, mask)\nbind(s0.i0, block.x)\nbind(s0.i1.0, thread.x)\nvectorize(s0.i1.1)\n";

TEST(KernelTest, Maps) {
  ExpectEqual(Map("x0[i0, i1] * x1[i1] + 1.0"), kMapTrace);
  ExpectEqual(Map("max(x0[i0, i1], 0.0) / x1[i1]"), kMapTrace);
}

TEST(KernelTest, VectorMaths) {
  for (const char* function : {"exp", "tanh", "erf", "sigmoid", "sin", "cos", "atan", "sqrt"}) {
    SCOPED_TRACE(function);
    const bool positive = std::string(function) == "sqrt";
    ExpectEqual(Map(std::string(function) + (positive ? "(x1[i1])" : "(x0[i0, i1])")), kMapTrace);
  }
  ExpectEqual(Map("log(x1[i1]) + pow(x1[i1], x0[i0, i1])"), kMapTrace);
}

TEST(KernelTest, RowsByOneThreadEach) {
  const std::string softmax =
      "workload 1\nx0: f32[13,21] input range(-3,3)\n"
      "s0: f32[13] = max[r0:21] (x0[i0, r0])\n"
      "s1: f32[13] = sum[r0:21] (exp(x0[i0, r0] - s0[i0]))\n"
      "s2: f32[13,21] output = exp(x0[i0, i1] - s0[i0]) / s1[i0]\n";
  ExpectEqual(softmax,
              "split(s2.i0, 4, mask)\nbind(s2.i0.0, block.x)\nbind(s2.i0.1, thread.x)\n"
              "compute_at(s1, s2.i0.1, register)\ncompute_at(s0, s2.i0.1, register)\n");
}

TEST(KernelTest, ProductsWithSharedMemory) {
  for (const schedule::Example& e : schedule::ReadExamples()) {
    if (e.section != "gpu_gemm") continue;
    for (const char* chip : {"sm_80", "sm_90a", "sm_100a"}) {
      SCOPED_TRACE(e.name + " " + chip);
      ExpectEqual(e.workload, e.trace, chip);
    }
  }
}

/// The schedule that a GPU has for every Workload, or another point of its Sketch.
schedule::Trace GridTrace(const ir::Workload& workload, Random* random) {
  const schedule::Space space(workload, CudaTarget("sm_80"), ir::AccuracyClass::kDefault);
  const uint64_t id = random->Chance(0.5) ? space.DefaultId() : random->Below(space.product());
  auto trace = space.TraceOf(id);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *trace : schedule::Trace{};
}

TEST(KernelTest, GridsOfEveryWorkload) {
  constexpr int kWorkloads = 120;
  std::map<std::string, int> families;
  int launched = 0;
  Random seeds(31337);
  for (int n = 0; n < kWorkloads; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const schedule::RandomWorkload made = schedule::MakeWorkload(random);
    const ir::Workload workload = schedule::WorkloadOf(made.text);
    const schedule::Trace trace = GridTrace(workload, &random);
    const CheckResult result = schedule::CheckTrace(workload, trace, OnGpu("sm_80", seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << "seed " << seed << " (" << made.family << "): " << result.why << "\n"
        << made.text << "\n"
        << ToText(trace);
    ++families[made.family];
    for (const ir::Phase& phase : result.lowered.nest.phases)
      launched += ir::LaunchOf(phase).block_x > 1 ? 1 : 0;
  }
  for (const auto& [what, count] : families) std::cout << count << " of " << what << "\n";
  EXPECT_GE(families.size(), 8U);
  EXPECT_GE(launched, kWorkloads);
}

/// Random Workloads with random grids, as RandomTraces of tests/schedule makes them.
TEST(KernelTest, RandomGrids) {
  constexpr int kWanted = 150;
  constexpr int kMostTries = 1000;
  int equal = 0;
  std::map<std::string, int> refused, dtypes, uses;
  Random seeds(20240607);
  for (int tries = 0; tries < kMostTries && equal < kWanted; ++tries) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const schedule::RandomWorkload made = schedule::MakeWorkload(random);
    const ir::Workload workload = schedule::WorkloadOf(made.text);
    schedule::TraceUse use;
    schedule::Trace trace = schedule::MakeTrace(workload, random, "grid", &use);
    if (random.Chance(0.7)) trace = schedule::InMemory(trace);
    const char* chip = random.Chance(0.5) ? "sm_80" : "sm_90a";
    const CheckResult result = schedule::CheckTrace(workload, trace, OnGpu(chip, seed));
    if (result.agreement == Agreement::kRefused) ++refused[result.why];
    ASSERT_NE(result.agreement, Agreement::kDifferent)
        << "seed " << seed << " (" << made.family << "): " << result.why << "\n"
        << made.text << "\n"
        << ToText(trace) << "\n"
        << ir::ToText(result.lowered.nest);
    if (result.agreement != Agreement::kEqual) continue;
    ++equal;
    ++dtypes[made.dtype];
    for (const auto& [what, count] : use.counts) ++uses[what];
  }
  for (const auto& [why, count] : refused) std::cout << count << " times refused: " << why << "\n";
  for (const auto& [what, count] : dtypes) std::cout << count << " of " << what << "\n";
  for (const auto& [what, count] : uses) std::cout << count << " with " << what << "\n";
  EXPECT_GE(equal, kWanted);
  for (const char* what : {"bind", "place shared"}) EXPECT_GE(uses[what], kWanted / 5) << what;
}

}  // namespace
}  // namespace hone::ptx

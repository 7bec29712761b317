#include "tests/codegen/kernel.h"

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/lanes.h"
#include "ir/launch.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/examples.h"
#include "tests/schedule/in_memory.h"
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

// Rows of seven: four neighbours lie at any multiple of four bytes.
TEST(KernelTest, VectorsThatAreNotAligned) {
  ExpectEqual(
      "workload 1\nx0: f32[6,7] input range(-3,3)\n"
      "s0: f32[6,4] output = x0[i0, i1 + 2] * 2.0\n",
      "bind(s0.i0, thread.x)\nvectorize(s0.i1)\n");
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

// Each thread reduces every 64th element, the first one what they found.
TEST(KernelTest, RowsByABlockEach) {
  const std::string softmax =
      "workload 1\nx0: f32[5,192] input range(-3,3)\n"
      "s0: f32[5] = max[r0:192] (x0[i0, r0])\n"
      "s1: f32[5] = sum[r0:192] (exp(x0[i0, r0] - s0[i0]))\n"
      "s2: f32[5,192] output = exp(x0[i0, i1] - s0[i0]) / s1[i0]\n";
  ExpectEqual(softmax,
              "s3 = rfactor(s0, s0.r0, 64, inner)\ns4 = rfactor(s1, s1.r0, 64, inner)\n"
              "split(s2.i1, 64)\nreorder(s2.i0, s2.i1.1, s2.i1.0)\n"
              "bind(s2.i0, block.x)\nbind(s2.i1.1, thread.x)\n"
              "compute_at(s1, s2.i1.1, shared)\ncompute_at(s4, s2.i1.1, shared)\n"
              "compute_at(s0, s2.i1.1, shared)\ncompute_at(s3, s2.i1.1, shared)\n"
              "bind(s3.i1, thread.x)\nbind(s4.i1, thread.x)\n"
              "bind(s0.i0, thread.x)\nbind(s1.i0, thread.x)\n");
}

// A warp reduces a row: no shared memory but for what it found.
TEST(KernelTest, RowsByAWarpEach) {
  const std::string softmax =
      "workload 1\nx0: f32[5,150] input range(-3,3)\n"
      "s0: f32[5] = max[r0:150] (x0[i0, r0])\n"
      "s1: f32[5] = sum[r0:150] (exp(x0[i0, r0] - s0[i0]))\n"
      "s2: f32[5,150] output = exp(x0[i0, i1] - s0[i0]) / s1[i0]\n";
  ExpectEqual(softmax,
              "split(s2.i0, 2, mask)\nsplit(s2.i1, 32, mask)\n"
              "reorder(s2.i0.0, s2.i0.1, s2.i1.1, s2.i1.0)\n"
              "bind(s2.i0.0, block.x)\nbind(s2.i0.1, thread.y)\nbind(s2.i1.1, thread.x)\n"
              "compute_at(s1, s2.i1.1, shared)\ncompute_at(s0, s2.i1.1, shared)\n"
              "split(s0.r0, 32, mask)\nreorder(s0.r0.1, s0.r0.0)\n"
              "s3 = cache_write(s0, register, at=s0.r0.1)\n"
              "bind(s0.i0, thread.y)\nbind(s0.r0.1, thread.x)\n"
              "split(s1.r0, 32, mask)\nreorder(s1.r0.1, s1.r0.0)\n"
              "s4 = cache_write(s1, register, at=s1.r0.1)\n"
              "bind(s1.i0, thread.y)\nbind(s1.r0.1, thread.x)\n");
}

// Groups of a few lanes, several in a warp and several warps in a block, of every type.
TEST(KernelTest, LanesThatShareASum) {
  for (const char* dtype : {"f32", "f64", "i32", "i64"}) {
    for (const char* combiner : {"sum", "max", "min"}) {
      for (const int lanes : {2, 8, 32}) {
        SCOPED_TRACE(fmt::format("{} {} {}", dtype, combiner, lanes));
        ExpectEqual(fmt::format("workload 1\nx0: {0}[21,70] input range(-9,9)\n"
                                "s0: {0}[21] output = {1}[r0:70] (x0[i0, r0])\n",
                                dtype, combiner),
                    fmt::format("split(s0.i0, 9, mask)\nsplit(s0.r0, {}, mask)\n"
                                "reorder(s0.r0.1, s0.r0.0)\n"
                                "bind(s0.i0.0, block.x)\nbind(s0.i0.1, thread.y)\n"
                                "s1 = cache_write(s0, register, at=s0.r0.1)\n"
                                "bind(s0.r0.1, thread.x)\n",
                                lanes));
      }
    }
  }
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

TEST(KernelTest, AThreadThatFailsLeavesItsResult) {
  constexpr int32_t kResult = 1 << 16 | 5;
  codegen::NestBuilder b;
  const int x = b.Input("x", ir::DType::kI32, 4);
  const int y = b.Output("y", ir::DType::kI32, 4);
  const int i = b.NewVar();
  const ir::Expr element = ir::Load(x, ir::DType::kI32, {ir::Var(i)});
  const ir::Expr three = ir::ConstInt(ir::DType::kI32, 3);
  b.AddPhase("k", ir::For(i, 4, ir::LoopKind::kThreadX,
                          ir::Block({ir::If(ir::Ge(element, three), ir::Fail(kResult)),
                                     ir::Store(y, ir::Var(i), element)})));
  b.nest.steps = {{0, 1, 1}};
  const auto run = [&](uint8_t last) {
    std::vector<std::vector<uint8_t>> buffers = {
        {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, last, 0, 0, 0}, std::vector<uint8_t>(16)};
    return std::string(RunPtx(b.nest, "sm_80", 1, &buffers).message());
  };
  EXPECT_EQ(run(2), "");
  EXPECT_EQ(run(3), "k ended with the result 65541");
}

// A barrier that some threads would not reach is refused where it is emitted.
TEST(KernelTest, BarriersOfSomeThreadsAreRefused) {
  codegen::NestBuilder b;
  const int y = b.Output("y", ir::DType::kI32, 8);
  const int i = b.NewVar();
  const int j = b.NewVar();
  const ir::Expr one = ir::ConstInt(ir::DType::kI32, 1);
  b.AddPhase("k", ir::Block({ir::For(i, 4, ir::LoopKind::kThreadX, ir::Store(y, ir::Var(i), one)),
                             ir::For(j, 3, ir::LoopKind::kThreadX,
                                     ir::Block({ir::Sync(), ir::Store(y, ir::Var(j) + 4, one)}))}));
  std::vector<std::vector<uint8_t>> buffers = {std::vector<uint8_t>(32)};
  const absl::Status status = RunPtx(b.nest, "sm_80", 1, &buffers);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("only 3 of 4 threads"));
}

// Lanes of a group follow each other in a warp.
TEST(KernelTest, LanesOfWiderRowsAreRefused) {
  codegen::NestBuilder b;
  const int y = b.Output("y", ir::DType::kF32, 8);
  b.nest.buffers.push_back({.name = "t", .scope = ir::Scope::kRegister, .elements = 1});
  const int t = static_cast<int>(b.nest.buffers.size()) - 1;
  const int i = b.NewVar();
  const ir::Expr one = ir::Const(ir::DType::kF32, 1);
  b.AddPhase("k", ir::For(i, 8, ir::LoopKind::kThreadX,
                          ir::Block({ir::Store(t, ir::Int(0), one),
                                     ir::CombineLanes(t, ir::Int(0), 4, ir::Combiner::kSum),
                                     ir::Store(y, ir::Var(i), one)})));
  std::vector<std::vector<uint8_t>> buffers = {std::vector<uint8_t>(32)};
  const absl::Status status = RunPtx(b.nest, "sm_80", 1, &buffers);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 lanes meet where 8 threads"));
}

// Siblings with fewer iterations than are launched.
TEST(KernelTest, SiblingsOfDifferentExtents) {
  ExpectEqual(Map("x0[i0, i1] * x1[i1]"),
              "split(s0.i1, 7, two_sizes)\nbind(s0.i0, block.x)\nbind(s0.i1.0, thread.x)\n");
}

TEST(KernelTest, UnknownChipsAreRefused) {
  codegen::NestBuilder b;
  const int y = b.Output("y", ir::DType::kF32, 1);
  b.AddPhase("k", ir::Store(y, ir::Int(0), ir::Const(ir::DType::kF32, 1)));
  const ir::Target unknown{.text = "cuda:sm_12345", .kind = "cuda", .family = "cuda:sm_12345"};
  const auto text = codegen::Assembly({&b.nest}, unknown);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("sm_12345"));
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
      launched += ir::LaunchOf(result.lowered.nest, phase).block_x > 1 ? 1 : 0;
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

#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// tensorize(LOOP, tile): products of matrices in tile registers. Nests are checked everywhere, the
// code of a machine with AMX only on one.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTarget[] = "cpu:avx512+vnni+amx,threads=2";

/// A product of bytes and what follows it; without: the sums are the output.
std::string Product(const std::string& left, const std::string& right, int m, int n, int k,
                    bool epilogue) {
  const auto range = [](const std::string& type) {
    return type == "u8" ? "range(0,256)" : "range(-128,128)";
  };
  const std::string after = epilogue ? fmt::format("x2: f32[{}] constant\n", n) : std::string();
  return fmt::format(
      "workload 1\nx0: {}[{},{}] input {}\nx1: {}[{},{}] constant\n{}"
      "s0: i32[{},{}]{} = sum[r0:{}] (i32(x0[i0, r0]) * i32(x1[r0, i1]))\n{}",
      left, m, k, range(left), right, k, n, after, m, n, epilogue ? "" : " output", k,
      epilogue ? fmt::format("s1: f32[{},{}] output = f32(s0[i0, i1]) * x2[i1]\n", m, n) : "");
}

std::string HalfProduct(int m, int n, int k) {
  return fmt::format(
      "workload 1\nx0: bf16[{0},{2}] input range(-2,2)\nx1: bf16[{2},{1}] constant\n"
      "x2: f32[{1}] constant\n"
      "s0: f32[{0},{1}] = sum[r0:{2}] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n"
      "s1: f32[{0},{1}] output = max(s0[i0, i1] + x2[i1], 0.0)\n",
      m, n, k);
}

constexpr char kConvolution[] =
    "workload 1\n"
    "x0: u8[1,3,17,32] input range(0,256)\n"
    "x1: i8[40,32,3,3] constant\n"
    "x2: u8[] constant\n"
    "x3: f32[40] constant\n"
    "s0: u8[1,5,19,32] = select(i1 - 1 >= 0 & i1 - 1 < 3 & (i2 - 1 >= 0 & i2 - 1 < 17), "
    "x0[0, i1 - 1, i2 - 1, i3], x2[])\n"
    "s1: i32[1,3,17,40] = sum[r0:3,r1:3,r2:32] "
    "(i32(s0[0, i1 + r0, i2 + r1, r2]) * i32(x1[i3, r2, r0, r1]))\n"
    "s2: u8[1,3,17,40] output = u8(round(f32(s1[0, i1, i2, i3]) * x3[i3]))\n";

/// The code and the nest give what the interpreter does; the code only where this machine runs it.
void Check(const std::string& text, const Trace& trace, const std::string& target,
           bool compile = true) {
  std::string why;
  const bool here = compile && ir::HostCanRun(TargetOf(target), &why);
  const CheckResult result =
      CheckTrace(WorkloadOf(text), trace, {.target = target, .compile = here});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(trace);
}

Trace CheckedDefault(const std::string& text, const std::string& target) {
  const auto trace = DefaultTrace(WorkloadOf(text), TargetOf(target));
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  Check(text, *trace, target);
  return *trace;
}

std::string AssemblyOf(const std::string& text, const Trace& trace, const std::string& target) {
  const auto lowered = LowerTrace(WorkloadOf(text), trace, TargetOf(target), {}, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (!lowered.ok()) return {};
  return codegen::Assembly({&lowered->nest}, TargetOf(target)).value_or("");
}

int CountOf(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(TileProduct, IsOneInstructionForEachPairOfTypes) {
  struct Case {
    const char *left, *right, *instruction;
  };
  for (const Case& c : {Case{"u8", "i8", "tdpbusd"}, Case{"i8", "i8", "tdpbssd"},
                        Case{"i8", "u8", "tdpbsud"}, Case{"u8", "u8", "tdpbuud"}}) {
    SCOPED_TRACE(c.instruction);
    const std::string text = Product(c.left, c.right, 32, 32, 128, true);
    const std::string assembly = AssemblyOf(text, CheckedDefault(text, kTarget), kTarget);
    // Four tiles of sums from two of each factor, which are loaded once each.
    EXPECT_EQ(CountOf(assembly, c.instruction), 4);
    EXPECT_EQ(CountOf(assembly, "tileloadd"), 4);
    EXPECT_EQ(CountOf(assembly, "tilezero"), 4) << "sums begin in registers";
    EXPECT_EQ(CountOf(assembly, "ldtilecfg"), 1) << "outside of all loops";
    EXPECT_EQ(CountOf(assembly, "tilerelease"), 1);
  }
}

TEST(TileProduct, OfBf16NeedsNoVectorsOfBf16) {
  const std::string text = HalfProduct(33, 48, 64);
  const char* target = "cpu:avx512+amx,threads=1";
  EXPECT_THAT(AssemblyOf(text, CheckedDefault(text, target), target), HasSubstr("tdpbf16ps"));
}

TEST(TileProduct, OfAConvolutionReadsItsPaddedCopy) {
  const Trace trace = CheckedDefault(kConvolution, kTarget);
  EXPECT_THAT(ToText(trace), HasSubstr("tensorize(s1.i2.1, tile)"));
  EXPECT_THAT(AssemblyOf(kConvolution, trace, kTarget), HasSubstr("tdpbusd"));
}

// Sums that are the result lie where it does.
TEST(TileProduct, OfAResultNeedsNoCopy) {
  const std::string text = Product("u8", "i8", 40, 64, 64, false);
  const Trace trace = CheckedDefault(text, kTarget);
  EXPECT_THAT(ToText(trace), Not(HasSubstr("cache_write")));
  EXPECT_THAT(AssemblyOf(text, trace, kTarget), HasSubstr("tdpbusd"));
}

// Rows of two sizes, last columns, terms in groups of any size.
TEST(TileProduct, IsRightForAnyShape) {
  const uint64_t seed = 20261129;
  std::cout << "seed " << seed << "\n";
  Random random(seed);
  int tiles = 0;
  for (int round = 0; round < 24; ++round) {
    const auto one = [&](int most) { return static_cast<int>(random.Between(1, most)); };
    const bool half = random.Chance(0.3);
    const std::string text =
        half ? HalfProduct(one(90), one(100), 2 * one(60))
             : Product(random.Chance(0.5) ? "u8" : "i8", random.Chance(0.5) ? "u8" : "i8", one(90),
                       one(100), 4 * one(60), random.Chance(0.6));
    SCOPED_TRACE(text);
    tiles += ToText(CheckedDefault(text, kTarget)).find(", tile)") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(tiles, 6);
}

// Every choice of the tables: legal, and right.
TEST(TileProduct, EveryPointIsRight) {
  for (const std::string& text :
       {Product("u8", "i8", 61, 96, 64, true), Product("i8", "i8", 64, 80, 96, false),
        HalfProduct(50, 70, 32), std::string(kConvolution)}) {
    const ir::Workload workload = WorkloadOf(text);
    const Space space(workload, TargetOf(kTarget), ir::AccuracyClass::kDefault);
    int points = 0;
    for (uint64_t id = 0; id < space.product(); ++id) {
      if (space.PointOf(id).sketch.name != "tiles" || !space.Admits(id)) continue;
      const auto trace = space.TraceOf(id);
      ASSERT_TRUE(trace.ok()) << trace.status();
      SCOPED_TRACE(id);
      Check(text, *trace, kTarget, id % 4 == 0);
      // Another point may have the same Trace.
      const auto located = space.Locate(ToText(*trace));
      ASSERT_TRUE(located.has_value());
      EXPECT_EQ(ToText(*space.TraceOf(*located)), ToText(*trace));
      ++points;
    }
    EXPECT_GT(points, 5);
  }
}

// What a machine without tiles does with such a Trace: the loops.
TEST(TileProduct, RunsAsLoopsElsewhere) {
  const std::string text = Product("u8", "i8", 20, 32, 64, true);
  Check(text, CheckedDefault(text, kTarget), "cpu:avx512,threads=1");
}

TEST(TileProduct, SaysWhatItNeeds) {
  const std::string text = Product("u8", "i8", 32, 32, 64, false);
  const std::string split = "split(s0.i0, 16)\nsplit(s0.i1, 16)\nsplit(s0.r0, [16, 4])\n";
  EXPECT_THAT(Loops(text, split + "tensorize(s0.i0.1, tile)\n"),
              HasSubstr("s0.i0.1 is not the fourth loop from inside"));
  const std::string order =
      "reorder(s0.i0.0, s0.i1.0, s0.r0.0, s0.i0.1, s0.i1.1, s0.r0.1, s0.r0.2)\n";
  EXPECT_THAT(Loops(text, split + order + "tensorize(s0.i0.1, tile)\n"),
              HasSubstr("words of them along columns in the other"));
  const std::string wide = "split(s0.i0, 32)\nsplit(s0.i1, 16)\nsplit(s0.r0, [16, 4])\n" + order;
  EXPECT_THAT(Loops(text, wide + "tensorize(s0.i0.1, tile)\n"), HasSubstr("at most 16 rows"));
}

}  // namespace
}  // namespace hone::schedule

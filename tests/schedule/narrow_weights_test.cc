#include <fmt/format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// Products with weights of four and eight bits that are made floats in registers.
namespace hone::schedule {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// m rows by n columns over groups of 32 terms, two in a byte.
std::string HalfBytes(int m, int n, int groups) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{3}] input range(-1,1)\nx1: u8[{1},{2},16] constant\n"
      "x2: f32[{1},{2}] constant\n"
      "s0: f32[{0},{1}] output = sum[r0:{2},r1:16,r2:2] (x0[i0, (r0 * 16 + r1) * 2 + r2] * "
      "(f32(((i32(x1[i1, r0, r1]) >> i32(r2 * 4)) & 15:i32) - 8:i32) * x2[i1, r0]))\n",
      m, n, groups, 32 * groups);
}

std::string Bytes(int m, int n, int k) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\nx1: i8[{1},1,{2}] constant\n"
      "x2: f32[{1},1] constant\n"
      "s0: f32[{0},{1}] = sum[r0:{2}] (x0[i0, r0] * f32(i32(x1[i1, 0, r0])))\n"
      "s1: f32[{0},{1}] output = s0[i0, i1] * x2[i1, 0]\n",
      m, n, k);
}

std::string CheckedAssembly(const std::string& text, const std::string& target) {
  const ir::Workload workload = WorkloadOf(text);
  const auto trace = DefaultTrace(workload, TargetOf(target));
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
  const auto lowered = LowerTrace(workload, *trace, TargetOf(target), {}, "k");
  if (!lowered.ok()) return {};
  EXPECT_EQ(lowered->artifact.constants[0].bytes, 0) << "the panels are packed ahead";
  return codegen::Assembly({&lowered->nest}, TargetOf(target)).value_or("");
}

// One load of sixteen bytes gives two vectors, each by one look-up in a register.
TEST(NarrowWeights, OfFourBitsAreReadOnceAndLookedUp) {
  for (const int rows : {1, 5}) {
    SCOPED_TRACE(rows);
    const std::string assembly = CheckedAssembly(HalfBytes(rows, 70, 3), "cpu:avx512,threads=1");
    EXPECT_THAT(assembly, ContainsRegex("vperm(d|ps)"));
    EXPECT_THAT(assembly, Not(HasSubstr("vcvtdq2ps")));
    CheckedAssembly(HalfBytes(rows, 70, 3), "cpu:avx2,threads=2");
  }
}

TEST(NarrowWeights, OfEightBitsAreWidenedInRegisters) {
  for (const char* target : {"cpu:avx512,threads=2", "cpu:avx2,threads=1"}) {
    for (const int rows : {1, 5}) {
      SCOPED_TRACE(fmt::format("{} {}", rows, target));
      EXPECT_THAT(CheckedAssembly(Bytes(rows, 70, 40), target), HasSubstr("vpmovsxbd"));
    }
  }
}

}  // namespace
}  // namespace hone::schedule

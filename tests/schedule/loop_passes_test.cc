#include <sstream>
#include <string>

#include "gtest/gtest.h"

#include "ir/stmt.h"
#include "tests/schedule/nest_check.h"

// Loops joined and tails taken out after lowering.
namespace hone::schedule {
namespace {

/// The loops of a nest, without buffers and steps; it must equal the interpreter.
std::string LoopsOf(const std::string& workload, const std::string& trace) {
  const CheckResult result = CheckTexts(workload, trace);
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  std::istringstream in(ir::ToText(result.lowered.nest));
  std::string line, out;
  while (std::getline(in, line)) {
    if (line.rfind("  ", 0) == 0) out += line.substr(2) + "\n";
  }
  return out;
}

constexpr char kRows[] =
    "workload 1\n"
    "x0: f32[3,32] input range(-1,1)\n"
    "s0: f32[3,32] = exp(x0[i0, i1])\n"
    "s1: f32[3] = sum[r0:32] (s0[i0, r0])\n"
    "s2: f32[3,32] output = s0[i0, i1] * (1.0 / s1[i0])\n";

TEST(FuseLoops, ExpAndSumOfARowAreOneLoop) {
  EXPECT_EQ(LoopsOf(kRows,
                    "compute_at(s1, s2.i0, memory)\ncompute_at(s0, s2.i0, memory)\n"
                    "split(s0.i1, 8)\nvectorize(s0.i1.1)\n"
                    "s3 = rfactor(s1, s1.r0, 8, inner)\ncompute_at(s3, s2.i0, register)\n"
                    "reorder(s3.r0, s3.i1)\nvectorize(s3.i1)\nvectorize(s1.r0)\n"),
            "for v0 < 3:\n"
            "  vector v3 < 8:\n"
            "    s3#3[v3] = 0.0\n"
            "  for v1 < 4:\n"
            "    vector v2 < 8:\n"
            "      s0#2[v1 * 8 + v2] = exp(x0[v0 * 32 + v1 * 8 + v2])\n"
            "    vector v5 < 8:\n"
            "      s3#3[v5] sum= s0#2[v1 * 8 + v5]\n"
            "  s1#4[0] = 0.0\n"
            "  vector v6 < 8:\n"
            "    s1#4[0] sum= s3#3[v6]\n"
            "  for v7 < 32:\n"
            "    s2[v0 * 32 + v7] = s0#2[v7] * (1.0 / s1#4[0])\n");
}

TEST(FuseLoops, ALoopThatReadsWhatALaterIterationWritesStaysBehind) {
  const auto shifted = [](const std::string& index) {
    return "workload 1\nx0: f32[4,18] input range(-1,1)\n"
           "s0: f32[4,18] = exp(x0[i0, i1])\n"
           "s1: f32[4,16] output = s0[i0, i1] + s0[i0, " +
           index + "]\n";
  };
  const char* trace = "compute_at(s0, s1.i0, memory)\npartition(s0.i1, [16])\n";
  EXPECT_EQ(LoopsOf(shifted("i1 + 1"), trace),
            "for v0 < 4:\n"
            "  for v1 < 16:\n"
            "    s0#2[v1] = exp(x0[v0 * 18 + v1])\n"
            "  s0#2[16] = exp(x0[v0 * 18 + 16])\n"
            "  for v2 < 16:\n"
            "    s1[v0 * 16 + v2] = s0#2[v2] + s0#2[v2 + 1]\n");
  EXPECT_EQ(LoopsOf(shifted("15 - i1"), trace),
            "for v0 < 4:\n"
            "  for v1 < 16:\n"
            "    s0#2[v1] = exp(x0[v0 * 18 + v1])\n"
            "  for v2 < 16:\n"
            "    s1[v0 * 16 + v2] = s0#2[v2] + s0#2[v2 * -1 + 15]\n");
}

TEST(PeelMaskedTails, OnlyTheLastVectorIsMasked) {
  EXPECT_EQ(LoopsOf("workload 1\nx0: f32[20] input range(-1,1)\n"
                    "s0: f32[20] output = x0[i0] + 1.0\n",
                    "split(s0.i0, 8, mask)\nvectorize(s0.i0.1)\n"),
            "for v0 < 2:\n"
            "  vector v1 < 8:\n"
            "    if v0 * 8 + v1 < 20:\n"
            "      s0[v0 * 8 + v1] = x0[v0 * 8 + v1] + 1.0\n"
            "vector v1 < 8:\n"
            "  if 16 + v1 < 20:\n"
            "    s0[16 + v1] = x0[16 + v1] + 1.0\n");
  EXPECT_EQ(LoopsOf("workload 1\nx0: f32[3,20] input range(-1,1)\n"
                    "s0: f32[3] output = sum[r0:20] (x0[i0, r0])\n",
                    "s1 = rfactor(s0, s0.r0, 8, inner)\ncompute_at(s1, s0.i0, register)\n"
                    "reorder(s1.r0, s1.i1)\nvectorize(s1.i1)\nvectorize(s0.r0)\n"),
            "for v0 < 3:\n"
            "  vector v1 < 8:\n"
            "    s1#2[v1] = 0.0\n"
            "  for v2 < 2:\n"
            "    vector v3 < 8:\n"
            "      if v2 * 8 + v3 < 20:\n"
            "        s1#2[v3] sum= x0[v0 * 20 + v2 * 8 + v3]\n"
            "  vector v3 < 8:\n"
            "    if 16 + v3 < 20:\n"
            "      s1#2[v3] sum= x0[v0 * 20 + 16 + v3]\n"
            "  s0[v0] = 0.0\n"
            "  vector v4 < 8:\n"
            "    s0[v0] sum= s1#2[v4]\n");
}

}  // namespace
}  // namespace hone::schedule

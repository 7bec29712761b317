#include <fmt/format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"

// tensorize(LOOP, dot): sums of products of bytes as the machine's dot products, bit for bit what
// the serial loop gives; of bf16, within the interpreter's bound of a sum in f32.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A product of m × k and k × n bytes; the second operand is a constant unless `live`.
std::string Product(const std::string& left, const std::string& right, int m, int n, int k,
                    bool live = false) {
  const auto range = [](const std::string& type) {
    return type == "u8" ? "range(0,256)" : "range(-128,128)";
  };
  return fmt::format(
      "workload 1\nx0: {}[{},{}] input {}\nx1: {}[{},{}] {}\n"
      "s0: i32[{},{}] output = sum[r0:{}] (i32(x0[i0, r0]) * i32(x1[r0, i1]))\n",
      left, m, k, range(left), right, k, n,
      live ? "input " + std::string(range(right)) : "constant", m, n, k);
}

/// The same of bf16, with sums in f32.
std::string HalfProduct(int m, int n, int k, bool live = false) {
  return fmt::format(
      "workload 1\nx0: bf16[{},{}] input range(-2,2)\nx1: bf16[{},{}] {}\n"
      "s0: f32[{},{}] output = sum[r0:{}] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n",
      m, k, k, n, live ? "input range(-2,2)" : "constant", m, n, k);
}

constexpr char kHalfConvolution[] =
    "workload 1\n"
    "x0: bf16[1,5,6,8] input range(-2,2)\n"
    "x1: bf16[40,8,3,3] constant\n"
    "s0: bf16[1,7,8,8] = select(i1 - 1 >= 0 & i1 - 1 < 5 & (i2 - 1 >= 0 & i2 - 1 < 6), "
    "x0[0, i1 - 1, i2 - 1, i3], 0.0:bf16)\n"
    "s1: f32[1,5,6,40] = sum[r0:3,r1:3,r2:8] "
    "(f32(s0[0, i1 + r0, i2 + r1, r2]) * f32(x1[i3, r2, r0, r1]))\n"
    "s2: bf16[1,5,6,40] output = bf16(max(s1[0, i1, i2, i3], 0.0))\n";

constexpr char kConvolution[] =
    "workload 1\n"
    "x0: u8[1,5,6,8] input range(0,256)\n"
    "x1: i8[40,8,3,3] constant\n"
    "x2: u8[] constant\n"
    "s0: u8[1,7,8,8] = select(i1 - 1 >= 0 & i1 - 1 < 5 & (i2 - 1 >= 0 & i2 - 1 < 6), "
    "x0[0, i1 - 1, i2 - 1, i3], x2[])\n"
    "s1: i32[1,5,6,40] output = sum[r0:3,r1:3,r2:8] "
    "(i32(s0[0, i1 + r0, i2 + r1, r2]) * i32(x1[i3, r2, r0, r1]))\n";

std::string AssemblyOf(const std::string& text, const Trace& trace, const std::string& target) {
  const auto lowered = LowerTrace(WorkloadOf(text), trace, TargetOf(target), {}, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (!lowered.ok()) return {};
  return codegen::Assembly({&lowered->nest}, TargetOf(target)).value_or("");
}

TEST(Dot, OfU8AndS8IsOneInstructionWithVnni) {
  for (const char* target : {"cpu:avx512+vnni,threads=1", "cpu:avx2+vnni,threads=1"}) {
    SCOPED_TRACE(target);
    const std::string text = Product("u8", "i8", 13, 70, 24);
    const Trace trace = CheckedDefault(text, target);
    EXPECT_THAT(ToText(trace), HasSubstr("tensorize(s0.r0.1, dot)"));
    const std::string assembly = AssemblyOf(text, trace, target);
    EXPECT_THAT(assembly, HasSubstr("vpdpbusd"));
    EXPECT_THAT(assembly, Not(HasSubstr("vpmulld")));
  }
}

// Pairs of any bytes, widened: exact, where vpmaddubsw would saturate.
TEST(Dot, OfOtherBytesMultipliesPairsOf16Bits) {
  struct Case {
    const char *left, *right, *target, *instruction;
  };
  const Case cases[] = {
      {"u8", "i8", "cpu:avx2,threads=1", "vpmaddwd"},
      {"u8", "i8", "cpu:avx512,threads=1", "vpmaddwd"},
      {"i8", "i8", "cpu:avx512+vnni,threads=1", "vpdpwssd"},
      {"u8", "u8", "cpu:avx2,threads=1", "vpmaddwd"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.left) + " " + c.right + " " + c.target);
    const std::string text = Product(c.left, c.right, 13, 70, 24);
    const std::string assembly = AssemblyOf(text, CheckedDefault(text, c.target), c.target);
    EXPECT_THAT(assembly, HasSubstr(c.instruction));
    EXPECT_THAT(assembly, Not(HasSubstr("vpmulld")));
    EXPECT_THAT(assembly, Not(HasSubstr("vpmaddubsw")));
  }
}

// Both are widened before: in the innermost loop there is nothing but loads and products.
TEST(Dot, OfPairsWidensBeforeTheLoop) {
  for (const bool live : {false, true}) {
    const std::string text = Product("u8", "i8", 12, 128, 64, live);
    const Trace trace = CheckedDefault(text, "cpu:avx2,threads=1");
    EXPECT_THAT(ToText(trace), HasSubstr("i16)"));
    const std::string assembly = AssemblyOf(text, trace, "cpu:avx2,threads=1");
    const size_t first = assembly.find("vpmaddwd");
    const size_t last = assembly.rfind("vpmaddwd");
    ASSERT_NE(first, std::string::npos);
    EXPECT_THAT(assembly.substr(first, last - first), Not(HasSubstr("vpmov")));
  }
  EXPECT_THAT(Loops(Product("u8", "i8", 3, 16, 8), "s1 = pack(s0, x1, [i1, i0], f32)"),
              HasSubstr("only bytes are widened, to i16"));
}

TEST(Dot, OfTwoInputsPacksOneOnTheFly) {
  CheckedDefault(Product("u8", "i8", 7, 40, 20, /*live=*/true), "cpu:avx512+vnni,threads=1");
  CheckedDefault(Product("u8", "u8", 7, 40, 20, /*live=*/true), "cpu:avx2,threads=1");
}

/// Both products of an attention of bytes: scores of h × m × n over k (the second operand lies row
/// by row), and values. The second operand is moved to signed bytes first.
std::string Scores(int h, int m, int n, int k, bool rows) {
  const std::string second = rows ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n);
  return fmt::format(
      "workload 1\nx0: u8[{0},{1},{3}] input range(0,256)\nx1: u8[{0},{4}] input range(0,256)\n"
      "s0: i8[{0},{4}] = i8(x1[i0, i1, i2] ^ 128:u8)\n"
      "s1: i32[{0},{1},{2}] = sum[r0:{3}] (i32(x0[i0, i1, r0]) * i32(s0[i0, {5}]))\n"
      "s2: i32[{0},{1},1] = sum[r0:{3}] (i32(x0[i0, i1, r0]))\n"
      "s3: f32[{0},{1},{2}] output = f32(s1[i0, i1, i2] + 128:i32 * s2[i0, i1, 0])\n",
      h, m, n, k, second, rows ? "i2, r0" : "r0, i2");
}

// Whole words, or vectors that are interleaved, go into the panels; the move to signed bytes with
// them.
TEST(Dot, OfAnAttentionCopiesWordsIntoPanels) {
  for (const bool rows : {true, false}) {
    for (const int columns : {64, 70, 23}) {
      for (const char* target : {"cpu:avx512+vnni,threads=2", "cpu:avx2+vnni,threads=1"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", rows, columns, target));
        const std::string text = Scores(3, 13, columns, 24, rows);
        const Trace trace = CheckedDefault(text, target);
        EXPECT_THAT(ToText(trace), HasSubstr("inline(s0)"));
        EXPECT_THAT(ToText(trace), HasSubstr("tensorize(s1.r0.1, dot)"));
        const std::string assembly = AssemblyOf(text, trace, target);
        EXPECT_THAT(assembly, HasSubstr("vpdpbusd"));
        // AVX2 has no masks for the bytes of the last columns.
        const bool tail = columns != 64 && std::string(target).starts_with("cpu:avx2");
        EXPECT_TRUE(tail || assembly.find("vpinsrb") == std::string::npos);
        EXPECT_THAT(assembly, Not(HasSubstr("vpgather")));
      }
    }
  }
}

// Both operands are filled up with their zero points: the last terms stand apart.
TEST(Dot, OfFilledUpTermsCopiesWholeVectors) {
  const std::string text =
      "workload 1\nx0: u8[3,13,25] input range(0,256)\nx1: u8[3,25,70] input range(0,256)\n"
      "s0: u8[3,13,28] = select(i2 < 25, x0[i0, i1, i2], 0:u8)\n"
      "s1: u8[3,28,70] = select(i1 < 25, x1[i0, i1, i2], 7:u8)\n"
      "s2: i8[3,28,70] = i8(s1[i0, i1, i2] ^ 128:u8)\n"
      "s3: i32[3,13,70] output = sum[r0:28] (i32(s0[i0, i1, r0]) * i32(s2[i0, r0, i2]))\n";
  for (const char* target : {"cpu:avx512+vnni,threads=2", "cpu:avx2,threads=2"}) {
    const std::string assembly = AssemblyOf(text, CheckedDefault(text, target), target);
    const bool tail = std::string(target).starts_with("cpu:avx2");
    EXPECT_TRUE(tail || assembly.find("vpinsrb") == std::string::npos);
  }
}

// What four do not divide is multiplied in pairs, what two do not one by one.
TEST(Dot, TakesWhatDividesTheReduction) {
  const char* target = "cpu:avx512+vnni,threads=1";
  EXPECT_THAT(ToText(CheckedDefault(Product("u8", "i8", 7, 40, 18), target)),
              HasSubstr("split(s0.r0, 2)"));
  EXPECT_THAT(ToText(CheckedDefault(Product("u8", "i8", 7, 40, 21), target)),
              Not(HasSubstr("tensorize")));
}

TEST(Dot, OfAConvolutionReadsACopyPaddedWithItsZeroPoint) {
  for (const char* target : {"cpu:avx512+vnni,threads=2", "cpu:avx2,threads=1"}) {
    SCOPED_TRACE(target);
    const Trace trace = CheckedDefault(kConvolution, target);
    EXPECT_THAT(ToText(trace), HasSubstr("tensorize(s1.r2.1, dot)"));
    EXPECT_THAT(AssemblyOf(kConvolution, trace, target), Not(HasSubstr("vpmulld")));
  }
}

// Whatever the loops around it, the code of the loop is right, also where no instruction fits.
TEST(Dot, IsTheSerialSumInEveryPlace) {
  const std::string text = Product("u8", "i8", 3, 16, 8);
  for (const char* trace : {"split(s0.r0, 4)\ntensorize(s0.r0.1, dot)\n",
                            "split(s0.r0, 2)\nvectorize(s0.i1)\n"
                            "reorder(s0.r0.0, s0.i1, s0.r0.1)\ntensorize(s0.r0.1, dot)\n"}) {
    const CheckResult result =
        CheckTexts(text, trace, {.target = "cpu:avx512+vnni,threads=1", .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
  EXPECT_THAT(Loops(text, "split(s0.r0, 4)\ntensorize(s0.r0.1, dot)"), HasSubstr("dot v3 < 4:\n"));
}

TEST(Dot, OfBf16IsOneInstructionWhereTheTargetHasIt) {
  const std::string text = HalfProduct(13, 70, 24);
  struct Case {
    const char* target;
    bool dot;
  };
  for (const Case& c :
       {Case{"cpu:avx512+bf16,threads=1", true}, Case{"cpu:avx512+vnni,threads=1", false},
        Case{"cpu:avx2,threads=1", false}}) {
    SCOPED_TRACE(c.target);
    const Trace trace = CheckedDefault(text, c.target);
    const std::string assembly = AssemblyOf(text, trace, c.target);
    EXPECT_EQ(assembly.find("vdpbf16ps") != std::string::npos, c.dot);
    EXPECT_EQ(assembly.find("vfmadd") != std::string::npos, !c.dot);
  }
  // A Trace made for a machine that has it runs on one that has not.
  const Trace trace = CheckedDefault(text, "cpu:avx512+bf16,threads=1");
  const CheckResult result =
      CheckTrace(WorkloadOf(text), trace, {.target = "cpu:avx512,threads=1", .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
}

TEST(Dot, OfBf16IsRightForAnyShape) {
  Random random(20261124);
  for (int round = 0; round < 12; ++round) {
    const auto one = [&](int most) { return static_cast<int>(random.Between(1, most)); };
    const bool live = random.Chance(0.5);
    const std::string text = HalfProduct(one(40), one(90), one(70), live);
    SCOPED_TRACE(text);
    CheckedDefault(text, "cpu:avx512+bf16,threads=2");
  }
  const Trace trace = CheckedDefault(kHalfConvolution, "cpu:avx512+bf16,threads=1");
  EXPECT_THAT(ToText(trace), HasSubstr("tensorize(s1.r2.1, dot)"));
}

TEST(Dot, OfBf16TakesFilledUpOperands) {
  const std::string text =
      "workload 1\nx0: bf16[3,13,25] input range(-2,2)\nx1: bf16[3,25,70] input range(-2,2)\n"
      "s0: bf16[3,13,26] = select(i2 < 25, x0[i0, i1, i2], 0.0:bf16)\n"
      "s1: bf16[3,26,70] = select(i1 < 25, x1[i0, i1, i2], 0.0:bf16)\n"
      "s2: f32[3,13,70] output = sum[r0:26] (f32(s0[i0, i1, r0]) * f32(s1[i0, r0, i2]))\n";
  const Trace trace = CheckedDefault(text, "cpu:avx512+bf16,threads=2");
  EXPECT_THAT(AssemblyOf(text, trace, "cpu:avx512+bf16,threads=2"), HasSubstr("vdpbf16ps"));
}

TEST(Dot, RefusesWhatIsNoInnermostSumOfProducts) {
  const std::string text = Product("u8", "i8", 3, 16, 8);
  EXPECT_THAT(Loops(text, "tensorize(s0.i1, dot)"), HasSubstr("s0.i1 is no reduce loop"));
  EXPECT_THAT(Loops(text, "split(s0.r0, 4)\ntensorize(s0.r0.0, dot)"),
              HasSubstr("s0.r0.0 is not the innermost loop"));
  EXPECT_THAT(Loops(text, "tensorize(s0.r0, dot)"),
              HasSubstr("s0.r0 has 8 iterations; a dot product has 2 or 4"));
  EXPECT_THAT(Loops(text, "tensorize(s0.r0, wmma)"), HasSubstr("no wmma; there are: dot mma"));
  EXPECT_THAT(Loops(text, "split(s0.r0, 4)\ntensorize(s0.r0.1, dot)\nreorder(s0.r0.1, s0.i1)"),
              HasSubstr("the dot product's loop s0.r0.1 is not the innermost"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[4] input range(-1,1)\n"
                    "s0: f32[] output = sum[r0:4] (x0[r0])\n",
                    "tensorize(s0.r0, dot)"),
              HasSubstr("s0 adds up no products"));
}

}  // namespace
}  // namespace hone::schedule

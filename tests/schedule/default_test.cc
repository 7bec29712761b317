#include <fmt/format.h>

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/stmt.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// The default schedule of any Workload lowers, compiles and equals the interpreter.
namespace hone::schedule {
namespace {

constexpr uint64_t kSeed = 2024;
constexpr int kWorkloads = 240;

TEST(DefaultTraces, OfRandomWorkloadsEqualTheInterpreter) {
  std::cout << "seed " << kSeed << "\n";
  Random seeds(kSeed);
  std::map<std::string, int> families;
  for (int k = 0; k < kWorkloads; ++k) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const RandomWorkload made = MakeWorkload(random);
    const ir::Workload workload = WorkloadOf(made.text);
    CheckOptions options;
    options.seed = seed;
    options.compile = true;
    options.target = k % 2 == 0 ? "cpu:avx2" : "cpu:avx512";
    options.target += random.Chance(0.5) ? ",threads=2" : ",threads=1";
    const auto trace = DefaultTrace(workload, TargetOf(options.target));
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << made.text;
    const auto again = DefaultTrace(workload, TargetOf(options.target));
    EXPECT_EQ(*again, *trace) << "the same Workload and Target give the same Trace";
    const CheckResult result = CheckTrace(workload, *trace, options);
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ", " << made.family << ", "
                                                   << options.target << ": " << result.why << "\n"
                                                   << made.text << "\n"
                                                   << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    ++families[made.family];
  }
  EXPECT_GE(families.size(), 13U);
}

// A group's eight channels are one vector, whatever the target's registers hold.
TEST(DefaultTraces, GroupsOfEightChannelsArePacked) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[1,6,7,24] input range(-1,1)\n"
      "x1: f32[24,8,3,3] constant\n"
      "s0: f32[1,4,5,24] output = sum[r0:8,r1:3,r2:3] (x0[i0, i1 + r1, i2 + r2, i3 // 8 * 8 + r0] "
      "* x1[i3, r0, r1, r2])\n");
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=1"}) {
    const auto trace = DefaultTrace(workload, TargetOf(target));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_NE(ToText(*trace).find("= pack(s0, x1, [i0/8,"), std::string::npos) << ToText(*trace);
    const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
  }
}

// 14 rows 4 KB apart share eight places of the first cache, and a tile of 14 rows by one vector
// takes more loads than multiply-adds where each broadcast is an instruction of its own.
TEST(DefaultTraces, RowsOfAnAvx2TileStayInTheFirstCache) {
  const auto product = [](int terms) {
    return fmt::format(
        "workload 1\nx0: f32[28,{0}] input range(-1,1)\nx1: f32[{0},64] constant\n"
        "s0: f32[28,64] output = sum[r0:{0}] (x0[i0, r0] * x1[r0, i1])\n",
        terms);
  };
  EXPECT_NE(CheckedDefaultText(product(1024), "cpu:avx512,threads=1").find("split(s0.i0, 14"),
            std::string::npos);
  for (const int terms : {1024, 256}) {
    const std::string trace = CheckedDefaultText(product(terms), "cpu:avx2,threads=1");
    EXPECT_EQ(trace.find("split(s0.i0, 14"), std::string::npos) << trace;
    EXPECT_EQ(trace.find("split(s0.i1, 8)"), std::string::npos) << trace;
  }
  // One vector of columns: as many rows as registers hold, but of 4 KB only as many as a set has.
  const auto column = [](int terms) {
    return fmt::format(
        "workload 1\nx0: f32[28,{0}] input range(-1,1)\nx1: f32[{0},8] constant\n"
        "s0: f32[28,8] output = sum[r0:{0}] (x0[i0, r0] * x1[r0, i1])\n",
        terms);
  };
  EXPECT_NE(CheckedDefaultText(column(240), "cpu:avx2,threads=1").find("split(s0.i0, 14"),
            std::string::npos);
  EXPECT_EQ(CheckedDefaultText(column(1024), "cpu:avx2,threads=1").find("split(s0.i0, 14"),
            std::string::npos);
}

// Weights of 512 KB: AVX-512 fetches the next panel while one is worked on.
TEST(DefaultTraces, PanelsAreFetchedAheadWhereMultiplyAddsLeaveTime) {
  const char* product =
      "workload 1\nx0: f32[28,512] input range(-1,1)\nx1: f32[512,256] constant\n"
      "s0: f32[28,256] output = sum[r0:512] (x0[i0, r0] * x1[r0, i1])\n";
  const std::string fetched = CheckedDefaultText(product, "cpu:avx512,threads=1");
  EXPECT_NE(fetched.find("prefetch("), std::string::npos) << fetched;
  const std::string plain = CheckedDefaultText(product, "cpu:avx2,threads=1");
  EXPECT_EQ(plain.find("prefetch("), std::string::npos) << plain;
}

// Unrolled taps of a stride keep what neighbouring rows share in registers: 16 of them hold the
// sums of two rows by four vectors, a panel's vectors and four elements.
TEST(DefaultTraces, AFirstConvolutionOfAvx2SharesItsRegistersWithTaps) {
  const std::string trace = CheckedDefaultText(
      "workload 1\nx0: f32[1,3,16,16] input range(-1,1)\nx1: f32[3,3,3,32] constant\n"
      "s0: f32[1,18,18,3] = select(i1 >= 1 & i1 < 17 & (i2 >= 1 & i2 < 17), "
      "x0[i0, i3, i1 - 1, i2 - 1], 0.0)\n"
      "s1: f32[1,8,8,32] output = sum[r0:3,r1:3,r2:3] (s0[i0, i1 * 2 + r1, i2 * 2 + r2, r0] * "
      "x1[r1, r2, r0, i3])\n",
      "cpu:avx2,threads=1");
  EXPECT_NE(trace.find("split(s1.i2, 2"), std::string::npos) << trace;
  EXPECT_NE(trace.find("split(s1.i3, [4,8])"), std::string::npos) << trace;
}

// SAME padding of a stride stands on the right alone: what is computed before the window is as
// large as the data, not as what the windows span.
TEST(DefaultTraces, AWindowPaddedOnTheRightAloneComputesItsInputOnce) {
  for (const char* window :
       {"x0: f32[1,4,7,7] input range(-1,1)\n"
        "s0: f32[1,4,7,7] = sigmoid(x0[i0, i1, i2, i3])\n"
        "s1: f32[1,8,8,4] = select(i1 >= 0 & i1 < 7 & (i2 >= 0 & i2 < 7), "
        "s0[0, i3, i1, i2], -inf)\n"
        "s2: f32[1,4,4,4] output = max[r0:2,r1:2] (s1[0, i1 * 2 + r0, i2 * 2 + r1, i3])\n",
        "x0: f32[1,4,7,9] input range(-1,1)\n"
        "s0: f32[1,4,7,9] = tanh(x0[i0, i1, i2, i3])\n"
        "s1: f32[1,4,9,12] = select(i2 < 7 & i3 < 9, s0[0, i1, i2, i3], 0.0)\n"
        "s2: f32[1,4,3,6] output = sum[r0:3,r1:2] (s1[0, i1, i2 * 3 + r0, i3 * 2 + r1])\n"}) {
    const ir::Workload workload = WorkloadOf("workload 1\n" + std::string(window));
    for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
      const auto trace = DefaultTrace(workload, TargetOf(target));
      ASSERT_TRUE(trace.ok()) << trace.status();
      const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
    }
  }
}

// The taps that a deconvolution's phase lacks (3 of 4 exist): the condition stands around loops,
// and what it guards lies in panels all the same.
TEST(DefaultTraces, WeightsUnderAConditionArePackedWhereVectorsDoNotChangeIt) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[6,5,9] input range(-1,1)\n"
      "x1: f32[9,24,3] constant\n"
      "s0: f32[9,24,4] = select(i2 < 3, x1[i0, i1, i2], 0.0)\n"
      "s1: f32[6,4,2,24] output = sum[r0:2,r1:9] (x0[i0, i1 + r0, r1] * s0[r1, i3, r0 * 2 + "
      "i2])\n");
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
    const auto trace = DefaultTrace(workload, TargetOf(target));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_NE(ToText(*trace).find("= pack(s1, x1, [i1/"), std::string::npos) << ToText(*trace);
    const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
  }
}

// A deconvolution to one channel: along its pixels, not along the two phases of its stride.
TEST(DefaultTraces, VectorsRunAlongPixelsWhereChannelsAreFew) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[6,5,33] input range(-1,1)\n"
      "x1: f32[6,4,4] constant\n"
      "s0: f32[4,32,2,2] output = sum[r0:6,r1:2,r2:2] (x0[r0, i0 + r1, i1 + r2] * x1[r0, r1 * 2 + "
      "i2, "
      "r2 * 2 + i3])\n");
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
    const auto trace = DefaultTrace(workload, TargetOf(target));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_NE(ToText(*trace).find("vectorize(s0.i1.2)"), std::string::npos) << ToText(*trace);
    const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
  }
}

// Phases of a stride side by side, channels outside: a vector's worth of neighbours are every other
// one of a row, not those of the channels, each in another plane.
TEST(DefaultTraces, PhasesAreStoredAlongTheRowThatTheyInterleave) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[3,32,16] input range(-1,1)\n"
      "x1: f32[16,32,2] constant\n"
      "s0: f32[3,32,2,32] = sum[r0:16] (x0[i0, i1, r0] * x1[r0, i3, i2])\n"
      "s1: f32[3,32,64] output over [i0:3,i1:32,i2:2,i3:32] at [i0, i3, i1 * 2 + i2] = "
      "max(s0[i0, i1, i2, i3], 0.0)\n");
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
    const auto trace = DefaultTrace(workload, TargetOf(target));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_NE(ToText(*trace).find("vectorize(s1.i1.1)"), std::string::npos) << ToText(*trace);
    const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
  }
}

// Vectors that start inside a dimension of constants (the last gate of a GRU, behind the two that
// stand in a product of their own): panels start there too, or the dimension stays whole.
TEST(DefaultTraces, PartsOfADimensionOfConstantsArePacked) {
  struct Case {
    int units = 0;
    const char* target = "";
    const char* layout = "";
  };
  const Case cases[] = {{64, "cpu:avx512,threads=1", "[i0,i1/64,i2,i1%64]"},
                        {24, "cpu:avx512,threads=1", "[i0,i1/16,i2,i1%16]"},
                        {24, "cpu:avx2,threads=2", "[i0,i1/24,i2,i1%24]"},
                        {21, "cpu:avx512,threads=2", "[i0,i2,i1]"}};
  for (const Case& c : cases) {
    const ir::Workload workload = WorkloadOf(fmt::format(
        R"(workload 1
x0: f32[3,2,{1}] input range(-1,1)
x1: f32[1,{1},{0}] constant
s0: f32[3,2,{2}] scan 0 = sum[r0:{0}] (select(i0 >= 1, s3[i0 - 1, i1, r0], 0.0) * x1[0, i2, r0])
s1: f32[3,2,{0}] scan 0 = tanh(x0[i0, i1, i2]) * select(i0 >= 1, s3[i0 - 1, i1, i2], 0.0)
s2: f32[3,2,{0}] scan 0 = sum[r0:{0}] (s1[i0, i1, r0] * x1[0, i2 + {2}, r0])
s3: f32[3,2,{0}] output scan 0 = tanh(x0[i0, i1, i2 + {2}] + s2[i0, i1, i2] * s0[i0, i1, i2 + {0}])
)",
        c.units, 3 * c.units, 2 * c.units));
    const auto trace = DefaultTrace(workload, TargetOf(c.target));
    ASSERT_TRUE(trace.ok()) << trace.status();
    SCOPED_TRACE(ToText(*trace));
    EXPECT_NE(ToText(*trace).find(fmt::format("= pack(s2, x1, {})", c.layout)), std::string::npos);
    const CheckResult result = CheckTrace(workload, *trace, {.target = c.target, .compile = true});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

// A product of a scan that one map reads point by point is made in the map's registers, so a step
// of a vanilla RNN is one phase; where it is read elsewhere too (LSTM's gates), it stays apart.
TEST(DefaultTraces, AStepsProductStaysInRegisters) {
  for (const int units : {32, 37}) {
    for (const char* const target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
      const std::string head = fmt::format(
          "workload 1\n"
          "x0: f32[4,3,{0}] input range(-1,1)\n"
          "x1: f32[{0},{0}] constant\n"
          "s0: f32[4,3,{0}] scan 0 = sum[r0:{0}] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.5) * "
          "x1[i2, r0])\n",
          units);
      for (const bool pointwise : {true, false}) {
        const ir::Workload workload = WorkloadOf(
            head + fmt::format("s1: f32[4,3,{}] output scan 0 = tanh(x0[i0, i1, i2] + s0[i0, i1, "
                               "{}])\n",
                               units, pointwise ? "i2" : fmt::format("{} - i2", units - 1)));
        const auto trace = DefaultTrace(workload, TargetOf(target));
        ASSERT_TRUE(trace.ok()) << trace.status();
        SCOPED_TRACE(std::string(target) + "\n" + ToText(*trace));
        EXPECT_EQ(ToText(*trace).find("compute_at(s0, ") != std::string::npos, pointwise);
        const CheckResult result =
            CheckTrace(workload, *trace, {.target = target, .compile = true});
        ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
        EXPECT_EQ(result.lowered.nest.phases.size(), pointwise ? 1U : 2U);
      }
    }
  }
}

// Cumulative sums are one phase, not one a step: rows of their own stand outside the sequential
// axis, on several threads where that is worth it.
TEST(DefaultTraces, ACumulativeSumIsOnePhase) {
  struct Case {
    const char* shape = "";
    const char* at = "";
    bool parallel = false;
  };
  const Case cases[] = {{"9,5,19", "i1, i2", false},  {"300", "", false},      {"7", "", false},
                        {"70,3,170", "i1, i2", true}, {"40,1200", "i1", true}, {"1", "", false},
                        {"5,3,1", "i1, i2", false}};
  for (const Case& c : cases) {
    for (const char* const target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
      const std::string rest = *c.at == 0 ? "" : std::string(", ") + c.at;
      const ir::Workload workload = WorkloadOf(fmt::format(
          "workload 1\nx0: f32[{0}] input range(-1,1)\n"
          "s0: f32[{0}] output scan 0 = x0[i0{1}] + select(i0 >= 1, s0[i0 - 1{1}], 0.0)\n",
          c.shape, rest));
      const auto trace = DefaultTrace(workload, TargetOf(target));
      ASSERT_TRUE(trace.ok()) << trace.status();
      SCOPED_TRACE(std::string(target) + " " + c.shape + "\n" + ToText(*trace));
      EXPECT_EQ(ToText(*trace).find("parallel(") != std::string::npos, c.parallel);
      const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
      ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
      ASSERT_EQ(result.lowered.nest.steps.size(), 1U);
      const int64_t steps = workload.stages[0].spatial[0];
      const bool short_alone = steps <= 64 && *c.at == 0;
      EXPECT_EQ(result.lowered.nest.steps[0].repeats, short_alone ? steps : 1);
    }
  }
}

// What random models found: parts of a concatenation narrower than a vector, row reductions that
// share an axis of one element, written as 0, with what reads them.
TEST(DefaultTraces, OfNarrowPartsAndAxesOfOneEqualTheInterpreter) {
  const char* const workloads[] = {R"(workload 1
x0: f32[3,4,2] input range(-1,1)
x1: f32[3,4,15] input range(-1,1)
s0: f32[3,4,2] = tanh(x0[i0, i1, i2])
s1: f32[3,4,15] = tanh(x1[i0, i1, i2])
s2: f32[3,4,17] output = select(i2 < 2, s0[i0, i1, i2], s1[i0, i1, i2 - 2])
)",
                                   R"(workload 1
x0: f32[8,1,8,16] input range(-1,1)
s0: f32[8,1,8] = max[r0:16] (x0[i0, 0, i2, r0])
s1: f32[8,1,8,16] = exp(x0[i0, i1, i2, i3] - s0[i0, 0, i2])
s2: f32[8,1,8] = sum[r0:16] (s1[i0, 0, i2, r0])
s3: f32[8,1,8,16] output = s1[i0, i1, i2, i3] / s2[i0, 0, i2]
)"};
  for (const char* const text : workloads) {
    for (const char* const target : {"cpu:avx2,threads=1", "cpu:avx512,threads=2"}) {
      SCOPED_TRACE(std::string(target) + "\n" + text);
      CheckOptions options;
      options.compile = true;
      options.target = target;
      const ir::Workload workload = WorkloadOf(text);
      const auto trace = DefaultTrace(workload, TargetOf(target));
      ASSERT_TRUE(trace.ok()) << trace.status();
      const CheckResult result = CheckTrace(workload, *trace, options);
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
    }
  }
}

// Long rows have several vectors of partial results: in the loop of what reads them, and in the
// reduction's own.
TEST(DefaultTraces, OfLongRowsEqualTheInterpreter) {
  const std::string log_softmax =
      "workload 1\n"
      "x0: f32[3,197] input range(-4,4)\n"
      "s0: f32[3] = max[r0:197] (x0[i0, r0])\n"
      "s1: f32[3,197] = exp(x0[i0, i1] - s0[i0])\n"
      "s2: f32[3] = sum[r0:197] (s1[i0, r0])\n"
      "s3: f32[3,197] output = x0[i0, i1] - s0[i0] - log(s2[i0])\n";
  const std::string sums =
      "workload 1\n"
      "x0: f32[5,160] input range(-4,4)\n"
      "s0: f32[5] output = sum[r0:160] (x0[i0, r0])\n";
  const std::string pairs =
      "workload 1\n"
      "x0: f32[2,3,7,30] input range(-4,4)\n"
      "s0: f32[2,3] = sum[r0:7,r1:30] (x0[i0, i1, r0, r1])\n"
      "s1: f32[2,3,7,30] output = x0[i0, i1, i2, i3] - s0[i0, i1] / 210.0\n";
  for (const std::string& text : {log_softmax, sums, pairs}) {
    for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=1"}) {
      const ir::Workload workload = WorkloadOf(text);
      CheckOptions options;
      options.compile = true;
      options.target = target;
      const auto trace = DefaultTrace(workload, TargetOf(target));
      ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << text;
      const CheckResult result = CheckTrace(workload, *trace, options);
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
    }
  }
}

/// `count` points of a Space, the default's first.
std::vector<uint64_t> SomePoints(const Space& space, Random* random, int count) {
  std::vector<uint64_t> ids = {space.DefaultId()};
  for (int tries = 0; tries < 40 && static_cast<int>(ids.size()) < count; ++tries) {
    const uint64_t id = random->Below(space.product());
    if (space.Admits(id)) ids.push_back(id);
  }
  return ids;
}

TEST(SpaceTraces, OfRandomWorkloadsEqualTheInterpreter) {
  std::cout << "seed " << kSeed << "\n";
  Random seeds(kSeed);
  std::map<std::string, int> sketches;
  int compared = 0;
  for (int k = 0; k < kWorkloads; ++k) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const RandomWorkload made = MakeWorkload(random, k % 3 == 0 ? "conv3x3" : "");
    const ir::Workload workload = WorkloadOf(made.text);
    CheckOptions options;
    options.seed = seed;
    options.slack = 2e-5;  // Winograd may be among them
    options.target = k % 2 == 0 ? "cpu:avx2,threads=2" : "cpu:avx512,threads=1";
    const Space space(workload, TargetOf(options.target), ir::AccuracyClass::kDefault);
    for (const uint64_t id : SomePoints(space, &random, 4)) {
      const auto trace = space.TraceOf(id);
      const std::string& sketch = space.sketches()[static_cast<size_t>(space.At(id).sketch)].name;
      ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << sketch << "\n" << made.text;
      options.compile = compared % 8 == 0;
      const CheckResult result = CheckTrace(workload, *trace, options);
      ASSERT_EQ(result.agreement, Agreement::kEqual)
          << "seed " << seed << ", " << made.family << ", " << sketch << ", " << options.target
          << ": " << result.why << "\n"
          << made.text << "\n"
          << ToText(*trace) << "\n"
          << ir::ToText(result.lowered.nest);
      ++sketches[sketch];
      ++compared;
    }
  }
  for (const auto& [sketch, count] : sketches) std::cout << "  " << sketch << ": " << count << "\n";
  EXPECT_GE(compared, 2 * kWorkloads);
}

}  // namespace
}  // namespace hone::schedule

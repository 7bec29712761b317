#include "schedule/cuda/rows.h"

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/launch.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Rows that the threads of a block share: softmax and norms. The loop interpreter and the
// executor of PTX find races, unset reads and barriers that not all threads reach; the interpreter
// in double decides what is right.
namespace hone::ptx {
namespace {

using schedule::Agreement;

std::string Softmax(int64_t heads, int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1},{2}] input range(-4,4)\n"
      "s0: f32[{0},{1}] = max[r0:{2}] (x0[i0, i1, r0])\n"
      "s1: f32[{0},{1},{2}] = exp(x0[i0, i1, i2] - s0[i0, i1])\n"
      "s2: f32[{0},{1}] = sum[r0:{2}] (s1[i0, i1, r0])\n"
      "s3: f32[{0},{1},{2}] output = s1[i0, i1, i2] / s2[i0, i1]\n",
      heads, rows, columns);
}

std::string Norm(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-2,2)\nx1: f32[{1}] constant\n"
      "s0: f32[{0}] = sum[r0:{1}] (x0[i0, r0])\ns1: f32[{0}] = s0[i0] * {2}\n"
      "s2: f32[{0},{1}] = x0[i0, i1] - s1[i0]\n"
      "s3: f32[{0}] = sum[r0:{1}] (s2[i0, r0] * s2[i0, r0])\n"
      "s4: f32[{0}] = 1.0 / sqrt(s3[i0] * {2} + 0.001)\n"
      "s5: f32[{0},{1}] output = s2[i0, i1] * s4[i0] * x1[i1]\n",
      rows, columns, 1.0 / static_cast<double>(columns));
}

/// As networks have it behind a residual: what is normalised is a sum.
std::string ResidualNorm(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{1}] input range(-2,2)\nx1: f32[{1}] constant\n"
      "x2: f32[1,{0},{1}] input range(-2,2)\n"
      "s0: f32[1,{0},{1}] = x0[i0, i1, i2] + x1[i2] + x2[i0, i1, i2]\n"
      "s1: f32[1,{0}] = sum[r0:{1}] (s0[0, i1, r0])\n"
      "s2: f32[1,{0}] = sum[r0:{1}] ((s0[0, i1, r0] - s1[i0, i1] / {1}.0) * (s0[0, i1, r0] - "
      "s1[i0, i1] / {1}.0))\n"
      "s3: f32[1,{0},{1}] output = (s0[i0, i1, i2] - s1[0, i1] / {1}.0) * rsqrt(s2[0, i1] / {1}.0 "
      "+ "
      "0.001) * x1[i2]\n",
      rows, columns);
}

std::optional<schedule::Sketch> RowsOf(const std::string& text) {
  return schedule::RowsSketch(schedule::WorkloadOf(text), CudaTarget("sm_80"));
}

/// A product, then a softmax of its rows: a launch each.
std::string Attention(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},16] input range(-1,1)\nx1: f32[16,{1}] input range(-1,1)\n"
      "s0: f32[{0},{1}] = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0}] = max[r0:{1}] (s0[i0, r0])\n"
      "s2: f32[{0},{1}] = exp(s0[i0, i1] - s1[i0])\n"
      "s3: f32[{0}] = sum[r0:{1}] (s2[i0, r0])\n"
      "s4: f32[{0},{1}] output = s2[i0, i1] / s3[i0]\n",
      rows, columns);
}

std::string RandomRows(Random& random) {
  const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
  const int64_t columns = random.Chance(0.5) ? 32 * size(6) : 32 + size(150);
  switch (random.Below(3)) {
    case 0: return Softmax(size(3), size(9), columns);
    case 1: return Norm(size(12), columns);
    default: return ResidualNorm(size(12), columns);
  }
}

TEST(RowsTest, RandomPointsOfRandomRows) {
  constexpr int kWorkloads = 40;
  Random seeds(91);
  int run = 0;
  for (int n = 0; n < kWorkloads; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const std::string text = RandomRows(random);
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value()) << text;
    const schedule::Space space(workload, CudaTarget("sm_80"),
                                std::vector<schedule::Sketch>{*sketch});
    for (int k = 0; k < 2; ++k) {
      const uint64_t id = random.Below(space.product());
      const schedule::Space::Point point = space.PointOf(id);
      if (!sketch->rule->Refusal(*sketch, point.values).empty()) continue;
      schedule::TraceWriter writer(workload);
      const absl::Status emitted = sketch->rule->Emit(*sketch, point.values, writer);
      ASSERT_TRUE(emitted.ok()) << emitted << "\n" << text << ToText(writer.trace());
      const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", seed));
      ASSERT_EQ(result.agreement, Agreement::kEqual)
          << "seed " << seed << ": " << result.why << "\n"
          << text << ToText(writer.trace()) << ir::ToText(result.lowered.nest);
      ASSERT_EQ(result.lowered.nest.phases.size(), 1U) << "one launch\n" << text;
      const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
      EXPECT_EQ(launch.block_x * launch.block_y, point.values[0] * point.values[1]);
      ++run;
    }
  }
  std::cout << run << " points\n";
  EXPECT_GE(run, kWorkloads / 2);
}

// By default no block asks for more than every chip has; a search may.
TEST(RowsTest, LongRowsTakeWhatTheChipHas) {
  const ir::Workload workload = schedule::WorkloadOf(Softmax(1, 2, 16'384));
  const schedule::Values values{512, 1, 4};
  const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(sketch.has_value());
  EXPECT_FALSE(sketch->rule->Default(*sketch).has_value());
  ASSERT_EQ(sketch->rule->Refusal(*sketch, values), "");
  EXPECT_EQ(sketch->rule->Refusal(*sketch, {256, 2, 4}), "");
  const auto on_less = schedule::RowsSketch(workload, CudaTarget("sm_86"));
  EXPECT_EQ(on_less->rule->Refusal(*on_less, {256, 2, 4}),
            "rows larger than a block's shared memory");
  schedule::TraceWriter writer(workload);
  ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
  const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 2));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
  EXPECT_GT(ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]).shared_bytes,
            48 << 10);
}

TEST(RowsTest, AProductBesideThemIsATile) {
  const ir::Workload workload = schedule::WorkloadOf(Attention(20, 64));
  const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(sketch.has_value());
  for (const schedule::Values& values : {schedule::Values{32, 1, 1}, {64, 4, 4}, {32, 2, 4}}) {
    schedule::TraceWriter writer(workload);
    ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
    EXPECT_NE(ToText(writer.trace()).find("im2col"), std::string::npos);
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 3));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
    EXPECT_EQ(result.lowered.nest.phases.size(), 2U);
    const auto read = sketch->rule->Read(*sketch, writer.trace());
    EXPECT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
  }
}

// Lanes of a warp need neither shared memory nor a barrier for what each of them found.
TEST(RowsTest, AWarpReducesItsRowByLanes) {
  const ir::Workload workload = schedule::WorkloadOf(Norm(12, 100));
  const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(sketch.has_value());
  const auto nest_of = [&](int64_t threads) {
    schedule::TraceWriter writer(workload);
    EXPECT_TRUE(sketch->rule->Emit(*sketch, {threads, 4, 1}, writer).ok()) << writer.status();
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 5));
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
    return ir::ToText(result.lowered.nest);
  };
  const auto count = [](const std::string& text, const std::string& word) {
    int found = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string warp = nest_of(32), wide = nest_of(64);
  EXPECT_EQ(count(warp, "lanes 32: "), 2) << warp;
  EXPECT_LE(count(warp, "sync"), 2) << warp;
  // Several warps exchange what each found: written once, then read by every thread.
  EXPECT_EQ(count(wide, "lanes 32: "), 2) << wide;
  EXPECT_LE(count(wide, "sync"), 2) << wide;
}

// What warps found takes a number of each, however many threads a row has.
TEST(RowsTest, WarpsExchangeANumberEach) {
  const ir::Workload workload = schedule::WorkloadOf(Norm(12, 512));
  const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(sketch.has_value());
  for (const int64_t rows : {1, 2}) {
    schedule::TraceWriter writer(workload);
    ASSERT_TRUE(sketch->rule->Emit(*sketch, {256, rows, 4}, writer).ok()) << writer.status();
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 5));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
    const ir::Phase& phase = result.lowered.nest.phases[0];
    EXPECT_EQ(ir::LaunchOf(result.lowered.nest, phase).block_x, 32);
    // Two sums of eight warps, and the row itself.
    EXPECT_LE(ir::SharedBytesOf(result.lowered.nest, phase),
              2 * ((rows * 8 * 4 + 63) / 64 * 64) + rows * 512 * 4);
  }
}

TEST(RowsTest, ReadsBackWhatItWrites) {
  Random random(17);
  int points = 0;
  for (int n = 0; n < 60; ++n) {
    const std::string text = RandomRows(random);
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto sketch = schedule::RowsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value());
    for (const auto& threads : sketch->tables[0].rows) {
      for (const auto& rows : sketch->tables[1].rows) {
        for (const auto& elements : sketch->tables[2].rows) {
          const schedule::Values values{threads[0], rows[0], elements[0]};
          if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok());
          ASSERT_EQ(*read, values) << text << ToText(writer.trace());
          ++points;
        }
      }
    }
  }
  EXPECT_GE(points, 300);
}

// Every point of the space of a GPU, the default's too, is found again by its Trace.
TEST(RowsTest, EveryPointIsLocated) {
  const schedule::Space space(schedule::WorkloadOf(Softmax(2, 12, 256)), CudaTarget("sm_90a"),
                              ir::AccuracyClass::kDefault);
  int rows = 0;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (!space.Admits(id)) continue;
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto found = space.Locate(ToText(*trace));
    ASSERT_TRUE(found.has_value()) << ToText(*trace);
    EXPECT_EQ(ToText(*space.TraceOf(*found)), ToText(*trace));
    rows += space.PointOf(id).sketch.name == "rows" ? 1 : 0;
  }
  EXPECT_GT(rows, 10);
}

TEST(RowsTest, RefusesWhatNoBlockCanHold) {
  const auto sketch = RowsOf(Softmax(1, 64, 65536));
  ASSERT_TRUE(sketch.has_value());
  EXPECT_EQ(sketch->rule->Refusal(*sketch, {256, 1, 1}),
            "rows larger than a block's shared memory");
  const auto few = RowsOf(Softmax(9, 2, 64));
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->rule->Refusal(*few, {32, 4, 1}), "a block has more rows than there are");
  EXPECT_FALSE(RowsOf(Softmax(1, 64, 16)).has_value());
}

}  // namespace
}  // namespace hone::ptx

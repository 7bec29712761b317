#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// What a rule writes it reads again.
namespace hone::schedule {
namespace {

constexpr int kPointsOfARule = 2000;
constexpr uint64_t kMostCompared = 600;  ///< points of Spaces whose Traces are all compared

std::string Product(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\nx1: f32[{2},{1}] constant\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n",
      rows, columns, depth);
}

/// A product of bytes, with what follows it or without.
std::string ByteProduct(int64_t rows, int64_t columns, int64_t depth, bool epilogue) {
  const std::string sums = fmt::format(
      "workload 1\nx0: u8[{0},{2}] input range(0,255)\nx1: i8[{2},{1}] constant\n"
      "s0: i32[{0},{1}]{3} = sum[r0:{2}] (i32(x0[i0, r0]) * i32(x1[r0, i1]))\n",
      rows, columns, depth, epilogue ? "" : " output");
  if (!epilogue) return sums;
  return sums + fmt::format("s1: f32[{},{}] output = max(f32(s0[i0, i1]), 0.0)\n", rows, columns);
}

/// A product by weights of which a part is zero.
std::string PrunedProduct(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\n"
      "x1: f32[{2},{1}] constant panels(1,16,[2,3,3,4,5,6,7,11],11)\n"
      "s0: f32[{0},{1}] = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0},{1}] output = max(s0[i0, i1], 0.0)\n",
      rows, columns, depth);
}

std::string Attention(int64_t heads, int64_t rows, int64_t keys) {
  return fmt::format(
      "workload 1\nx0: f32[{1},{0},32] input range(-1,1)\nx1: f32[{2},{0},32] input range(-1,1)\n"
      "x2: f32[{2},{0},24] input range(-1,1)\n"
      "s0: f32[{0},{1},{2}] = sum[r0:32] (x0[i1, i0, r0] * x1[i2, i0, r0])\n"
      "s1: f32[{0},{1},{2}] = s0[i0, i1, i2] * 0.25\ns2: f32[{0},{1}] = max[r0:{2}] (s1[i0, i1, "
      "r0])\n"
      "s3: f32[{0},{1},{2}] = exp(s1[i0, i1, i2] - s2[i0, i1])\n"
      "s4: f32[{0},{1}] = sum[r0:{2}] (s3[i0, i1, r0])\n"
      "s5: f32[{0},{1},{2}] = s3[i0, i1, i2] * (1.0 / s4[i0, i1])\n"
      "s6: f32[{0},{1},24] output = sum[r0:{2}] (s5[i0, i1, r0] * x2[r0, i0, i2])\n",
      heads, rows, keys);
}

/// A recurrence with so many rows (a batch) and units.
std::string Recurrence(int64_t rows, int64_t units) {
  return fmt::format(
      "workload 1\nx0: f32[3,{0},{1}] input range(-1,1)\nx1: f32[{1},{1}] constant\n"
      "s0: f32[3,{0},{1}] scan 0 = sum[r0:{1}] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.0) * "
      "x1[i2, r0])\ns1: f32[3,{0},{1}] output scan 0 = tanh(x0[i0, i1, i2] + s0[i0, i1, i2])\n",
      rows, units);
}

/// A padded 3×3 convolution in NHWC with an epilogue.
std::string Convolution(int64_t images, int64_t size, int64_t in, int64_t out) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1},{1},{2}] input range(-1,1)\nx1: f32[{3},{2},3,3] constant\n"
      "s0: f32[{0},{4},{4},{2}] = select(i1 >= 1 & i1 < {1} + 1 & i2 >= 1 & i2 < {1} + 1, "
      "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: f32[{0},{1},{1},{3}] = sum[r0:3,r1:3,r2:{2}] (s0[i0, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\ns2: f32[{0},{1},{1},{3}] output = max(s1[i0, i1, i2, i3], 0.0)\n",
      images, size, in, out, size + 2);
}

/// A convolution of one tap, with an epilogue.
std::string OneTap(int64_t height, int64_t width, int64_t in, int64_t out) {
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{1},{2}] input range(-1,1)\nx1: f32[{3},{2}] constant\n"
      "s0: f32[1,{0},{1},{3}] = sum[r0:{2}] (x0[i0, i1, i2, r0] * x1[i3, r0])\n"
      "s1: f32[1,{0},{1},{3}] output = max(s0[i0, i1, i2, i3], 0.0)\n",
      height, width, in, out);
}

/// A product that is read by another one.
std::string FeedForward(int64_t tokens, int64_t width, int64_t hidden) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-1,1)\nx1: f32[{1},{2}] constant\n"
      "x2: f32[{2},{1}] constant\ns0: f32[{0},{2}] = sum[r0:{1}] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0},{2}] = max(s0[i0, i1], 0.0)\n"
      "s2: f32[{0},{1}] output = sum[r0:{2}] (s1[i0, r0] * x2[r0, i1])\n",
      tokens, width, hidden);
}

/// Sums along the first axis.
std::string Sums(int64_t steps, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-1,1)\ns0: f32[{0},{1}] output scan 0 = "
      "select(i0 >= 1, s0[i0 - 1, i1], 0.0) + x0[i0, i1]\n",
      steps, columns);
}

std::string Map(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-1,1)\ns0: f32[{0},{1}] output = "
      "tanh(x0[i0, i1]) * 2.0\n",
      rows, columns);
}

std::string Softmax(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[2,{0},{1}] input range(-4,4)\ns0: f32[2,{0}] = max[r0:{1}] (x0[i0, i1, "
      "r0])\ns1: f32[2,{0},{1}] = exp(x0[i0, i1, i2] - s0[i0, i1])\ns2: f32[2,{0}] = sum[r0:{1}] "
      "(s1[i0, i1, r0])\ns3: f32[2,{0},{1}] output = s1[i0, i1, i2] / s2[i0, i1]\n",
      rows, columns);
}

/// A Workload that the rule has Sketches for, or one of any family; of a rule that is not named
/// here one of those below.
std::string TextOf(const SketchRule* rule, int k, Random* random) {
  const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random->Below(most)); };
  if (k % 3 == 0) return MakeWorkload(*random).text;
  if (rule == &WinogradSketches())
    return Convolution(size(3), 3 + size(12), size(40), 8 + size(60));
  if (rule == &FlatRowsSketches()) return OneTap(5 + size(9), 5 + size(9), size(40), 8 + size(200));
  if (rule == &TileProductSketches())
    return ByteProduct(6 + size(120), 16 * size(8), 32 * size(8), random->Chance(0.5));
  if (rule == &CascadeSketches()) return FeedForward(4 * size(6), 8 + size(30), 8 + size(60));
  if (rule == &BitmaskSketches()) return PrunedProduct(size(4), 8 + size(90), 2 + size(200));
  if (rule == &KeptSketches()) return PrunedProduct(2 + size(40), 8 + size(90), 2 + size(200));
  if (rule == &RowsSketches()) return Softmax(size(20), size(400));
  if (rule == &MapSketches()) return Map(size(20), size(200));
  if (rule == &ScanSketches()) return Recurrence(size(20), 16 + size(200));
  if (rule == &AttentionSketches()) return Attention(size(3), 8 + size(140), 32 + size(600));
  if (rule != &DirectSketches() && k % 2 == 0) return Sums(2 + size(30), 8 + size(400));
  return k % 3 == 1 ? Product(size(40), size(140), int64_t{1} << random->Below(11))
                    : Convolution(1, size(12), size(300), size(60));
}

/// The first admitted point of each Trace, the default's before all.
std::map<std::string, uint64_t> FirstPoints(const Space& space) {
  std::map<std::string, uint64_t> first;
  const auto add = [&](uint64_t id) {
    const auto trace = space.TraceOf(id);
    if (trace.ok() && space.Admits(id)) first.emplace(ToText(*trace), id);
  };
  add(space.DefaultId());
  for (uint64_t id = 0; id < space.product(); ++id) add(id);
  return first;
}

/// The rule reads from the point's Trace values that make this Trace; the point's own values, but
/// where others before them make the same one.
void ExpectRead(const Space& space, uint64_t id, const std::map<std::string, uint64_t>& first) {
  const Space::Point point = space.PointOf(id);
  TraceWriter writer(space.workload());
  const absl::Status written = point.sketch.rule->Emit(point.sketch, point.values, writer);
  ASSERT_TRUE(written.ok()) << written;
  const auto read = point.sketch.rule->Read(point.sketch, writer.trace());
  ASSERT_TRUE(read.ok()) << read.status();
  if (*read != point.values) {
    TraceWriter again(space.workload());
    ASSERT_TRUE(point.sketch.rule->Emit(point.sketch, *read, again).ok());
    ASSERT_EQ(ToText(again.trace()), ToText(writer.trace()));
    const auto rows = point.sketch.RowsOf(*read);
    ASSERT_TRUE(rows.has_value()) << "they stand in the tables";
    EXPECT_LT(space.IdOf({space.At(id).sketch, *rows}), id);
  }
  if (first.empty() || !space.Admits(id)) return;
  const auto trace = space.TraceOf(id);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(space.Locate(ToText(*trace)), first.at(ToText(*trace)));
}

TEST(SketchRead, EveryRuleReadsWhatItWrote) {
  constexpr uint64_t kSeed = 2211;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  std::map<const SketchRule*, std::pair<std::string, int>> points;
  for (const CpuRule* rule : CpuRules()) {
    for (int k = 0; k < 4000 && points[rule].second < kPointsOfARule; ++k) {
      const std::string text = TextOf(rule, k, &random);
      const bool many = rule == &FlatRowsSketches() || k % 5 == 4;
      const char* const wide = rule == &TileProductSketches() ? "avx512+vnni+amx" : "avx512";
      const std::string target =
          fmt::format("cpu:{},threads={}", k % 2 == 0 ? "avx2" : wide, many ? 64 : 2 + k % 2);
      const Space space(WorkloadOf(text), TargetOf(target), ir::AccuracyClass::kDefault);
      std::map<std::string, uint64_t> first;
      if (space.product() <= kMostCompared && k % 8 < 3) first = FirstPoints(space);
      uint64_t begin = 0;
      for (const Sketch& s : space.sketches()) {
        auto& [name, count] = points[s.rule];
        name = s.name;
        const uint64_t most = std::min<uint64_t>(s.Product(), 60);
        for (uint64_t n = 0; n < most && count < kPointsOfARule; ++n, ++count) {
          const uint64_t id = begin + (s.Product() == most ? n : random.Below(s.Product()));
          SCOPED_TRACE(fmt::format("{} {} point {}\n{}", s.name, target, id, text));
          ExpectRead(space, id, first);
          if (::testing::Test::HasFailure()) return;
        }
        begin += s.Product();
      }
    }
    std::cout << "  " << points[rule].first << ": " << points[rule].second << "\n";
    EXPECT_GE(points[rule].second, kPointsOfARule);
  }
}

// A Trace that was changed by hand is no point.
TEST(SketchRead, ATraceThatNoValuesGiveIsNotFound) {
  const Space space(WorkloadOf(Product(17, 70, 256)), TargetOf("cpu:avx2,threads=2"),
                    ir::AccuracyClass::kDefault);
  std::string text = ToText(*space.TraceOf(7));
  ASSERT_EQ(space.Locate(text), 7U);
  EXPECT_EQ(space.Locate(text + "unroll(s0.r0)\n"), std::nullopt);
  EXPECT_EQ(space.Locate("split("), std::nullopt);
  EXPECT_EQ(space.Locate(""), std::nullopt);
}

}  // namespace
}  // namespace hone::schedule

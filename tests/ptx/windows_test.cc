#include "schedule/cuda/windows.h"

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/launch.h"
#include "schedule/cuda/parts.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Depthwise convolutions, those of narrow groups and pooling as boxes whose halo lies in shared
// memory: the loop interpreter and the executor of PTX find races and unset reads, the interpreter
// in double decides what is right.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using ::testing::HasSubstr;
using ::testing::Not;

/// A window over images, channels last or first.
struct Window {
  int64_t images = 1, height = 14, width = 13, channels = 16, kernel = 3, stride = 1, pad = 1;
  int64_t dilation = 1, group = 0;  ///< group: channels of one; 0: pooling
  bool channels_first = false, follows = true, bytes = false;
  std::string combiner = "sum";

  int64_t OutOf(int64_t size) const {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  }
  std::string Shape(int64_t h, int64_t w) const {
    return channels_first ? fmt::format("[{},{},{},{}]", images, channels, h, w)
                          : fmt::format("[{},{},{},{}]", images, h, w, channels);
  }
  std::string Text() const {
    const std::string type = bytes ? "u8" : "f32", sum_type = bytes ? "i32" : "f32";
    const std::string shape = Shape(OutOf(height), OutOf(width));
    const std::string c = channels_first ? "i1" : "i3", y = channels_first ? "i2" : "i1",
                      x = channels_first ? "i3" : "i2";
    const auto at = [&](const std::string& channel, const std::string& row,
                        const std::string& column) {
      return channels_first ? fmt::format("i0, {}, {}, {}", channel, row, column)
                            : fmt::format("i0, {}, {}, {}", row, column, channel);
    };
    std::string text = fmt::format("workload 1\nx0: {}{} input range({})\n", type,
                                   Shape(height, width), bytes ? "0,256" : "-1,1");
    if (group > 0)
      text += fmt::format("x1: {0}[{1},{2},{3},{3}] constant\n", bytes ? "i8" : "f32", channels,
                          group, kernel);
    if (follows) text += fmt::format("x2: f32[{}] constant\n", channels);
    std::string data = "x0";
    if (pad > 0) {
      data = "s0";
      text += fmt::format(
          "s0: {}{} = select({y} >= {p} & {y} < {} & {x} >= {p} & {x} < {}, x0[{}], {})\n", type,
          Shape(height + 2 * pad, width + 2 * pad), height + pad, width + pad,
          at(c, fmt::format("{} - {}", y, pad), fmt::format("{} - {}", x, pad)),
          bytes               ? "u8(7)"
          : combiner == "max" ? "-inf"
                              : "0.0",
          fmt::arg("p", pad), fmt::arg("x", x), fmt::arg("y", y));
    }
    const std::string sum = pad > 0 ? "s1" : "s0", last = pad > 0 ? "s2" : "s1";
    const std::string channel = group > 1 ? fmt::format("{0} // {1} * {1} + r2", c, group) : c;
    const std::string read =
        fmt::format("{}[{}]", data,
                    at(channel, fmt::format("{} * {} + r0 * {}", y, stride, dilation),
                       fmt::format("{} * {} + r1 * {}", x, stride, dilation)));
    const std::string weight = fmt::format("x1[{}, {}, r0, r1]", c, group > 1 ? "r2" : "0");
    text += fmt::format("{}: {}{}{} = {}[r0:{k},r1:{k}{}] ({})\n", sum, sum_type, shape,
                        follows ? "" : " output", combiner,
                        group > 1 ? fmt::format(",r2:{}", group) : "",
                        group == 0 ? (bytes ? fmt::format("i32({})", read) : read)
                        : bytes    ? fmt::format("i32({}) * i32({})", read, weight)
                                   : fmt::format("{} * {}", read, weight),
                        fmt::arg("k", kernel));
    if (!follows) return text;
    return text + fmt::format("{}: f32{} output = max({}({}[i0, i1, i2, i3]) + x2[{}], 0.0)\n",
                              last, shape, bytes ? "f32" : "", sum, c);
  }
};

Window RandomWindow(Random& random) {
  const auto size = [&](uint64_t least, uint64_t most) {
    return static_cast<int64_t>(least + random.Below(most - least + 1));
  };
  constexpr int64_t kGroups[] = {0, 1, 1, 2, 4, 8};
  constexpr int64_t kChannels[] = {8, 16, 24, 13};
  Window w{.images = size(1, 2),
           .height = size(9, 14),
           .width = size(9, 14),
           .channels = kChannels[random.Below(std::size(kChannels))],
           .kernel = size(2, 4),
           .stride = size(1, 2),
           .pad = size(0, 2),
           .dilation = random.Chance(0.2) ? 2 : 1,
           .group = kGroups[random.Below(std::size(kGroups))],
           .channels_first = random.Chance(0.4),
           .follows = random.Chance(0.6),
           .bytes = random.Chance(0.25)};
  if (w.group == 0) w.combiner = random.Chance(0.5) && !w.bytes ? "max" : "sum";
  if (w.group > 1 && w.channels % w.group != 0) w.channels = 16;
  if (w.stride == w.kernel) w.stride = 1;
  return w;
}

TEST(WindowsTest, RandomTilesOfRandomWindows) {
  constexpr int kWindows = 32;
  Random seeds(4);
  int run = 0, with_input = 0;
  for (int n = 0; n < kWindows; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const std::string text = RandomWindow(random).Text();
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto sketch = schedule::WindowsSketch(workload, CudaTarget("sm_80"));
    if (!sketch) continue;
    schedule::Values values = *sketch->rule->Default(*sketch);
    for (int tries = 0; tries < 20 && !random.Chance(0.2); ++tries) {
      const auto& threads = sketch->tables[0].rows[random.Below(sketch->tables[0].rows.size())];
      const auto& points = sketch->tables[1].rows[random.Below(sketch->tables[1].rows.size())];
      const schedule::Values other{threads[0], threads[1], points[0], points[1]};
      if (!sketch->rule->Refusal(*sketch, other).empty()) continue;
      values = other;
      break;
    }
    schedule::TraceWriter writer(workload);
    const absl::Status emitted = sketch->rule->Emit(*sketch, values, writer);
    ASSERT_TRUE(emitted.ok()) << emitted << "\n" << text << ToText(writer.trace());
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << "seed " << seed << ": " << result.why << "\n"
        << text << ToText(writer.trace()) << ir::ToText(result.lowered.nest);
    ASSERT_EQ(result.lowered.nest.phases.size(), 1U) << "one launch\n" << text;
    const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
    EXPECT_EQ(launch.block_x * launch.block_y, values[0] * values[1]);
    EXPECT_GT(ir::SharedBytesOf(result.lowered.nest, result.lowered.nest.phases[0]), 0) << text;
    const auto read = sketch->rule->Read(*sketch, writer.trace());
    EXPECT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
    with_input += ToText(writer.trace()).find("compute_at(s0") != std::string::npos ? 1 : 0;
    ++run;
  }
  std::cout << run << " windows, " << with_input << " with a padding of their own\n";
  EXPECT_GE(run, kWindows / 2);
  EXPECT_GE(with_input, kWindows / 4);
}

std::string DefaultOf(const std::string& text) {
  const auto trace = schedule::DefaultTrace(schedule::WorkloadOf(text), CudaTarget("sm_90a"));
  EXPECT_TRUE(trace.ok()) << trace.status();
  return ToText(*trace);
}

// A layer as networks have it: weights along the channels, padding and what follows within.
TEST(WindowsTest, DefaultsAreBoxes) {
  const std::string deep =
      DefaultOf(Window{.height = 56, .width = 56, .channels = 144, .group = 1}.Text());
  EXPECT_THAT(deep, HasSubstr("= pack(s1, x1, [i1,i2,i3,i0])"));
  EXPECT_THAT(deep, HasSubstr("epilogue(s1, s2)"));
  EXPECT_THAT(deep, HasSubstr("compute_at(s0, s1.i3.1, shared)"));
  EXPECT_THAT(deep, HasSubstr("split(s1.i3, [8,4], mask)"));
  EXPECT_THAT(deep, HasSubstr("vectorize(s1.i3.2)"));
  const std::string pooling = DefaultOf(
      Window{.height = 112, .width = 112, .channels = 64, .stride = 2, .combiner = "max"}.Text());
  EXPECT_THAT(pooling, HasSubstr("compute_at(s0, s1.i3.1, shared)"));
  const std::string whole =
      DefaultOf(Window{.height = 56, .width = 56, .channels = 32, .pad = 0, .group = 1}.Text());
  EXPECT_THAT(whole, HasSubstr("= cache_read(s0, x0, at=s0.i3.1, storage=shared)"));
}

// Nothing is read twice where windows do not overlap.
TEST(WindowsTest, WhatDoesNotOverlapIsNone) {
  const auto sketch = [](const Window& w) {
    return schedule::WindowsSketch(schedule::WorkloadOf(w.Text()), CudaTarget("sm_80")).has_value();
  };
  EXPECT_FALSE(sketch({.height = 28, .width = 28, .kernel = 2, .stride = 2, .pad = 0}));
  EXPECT_TRUE(sketch({.height = 28, .width = 28, .kernel = 3, .stride = 2, .pad = 0}));
  EXPECT_FALSE(sketch({.height = 28, .width = 28, .kernel = 1, .pad = 0, .group = 1}));
  EXPECT_TRUE(sketch({.height = 28, .width = 28, .kernel = 1, .pad = 0, .group = 4}))
      << "the channels of a group read the same";
  // All of its output channels read the same, too few for a product of matrices.
  const std::string dense =
      "workload 1\nx0: f32[1,28,28,4] input range(-1,1)\nx1: f32[8,4,3,3] constant\n"
      "s0: f32[1,26,26,8] output = sum[r0:3,r1:3,r2:4] (x0[i0, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\n";
  EXPECT_FALSE(schedule::WindowsSketch(schedule::WorkloadOf(dense), CudaTarget("sm_80")));
}

/// How many bytes threads ask the executor's global memory for, by the loads that are emitted: a
/// box asks for its halo, a thread for an element for all of its taps.
TEST(WindowsTest, ABlockReadsItsHaloOnce) {
  const Window layer{.height = 32, .width = 32, .channels = 32, .group = 1, .follows = false};
  const ir::Workload workload = schedule::WorkloadOf(layer.Text());
  schedule::TraceWriter writer(workload);
  const auto parts = schedule::PartsOf(writer);
  ASSERT_EQ(parts.windows.size(), 1U);
  const schedule::WindowTile tile{8, 16, 1, 4};
  EXPECT_EQ(tile.halo(parts.windows[0].axes), (16 + 2) * (4 + 2) * 32);
  EXPECT_EQ(tile.blocks(parts.windows[0].axes), 2 * 8);
  schedule::ScheduleWindow(writer, parts.windows[0], tile);
  const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 1));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
  // Shared buffers begin at multiples of 64 bytes.
  EXPECT_EQ(ir::SharedBytesOf(result.lowered.nest, result.lowered.nest.phases[0]),
            tile.shared_bytes(parts.windows[0].axes));
}

TEST(WindowsTest, RefusesWhatNoBlockCanHold) {
  const ir::Workload workload = schedule::WorkloadOf(
      Window{.height = 64, .width = 64, .channels = 64, .kernel = 9, .pad = 4, .group = 1}.Text());
  const auto sketch = schedule::WindowsSketch(workload, CudaTarget("sm_86"));
  ASSERT_TRUE(sketch.has_value());
  EXPECT_EQ(sketch->rule->Refusal(*sketch, {8, 16, 4, 4}),
            "what a block reads is larger than its shared memory");
  EXPECT_EQ(sketch->rule->Refusal(*sketch, {8, 16, 8, 8}), "too many registers");
  EXPECT_EQ(sketch->rule->Refusal(*sketch, {32, 8, 1, 1}), "half of the block has nothing to do");
}

}  // namespace
}  // namespace hone::ptx

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/launch.h"
#include "schedule/cuda/products.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Convolutions as products of matrices in tiles, with what follows them in the same launch: the
// loop interpreter and the executor of PTX find races and unset reads, the interpreter in double
// decides what is right.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using ::testing::HasSubstr;

/// A convolution in NHWC (or of NCHW data), with padding or without, and what follows it.
struct Convolution {
  int64_t images = 1, height = 6, width = 5, in = 8, out = 16, kernel = 3, stride = 1, pad = 1;
  bool channels_first = false, bias = true, relu = true, residual = false;

  int64_t OutOf(int64_t size) const { return (size + 2 * pad - kernel) / stride + 1; }
  std::string Text() const {
    const int64_t oh = OutOf(height), ow = OutOf(width), k = kernel;
    const std::string result = fmt::format("f32[{},{},{},{}]", images, oh, ow, out);
    std::string text =
        fmt::format("workload 1\nx0: f32[{}] input range(-1,1)\n",
                    channels_first ? fmt::format("{},{},{},{}", images, in, height, width)
                                   : fmt::format("{},{},{},{}", images, height, width, in));
    text += fmt::format("x1: f32[{},{},{},{}] constant\n", out, in, k, k);
    if (bias) text += fmt::format("x2: f32[{}] constant\n", out);
    if (residual) text += fmt::format("x3: {} input range(-1,1)\n", result);
    std::string at = fmt::format("i0, i1 * {0} + r0, i2 * {0} + r1, r2", stride), data = "x0";
    if (pad > 0) {
      text += fmt::format(
          "s0: f32[{},{},{},{}] = select(i1 >= {p} & i1 < {} & i2 >= {p} & i2 < {}, x0[{}], 0.0)\n",
          images, height + 2 * pad, width + 2 * pad, in, height + pad, width + pad,
          channels_first ? fmt::format("i0, i3, i1 - {0}, i2 - {0}", pad)
                         : fmt::format("i0, i1 - {0}, i2 - {0}, i3", pad),
          fmt::arg("p", pad));
      data = "s0";
    } else if (channels_first) {
      at = fmt::format("i0, r2, i1 * {0} + r0, i2 * {0} + r1", stride);
    }
    const std::string sum = pad > 0 ? "s1" : "s0", last = pad > 0 ? "s2" : "s1";
    const bool follows = bias || relu || residual;
    text += fmt::format("{}: {}{} = sum[r0:{k},r1:{k},r2:{}] ({}[{}] * x1[i3, r2, r0, r1])\n", sum,
                        result, follows ? "" : " output", in, data, at, fmt::arg("k", k));
    if (!follows) return text;
    std::string value = sum + "[i0, i1, i2, i3]";
    if (bias) value += " + x2[i3]";
    if (residual) value += " + x3[i0, i1, i2, i3]";
    return text + fmt::format("{}: {} output = {}\n", last, result,
                              relu ? "max(" + value + ", 0.0)" : value);
  }
};

Convolution RandomConvolution(Random& random) {
  const auto size = [&](uint64_t least, uint64_t most) {
    return static_cast<int64_t>(least + random.Below(most - least + 1));
  };
  constexpr int64_t kChannels[] = {3, 4, 6, 8, 12, 16, 24};
  Convolution c{.images = size(1, 2),
                .height = size(4, 9),
                .width = size(4, 9),
                .in = kChannels[random.Below(std::size(kChannels))],
                .out = size(16, 44),
                .kernel = size(1, 3),
                .stride = size(1, 2),
                .pad = size(0, 1),
                .channels_first = random.Chance(0.2),
                .bias = random.Chance(0.6),
                .relu = random.Chance(0.5),
                .residual = random.Chance(0.3)};
  if (c.residual) c.bias = true;
  if (c.kernel == 1) c.pad = 0;
  return c;
}

TEST(ConvolutionTest, RandomTilesOfRandomConvolutions) {
  constexpr int kConvolutions = 40;
  Random seeds(78);
  int tiles = 0, in_parts = 0, run = 0;
  for (int n = 0; n < kConvolutions; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const std::string text = RandomConvolution(random).Text();
    const ir::Workload workload = schedule::WorkloadOf(text);
    const char* chip = random.Chance(0.5) ? "sm_80" : "sm_90a";
    const schedule::Space space(workload, CudaTarget(chip), ir::AccuracyClass::kDefault);
    uint64_t id = random.Chance(0.3) ? space.DefaultId() : random.Below(space.product());
    for (int tries = 0; tries < 8 && !space.Admits(id); ++tries) id = random.Below(space.product());
    if (!space.Admits(id)) continue;
    const schedule::Space::Point point = space.PointOf(id);
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << text;
    const schedule::CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu(chip, seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ": " << result.why << "\n"
                                                   << text << "\n"
                                                   << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    ++run;
    if (point.sketch.name != "products") continue;
    // A sum that is cut into parts is added up, with all that follows, by a launch of its own.
    const bool parts = space.ValueOf(id, "parts") > 1;
    EXPECT_EQ(result.lowered.nest.phases.size(), parts ? 2U : 1U) << "with all that follows\n"
                                                                  << text;
    ++(parts ? in_parts : tiles);
  }
  std::cout << run << " convolutions, " << tiles << " as tiles, " << in_parts << " in parts\n";
  EXPECT_GE(tiles, kConvolutions / 3);
  EXPECT_GT(in_parts, 0);
}

TEST(ConvolutionTest, ReadsBackWhatItWrites) {
  Random random(5);
  for (int n = 0; n < 40; ++n) {
    const ir::Workload workload = schedule::WorkloadOf(RandomConvolution(random).Text());
    const auto sketch = schedule::ProductsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value()) << n;
    for (const auto& tile : sketch->tables[0].rows) {
      for (const auto& depth : sketch->tables[1].rows) {
        for (const auto& parts : sketch->tables[2].rows) {
          const int64_t stages = 1 + n % 4;
          const schedule::Values values{tile[0],  tile[1],  tile[2], tile[3],
                                        depth[0], parts[0], stages};
          if (parts[0] * stages > 1 && !sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
        }
      }
    }
  }
}

// By default a convolution is a product of matrices with one axis of pixels, its weights laid out
// by output channels; three input channels and the taps are one axis of slices.
TEST(ConvolutionTest, DefaultsAreTiles) {
  const auto text_of = [](const Convolution& c) {
    const auto trace = schedule::DefaultTrace(schedule::WorkloadOf(c.Text()), CudaTarget("sm_90a"));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return ToText(*trace);
  };
  const std::string deep = text_of({.height = 56, .width = 56, .in = 64, .out = 64});
  EXPECT_THAT(deep, HasSubstr("flatten(s1, [i0,i1,i2])"));
  EXPECT_THAT(deep, HasSubstr("= pack(s1, x1, [i2,i3,i1,i0])"));
  EXPECT_THAT(deep, HasSubstr("epilogue(s1, s2)"));
  EXPECT_THAT(deep, HasSubstr("split(s1.r2, 16)"));
  const std::string first = text_of(
      {.height = 224, .width = 224, .in = 3, .out = 64, .kernel = 7, .stride = 2, .pad = 3});
  EXPECT_THAT(first, HasSubstr("flatten(s1, [r0,r1,r2], 8)"));
  EXPECT_THAT(first, HasSubstr("= im2col(s1, x0, [i0,r0]"));
}

// A map that reads another point, reads beside others, or a sum that is a result itself: a launch
// of its own.
TEST(ConvolutionTest, WhatIsNoEpilogueIsALaunch) {
  const std::string product =
      "workload 1\nx0: f32[20,16] input range(-1,1)\nx1: f32[16,20] input range(-1,1)\n"
      "s0: f32[20,20]{} = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";
  const std::string plain = fmt::format(fmt::runtime(product), "");
  const std::string texts[] = {
      plain + "s1: f32[20,20] output = s0[i1, i0] + 1.0\n",
      plain + "s1: f32[20,20] output = s0[i0, i1] + 1.0\ns2: f32[20,20] output = exp(s0[i0, i1])\n",
      fmt::format(fmt::runtime(product), " output") + "s1: f32[20,20] output = s0[i0, i1] + 1.0\n"};
  for (const std::string& text : texts) {
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto trace = schedule::DefaultTrace(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << text;
    EXPECT_EQ(ToText(*trace).find("epilogue"), std::string::npos) << text;
    const auto result = schedule::CheckTrace(workload, *trace, OnGpu("sm_80", 5));
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(*trace);
  }
}

TEST(ConvolutionTest, LayersAssembleWithoutSpills) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  const Convolution layers[] = {
      {.height = 56, .width = 56, .in = 64, .out = 64, .residual = true},
      {.height = 224, .width = 224, .in = 3, .out = 64, .kernel = 7, .stride = 2, .pad = 3},
      {.height = 56, .width = 56, .in = 64, .out = 256, .kernel = 1, .pad = 0},
      {.height = 7, .width = 7, .in = 512, .out = 512},
      {.height = 224, .width = 224, .in = 3, .out = 32, .stride = 2, .channels_first = true}};
  for (const Convolution& layer : layers) {
    const ir::Workload workload = schedule::WorkloadOf(layer.Text());
    for (const char* chip : {"sm_80", "sm_90a"}) {
      const auto trace = schedule::DefaultTrace(workload, CudaTarget(chip));
      ASSERT_TRUE(trace.ok()) << trace.status();
      const auto lowered = schedule::LowerTrace(workload, *trace, CudaTarget(chip), {}, "k");
      ASSERT_TRUE(lowered.ok()) << lowered.status() << ToText(*trace);
      ASSERT_EQ(lowered->nest.phases.size(), 1U);
      const auto text = codegen::Assembly({&lowered->nest}, CudaTarget(chip));
      ASSERT_TRUE(text.ok()) << text.status();
      for (const auto& assembler : assemblers) {
        const auto made = assembler->Assemble(*text, chip);
        ASSERT_TRUE(made.ok()) << made.status();
        EXPECT_EQ(codegen::AssemblerRefusal(made->log), "") << chip;
        const codegen::KernelUsage& usage = made->log.kernels[0];
        std::cout << chip << ": " << layer.in << " to " << layer.out << ": " << usage.registers
                  << " registers, " << usage.shared_bytes << " bytes\n";
      }
    }
  }
}

}  // namespace
}  // namespace hone::ptx

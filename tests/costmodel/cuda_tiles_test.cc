#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "costmodel/cuda/row_launch.h"
#include "costmodel/cuda/tile_launch.h"
#include "costmodel/cuda/window_launch.h"
#include "costmodel/features.h"
#include "ir/cuda/cuda_target.h"
#include "ir/text.h"
#include "schedule/cuda/parts.h"
#include "schedule/space.h"

// What the analytic model of GPUs says of tiles in shared memory: sectors from L2, wavefronts in L1
// and shared memory, instructions, of pairs of schedules whose order is certain.
namespace hone::costmodel {
namespace {

ir::Target Card(const std::string& text) {
  ir::Target target;
  std::string error;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &error)) << error;
  return target;
}

/// A padded window over an image in NHWC, of weights or without.
std::string Window(int64_t size, int64_t channels, int64_t kernel, int64_t stride, int64_t group) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  std::string text =
      fmt::format("workload 1\nx0: f32[1,{0},{0},{1}] input range(-1,1)\n", size, channels);
  if (group > 0)
    text += fmt::format("x1: f32[{0},{1},{2},{2}] constant\n", channels, group, kernel);
  const std::string read =
      fmt::format("s0[i0, i1 * {0} + r0, i2 * {0} + r1, {1}]", stride,
                  group > 1 ? fmt::format("i3 // {0} * {0} + r2", group) : std::string("i3"));
  return text + fmt::format(
                    "s0: f32[1,{0},{0},{1}] = select(i1 >= {2} & i1 < {3} & i2 >= {2} & i2 < {3}, "
                    "x0[i0, i1 - {2}, i2 - {2}, i3], 0.0)\n"
                    "s1: f32[1,{4},{4},{1}] output = {5}[r0:{6},r1:{6}{7}] ({8}{9})\n",
                    size + 2 * pad, channels, pad, size + pad, out, group > 0 ? "sum" : "max",
                    kernel, group > 1 ? fmt::format(",r2:{}", group) : "", read,
                    group == 0  ? ""
                    : group > 1 ? " * x1[i3, r2, r0, r1]"
                                : " * x1[i3, 0, r0, r1]");
}

/// The least that the model gives points of a Sketch with this column, and of those without.
std::pair<double, double> WithAndWithout(const std::string& text, const char* column) {
  const schedule::Space space(*ir::ParseWorkload(text), Card("cuda:sm_90a"),
                              ir::AccuracyClass::kDefault);
  const FeatureExtractor extractor(space);
  double with = 1, without = 1;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (!space.Admits(id)) continue;
    double& least = space.ValueOf(id, column) > 0 ? with : without;
    least = std::min(least, extractor.AnalyticSeconds(id));
  }
  EXPECT_GT(space.ValueOf(space.DefaultId(), column), 0) << text;
  return {with, without};
}

TEST(CudaTilesTest, BoxesBeforeAThreadAnElement) {
  for (const std::string& text : {Window(112, 96, 3, 1, 1), Window(56, 144, 5, 1, 1),
                                  Window(112, 64, 3, 2, 0), Window(56, 128, 3, 1, 4)}) {
    const auto [boxes, elements] = WithAndWithout(text, "window_x");
    EXPECT_LT(boxes, elements) << text;
  }
}

// A box brings its halo once; a larger one brings less for each result.
TEST(CudaTilesTest, LargerBoxesReadLess) {
  const ir::Workload workload = *ir::ParseWorkload(Window(64, 64, 5, 1, 1));
  schedule::TraceWriter writer(workload);
  const schedule::CudaParts parts = schedule::PartsOf(writer);
  ASSERT_EQ(parts.windows.size(), 1U);
  const WindowLaunch launch(writer.workload(), parts.windows[0]);
  const CudaLaunch small = launch.Of({8, 8, 1, 1}), large = launch.Of({8, 16, 1, 4});
  EXPECT_GT(small.l2_bytes, 1.8 * large.l2_bytes);
  EXPECT_LT(small.shared_bytes, large.shared_bytes);
  const double whole = 64 * 64 * 64 * 4;
  EXPECT_GT(large.l2_bytes, 2 * whole) << "input and result";
  EXPECT_LT(large.l2_bytes, 4 * whole);
  // What neighbouring rows of a thread share is fetched from the box once.
  EXPECT_LT(large.wavefronts, small.wavefronts);
}

// Channels side by side are all banks once; pixels two apart are half of them.
TEST(CudaTilesTest, StridedPixelsShareBanks) {
  const auto wavefronts = [](int64_t stride) {
    const ir::Workload workload = *ir::ParseWorkload(
        fmt::format("workload 1\nx0: f32[8,66,{0}] input range(-1,1)\n"
                    "s0: f32[8,64,64] output = max[r0:3,r1:3] (x0[i0, i1 + r0, i2 * {1} + r1])\n",
                    63 * stride + 3, stride));
    schedule::TraceWriter writer(workload);
    const schedule::CudaParts parts = schedule::PartsOf(writer);
    EXPECT_EQ(parts.windows.size(), 1U);
    return WindowLaunch(writer.workload(), parts.windows.at(0)).Of({32, 4, 1, 1}).wavefronts;
  };
  EXPECT_GT(wavefronts(2), 1.5 * wavefronts(1));
}

TEST(CudaTilesTest, GroupsOnTensorCoresBeforeThreads) {
  const std::string text =
      "workload 1\nx0: bf16[1,28,28,512] input range(-1,1)\nx1: bf16[512,16,3,3] constant\n"
      "s0: f32[1,26,26,512] output = sum[r0:3,r1:3,r2:16] (f32(x0[i0, i1 + r0, i2 + r1, "
      "i3 // 16 * 16 + r2]) * f32(x1[i3, r2, r0, r1]))\n";
  const auto [cores, others] = WithAndWithout(text, "warp_depth");
  EXPECT_LT(cores, others);
}

/// A softmax's launch where lanes can exchange what they have, and where they cannot: numbers of 16
/// bits.
TEST(CudaTilesTest, WarpsExchangeLessThanThreads) {
  const auto launch = [](const char* dtype) {
    const ir::Workload workload = *ir::ParseWorkload(fmt::format(
        "workload 1\nx0: {0}[4096,1024] input range(-4,4)\n"
        "s0: {0}[4096] = max[r0:1024] (x0[i0, r0])\n"
        "s1: {0}[4096,1024] = exp(x0[i0, i1] - s0[i0])\ns2: {0}[4096] = sum[r0:1024] (s1[i0, r0])\n"
        "s3: {0}[4096,1024] output = s1[i0, i1] / s2[i0]\n",
        dtype));
    schedule::TraceWriter writer(workload);
    const schedule::CudaParts parts = schedule::PartsOf(writer);
    EXPECT_EQ(parts.rows.size(), 1U);
    return RowLaunch(writer.workload(), parts.rows.at(0)).Of(256, 1, 1);
  };
  const CudaLaunch warps = launch("f32"), threads = launch("f16");
  EXPECT_LT(warps.chain_cycles, threads.chain_cycles - 500) << "two reductions";
  EXPECT_LT(warps.shared_bytes, 1024 * 4 + 200) << "a row, and numbers of eight warps";
}

TileLaunch NarrowProduct(const std::string& stored) {
  const ir::Workload workload = *ir::ParseWorkload(fmt::format(
      "workload 1\nx0: bf16[2048,256] input range(-1,1)\nx1: bf16[256,2048] input range(-1,1)\n"
      "s0: f32[2048,2048] = sum[r0:256] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n"
      "s1: {0}[2048,2048] output = {0}(max(s0[i0, i1], 0.0))\n",
      stored));
  schedule::TraceWriter writer(workload);
  const schedule::CudaParts parts = schedule::PartsOf(writer);
  EXPECT_EQ(parts.products.size(), 1U);
  return {writer.workload(), parts.products.at(0)};
}

// Pairs of narrow numbers are half of a sector each; pieces of 16 bytes are whole ones.
TEST(CudaTilesTest, NarrowResultsWantToGoThroughSharedMemory) {
  const schedule::WarpTile direct{2, 2, 2, 8, 32, 2};
  schedule::WarpTile through = direct;
  through.through = true;
  const TileLaunch narrow = NarrowProduct("bf16"), wide = NarrowProduct("f16");
  for (const TileLaunch* launch : {&narrow, &wide}) {
    const CudaLaunch pairs = launch->Of(direct), pieces = launch->Of(through);
    EXPECT_LT(pieces.l2_bytes, pairs.l2_bytes);
    EXPECT_LT(pieces.wavefronts, pairs.wavefronts);
    EXPECT_GT(pieces.shared_bytes, pairs.shared_bytes);
    EXPECT_GT(pieces.chain_cycles, pairs.chain_cycles) << "barriers";
  }
}

// Eight channels of 16 bits are a copy; four are two copies, and of odd numbers each is one.
TEST(CudaTilesTest, ChannelsThatDivideArePieces) {
  const auto instructions = [](int64_t channels) {
    const ir::Workload workload = *ir::ParseWorkload(fmt::format(
        "workload 1\nx0: bf16[1,58,58,{0}] input range(-1,1)\nx1: bf16[64,{0},3,3] constant\n"
        "s0: f32[1,56,56,64] output = sum[r0:3,r1:3,r2:{0}] (f32(x0[i0, i1 + r0, i2 + r1, r2]) * "
        "f32(x1[i3, r2, r0, r1]))\n",
        channels));
    schedule::TraceWriter writer(workload);
    const schedule::CudaParts parts = schedule::PartsOf(writer);
    EXPECT_EQ(parts.products.size(), 1U);
    const TileLaunch launch(writer.workload(), parts.products.at(0));
    const auto depth = static_cast<double>(launch.axes().depth);
    return launch.Of(schedule::WarpTile{2, 2, 2, 4, 16, 2}).instructions / depth;
  };
  EXPECT_LT(instructions(24), instructions(20));
  EXPECT_LT(instructions(20), instructions(21));
}

}  // namespace
}  // namespace hone::costmodel

#include <algorithm>
#include <cmath>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "costmodel/cuda/cuda_launches.h"
#include "costmodel/cuda/launch.h"
#include "costmodel/features.h"
#include "ir/cuda/cuda_target.h"
#include "ir/text.h"
#include "ir/workload_cost.h"
#include "tests/schedule/random_workload.h"

// The analytic model of GPUs: pairs whose order is certain, and times that no card can beat.
namespace hone::costmodel {
namespace {

ir::Target Card(const std::string& text) {
  ir::Target target;
  std::string error;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &error)) << error;
  return target;
}

schedule::Space SpaceOf(const std::string& workload, const std::string& target = "cuda:sm_90a") {
  return {*ir::ParseWorkload(workload), Card(target), ir::AccuracyClass::kDefault};
}

double SecondsOfDefault(const std::string& workload) {
  const schedule::Space space = SpaceOf(workload);
  return FeatureExtractor(space).AnalyticSeconds(space.DefaultId());
}

std::string Product(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\nx1: f32[{2},{1}] input range(-1,1)\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n",
      rows, columns, depth);
}

/// Bound by memory, with enough under way in a full card.
CudaLaunch Streaming() {
  CudaLaunch launch;
  launch.blocks = 132 * 8 * 16;
  launch.threads = 256;
  launch.memory_bytes = 4e9;
  launch.bytes_in_flight = 4;
  return launch;
}

TEST(CudaLaunchTest, SharedMemoryRegistersAndThreadsBoundWhatAnSmHolds) {
  const ir::Target target = Card("cuda:sm_90a");
  const auto& card = target.As<ir::CudaTarget>();
  CudaLaunch launch = Streaming();
  EXPECT_EQ(ResidentBlocks(card, launch), 8) << "2048 threads";
  launch.registers = 64;
  EXPECT_EQ(ResidentBlocks(card, launch), 4) << "65536 registers";
  launch.shared_bytes = 100 << 10;
  EXPECT_EQ(ResidentBlocks(card, launch), 2) << "228 KiB";
  launch.threads = 32;
  launch.shared_bytes = 0;
  launch.registers = 16;
  EXPECT_EQ(ResidentBlocks(card, launch), 32);
}

TEST(CudaLaunchTest, FewerResidentBlocksHideLessLatency) {
  const ir::Target target = Card("cuda:sm_90a");
  const auto& card = target.As<ir::CudaTarget>();
  CudaLaunch limited = Streaming();
  limited.shared_bytes = 100 << 10;
  EXPECT_GT(LaunchSeconds(card, limited), 1.5 * LaunchSeconds(card, Streaming()));
  // Where each thread asks for more at once it makes up for that.
  CudaLaunch wide = limited;
  wide.bytes_in_flight = 16;
  EXPECT_LT(LaunchSeconds(card, wide), LaunchSeconds(card, limited));
}

TEST(CudaLaunchTest, ABlockTooManyCostsAWave) {
  const ir::Target target = Card("cuda:sm_90a");
  const auto& card = target.As<ir::CudaTarget>();
  CudaLaunch even;
  even.blocks = card.multiprocessors;
  even.threads = 1024;
  even.registers = 64;
  even.flop = 1e9 * even.blocks;
  even.chain_cycles = 1e6;
  CudaLaunch tail = even;
  tail.blocks += 1;
  tail.flop = 1e9 * tail.blocks;
  EXPECT_EQ(Waves(card, even), 1);
  EXPECT_EQ(Waves(card, tail), 2);
  EXPECT_GT(LaunchSeconds(card, tail), 1.9 * LaunchSeconds(card, even));
}

TEST(CudaLaunchTest, CountsSectorsLinesAndBanks) {
  WarpOffsets together{}, strided{}, one{};
  std::vector<int64_t> row, column, padded, same(32, 7);
  for (int64_t lane = 0; lane < kWarp; ++lane) {
    together[static_cast<size_t>(lane)] = lane;
    strided[static_cast<size_t>(lane)] = 64 * lane;
    row.push_back(lane);
    column.push_back(32 * lane);
    padded.push_back(33 * lane);
  }
  EXPECT_EQ(AccessOf(together, 1).sectors, 4);
  EXPECT_EQ(AccessOf(together, 1).lines, 1);
  EXPECT_EQ(AccessOf(strided, 1).sectors, 32);
  EXPECT_EQ(AccessOf(strided, 1).lines, 32);
  EXPECT_EQ(AccessOf(strided, 4).sectors, 32) << "16 bytes each";
  EXPECT_EQ(AccessOf(one, 1).sectors, 1) << "a broadcast";
  EXPECT_EQ(BankWavefronts(row), 1);
  EXPECT_EQ(BankWavefronts(column), 32);
  EXPECT_EQ(BankWavefronts(padded), 1);
  EXPECT_EQ(BankWavefronts(same), 1) << "a broadcast";
}

TEST(CudaFeaturesTest, CoalescedBeforeStrided) {
  const std::string head = "workload 1\nx0: f32[8192,8192] input range(-1,1)\n";
  EXPECT_LT(1.5 * SecondsOfDefault(head + "s0: f32[8192,8192] output = x0[i0, i1] + 1.0\n"),
            SecondsOfDefault(head + "s0: f32[8192,8192] output = x0[i1, i0] + 1.0\n"));
  const std::string sum = head + "s0: f32[8192] output = sum[r0:8192] ";
  EXPECT_LT(SecondsOfDefault(sum + "(x0[r0, i0])\n"), SecondsOfDefault(sum + "(x0[i0, r0])\n"));
}

TEST(CudaFeaturesTest, TiledBeforeNaive) {
  for (const int64_t size : {512, 1024, 4096}) {
    const schedule::Space space = SpaceOf(Product(size, size, size));
    const FeatureExtractor extractor(space);
    double tiled = 1, naive = 1;
    for (uint64_t id = 0; id < space.product(); ++id) {
      if (!space.Admits(id)) continue;
      double& least = space.ValueOf(id, "depth") > 0 ? tiled : naive;
      least = std::min(least, extractor.AnalyticSeconds(id));
    }
    EXPECT_LT(2 * tiled, naive) << size;
  }
}

// Few blocks of few warps wait for each slice, unless it was asked for before.
TEST(CudaFeaturesTest, SlicesOnTheirWayHideLatency) {
  const schedule::Space space = SpaceOf(Product(64, 64, 4096));
  const FeatureExtractor extractor(space);
  double ahead = 1, in_turn = 1;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (!space.Admits(id) || space.ValueOf(id, "parts") != 1) continue;
    double& least = space.ValueOf(id, "stages") > 1 ? ahead : in_turn;
    least = std::min(least, extractor.AnalyticSeconds(id));
  }
  EXPECT_LT(ahead, in_turn);
}

/// A product of bf16 with sums in f32.
std::string NarrowProduct(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: bf16[{0},{2}] input range(-1,1)\nx1: bf16[{2},{1}] input range(-1,1)\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n",
      rows, columns, depth);
}

// Large products are bound by tensor cores or by what feeds them, and no card beats their rate.
TEST(CudaFeaturesTest, TensorCoresBeforeThreads) {
  for (const char* name : {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90a"}) {
    for (const int64_t size : {512, 1024, 4096}) {
      const schedule::Space space = SpaceOf(NarrowProduct(size, size, size), name);
      const FeatureExtractor extractor(space);
      const double flop = 2 * std::pow(static_cast<double>(size), 3);
      const double least = flop / space.target().As<ir::CudaTarget>().tensor_flop_per_second;
      double cores = 1, threads = 1, groups = 1;
      for (uint64_t id = 0; id < space.product(); ++id) {
        if (!space.Admits(id)) continue;
        double& best = space.ValueOf(id, "warp_depth") > 0      ? cores
                       : space.ValueOf(id, "group_columns") > 0 ? groups
                                                                : threads;
        best = std::min(best, extractor.AnalyticSeconds(id));
        ASSERT_GE(extractor.AnalyticSeconds(id), least * (1 - 1e-9));
      }
      EXPECT_LT((size == 4096 ? 3 : 1) * cores, threads) << name << " " << size;
      // From a tile for each multiprocessor on wgmma is the default where there is one.
      const bool by_groups = name == std::string("cuda:sm_90a") && size >= 1024;
      const char* const column = by_groups ? "group_columns" : "warp_depth";
      EXPECT_GT(space.ValueOf(space.DefaultId(), column), 0) << name << " " << size;
      if (by_groups) {
        EXPECT_LT((size == 4096 ? 1.3 : 1) * groups, cores);
      }
    }
  }
}

// Where wgmma is the default the model has it before every tile of mma.sync.
TEST(CudaFeaturesTest, TheDefaultOfWarpgroupsBeatsWarps) {
  int defaults = 0;
  for (const int64_t rows : {64, 128, 1024, 4096}) {
    for (const int64_t columns : {256, 1024, 4096}) {
      for (const int64_t depth : {192, 1024, 4096}) {
        const schedule::Space space = SpaceOf(NarrowProduct(rows, columns, depth), "cuda:sm_90a");
        if (space.ValueOf(space.DefaultId(), "group_columns") == 0) continue;
        ++defaults;
        const FeatureExtractor extractor(space);
        double cores = 1;
        for (uint64_t id = 0; id < space.product(); ++id) {
          if (!space.Admits(id) || space.ValueOf(id, "warp_depth") == 0) continue;
          cores = std::min(cores, extractor.AnalyticSeconds(id));
        }
        EXPECT_LT(extractor.AnalyticSeconds(space.DefaultId()), cores)
            << rows << " x " << columns << " x " << depth;
      }
    }
  }
  EXPECT_GE(defaults, 6);
}

/// A product of bytes with sums in i32, the second factor along the sum.
std::string ByteProduct(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: u8[{0},{2}] input range(0,256)\nx1: i8[{1},{2}] input range(-128,128)\n"
      "s0: i32[{0},{1}] output = sum[r0:{2}] (i32(x0[i0, r0]) * i32(x1[i1, r0]))\n",
      rows, columns, depth);
}

// Nor does one beat its rate of bytes, which is twice that of bf16.
TEST(CudaFeaturesTest, TensorCoresBeforeThreadsForBytes) {
  for (const char* name : {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90a"}) {
    for (const int64_t size : {512, 4096}) {
      const schedule::Space space = SpaceOf(ByteProduct(size, size, size), name);
      const schedule::Space halves = SpaceOf(NarrowProduct(size, size, size), name);
      const FeatureExtractor extractor(space), of_halves(halves);
      const double operations = 2 * std::pow(static_cast<double>(size), 3);
      const double least = operations / space.target().As<ir::CudaTarget>().byte_op_per_second;
      double cores = 1, threads = 1;
      for (uint64_t id = 0; id < space.product(); ++id) {
        if (!space.Admits(id)) continue;
        double& best = space.ValueOf(id, "warp_depth") > 0 ? cores : threads;
        best = std::min(best, extractor.AnalyticSeconds(id));
        ASSERT_GE(extractor.AnalyticSeconds(id), least * (1 - 1e-9));
      }
      EXPECT_LT((size == 4096 ? 3 : 1) * cores, threads) << name << " " << size;
      EXPECT_GT(space.ValueOf(space.DefaultId(), "warp_depth"), 0);
      EXPECT_LT(extractor.AnalyticSeconds(space.DefaultId()),
                of_halves.AnalyticSeconds(halves.DefaultId()))
          << name << " " << size;
    }
  }
}

/// The point that the analytic model thinks fastest.
uint64_t BestPoint(const schedule::Space& space) {
  const FeatureExtractor extractor(space);
  uint64_t best = space.DefaultId();
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.Admits(id) && extractor.AnalyticSeconds(id) < extractor.AnalyticSeconds(best))
      best = id;
  }
  return best;
}

TEST(CudaFeaturesTest, LargeNarrowProductsWantLargeTiles) {
  const auto best_rows = [&](const std::string& text) {
    const schedule::Space space = SpaceOf(text);
    const uint64_t best = BestPoint(space);
    return space.ValueOf(best, "warps_y") * space.ValueOf(best, "warp_rows") * 16 +
           space.ValueOf(best, "groups") * space.ValueOf(best, "group_rows") * 64;
  };
  const int64_t large = best_rows(NarrowProduct(4096, 4096, 4096));
  EXPECT_GE(large, 128);
  EXPECT_LT(best_rows(NarrowProduct(256, 256, 1024)), large);
}

/// A padded 3×3 convolution in NHWC, with what follows it or without.
std::string Convolution(int64_t size, int64_t channels, bool follows) {
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{0},{1}] input range(-1,1)\nx1: f32[{1},{1},3,3] constant\n"
      "s0: f32[1,{2},{2},{1}] = select(i1 >= 1 & i1 < {3} & i2 >= 1 & i2 < {3}, "
      "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: f32[1,{0},{0},{1}]{4} = sum[r0:3,r1:3,r2:{1}] (s0[i0, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\n{5}",
      size, channels, size + 2, size + 1, follows ? "" : " output",
      follows ? fmt::format("s2: f32[1,{0},{0},{1}] output = max(s1[i0, i1, i2, i3], 0.0)\n", size,
                            channels)
              : "");
}

TEST(CudaFeaturesTest, ConvolutionsAreTilesWithTheirEpilogues) {
  for (const int64_t size : {14, 56}) {
    const schedule::Space space = SpaceOf(Convolution(size, 128, true));
    const FeatureExtractor extractor(space);
    double tiled = 1, naive = 1;
    for (uint64_t id = 0; id < space.product(); ++id) {
      if (!space.Admits(id)) continue;
      double& least = space.ValueOf(id, "depth") > 0 ? tiled : naive;
      least = std::min(least, extractor.AnalyticSeconds(id));
    }
    EXPECT_LT(2 * tiled, naive) << size;
    EXPECT_GT(space.ValueOf(space.DefaultId(), "depth"), 0);
  }
  // What follows costs less than a launch of its own.
  const double alone = SecondsOfDefault(Convolution(56, 128, false));
  const double map = SecondsOfDefault(
      "workload 1\nx0: f32[1,56,56,128] input range(-1,1)\n"
      "s0: f32[1,56,56,128] output = max(x0[i0, i1, i2, i3], 0.0)\n");
  EXPECT_LT(SecondsOfDefault(Convolution(56, 128, true)), alone + map / 2);
}

// A thread for a row reads what its neighbours do not; a block reads it side by side.
TEST(CudaFeaturesTest, LongRowsBelongToBlocks) {
  const schedule::Space space = SpaceOf(
      "workload 1\nx0: f32[4096,1024] input range(-4,4)\n"
      "s0: f32[4096] = max[r0:1024] (x0[i0, r0])\n"
      "s1: f32[4096,1024] = exp(x0[i0, i1] - s0[i0])\n"
      "s2: f32[4096] = sum[r0:1024] (s1[i0, r0])\n"
      "s3: f32[4096,1024] output = s1[i0, i1] / s2[i0]\n");
  const FeatureExtractor extractor(space);
  double rows = 1, grid = 1;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (!space.Admits(id)) continue;
    double& least = space.ValueOf(id, "row_threads") > 0 ? rows : grid;
    least = std::min(least, extractor.AnalyticSeconds(id));
  }
  EXPECT_LT(2 * rows, grid);
}

TEST(CudaFeaturesTest, LargeProductsWantLargeTilesSmallOnesManyBlocks) {
  const auto best_rows = [&](const std::string& text) {
    const schedule::Space space = SpaceOf(text);
    const FeatureExtractor extractor(space);
    uint64_t best = space.DefaultId();
    for (uint64_t id = 0; id < space.product(); ++id) {
      for (float f : extractor.Extract(id)) EXPECT_TRUE(std::isfinite(f)) << id;
      if (space.Admits(id) && extractor.AnalyticSeconds(id) < extractor.AnalyticSeconds(best))
        best = id;
    }
    return space.ValueOf(best, "threads_y") * space.ValueOf(best, "rows");
  };
  const int64_t large = best_rows(Product(4096, 4096, 4096));
  EXPECT_GE(large, 64);
  EXPECT_LT(best_rows(Product(256, 256, 4096)), large);
}

// Few tiles leave multiprocessors idle: parts of the sum fill them.
TEST(CudaFeaturesTest, LongSumsWithFewTilesWantParts) {
  const auto best_parts = [&](const std::string& text) {
    const schedule::Space space = SpaceOf(text);
    const uint64_t best = BestPoint(space);
    return space.ValueOf(best, "parts");
  };
  EXPECT_GT(best_parts(Product(16, 256, 8192)), 1);
  EXPECT_LE(best_parts(Product(2048, 2048, 64)), 1);
}

// All its steps are one block's, whose threads share what is to do.
TEST(CudaLaunchTest, AScanIsOneBlock) {
  const auto workload = ir::ParseWorkload(
      "workload 1\nx0: f32[50,1,300] input range(-1,1)\nx1: f32[300,300] constant\n"
      "s0: f32[50,1,300] scan 0 = sum[r0:300] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.0) * "
      "x1[i2, r0])\ns1: f32[50,1,300] output scan 0 = tanh(x0[i0, i1, i2] + s0[i0, i1, i2])\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const StageLaunches product(*workload, workload->stages[0]);
  const CudaLaunch launch = product.OnGrid(256, 1);
  EXPECT_EQ(launch.blocks, 1);
  EXPECT_EQ(launch.threads, 320);
  EXPECT_LT(launch.chain_cycles, product.points() / 2) << "one thread does not make all";
  EXPECT_GT(launch.chain_cycles, 50 * 300) << "a step waits for the one before";
}

// The roofline that commands show (ir::CostOf), on every card, at every point.
TEST(CudaFeaturesTest, NothingBeatsTheRoofline) {
  Random seeds(41);
  std::vector<std::string> workloads = {Product(512, 512, 512), Product(7, 33, 12),
                                        Product(8192, 1024, 256)};
  for (int n = 0; n < 60; ++n) {
    Random random(seeds.Next());
    workloads.push_back(schedule::MakeWorkload(random).text);
  }
  int points = 0;
  for (const std::string& text : workloads) {
    for (const char* name : {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90a", "cuda:sm_100a"}) {
      const schedule::Space space = SpaceOf(text, name);
      const auto& card = space.target().As<ir::CudaTarget>();
      const ir::WorkloadCost cost = ir::CostOf(space.workload());
      const double bound =
          std::max(cost.flop() / card.flop_per_second, cost.bytes / card.memory_bytes_per_second);
      const FeatureExtractor extractor(space);
      for (uint64_t id = 0; id < space.product(); ++id, ++points) {
        ASSERT_GE(extractor.AnalyticSeconds(id), bound * (1 - 1e-9)) << name << "\n" << text;
        ASSERT_TRUE(std::isfinite(extractor.AnalyticSeconds(id))) << text;
      }
    }
  }
  EXPECT_GT(points, 1500);
}

}  // namespace
}  // namespace hone::costmodel

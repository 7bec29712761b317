#include <algorithm>
#include <cmath>

#include "costmodel/cuda/tile_launch.h"

namespace hone::costmodel {
namespace {

/// As in warp_launch.cc.
constexpr double kL2Latency = 260, kMemoryLatency = 600, kBarrier = 40;
constexpr double kOtherRegisters = 40, kMostRegisters = 255, kOfAThread = 20;
constexpr double kChunkBytes = 16, kNumberBytes = 2;
/// Cycles of an SM's tensor cores for 64 rows, a column and 16 terms, as the card's rate has it,
/// and until the first sums are there.
constexpr double kColumnCycles = 0.5, kGroupLatency = 60;
/// Instructions of a warp for each wgmma beside it: descriptors, the fence.
constexpr double kOfAProduct = 6;

double Parts(double whole, double part) { return std::ceil(whole / part); }

}  // namespace

CudaLaunch TileLaunch::Of(const schedule::GroupTile& tile) const {
  const double depth = static_cast<double>(axes_.depth * axes_.outer_depth);
  constexpr auto kSlice = static_cast<double>(schedule::GroupTile::kDepth);
  const auto rows = static_cast<double>(tile.block_rows());
  const auto columns = static_cast<double>(tile.columns);
  CudaLaunch launch;
  launch.threads = static_cast<double>(tile.threads());
  launch.blocks = static_cast<double>(schedule::BlocksOf(axes_, tile));
  const auto sums = static_cast<double>(tile.sums());
  launch.registers = std::min(kMostRegisters, sums + kOtherRegisters);
  launch.shared_bytes = static_cast<double>(tile.shared_bytes());
  const double warps = launch.blocks * static_cast<double>(tile.warps());
  // What sticks out of the result is computed all the same.
  const double results = launch.blocks * rows * columns;
  launch.group_flop = 2 * results * depth;
  launch.flop = results * operations_;
  const double first = launch.blocks * depth * rows, second = launch.blocks * depth * columns;
  launch.l2_bytes = kNumberBytes * (first + second) + result_bytes_;
  // 16 bytes are an instruction and its address; what is computed on its way goes by elements.
  const auto brought = [&](double operations) {
    constexpr double kChunk = kChunkBytes / kNumberBytes;
    return operations == 0 ? 2 / (kChunk * kWarp) : (3 + operations) / kWarp;
  };
  const double products = depth / static_cast<double>(ir::kGroupTerms);
  const bool boxes = tile.boxes && boxes_;
  launch.instructions =
      warps * products * static_cast<double>(tile.rows) * (1 + kOfAProduct) +
      (boxes ? 0 : first * brought(first_operations_) + second * brought(second_operations_)) +
      warps * (kOfAThread + sums * (1 + operations_));
  // Written once; tensor cores read beside that.
  launch.wavefronts = (first + second) * kNumberBytes / (4 * kWarp);
  launch.memory_bytes = memory_bytes_;
  // The products of the slice before hold theirs.
  const auto on_their_way = static_cast<double>(
      std::max<int64_t>(1, tile.stages > 2 ? tile.stages - 2 : tile.stages - 1));
  launch.bytes_in_flight =
      std::max(4.0, on_their_way * kNumberBytes * kSlice * (rows + columns) / launch.threads);
  const double compute = kSlice / static_cast<double>(ir::kGroupTerms) * columns * kColumnCycles *
                         static_cast<double>(tile.groups * tile.rows);
  const double late = std::max(0.0, kL2Latency - on_their_way * compute);
  // From three slices on the next products begin before the last ones end.
  const double brings = tile.stages > 2   ? late
                        : tile.stages > 1 ? kBarrier + kGroupLatency + late
                                          : 2 * kBarrier + kGroupLatency + kL2Latency;
  launch.chain_cycles = kMemoryLatency + Parts(depth, kSlice) * (brings + compute);
  return launch;
}

}  // namespace hone::costmodel

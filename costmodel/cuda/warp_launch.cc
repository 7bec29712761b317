#include <algorithm>
#include <cmath>

#include "costmodel/cuda/tile_launch.h"
#include "ir/mma.h"

namespace hone::costmodel {
namespace {

/// As in tile_launch.cc.
constexpr double kL2Latency = 260, kMemoryLatency = 600, kBarrier = 40, kSectorBytes = 32;
constexpr double kOtherRegisters = 48, kMostRegisters = 255, kOfAThread = 20;
constexpr double kChunkBytes = 16;
/// Cycles until a matrix is there; those of a product of 16 by 8 by 16, or 32 of bytes, in a
/// quarter of an A100's SM, and no more on later cards.
constexpr double kMatrixLatency = 30, kMmaCycles = 8;

double Parts(double whole, double part) { return std::ceil(whole / part); }

}  // namespace

// Without a box a lane stores the pair of columns that it has in a row, so that an instruction
// touches eight rows, each of them for as many bytes as eight columns have; of narrow results that
// is half a sector or less. With one it lays pairs down in shared memory, and 16 bytes of a row are
// an instruction.
TileLaunch::Stored TileLaunch::StoredBy(const schedule::WarpTile& tile) const {
  constexpr double kRows = 8, kPair = 2, kLineBytes = 128, kSumBytes = 4;
  const double row = kRows * stored_bytes_;
  if (!tile.through) return {std::max(1.0, kSectorBytes / row), 1 / kPair, kRows / (kPair * kWarp)};
  const double piece = kChunkBytes / stored_bytes_;
  // Pairs are laid down and pieces read in as many banks as there are.
  const double box = 2 * kSumBytes / kLineBytes;
  return {1, 1 / kPair + 2 / piece, box + stored_bytes_ / kLineBytes};
}

CudaLaunch TileLaunch::Of(const schedule::WarpTile& tile) const {
  const Stored stored = StoredBy(tile);
  const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  const double depth = static_cast<double>(axes_.depth * axes_.outer_depth);
  const auto slice = static_cast<double>(tile.depth);
  const auto block_rows = static_cast<double>(tile.block_rows());
  const auto block_columns = static_cast<double>(tile.block_columns());
  const double bytes = element_bytes(), terms = static_cast<double>(ir::kMmaTermBytes) / bytes;
  CudaLaunch launch;
  launch.threads = static_cast<double>(tile.threads());
  launch.blocks = static_cast<double>(schedule::BlocksOf(axes_, tile));
  const double sums = rows * columns * ir::kMmaSums;
  launch.registers = std::min(kMostRegisters, sums + 4 * rows + 2 * columns + kOtherRegisters);
  launch.shared_bytes = static_cast<double>(tile.shared_bytes());
  const double warps = launch.blocks * static_cast<double>(tile.warps());
  // What sticks out of the result is computed all the same.
  const double results = launch.blocks * block_rows * block_columns;
  (tile.number_bytes == 1 ? launch.byte_op : launch.tensor_flop) = 2 * results * depth;
  launch.flop = results * operations_;
  const double first = launch.blocks * depth * block_rows;
  const double second = launch.blocks * depth * block_columns;
  const auto wasted = [&](bool by_depth, double length) {
    return std::max(1.0, kSectorBytes / bytes / (by_depth ? slice : length));
  };
  launch.l2_bytes = bytes * (first * wasted(axes_.first_by_depth, block_rows) +
                             second * wasted(axes_.second_by_depth, block_columns)) +
                    result_bytes_ * stored.sectors;
  // A piece is an instruction and its address, or two without a pipeline, of 16 bytes where as many
  // begin at such an address; what is computed on its way goes by elements.
  const bool ahead = tile.stages > 1;
  const auto brought = [&](double operations, bool copied, int64_t run) {
    const double piece = std::min(kChunkBytes / bytes, static_cast<double>(run));
    return copied ? ((ahead ? 2 : 3) + operations) / (piece * kWarp) : (3 + operations) / kWarp;
  };
  const double steps = depth / terms;
  // Bytes whose terms lie apart are loaded and put together one by one.
  constexpr double kOfAByte = 2;
  const bool loaded = tile.number_bytes == 1;
  const double first_bytes = loaded && !axes_.first_by_depth ? 16 * rows : 0;
  const double second_bytes = loaded && !axes_.second_by_depth ? 8 * columns : 0;
  const double of_step =
      rows * columns + rows + columns / 2 + kOfAByte * (first_bytes + second_bytes);
  launch.instructions = warps * steps * of_step +
                        first * brought(first_operations_, first_copied_, axes_.first_run) +
                        second * brought(second_operations_, second_copied_, axes_.second_run) +
                        warps * (kOfAThread + sums * (stored.instructions + operations_));
  // A matrix of 8 by 8 is all banks once, and so is what four lanes of a copy write.
  launch.wavefronts = warps * steps * (4 * rows + 2 * columns + first_bytes + second_bytes) +
                      2 * (first + second) * bytes / (4 * kWarp) +
                      warps * sums * kWarp * stored.wavefronts;
  launch.memory_bytes = memory_bytes_;
  const auto on_their_way = static_cast<double>(std::max<int64_t>(1, tile.stages - 1));
  launch.bytes_in_flight =
      std::max(4.0, on_their_way * bytes * slice * (block_rows + block_columns) / launch.threads);
  const double compute = slice / terms * (kMatrixLatency + rows * columns * kMmaCycles);
  const double brings = ahead ? kBarrier + std::max(0.0, kL2Latency - on_their_way * compute)
                              : 2 * kBarrier + kL2Latency;
  launch.chain_cycles = kMemoryLatency + Parts(depth, slice) * (brings + compute) +
                        (tile.through ? rows * (2 * kBarrier + kMatrixLatency) : 0);
  return launch;
}

}  // namespace hone::costmodel

#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ir/cuda/cuda_target.h"

// What a launch on a GPU does, and how long that takes: throughputs of the SM and of memory,
// latencies that too few threads do not hide, and blocks that do not come out even.
namespace hone::costmodel {

/// Sums over all threads, but where it says of what.
struct CudaLaunch {
  double blocks = 1;
  double threads = 1;          ///< of a block
  double registers = 32;       ///< of a thread
  double shared_bytes = 0;     ///< of a block
  double flop = 0;             ///< f32 operations, two of a multiply-add
  double tensor_flop = 0;      ///< of tensor cores, f16 or bf16 with sums in f32
  double group_flop = 0;       ///< the same by wgmma, which alone reaches the card's rate
  double byte_op = 0;          ///< of tensor cores, bytes with sums in i32
  double instructions = 0;     ///< of warps
  double wavefronts = 0;       ///< of warps in L1 and shared memory, one a cycle and SM
  double l2_bytes = 0;         ///< in whole sectors
  double memory_bytes = 0;     ///< each byte once
  double chain_cycles = 0;     ///< of a thread: what it does one after another
  double bytes_in_flight = 4;  ///< of a thread: asked for before it waits
};

/// Blocks that an SM holds at once by threads, registers and shared memory; at least 1.
double ResidentBlocks(const ir::CudaTarget& card, const CudaLaunch& launch);
/// How often the card is filled with blocks.
double Waves(const ir::CudaTarget& card, const CudaLaunch& launch);
/// Operations a second of tensor cores by the instruction that tiles use (mma.sync), of numbers of
/// two bytes or one.
double TensorRate(const ir::CudaTarget& card, int64_t number_bytes = 2);
/// Seconds from the first block's start to the last one's end.
double LaunchSeconds(const ir::CudaTarget& card, const CudaLaunch& launch);

inline constexpr int kWarp = 32;
/// What it takes a warp whose lanes combine a number each: five turns of an exchange and an
/// operation on it.
inline constexpr double kCombineCycles = 5 * 30, kCombineInstructions = 5 * 2;
/// Where the lanes of a warp read or write, in elements of four bytes.
using WarpOffsets = std::array<int64_t, kWarp>;

/// What one access of a warp costs when each lane takes `elements` that lie side by side.
struct WarpAccess {
  double sectors = 0;  ///< of 32 bytes, from L2
  double lines = 0;    ///< of 128 bytes: wavefronts in L1
};
WarpAccess AccessOf(const WarpOffsets& offsets, int64_t elements);

/// Wavefronts of an access to shared memory: the most different words that lanes want of one bank.
double BankWavefronts(std::span<const int64_t> words);

}  // namespace hone::costmodel

#include "costmodel/cuda/launch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace hone::costmodel {
namespace {

/// Schedulers of an SM, each with an instruction a cycle: CUDA C++ Programming Guide, "Compute
/// Capabilities", as are the limits of blocks and registers.
constexpr double kSchedulers = 4;
constexpr double kRegisterUnit = 8, kReservedShared = 1024;
constexpr double kBanks = 32;
/// Cycles from asking memory for something until it is there, and how much faster the L2 is:
/// microbenchmarks of A100 and H100 (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
/// Architecture via Microbenchmarking", 2024).
constexpr double kMemoryLatency = 600, kL2OverMemory = 2.5;
/// What is not the longest overlaps with that, but not wholly.
constexpr double kNotHidden = 0.1;

double MostBlocks(const ir::CudaTarget& card) {
  return card.capability == 86 ? 16 : card.capability == 89 ? 24 : 32;
}

double CyclesPerSecond(const ir::CudaTarget& card) {
  const double lanes = card.capability == 80 ? 64 : 128;
  return card.flop_per_second / (2 * lanes * card.multiprocessors);
}

}  // namespace

// From 9.0 on only wgmma and its successors keep tensor cores busy: mma.sync reaches about 63 % of
// that on an H100 (Luo et al.).
double TensorRate(const ir::CudaTarget& card, int64_t number_bytes) {
  constexpr double kOfOlderInstructions = 0.63;
  const double most = number_bytes == 1 ? card.byte_op_per_second : card.tensor_flop_per_second;
  return most * (card.capability >= 90 ? kOfOlderInstructions : 1);
}

double ResidentBlocks(const ir::CudaTarget& card, const CudaLaunch& launch) {
  const double registers =
      launch.threads * kRegisterUnit * std::ceil(launch.registers / kRegisterUnit);
  const double most =
      std::min({card.most_threads / launch.threads, card.registers / registers,
                static_cast<double>(card.shared_bytes) / (launch.shared_bytes + kReservedShared),
                MostBlocks(card)});
  return std::max(1.0, std::floor(most));
}

double Waves(const ir::CudaTarget& card, const CudaLaunch& launch) {
  return std::ceil(launch.blocks / (card.multiprocessors * ResidentBlocks(card, launch)));
}

double LaunchSeconds(const ir::CudaTarget& card, const CudaLaunch& launch) {
  const double processors = card.multiprocessors, cycles = CyclesPerSecond(card);
  const double resident = ResidentBlocks(card, launch);
  // The SM with most blocks ends last.
  const double uneven = std::ceil(launch.blocks / processors) * processors / launch.blocks;
  const double active = std::min(launch.blocks, processors * resident) * launch.threads;
  // Little's law: so much must be under way for a rate to be reached.
  const auto reached = [&](double rate) {
    return std::min(1.0, active * launch.bytes_in_flight * cycles / (kMemoryLatency * rate));
  };
  const double l2_rate = kL2OverMemory * card.memory_bytes_per_second;
  const std::array<double, 9> parts = {
      uneven * launch.flop / card.flop_per_second,
      launch.tensor_flop > 0 ? uneven * launch.tensor_flop / TensorRate(card) : 0,
      launch.group_flop > 0 ? uneven * launch.group_flop / card.tensor_flop_per_second : 0,
      launch.byte_op > 0 ? uneven * launch.byte_op / TensorRate(card, 1) : 0,
      uneven * launch.instructions / (kSchedulers * processors * cycles),
      uneven * launch.wavefronts / (processors * cycles),
      launch.l2_bytes / (l2_rate * reached(l2_rate)),
      launch.memory_bytes / (card.memory_bytes_per_second * reached(card.memory_bytes_per_second)),
      Waves(card, launch) * launch.chain_cycles / cycles};
  const double most = *std::ranges::max_element(parts);
  return most + kNotHidden * (std::accumulate(parts.begin(), parts.end(), 0.0) - most);
}

WarpAccess AccessOf(const WarpOffsets& offsets, int64_t elements) {
  constexpr int64_t kSector = 8, kLine = 32;
  std::set<int64_t> sectors, lines;
  for (const int64_t offset : offsets) {
    for (int64_t e = 0; e < elements; ++e) {
      sectors.insert((offset + e) / kSector);
      lines.insert((offset + e) / kLine);
    }
  }
  return {static_cast<double>(sectors.size()), static_cast<double>(lines.size())};
}

double BankWavefronts(std::span<const int64_t> words) {
  std::array<std::set<int64_t>, static_cast<size_t>(kBanks)> banks;
  for (const int64_t word : words) banks[static_cast<size_t>(word) % banks.size()].insert(word);
  size_t most = 1;
  for (const auto& bank : banks) most = std::max(most, bank.size());
  return static_cast<double>(most);
}

}  // namespace hone::costmodel

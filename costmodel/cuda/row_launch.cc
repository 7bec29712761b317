#include "costmodel/cuda/row_launch.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "costmodel/cuda/operations.h"
#include "schedule/access.h"
#include "schedule/cuda/rows.h"

namespace hone::costmodel {
namespace {

/// As in cuda_launches.cc.
constexpr double kMemoryLatency = 600, kL2Latency = 260, kSharedLatency = 30, kBarrier = 40;
constexpr double kDependent = 4;
constexpr double kUnrolled = 4, kFold = 16, kOfAThread = 20, kOfAnElement = 3;
constexpr double kRegisters = 40;

}  // namespace

RowLaunch::RowLaunch(const ir::Workload& workload, const schedule::Cluster& cluster) {
  const ir::Stage& owner = workload.stages[cluster.owner];
  const int row_axes = cluster.row_axes;
  for (int a = 0; a < row_axes; ++a) rows_ *= static_cast<double>(owner.spatial[a]);
  last_rows_ = static_cast<double>(owner.spatial[row_axes - 1]);
  std::vector<int> stages = cluster.members;
  stages.push_back(cluster.owner);
  std::map<int, double> read;
  for (const int id : stages) {
    const ir::Stage& stage = workload.stages[id];
    Part part;
    part.reduction = stage.combiner != ir::Combiner::kNone;
    part.exchanged = schedule::ReducedByLanes(workload, stage, kWarp);
    for (int a = row_axes; a < stage.num_axes(); ++a)
      part.elements *= static_cast<double>(stage.Extent(a));
    for (const ir::Expr& body : stage.body)
      part.operations += Operations(body) + (part.reduction ? 1 : 0);
    for (const schedule::Access& access : schedule::AccessesOf(workload, stage)) {
      const bool near = std::ranges::count(cluster.members, workload.Producer(access.tensor)) > 0;
      (near ? part.near : part.given) += 1;
      const ir::Tensor& tensor = workload.tensors[access.tensor];
      const double most = rows_ * part.elements * static_cast<double>(ir::SizeOf(tensor.dtype));
      if (!near)
        read[access.tensor] =
            std::min(static_cast<double>(tensor.Bytes()), std::max(read[access.tensor], most));
    }
    const ir::Tensor& result = workload.tensors[stage.results[0]];
    if (id == cluster.owner) {
      memory_bytes_ += static_cast<double>(result.Bytes());
    } else {
      row_shared_bytes_ += static_cast<double>(result.Bytes()) / rows_;
    }
    parts_.push_back(part);
  }
  for (const auto& [tensor, bytes] : read) memory_bytes_ += bytes;
}

CudaLaunch RowLaunch::Of(int64_t threads, int64_t rows, int64_t elements) const {
  const auto lanes = static_cast<double>(threads), of_block = static_cast<double>(rows);
  const double warps = rows_ * lanes / kWarp;
  CudaLaunch launch;
  launch.threads = lanes * of_block;
  launch.blocks = rows_ / last_rows_ * std::ceil(last_rows_ / of_block);
  launch.registers = kRegisters;
  launch.memory_bytes = launch.l2_bytes = memory_bytes_;
  launch.chain_cycles = kMemoryLatency + kOfAThread;
  const bool by_warps = threads > kWarp && std::ranges::all_of(parts_, [](const Part& part) {
                          return !part.reduction || part.exchanged;
                        });
  double partial_bytes = 0, most_steps = 1;
  for (const Part& part : parts_) {
    const double steps = std::ceil(part.elements / lanes);
    most_steps = std::max(most_steps, steps);
    launch.flop += rows_ * part.elements * part.operations;
    launch.instructions +=
        warps * steps * (std::max(1.0, part.operations) + part.given + part.near + kOfAnElement);
    launch.wavefronts += warps * steps * (part.given + part.near + (part.reduction ? 0 : 1));
    const double wait = part.given > 0 ? kL2Latency : kSharedLatency;
    launch.chain_cycles += steps * std::max(wait / kUnrolled, part.operations) + 2 * kBarrier;
    if (!part.reduction) continue;
    if (part.exchanged && threads == kWarp) {
      launch.chain_cycles += kCombineCycles;
      launch.instructions += warps * kCombineInstructions;
      continue;
    }
    if (by_warps) {
      // One number of each warp is written, and all of a row are read by each of its threads.
      const double found = lanes / kWarp;
      launch.chain_cycles += kCombineCycles + kSharedLatency + found * kDependent;
      launch.instructions += warps * (kCombineInstructions + 2 * found);
      launch.wavefronts += warps * (1 + found);
      partial_bytes += 4 * found;
      continue;
    }
    // What the threads found: by a few of them, then by one.
    const double folds = lanes > 2 * kFold ? lanes / kFold + kFold : lanes;
    launch.chain_cycles += folds * kSharedLatency + 2 * kBarrier;
    launch.wavefronts += rows_ * (lanes / kWarp + folds);
    partial_bytes += 4 * (lanes + kFold);
  }
  launch.shared_bytes = of_block * (row_shared_bytes_ + partial_bytes);
  // Whole vectors are stored by fewer instructions.
  launch.instructions -= warps * (1 - 1 / static_cast<double>(elements));
  launch.bytes_in_flight = 4 * std::min(kUnrolled, most_steps);
  return launch;
}

}  // namespace hone::costmodel

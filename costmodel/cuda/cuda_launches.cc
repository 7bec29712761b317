#include "costmodel/cuda/cuda_launches.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "costmodel/cuda/operations.h"
#include "schedule/cuda/grid.h"

namespace hone::costmodel {
namespace {

/// Cycles until a level answers, as in launch.cc; what arithmetic waits for its own result.
constexpr double kL1Latency = 35, kL2Latency = 260, kMemoryLatency = 600, kDependent = 4;
/// Loads of a loop that the assembler has under way together.
constexpr double kUnrolled = 4;
constexpr double kSectorElements = 8, kSectorBytes = 32;
constexpr double kMostRegisters = 255;
/// Instructions beside arithmetic and loads: of an iteration, of a load's address, of a thread.
constexpr double kOfAnIteration = 2, kOfAnAddress = 1, kOfAThread = 20;

double Parts(double whole, double part) { return std::ceil(whole / part); }

}  // namespace

StageLaunches::StageLaunches(const ir::Workload& workload, const ir::Stage& stage,
                             bool last_slowest)
    : spatial_(stage.spatial.begin(), stage.spatial.end()),
      last_slowest_(last_slowest && stage.num_spatial() > 1),
      map_(stage.combiner == ir::Combiner::kNone),
      one_thread_(stage.num_spatial() == 0),
      steps_(stage.scan >= 0 ? static_cast<double>(stage.spatial[0]) : 0),
      most_elements_(schedule::ElementsOf(workload, stage, schedule::kGridElements)) {
  for (const ir::Expr& body : stage.body) operations_ += Operations(body) + (map_ ? 0 : 1);
  for (int axis = 0; axis < stage.num_axes(); ++axis) {
    (axis < stage.num_spatial() ? results_ : reduced_) *= static_cast<double>(stage.Extent(axis));
  }
  for (const int result : stage.results) {
    result_bytes_ += static_cast<double>(workload.tensors[result].Bytes());
  }
  const int innermost = stage.num_axes() - 1;
  for (schedule::Access& access : schedule::AccessesOf(workload, stage)) {
    const ir::Tensor& tensor = workload.tensors[access.tensor];
    Load load;
    load.bytes = static_cast<double>(ir::SizeOf(tensor.dtype));
    load.tensor_bytes = std::min(static_cast<double>(tensor.Bytes()), points() * load.bytes);
    for (int axis = stage.num_spatial(); axis < stage.num_axes(); ++axis)
      load.reduced = load.reduced || access.DependsOn(axis);
    if (load.reduced && access.linear[innermost]) {
      const auto step = static_cast<double>(std::abs(access.stride[innermost]));
      load.reuse = step == 0 ? static_cast<double>(stage.Extent(innermost))
                             : std::max(1.0, kSectorElements / step);
    }
    load.access = std::move(access);
    loads_.push_back(std::move(load));
  }
}

int64_t StageLaunches::OffsetOf(const Load& load, int64_t result) const {
  int64_t offset = 0;
  const size_t count = spatial_.size();
  for (size_t k = count; k-- > 0;) {
    const size_t axis = last_slowest_ ? (k + count - 1) % count : k;
    const int64_t index = result % spatial_[axis];
    result /= spatial_[axis];
    // Where nothing is known of the stride neighbours are far apart.
    constexpr int64_t kFar = 1 << 10;
    offset += index * (load.access.linear[axis] ? load.access.stride[axis] : kFar);
  }
  return std::abs(offset);
}

WarpAccess StageLaunches::WarpOf(const Load& load, int64_t elements) const {
  WarpOffsets offsets{};
  const auto last = static_cast<int64_t>(results_) - 1;
  for (int lane = 0; lane < kWarp; ++lane)
    offsets[static_cast<size_t>(lane)] = OffsetOf(load, std::min(lane * elements, last));
  const int64_t step = spatial_.empty() || !load.access.linear[spatial_.size() - 1]
                           ? 0
                           : std::abs(load.access.stride[spatial_.size() - 1]);
  const WarpAccess once = AccessOf(offsets, step == 1 ? elements : 1);
  // One load for neighbours, and for what all of them share; else one for each.
  const auto times = static_cast<double>(step <= 1 ? 1 : elements);
  return {once.sectors * times, once.lines * times};
}

CudaLaunch StageLaunches::OnGrid(int64_t threads, int64_t elements, int64_t groups) const {
  elements = std::min(elements, most_elements_);
  const double repeats = map_ ? static_cast<double>(groups) : 1;
  const auto of_thread = static_cast<double>(elements);
  CudaLaunch launch;
  launch.threads = static_cast<double>(threads);
  launch.blocks = std::max(1.0, Parts(results_, launch.threads * of_thread * repeats));
  const double warps = std::max(1.0, Parts(results_, kWarp * of_thread));
  launch.registers = std::min(kMostRegisters, 24 + 8 * of_thread * repeats);
  launch.flop = results_ * reduced_ * operations_;
  launch.memory_bytes = result_bytes_;
  launch.l2_bytes = result_bytes_;
  launch.wavefronts = result_bytes_ / 128;
  double of_iteration = map_ ? 0 : kOfAnIteration, of_start = kOfAThread / repeats;
  double waits = 0;
  launch.bytes_in_flight = 0;
  for (const Load& load : loads_) {
    const WarpAccess access = WarpOf(load, elements);
    const double times = load.reduced ? reduced_ : 1;
    const double fetched = times / load.reuse;
    launch.wavefronts += warps * times * access.lines;
    launch.l2_bytes += warps * fetched * access.sectors * kSectorBytes * load.bytes / 4;
    launch.memory_bytes += load.tensor_bytes;
    (load.reduced ? of_iteration : of_start) += 1 + kOfAnAddress;
    launch.bytes_in_flight +=
        load.bytes * of_thread * (load.reduced ? std::min(kUnrolled, reduced_) : 1);
    if (load.reduced) {
      const double wait = kL1Latency + (kL2Latency - kL1Latency) / load.reuse;
      waits = std::max(waits, wait / kUnrolled);
    }
  }
  launch.bytes_in_flight = repeats * std::max(4.0, launch.bytes_in_flight);
  launch.instructions =
      warps * (of_start + reduced_ * (of_iteration + of_thread * std::max(1.0, operations_ / 2)));
  if (one_thread_) {
    launch.blocks = launch.threads = 1;
    launch.chain_cycles = points() * std::max({waits, kDependent, operations_});
    return launch;
  }
  if (steps_ > 0) {
    // One block, whose threads wait for each other at each step.
    launch.blocks = 1;
    const double of_step = results_ / steps_;
    launch.threads = static_cast<double>(schedule::ThreadsInScan(static_cast<int64_t>(of_step)));
    const double of_turn = map_ ? operations_ : reduced_ * std::max(waits, kDependent);
    launch.chain_cycles = steps_ * (kL2Latency + Parts(of_step, launch.threads) * of_turn);
    return launch;
  }
  launch.chain_cycles = kMemoryLatency + kOfAThread +
                        (map_ ? repeats * operations_ : reduced_ * std::max(waits, kDependent));
  return launch;
}

CudaLaunch StageLaunches::OnLanes(int64_t warps) const {
  const double steps = Parts(reduced_, kWarp);
  CudaLaunch launch;
  launch.threads = static_cast<double>(warps * kWarp);
  launch.blocks = Parts(results_, static_cast<double>(warps));
  launch.registers = 32;
  launch.flop = results_ * reduced_ * operations_;
  launch.memory_bytes = launch.l2_bytes = result_bytes_;
  launch.wavefronts = results_;
  double of_iteration = kOfAnIteration + operations_, of_start = kOfAThread;
  for (const Load& load : loads_) {
    const double times = load.reduced ? steps : 1;
    launch.wavefronts += results_ * times * load.bytes / 4;
    launch.l2_bytes += load.reduced ? load.tensor_bytes : results_ * kSectorBytes;
    launch.memory_bytes += load.tensor_bytes;
    (load.reduced ? of_iteration : of_start) += 1 + kOfAnAddress;
  }
  launch.bytes_in_flight = 4 * std::min(kUnrolled, steps);
  launch.instructions = results_ * (of_start + steps * of_iteration + kCombineInstructions);
  launch.chain_cycles = kMemoryLatency + kOfAThread + kCombineCycles +
                        steps * std::max(kL2Latency / kUnrolled, kDependent);
  return launch;
}

}  // namespace hone::costmodel

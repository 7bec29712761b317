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
constexpr double kBarrier = 40;
/// Loads of a loop that the assembler has under way together.
constexpr double kUnrolled = 4;
constexpr double kSectorElements = 8, kSectorBytes = 32;
constexpr double kOtherRegisters = 48, kMostRegisters = 255;
/// Instructions beside arithmetic and loads: of an iteration, of a load's address, of a thread.
constexpr double kOfAnIteration = 2, kOfAnAddress = 1, kOfAThread = 20;

double Parts(double whole, double part) { return std::ceil(whole / part); }

}  // namespace

StageLaunches::StageLaunches(const ir::Workload& workload, const ir::Stage& stage)
    : spatial_(stage.spatial.begin(), stage.spatial.end()),
      product_(schedule::FindProduct(workload, stage)),
      map_(stage.combiner == ir::Combiner::kNone),
      one_thread_(stage.scan >= 0 || stage.num_spatial() == 0),
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
  const auto by_depth = [&](int tensor) {
    return std::ranges::any_of(loads_, [&](const Load& load) {
      return load.access.tensor == tensor && load.access.stride[product_->reduce] == 1;
    });
  };
  if (product_) {
    first_by_depth_ = by_depth(product_->first);
    second_by_depth_ = by_depth(product_->second);
  }
}

int64_t StageLaunches::OffsetOf(const Load& load, int64_t result) const {
  int64_t offset = 0;
  for (size_t axis = spatial_.size(); axis-- > 0;) {
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
  launch.chain_cycles = kMemoryLatency + kOfAThread +
                        (map_ ? repeats * operations_ : reduced_ * std::max(waits, kDependent));
  return launch;
}

double StageLaunches::SlicePasses(const schedule::BlockTile& tile) const {
  const auto across = std::min<int64_t>(tile.threads_x, kWarp), down = kWarp / across;
  std::vector<int64_t> rows, columns;
  for (int64_t y = 0; y < down; ++y) rows.push_back(y * (first_by_depth_ ? tile.depth : 1));
  const int64_t lanes = schedule::BlockTile::kLanes;
  if (second_by_depth_) {  // rows of depth + 1: a word at a time
    for (int64_t x = 0; x < across; ++x) columns.push_back(x * lanes * (tile.depth + 1));
  } else {
    for (int64_t word = 0; word < across * lanes; ++word) columns.push_back(word);
  }
  const double times =
      static_cast<double>(tile.vectors) * (second_by_depth_ ? static_cast<double>(lanes) : 1.0);
  return static_cast<double>(tile.rows) * BankWavefronts(rows) + times * BankWavefronts(columns);
}

CudaLaunch StageLaunches::Tiled(const schedule::BlockTile& tile) const {
  const schedule::ProductAxes& axes = *product_;
  const auto rows = static_cast<double>(tile.rows);
  const auto columns = static_cast<double>(tile.vectors * schedule::BlockTile::kLanes);
  const auto depth = static_cast<double>(axes.depth), slice = static_cast<double>(tile.depth);
  CudaLaunch launch;
  launch.threads = static_cast<double>(tile.threads());
  launch.blocks = static_cast<double>(schedule::BlocksOf(axes, tile));
  launch.registers = std::min(kMostRegisters, rows * columns + kOtherRegisters);
  launch.shared_bytes = static_cast<double>(tile.shared_bytes());
  const double warps = launch.blocks * std::max(1.0, launch.threads / kWarp);
  // What sticks out of the result is computed all the same.
  const double computed =
      launch.blocks * static_cast<double>(tile.block_rows() * tile.block_columns()) * depth;
  launch.flop = 2 * computed;
  const double second_loads =
      static_cast<double>(tile.vectors * (second_by_depth_ ? schedule::BlockTile::kLanes : 1));
  const double block_rows = static_cast<double>(tile.block_rows());
  const double block_columns = static_cast<double>(tile.block_columns());
  const double sliced = launch.blocks * depth * (block_rows + block_columns);
  const auto wasted = [&](bool by_depth) {
    return by_depth ? std::max(1.0, kSectorElements / slice) : 1.0;
  };
  launch.l2_bytes =
      4 * launch.blocks * depth *
          (block_rows * wasted(first_by_depth_) + block_columns * wasted(second_by_depth_)) +
      result_bytes_;
  // A load and a store for each element that is brought, and an address.
  launch.instructions = warps * depth * (rows * columns + rows + second_loads) +
                        sliced / kWarp * (2 + kOfAnAddress) + warps * kOfAThread;
  launch.wavefronts = warps * depth * SlicePasses(tile) + 2 * sliced / kWarp;
  launch.memory_bytes = result_bytes_;
  for (const Load& load : loads_) launch.memory_bytes += load.tensor_bytes;
  launch.bytes_in_flight = std::max(4.0, 4 * slice * (block_rows + block_columns) / launch.threads);
  launch.chain_cycles =
      kMemoryLatency + Parts(depth, slice) * (kL2Latency + 2 * kBarrier +
                                              slice * (rows * columns + rows + second_loads));
  return launch;
}

}  // namespace hone::costmodel

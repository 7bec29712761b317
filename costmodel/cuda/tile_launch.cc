#include "costmodel/cuda/tile_launch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "costmodel/cuda/operations.h"
#include "schedule/access.h"

namespace hone::costmodel {
namespace {

/// As in cuda_launches.cc.
constexpr double kL2Latency = 260, kMemoryLatency = 600, kBarrier = 40, kSectorBytes = 32;
constexpr double kOtherRegisters = 48, kMostRegisters = 255, kOfAnAddress = 1, kOfAThread = 20;
/// Instructions for the place of an element of a window or of flattened axes: quotients,
/// remainders, whether it is padding.
constexpr double kOfAPlace = 6;

double Parts(double whole, double part) { return std::ceil(whole / part); }

/// Whether the factor is what stands in memory, or what a padding has in its place.
bool IsCopied(const ir::Expr& factor) {
  const ir::Expr& value = factor->kind == ir::ExprKind::kCast ? factor->args[0] : factor;
  if (value->kind == ir::ExprKind::kSelect) return IsCopied(value->args[1]);
  return value->kind == ir::ExprKind::kLoad;
}

/// Arithmetic of a factor, and what it takes to find its elements.
double OperationsOf(const ir::Expr& factor) {
  bool plain = true;
  ir::Visit(factor, [&](const ir::ExprNode& e) {
    for (const ir::Expr& index : e.args) {
      if (e.kind == ir::ExprKind::kLoad) plain = plain && index->kind == ir::ExprKind::kVar;
    }
  });
  return Operations(factor) + (plain ? 0 : kOfAPlace);
}

}  // namespace

TileLaunch::TileLaunch(const ir::Workload& workload, const schedule::Product& product)
    : axes_(product.axes),
      boxes_(schedule::ComeAsBoxes(workload, workload.stages[product.stage], product.axes)) {
  const ir::Stage& stage = workload.stages[product.stage];
  const ir::Stage& last = product.epilogue >= 0 ? workload.stages[product.epilogue] : stage;
  double results = 1, points = 1;
  for (int a = 0; a < stage.num_axes(); ++a) {
    (a < stage.num_spatial() ? results : points) *= static_cast<double>(stage.Extent(a));
  }
  points *= results;
  result_bytes_ = static_cast<double>(workload.tensors[last.results[0]].Bytes());
  std::set<int> seen = {stage.results[0]};
  const auto add = [&](const ir::Stage& reader, double most, bool with_result) {
    for (const schedule::Access& access : schedule::AccessesOf(workload, reader)) {
      const ir::Tensor& tensor = workload.tensors[access.tensor];
      if (!seen.insert(access.tensor).second) continue;
      const double bytes = std::min(static_cast<double>(tensor.Bytes()),
                                    most * static_cast<double>(ir::SizeOf(tensor.dtype)));
      memory_bytes_ += bytes;
      if (with_result) result_bytes_ += bytes;
    }
  };
  stored_bytes_ = static_cast<double>(ir::SizeOf(workload.tensors[last.results[0]].dtype));
  memory_bytes_ = result_bytes_;
  add(stage, points, false);
  if (product.epilogue >= 0) {
    add(last, results, true);
    operations_ = Operations(last.body[0]);
  }
  const ir::Expr& body = stage.body[0];
  const bool in_order = ir::DependsOnVar(body->args[1], axes_.column);
  first_operations_ = OperationsOf(body->args[in_order ? 0 : 1]);
  second_operations_ = OperationsOf(body->args[in_order ? 1 : 0]);
  first_copied_ = IsCopied(body->args[in_order ? 0 : 1]);
  second_copied_ = IsCopied(body->args[in_order ? 1 : 0]);
}

double TileLaunch::SlicePasses(const schedule::BlockTile& tile) const {
  const auto across = std::min<int64_t>(tile.threads_x, kWarp), down = kWarp / across;
  std::vector<int64_t> rows, columns;
  for (int64_t y = 0; y < down; ++y) rows.push_back(y * tile.depth);
  for (int64_t word = 0; word < across * schedule::BlockTile::kLanes; ++word)
    columns.push_back(word);
  return static_cast<double>(tile.rows) * BankWavefronts(rows) +
         static_cast<double>(tile.vectors) * BankWavefronts(columns);
}

CudaLaunch TileLaunch::Of(const schedule::BlockTile& tile) const {
  const auto rows = static_cast<double>(tile.rows);
  const auto vectors = static_cast<double>(tile.vectors);
  const double columns = vectors * static_cast<double>(schedule::BlockTile::kLanes);
  const double depth = static_cast<double>(axes_.depth * axes_.outer_depth);
  const auto slice = static_cast<double>(tile.depth);
  CudaLaunch launch;
  launch.threads = static_cast<double>(tile.threads());
  launch.blocks = static_cast<double>(schedule::BlocksOf(axes_, tile));
  launch.registers = std::min(kMostRegisters, rows * columns + kOtherRegisters);
  launch.shared_bytes = static_cast<double>(tile.shared_bytes());
  const double warps = launch.blocks * std::max(1.0, launch.threads / kWarp);
  const auto block_rows = static_cast<double>(tile.block_rows());
  const auto block_columns = static_cast<double>(tile.block_columns());
  // What sticks out of the result is computed all the same.
  const double results = launch.blocks * block_rows * block_columns;
  launch.flop = 2 * results * depth + results * operations_;
  const double first = launch.blocks * depth * block_rows;
  const double second = launch.blocks * depth * block_columns;
  const auto wasted = [&](bool by_depth, double length) {
    return std::max(1.0, kSectorBytes / element_bytes() / (by_depth ? slice : length));
  };
  launch.l2_bytes = element_bytes() * (first * wasted(axes_.first_by_depth, block_rows) +
                                       second * wasted(axes_.second_by_depth, block_columns)) +
                    result_bytes_;
  // A load and a store for each element that is brought, by fours where they lie together, and an
  // address.
  // An asynchronous copy is one instruction for both.
  const bool ahead = tile.stages > 1;
  const auto brought = [&](bool whole, double operations) {
    const double each = (ahead && operations == 0 ? 1 : 2) + kOfAnAddress + operations;
    return (whole ? each / 4 : each) / kWarp;
  };
  const double widened = axes_.number_bytes < 4 ? rows + columns : 0;
  launch.instructions = warps * depth * (rows * columns + rows + vectors + widened) +
                        first * brought(axes_.first_by_depth, first_operations_) +
                        second * brought(!axes_.second_by_depth, second_operations_) +
                        warps * (kOfAThread + rows * columns * operations_);
  launch.wavefronts = warps * depth * SlicePasses(tile) + 2 * (first + second) / kWarp;
  launch.memory_bytes = memory_bytes_;
  const auto on_their_way = static_cast<double>(std::max<int64_t>(1, tile.stages - 1));
  launch.bytes_in_flight =
      std::max(4.0, on_their_way * 4 * slice * (block_rows + block_columns) / launch.threads);
  // What is brought ahead has as long as the slices before it take.
  const double compute = slice * (rows * columns + rows + vectors);
  const double brings = ahead ? kBarrier + std::max(0.0, kL2Latency - on_their_way * compute)
                              : 2 * kBarrier + kL2Latency;
  launch.chain_cycles = kMemoryLatency + Parts(depth, slice) * (brings + compute);
  return launch;
}

}  // namespace hone::costmodel

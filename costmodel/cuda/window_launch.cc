#include "costmodel/cuda/window_launch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "costmodel/cuda/operations.h"
#include "schedule/access.h"

namespace hone::costmodel {
namespace {

/// As in tile_launch.cc.
constexpr double kL2Latency = 260, kMemoryLatency = 600, kBarrier = 40, kSectorBytes = 32;
constexpr double kOtherRegisters = 40, kMostRegisters = 255, kOfAThread = 30;
/// Instructions for an element of the box: its place, whether it is padding, load and store.
constexpr double kOfAPlace = 8;
constexpr double kSharedLatency = 30, kDependent = 4;
/// Iterations of a window that stand one after the other, so that what two of them read is read
/// once (window_tile.cc).
constexpr double kUnrolledTaps = 32;

double Parts(double whole, double part) { return std::ceil(whole / part); }

}  // namespace

WindowLaunch::WindowLaunch(const ir::Workload& workload, const schedule::Window& window)
    : axes_(window.axes) {
  const ir::Stage& stage = workload.stages[window.stage];
  for (const int64_t extent : stage.reduce) taps_ *= static_cast<double>(extent);
  double results = 1;
  for (const int64_t extent : stage.spatial) results *= static_cast<double>(extent);
  operations_ = Operations(stage.body[0]) + 1;
  const ir::Stage& last = window.epilogue >= 0 ? workload.stages[window.epilogue] : stage;
  result_bytes_ = static_cast<double>(workload.tensors[last.results[0]].Bytes());
  std::set<int> seen = {stage.results[0]};
  const auto add = [&](const ir::Stage& reader, double most, double* bytes) {
    for (const schedule::Access& access : schedule::AccessesOf(workload, reader)) {
      const ir::Tensor& tensor = workload.tensors[access.tensor];
      if (!seen.insert(access.tensor).second) continue;
      *bytes += std::min(static_cast<double>(tensor.Bytes()),
                         most * static_cast<double>(ir::SizeOf(tensor.dtype)));
    }
  };
  for (const schedule::Access& access : schedule::AccessesOf(workload, stage)) {
    if (access.tensor == axes_.tensor) continue;
    constants_ += 1;
    if (access.DependsOn(axes_.fast))
      constant_bytes_ +=
          taps_ * static_cast<double>(ir::SizeOf(workload.tensors[access.tensor].dtype));
  }
  if (window.input >= 0) {
    const ir::Stage& input = workload.stages[window.input];
    bring_operations_ = Operations(input.body[0]);
    seen.insert(axes_.tensor);
    add(input, static_cast<double>(workload.tensors[axes_.tensor].NumElements()), &memory_bytes_);
  }
  add(stage, results * taps_, &memory_bytes_);
  if (window.epilogue >= 0) {
    add(last, results, &result_bytes_);
    epilogue_operations_ = Operations(last.body[0]);
  }
  memory_bytes_ += result_bytes_;
}

double WindowLaunch::ReadsOf(const schedule::WindowTile& tile) const {
  const double points = static_cast<double>(tile.columns * tile.rows);
  if (taps_ > kUnrolledTaps) return taps_ * points;
  double places = 1;
  for (const schedule::WindowAxes::Dimension& d : axes_.dimensions) {
    const int64_t own = d.axis < 0             ? 1
                        : d.axis == axes_.near ? tile.columns
                        : d.axis == axes_.far  ? tile.rows
                                               : 1;
    places *= static_cast<double>(d.Width(own));
  }
  return std::min(places, taps_ * points);
}

double WindowLaunch::Passes(const schedule::WindowTile& tile) const {
  // How far apart neighbours along each axis read, in elements of the box.
  int64_t pitch = 1, fast = 0, fast_group = 1, near = 0;
  for (size_t d = axes_.dimensions.size(); d-- > 0;) {
    const schedule::WindowAxes::Dimension& of = axes_.dimensions[d];
    if (of.axis == axes_.fast && of.axis >= 0) fast = of.step * pitch, fast_group = of.group;
    if (of.axis == axes_.near && of.axis >= 0) near = of.step * pitch;
    pitch *= of.Width(tile.Points(axes_, of.axis));
  }
  std::vector<int64_t> words;
  for (int64_t lane = 0; lane < kWarp; ++lane) {
    const int64_t x = lane % tile.threads_x, y = lane / tile.threads_x;
    for (int64_t e = 0; e < axes_.lanes; ++e) {
      const int64_t element = (x * axes_.lanes + e) / fast_group * fast + y * tile.columns * near;
      words.push_back(element * axes_.number_bytes / 4);
    }
  }
  return BankWavefronts(words);
}

CudaLaunch WindowLaunch::Of(const schedule::WindowTile& tile) const {
  CudaLaunch launch;
  launch.threads = static_cast<double>(tile.threads());
  launch.blocks = static_cast<double>(tile.blocks(axes_));
  const auto lanes = static_cast<double>(axes_.lanes);
  const auto points = static_cast<double>(tile.columns * tile.rows);
  const double sums = points * lanes, bytes = static_cast<double>(axes_.number_bytes);
  launch.registers = std::min(kMostRegisters, 2 * sums + kOtherRegisters);
  launch.shared_bytes = static_cast<double>(tile.shared_bytes(axes_));
  const double warps = launch.blocks * std::max(1.0, launch.threads / kWarp);
  // What sticks out of the result is computed all the same.
  const double results = launch.blocks * launch.threads * sums;
  launch.flop = results * (taps_ * operations_ + epilogue_operations_);
  const auto halo = static_cast<double>(tile.halo(axes_));
  const auto& last = axes_.dimensions.back();
  const auto row = static_cast<double>(last.Width(tile.Points(axes_, last.axis)));
  // Rows of the box are whole sectors, and one more where they begin anywhere.
  const double sectors =
      Parts(row * bytes, kSectorBytes) + (std::fmod(row * bytes, kSectorBytes) == 0 ? 0 : 1);
  const double constants = constant_bytes_ * static_cast<double>(tile.threads_x) * lanes;
  launch.l2_bytes =
      launch.blocks * (halo / row * sectors * kSectorBytes + constants) + result_bytes_;
  launch.memory_bytes = memory_bytes_;
  // Neighbours are brought together where a thread has several.
  const double brought = launch.blocks * halo / lanes / kWarp;
  const double reads = ReadsOf(tile);
  const double of_constants =
      constants_ * taps_ * std::max(1.0, static_cast<double>(tile.threads_x) * lanes / kWarp);
  launch.instructions =
      brought * (kOfAPlace + lanes * bring_operations_) +
      warps * (kOfAThread + reads + constants_ * taps_ +
               sums * (taps_ * std::max(1.0, operations_ / 2) + 1 + epilogue_operations_));
  launch.wavefronts = warps * (reads * Passes(tile) + of_constants) +
                      brought * 2 * std::max(1.0, lanes * bytes / 4) + result_bytes_ / 128;
  const double steps = Parts(halo, launch.threads * lanes);
  launch.bytes_in_flight = std::max(4.0, std::min(steps, kUnrolledTaps) * lanes * bytes);
  launch.chain_cycles = kMemoryLatency + kBarrier + steps * kOfAPlace +
                        taps_ * std::max(kDependent, sums * operations_ / 2) + kSharedLatency +
                        (constants_ > 0 ? kL2Latency : 0);
  return launch;
}

}  // namespace hone::costmodel

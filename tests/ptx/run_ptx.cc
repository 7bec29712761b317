#include "tests/ptx/run_ptx.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "fmt/core.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/launch.h"
#include "tests/mock_cuda/mock_map.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/program.h"

namespace hone::ptx {
namespace {

bool IsGiven(const ir::LoopNest& nest, size_t argument) {
  return std::any_of(nest.buffers.begin(), nest.buffers.end(), [&](const ir::Buffer& b) {
    return b.scope == ir::Scope::kArgument && b.argument == static_cast<int>(argument) &&
           b.read_only;
  });
}

/// What a driver makes of a matrix of numbers of 16 bits.
absl::StatusOr<std::vector<uint8_t>> MapOf(const ir::Descriptor& descriptor,
                                           const std::vector<uint64_t>& addresses) {
  constexpr int kBf16 = 9, kF16 = 6;  // CUtensorMapDataType
  const auto u = [](int64_t number) { return static_cast<unsigned>(number); };
  if (descriptor.shape.size() != 2 || !ir::BytesOf(descriptor))
    return absl::InternalError("a map of no matrix");
  const uint64_t extents[] = {u(descriptor.shape[1]), u(descriptor.shape[0])};
  const uint64_t strides[] = {u(descriptor.strides[0])};
  const unsigned box[] = {u(descriptor.box[1]), u(descriptor.box[0])}, steps[] = {1, 1};
  const auto map = mock_cuda::MapBytes(descriptor.dtype == ir::DType::kF16 ? kF16 : kBf16, 2,
                                       addresses[static_cast<size_t>(descriptor.argument)], extents,
                                       strides, box, steps, static_cast<int>(descriptor.swizzle));
  if (!map) return absl::InternalError("a map that the driver refuses");
  return std::vector<uint8_t>(map->begin(), map->end());
}

}  // namespace

ir::Target CudaTarget(const std::string& chip) {
  ir::Target target;
  std::string error;
  EXPECT_TRUE(ir::ParseTarget("cuda:" + chip, &target, &error)) << error;
  return target;
}

absl::Status RunPtx(const ir::LoopNest& nest, const std::string& chip, uint64_t seed,
                    std::vector<std::vector<uint8_t>>* buffers) {
  HONE_ASSIGN_OR_RETURN(const std::string text, codegen::Assembly({&nest}, CudaTarget(chip)));
  absl::StatusOr<Program> program = ParsePtx(text);
  if (!program.ok())
    return absl::InternalError(
        fmt::format("{}\n{}", std::string(program.status().message()), text));
  Device device(*std::move(program));
  std::vector<uint64_t> addresses;
  for (size_t k = 0; k < buffers->size(); ++k)
    addresses.push_back(device.Add((*buffers)[k], IsGiven(nest, k)));
  const std::array<uint8_t, 4> zero = {};
  const uint64_t result = device.Add(zero, true);
  for (const ir::KernelStep& step : nest.steps) {
    for (int64_t t = 0; t < step.repeats; ++t) {
      for (int p = step.first; p < step.first + step.count; ++p) {
        const ir::Phase& phase = nest.phases[static_cast<size_t>(p)];
        const ir::Launch extents = ir::LaunchOf(nest, phase);
        Launch launch;
        launch.grid[0] = extents.grid_x;
        launch.grid[1] = extents.grid_y;
        launch.grid[2] = extents.grid_z;
        launch.block[0] = extents.block_x;
        launch.block[1] = extents.block_y;
        launch.shared_bytes = extents.shared_bytes;
        launch.parameters = addresses;
        launch.parameters.insert(launch.parameters.end(), {static_cast<uint64_t>(t), result});
        for (const ir::Descriptor& descriptor : extents.descriptors) {
          HONE_ASSIGN_OR_RETURN(launch.wide.emplace_back(), MapOf(descriptor, addresses));
        }
        launch.seed = seed++;
        if (const absl::Status s = device.Run(phase.symbol, launch); !s.ok())
          return absl::Status(s.code(), fmt::format("{}\n{}", std::string(s.message()), text));
        int32_t code = 0;
        std::memcpy(&code, device.Bytes(result).data(), sizeof code);
        if (code != 0)
          return absl::InternalError(
              fmt::format("{} ended with the result {}", phase.symbol, code));
      }
    }
  }
  for (size_t k = 0; k < buffers->size(); ++k) {
    const auto bytes = device.Bytes(addresses[k]);
    (*buffers)[k].assign(bytes.begin(), bytes.end());
  }
  return absl::OkStatus();
}

schedule::CheckOptions OnGpu(const std::string& chip, uint64_t seed) {
  schedule::CheckOptions options;
  options.seed = seed;
  options.also_run = [chip, seed](const ir::LoopNest& nest,
                                  std::vector<std::vector<uint8_t>>* buffers) {
    return RunPtx(nest, chip, seed, buffers);
  };
  return options;
}

}  // namespace hone::ptx

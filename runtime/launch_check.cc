#include "runtime/launch_check.h"

#include <string>
#include <vector>

#include "runtime/message.h"

namespace hone::runtime {
namespace {

constexpr int64_t kMostX = (int64_t{1} << 31) - 1, kMostY = 65'535;
constexpr int64_t kMostThreads = 1024, kMostThreadsZ = 64, kMostOfCluster = 16;
constexpr int64_t kMostShared = 227 << 10;
constexpr size_t kMostDescriptors = 64;

bool In(int64_t value, int64_t most) { return value >= 1 && value <= most; }

std::string Extents(int64_t x, int64_t y, int64_t z) { return Message(x, " x ", y, " x ", z); }

Status CheckDescriptor(const std::vector<int64_t>& argument_bytes,
                       const ir::Descriptor& descriptor) {
  if (descriptor.argument < 0 ||
      static_cast<size_t>(descriptor.argument) >= argument_bytes.size()) {
    return Invalid("of argument ", descriptor.argument, " of ", argument_bytes.size());
  }
  const auto bytes = ir::BytesOf(descriptor);
  if (!bytes) return Invalid("of no tensor, or of boxes that do not lie in it");
  const int64_t there = argument_bytes[static_cast<size_t>(descriptor.argument)];
  if (*bytes <= there) return {};
  return Invalid("of ", *bytes, " bytes of argument ", descriptor.argument, ", which has ", there);
}

}  // namespace

Status CheckLaunch(const ir::Artifact& kernel, const ir::Launch& launch) {
  if (!In(launch.grid_x, kMostX) || !In(launch.grid_y, kMostY) || !In(launch.grid_z, kMostY)) {
    return Invalid("a grid of ", Extents(launch.grid_x, launch.grid_y, launch.grid_z), " blocks");
  }
  if (!In(launch.block_x, kMostThreads) || !In(launch.block_y, kMostThreads) ||
      !In(launch.block_z, kMostThreadsZ) ||
      launch.block_x * launch.block_y * launch.block_z > kMostThreads) {
    return Invalid("a block of ", Extents(launch.block_x, launch.block_y, launch.block_z),
                   " threads");
  }
  if (!In(launch.cluster_x, kMostOfCluster) || !In(launch.cluster_y, kMostOfCluster) ||
      !In(launch.cluster_z, kMostOfCluster) ||
      launch.cluster_x * launch.cluster_y * launch.cluster_z > kMostOfCluster ||
      launch.grid_x % launch.cluster_x != 0 || launch.grid_y % launch.cluster_y != 0 ||
      launch.grid_z % launch.cluster_z != 0) {
    return Invalid("clusters of ", Extents(launch.cluster_x, launch.cluster_y, launch.cluster_z),
                   " blocks in a grid of ", Extents(launch.grid_x, launch.grid_y, launch.grid_z));
  }
  if (launch.shared_bytes < 0 || launch.shared_bytes > kMostShared) {
    return Invalid(launch.shared_bytes, " bytes of shared memory");
  }
  if (launch.descriptors.size() > kMostDescriptors) {
    return Invalid(launch.descriptors.size(), " descriptors");
  }
  std::vector<int64_t> bytes;
  for (const auto* list :
       {&kernel.inputs, &kernel.constants, &kernel.prologue, &kernel.outputs, &kernel.workspace}) {
    for (const ir::ArtifactBuffer& buffer : *list) bytes.push_back(buffer.bytes);
  }
  for (size_t i = 0; i < launch.descriptors.size(); ++i) {
    const Status status = CheckDescriptor(bytes, launch.descriptors[i]);
    if (!status.ok()) return Invalid("descriptor ", i, ": ", status.message());
  }
  return {};
}

}  // namespace hone::runtime

#include "runtime/cuda/phase_launch.h"

#include <algorithm>
#include <array>

#include "runtime/message.h"

namespace hone::runtime {
namespace {

// CUdevice_attribute, CUfunction_attribute and CUlaunchAttributeID, cuda.h.
constexpr int kCapabilityMajor = 75, kMostSharedOptIn = 97;
constexpr int kMostDynamicShared = 8, kLargeClusters = 13;
constexpr int kClusterDimension = 4;
constexpr int64_t kPortableCluster = 8;

int64_t ClusterOf(const ir::Launch& launch) {
  return launch.cluster_x * launch.cluster_y * launch.cluster_z;
}

/// CUtensorMapDataType; there is none for numbers of one bit or for signed ones of one or two
/// bytes, which are moved as they are all the same.
int TensorMapType(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBool:
    case ir::DType::kI8:
    case ir::DType::kU8: return 0;
    case ir::DType::kI16:
    case ir::DType::kU16: return 1;
    case ir::DType::kU32: return 2;
    case ir::DType::kI32: return 3;
    case ir::DType::kU64: return 4;
    case ir::DType::kI64: return 5;
    case ir::DType::kF16: return 6;
    case ir::DType::kF32: return 7;
    case ir::DType::kF64: return 8;
    case ir::DType::kBF16: return 9;
  }
  return 0;
}

CuResult Encode(const CudaDriver& driver, const ir::Descriptor& descriptor, CuPointer address,
                CuTensorMap* map) {
  const auto reversed = [](const std::vector<int64_t>& list, auto number) {
    std::vector<decltype(number)> numbers;
    for (size_t d = list.size(); d-- > 0;)
      numbers.push_back(static_cast<decltype(number)>(list[d]));
    return numbers;
  };
  const std::vector<uint64_t> extents = reversed(descriptor.shape, uint64_t{});
  const std::vector<uint64_t> strides = reversed(descriptor.strides, uint64_t{});
  const std::vector<unsigned> box = reversed(descriptor.box, 0U);
  const std::vector<unsigned> steps(box.size(), 1);
  // No interleaving and no promotion; zeros outside of the tensor.
  return driver.cuTensorMapEncodeTiled(map, TensorMapType(descriptor.dtype),
                                       static_cast<unsigned>(extents.size()), address,
                                       extents.data(), strides.data(), box.data(), steps.data(), 0,
                                       static_cast<int>(descriptor.swizzle), 0, 0);
}

}  // namespace

std::string WhyNotLaunched(const CudaDriver& driver, int device, const ir::Launch& launch) {
  const auto attribute = [&](int id) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, id, device) == 0 ? value : 0;
  };
  if (launch.shared_bytes > 0) {
    const int64_t most = attribute(kMostSharedOptIn);
    if (launch.shared_bytes > most) {
      return Message("its blocks want ", launch.shared_bytes,
                     " bytes of shared memory, this machine's GPU gives them ", most);
    }
  }
  if (ClusterOf(launch) > 1 && attribute(kCapabilityMajor) < 9) {
    return "its blocks come in clusters, which this machine's GPU does not have";
  }
  return {};
}

CuResult PermitLaunch(const CudaDriver& driver, CuHandle function, const ir::Launch& launch) {
  CuResult result = 0;
  if (launch.shared_bytes > 0) {
    result = driver.cuFuncSetAttribute(function, kMostDynamicShared,
                                       static_cast<int>(launch.shared_bytes));
  }
  if (result == 0 && ClusterOf(launch) > kPortableCluster) {
    result = driver.cuFuncSetAttribute(function, kLargeClusters, 1);
  }
  return result;
}

CuResult LaunchPhase(const CudaDriver& driver, CuHandle function, const ir::Launch& launch,
                     std::vector<uint64_t> values, CuHandle stream) {
  std::vector<CuTensorMap> maps(launch.descriptors.size());
  for (size_t i = 0; i < maps.size(); ++i) {
    const ir::Descriptor& descriptor = launch.descriptors[i];
    const CuPointer address = values[static_cast<size_t>(descriptor.argument)];
    if (const CuResult result = Encode(driver, descriptor, address, &maps[i]); result != 0)
      return result;
  }
  std::vector<void*> parameters;
  for (uint64_t& value : values) parameters.push_back(&value);
  for (CuTensorMap& map : maps) parameters.push_back(&map);
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };
  CuLaunchAttribute cluster{.id = kClusterDimension};
  cluster.value[0] = u(launch.cluster_x);
  cluster.value[1] = u(launch.cluster_y);
  cluster.value[2] = u(launch.cluster_z);
  const CuLaunchConfig config = {.grid_x = u(launch.grid_x),
                                 .grid_y = u(launch.grid_y),
                                 .grid_z = u(launch.grid_z),
                                 .block_x = u(launch.block_x),
                                 .block_y = u(launch.block_y),
                                 .block_z = u(launch.block_z),
                                 .shared_bytes = u(launch.shared_bytes),
                                 .stream = stream,
                                 .attributes = &cluster,
                                 .num_attributes = ClusterOf(launch) > 1 ? 1U : 0U};
  return driver.cuLaunchKernelEx(&config, function, parameters.data(), nullptr);
}

}  // namespace hone::runtime

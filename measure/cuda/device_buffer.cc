#include "measure/cuda/device_buffer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/core/status_macros.h"

namespace hone::measure {
namespace {

using runtime::CudaDriver;
using runtime::CuHandle;

constexpr unsigned char kZone = 0xc3, kNan = 0xff, kPoison = 0xa5;

}  // namespace

Result<DeviceBuffer> DeviceBuffer::Allocate(const CudaDriver& driver, int64_t bytes,
                                            CuHandle stream) {
  DeviceBuffer buffer;
  buffer.driver_ = &driver;
  buffer.bytes_ = static_cast<size_t>(bytes);
  HONE_ASSIGN_OR_RETURN(
      buffer.memory_,
      runtime::CudaMemory::Allocate(driver, buffer.bytes_ + 2 * kZoneBytes, "a kernel's buffer"));
  for (const size_t zone : {size_t{0}, kZoneBytes + buffer.bytes_}) {
    HONE_RETURN_IF_ERROR(
        driver.Check(driver.cuMemsetD8Async(buffer.memory_.at() + zone, kZone, kZoneBytes, stream),
                     "a kernel's buffer"));
  }
  return buffer;
}

Status DeviceBuffer::Poison(ir::DType dtype, CuHandle stream) const {
  if (bytes_ == 0) return {};
  return driver_->Check(
      driver_->cuMemsetD8Async(at(), ir::IsFloat(dtype) ? kNan : kPoison, bytes_, stream),
      "poisoning a buffer");
}

Status DeviceBuffer::Upload(std::span<const std::byte> from, CuHandle stream) const {
  if (from.empty()) return {};
  HONE_RETURN_IF_ERROR(driver_->Check(
      driver_->cuMemcpyHtoDAsync_v2(at(), from.data(), from.size(), stream), "copying a tensor"));
  return driver_->Check(driver_->cuStreamSynchronize(stream), "copying a tensor");
}

Status DeviceBuffer::Download(std::span<std::byte> to, CuHandle stream) const {
  if (to.empty()) return {};
  HONE_RETURN_IF_ERROR(driver_->Check(
      driver_->cuMemcpyDtoHAsync_v2(to.data(), at(), to.size(), stream), "copying an output"));
  return driver_->Check(driver_->cuStreamSynchronize(stream), "copying an output");
}

Status DeviceBuffer::CheckZones(CuHandle stream) const {
  std::array<unsigned char, 2 * kZoneBytes> found;
  const auto copy = [&](size_t number, size_t from) {
    return driver_->Check(driver_->cuMemcpyDtoHAsync_v2(found.data() + number * kZoneBytes,
                                                        memory_.at() + from, kZoneBytes, stream),
                          "looking at a buffer's zones");
  };
  HONE_RETURN_IF_ERROR(copy(0, 0));
  HONE_RETURN_IF_ERROR(copy(1, kZoneBytes + bytes_));
  HONE_RETURN_IF_ERROR(
      driver_->Check(driver_->cuStreamSynchronize(stream), "looking at a buffer's zones"));
  if (std::all_of(found.begin(), found.end(), [](unsigned char c) { return c == kZone; })) {
    return {};
  }
  return Status(StatusCode::kAborted, "the kernel wrote outside of its buffers");
}

}  // namespace hone::measure

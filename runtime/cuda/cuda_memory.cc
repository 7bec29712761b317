#include "runtime/cuda/cuda_memory.h"

#include "runtime/message.h"

namespace hone::runtime {

Result<CudaMemory> CudaMemory::Allocate(const CudaDriver& driver, size_t bytes, const char* what) {
  CudaMemory memory;
  if (bytes == 0) return memory;
  const Status status = driver.Check(driver.cuMemAlloc_v2(&memory.at_, bytes), what);
  if (status.ok()) {
    memory.driver_ = &driver;
    return memory;
  }
  size_t free = 0, total = 0;
  if (driver.cuMemGetInfo_v2(&free, &total) != 0) return status;
  return Status(status.code(),
                Message(status.message(), "; ", bytes >> 20, " MiB are wanted, ", free >> 20,
                        " of the device's ", total >> 20, " MiB are free"));
}

CudaMemory::~CudaMemory() {
  if (driver_ != nullptr) driver_->cuMemFree_v2(at_);
}

}  // namespace hone::runtime

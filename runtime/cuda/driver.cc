#include "runtime/cuda/driver.h"

#include <string>

#include "ir/cuda/cuda_driver.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

// CUresult, cuda.h.
constexpr CuResult kOutOfMemory = 2, kIllegalAddress = 700, kLaunchTimeout = 702,
                   kLaunchFailed = 719;

template <typename Function>
void Take(const char* name, Function** function, std::string* why) {
  if (why->empty()) *function = reinterpret_cast<Function*>(ir::CudaFunction(name, why));
}

Result<CudaDriver> FindAll() {
  CudaDriver d;
  std::string why;
  Take("cuDeviceGet", &d.cuDeviceGet, &why);
  Take("cuDeviceGetAttribute", &d.cuDeviceGetAttribute, &why);
  Take("cuDeviceGetName", &d.cuDeviceGetName, &why);
  // The second one tells a slice of a GPU (MIG) from the whole; drivers before 11.4 lack it.
  std::string none;
  Take("cuDeviceGetUuid_v2", &d.cuDeviceGetUuid, &none);
  if (d.cuDeviceGetUuid == nullptr) Take("cuDeviceGetUuid", &d.cuDeviceGetUuid, &why);
  Take("cuDeviceGetPCIBusId", &d.cuDeviceGetPCIBusId, &why);
  Take("cuDeviceTotalMem_v2", &d.cuDeviceTotalMem_v2, &why);
  Take("cuDriverGetVersion", &d.cuDriverGetVersion, &why);
  Take("cuDevicePrimaryCtxRetain", &d.cuDevicePrimaryCtxRetain, &why);
  Take("cuDevicePrimaryCtxRelease_v2", &d.cuDevicePrimaryCtxRelease_v2, &why);
  Take("cuCtxSetCurrent", &d.cuCtxSetCurrent, &why);
  Take("cuModuleLoadDataEx", &d.cuModuleLoadDataEx, &why);
  Take("cuModuleUnload", &d.cuModuleUnload, &why);
  Take("cuModuleGetFunction", &d.cuModuleGetFunction, &why);
  Take("cuMemAlloc_v2", &d.cuMemAlloc_v2, &why);
  Take("cuMemFree_v2", &d.cuMemFree_v2, &why);
  Take("cuMemGetInfo_v2", &d.cuMemGetInfo_v2, &why);
  Take("cuMemcpyHtoDAsync_v2", &d.cuMemcpyHtoDAsync_v2, &why);
  Take("cuMemcpyDtoHAsync_v2", &d.cuMemcpyDtoHAsync_v2, &why);
  Take("cuMemcpyDtoDAsync_v2", &d.cuMemcpyDtoDAsync_v2, &why);
  Take("cuPointerGetAttribute", &d.cuPointerGetAttribute, &why);
  Take("cuMemsetD8Async", &d.cuMemsetD8Async, &why);
  Take("cuStreamCreate", &d.cuStreamCreate, &why);
  Take("cuStreamDestroy_v2", &d.cuStreamDestroy_v2, &why);
  Take("cuStreamSynchronize", &d.cuStreamSynchronize, &why);
  Take("cuStreamBeginCapture_v2", &d.cuStreamBeginCapture_v2, &why);
  Take("cuStreamEndCapture", &d.cuStreamEndCapture, &why);
  Take("cuGraphInstantiateWithFlags", &d.cuGraphInstantiateWithFlags, &why);
  Take("cuGraphLaunch", &d.cuGraphLaunch, &why);
  Take("cuGraphExecDestroy", &d.cuGraphExecDestroy, &why);
  Take("cuGraphDestroy", &d.cuGraphDestroy, &why);
  Take("cuLaunchKernel", &d.cuLaunchKernel, &why);
  Take("cuLaunchKernelEx", &d.cuLaunchKernelEx, &why);
  Take("cuFuncSetAttribute", &d.cuFuncSetAttribute, &why);
  Take("cuTensorMapEncodeTiled", &d.cuTensorMapEncodeTiled, &why);
  Take("cuEventCreate", &d.cuEventCreate, &why);
  Take("cuEventRecord", &d.cuEventRecord, &why);
  Take("cuEventRecordWithFlags", &d.cuEventRecordWithFlags, &why);
  Take("cuEventElapsedTime", &d.cuEventElapsedTime, &why);
  Take("cuEventDestroy_v2", &d.cuEventDestroy_v2, &why);
  Take("cuGetErrorString", &d.cuGetErrorString, &why);
  if (!why.empty()) return Status(StatusCode::kFailedPrecondition, why);
  return d;
}

}  // namespace

Result<const CudaDriver*> CudaDriver::Find() {
  static const Result<CudaDriver> driver = FindAll();
  if (!driver.ok()) return driver.status();
  return &*driver;
}

Status CudaDriver::Check(CuResult code, const char* what) const {
  if (code == 0) return {};
  const char* text = nullptr;
  if (cuGetErrorString(code, &text) != 0 || text == nullptr) text = "no text for it";
  const std::string message = Message(what, ": the CUDA driver says ", code, " (", text, ")");
  if (code == kOutOfMemory) return {StatusCode::kResourceExhausted, message};
  if (code >= kIllegalAddress && code <= kLaunchFailed) {
    return {StatusCode::kUnavailable,
            message + (code == kLaunchTimeout ? "; the device is busy or hangs"
                                              : "; this process cannot use the device any more")};
  }
  return {StatusCode::kInternal, message};
}

}  // namespace hone::runtime

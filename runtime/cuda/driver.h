#pragma once

#include <cstddef>
#include <cstdint>

#include "base/core/result.h"

// The functions of the CUDA driver that a run needs, by their names in cuda.h ("CUDA Driver API");
// handles are pointers here, as they are there.
namespace hone::runtime {

using CuResult = int;
using CuPointer = uint64_t;  ///< CUdeviceptr
using CuHandle = void*;      ///< CUcontext, CUmodule, CUfunction, CUstream, CUgraph, CUevent, …

// CUlaunchConfig and what of CUlaunchAttribute we set.
struct CuLaunchAttribute {
  int id = 0;
  int pad = 0;
  unsigned value[16] = {};
};
struct CuLaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  CuHandle stream = nullptr;
  CuLaunchAttribute* attributes = nullptr;
  unsigned num_attributes = 0;
};
static_assert(sizeof(CuLaunchAttribute) == 72 && sizeof(CuLaunchConfig) == 56);
/// CUtensorMap: only the driver knows what stands in it.
struct alignas(64) CuTensorMap {
  unsigned char bytes[128];
};

struct CudaDriver {
  CuResult (*cuDeviceGet)(int* device, int ordinal) = nullptr;
  CuResult (*cuDeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  CuResult (*cuDeviceGetName)(char* name, int size, int device) = nullptr;
  CuResult (*cuDeviceGetUuid)(unsigned char* bytes, int device) = nullptr;  ///< 16 of them
  CuResult (*cuDeviceGetPCIBusId)(char* id, int size, int device) = nullptr;
  CuResult (*cuDeviceTotalMem_v2)(size_t* bytes, int device) = nullptr;
  CuResult (*cuDriverGetVersion)(int* version) = nullptr;
  CuResult (*cuDevicePrimaryCtxRetain)(CuHandle* context, int device) = nullptr;
  CuResult (*cuDevicePrimaryCtxRelease_v2)(int device) = nullptr;
  CuResult (*cuCtxSetCurrent)(CuHandle context) = nullptr;
  CuResult (*cuModuleLoadDataEx)(CuHandle* module, const void* image, unsigned options, int* names,
                                 void** values) = nullptr;
  CuResult (*cuModuleUnload)(CuHandle module) = nullptr;
  CuResult (*cuModuleGetFunction)(CuHandle* function, CuHandle module, const char* name) = nullptr;
  CuResult (*cuMemAlloc_v2)(CuPointer* pointer, size_t bytes) = nullptr;
  CuResult (*cuMemFree_v2)(CuPointer pointer) = nullptr;
  CuResult (*cuMemGetInfo_v2)(size_t* free, size_t* total) = nullptr;
  CuResult (*cuMemcpyHtoDAsync_v2)(CuPointer to, const void* from, size_t bytes,
                                   CuHandle stream) = nullptr;
  CuResult (*cuMemcpyDtoHAsync_v2)(void* to, CuPointer from, size_t bytes,
                                   CuHandle stream) = nullptr;
  CuResult (*cuMemcpyDtoDAsync_v2)(CuPointer to, CuPointer from, size_t bytes,
                                   CuHandle stream) = nullptr;
  CuResult (*cuPointerGetAttribute)(void* value, int attribute, CuPointer pointer) = nullptr;
  CuResult (*cuMemsetD8Async)(CuPointer to, unsigned char value, size_t bytes,
                              CuHandle stream) = nullptr;
  CuResult (*cuStreamCreate)(CuHandle* stream, unsigned flags) = nullptr;
  CuResult (*cuStreamDestroy_v2)(CuHandle stream) = nullptr;
  CuResult (*cuStreamSynchronize)(CuHandle stream) = nullptr;
  CuResult (*cuStreamBeginCapture_v2)(CuHandle stream, int mode) = nullptr;
  CuResult (*cuStreamEndCapture)(CuHandle stream, CuHandle* graph) = nullptr;
  CuResult (*cuGraphInstantiateWithFlags)(CuHandle* executable, CuHandle graph,
                                          unsigned long long flags) = nullptr;
  CuResult (*cuGraphLaunch)(CuHandle executable, CuHandle stream) = nullptr;
  CuResult (*cuGraphExecDestroy)(CuHandle executable) = nullptr;
  CuResult (*cuGraphDestroy)(CuHandle graph) = nullptr;
  CuResult (*cuLaunchKernel)(CuHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CuHandle stream, void** parameters, void** extra) = nullptr;
  CuResult (*cuLaunchKernelEx)(const CuLaunchConfig* config, CuHandle function, void** parameters,
                               void** extra) = nullptr;
  CuResult (*cuFuncSetAttribute)(CuHandle function, int attribute, int value) = nullptr;
  /// Lists are of the innermost dimension first.
  CuResult (*cuTensorMapEncodeTiled)(CuTensorMap* map, int type, unsigned rank, CuPointer address,
                                     const uint64_t* extents, const uint64_t* strides,
                                     const unsigned* box, const unsigned* steps, int interleave,
                                     int swizzle, int promotion, int fill) = nullptr;
  CuResult (*cuEventCreate)(CuHandle* event, unsigned flags) = nullptr;
  CuResult (*cuEventRecord)(CuHandle event, CuHandle stream) = nullptr;
  CuResult (*cuEventRecordWithFlags)(CuHandle event, CuHandle stream, unsigned flags) = nullptr;
  CuResult (*cuEventElapsedTime)(float* milliseconds, CuHandle begin, CuHandle end) = nullptr;
  CuResult (*cuEventDestroy_v2)(CuHandle event) = nullptr;
  CuResult (*cuGetErrorString)(CuResult code, const char** text) = nullptr;

  /// The driver's own, found once. kFailedPrecondition: it is missing or lacks a function.
  static Result<const CudaDriver*> Find();

  /// OK for 0, else what the driver says: kResourceExhausted without memory, kUnavailable where the
  /// device does not answer or answers no more (nothing works in this process after that),
  /// kInternal. `what`: what was tried.
  Status Check(CuResult code, const char* what) const;
};

}  // namespace hone::runtime

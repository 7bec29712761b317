#pragma once

#include <cstddef>

// What tests ask of the mock driver, which is loaded as libcuda.so.1; found by dlsym.
extern "C" {

/// The call of this name fails the `after`-th time from now (1: the next) with this CUresult. From
/// 700 on the device is lost: everything fails until the next fault is set.
void MockCudaFault(const char* call, int after, int code);
/// What the executor of PTX said last.
const char* MockCudaLastError();
/// Bytes that are allocated.
size_t MockCudaUsedBytes();
}

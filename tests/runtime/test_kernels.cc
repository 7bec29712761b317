#include <cstdint>

#include "ir/artifact.h"

// The phases of test_model.cc's model, written as a compiler would emit them: extents are
// constants, all pointers come from the call.

namespace {

using hone::ir::HoneCall;
using hone::ir::kPhaseBadIndex;

constexpr int64_t kRows = 5;
constexpr int64_t kIn = 7;
constexpr int64_t kOut = 6;
constexpr int64_t kTable = 9;

template <typename T>
T* Buffer(const HoneCall* call, int index) {
  return static_cast<T*>(call->buffers[index]);
}

}  // namespace

#define HONE_PHASE extern "C" __attribute__((visibility("default"))) int32_t

// Buffers: x [5,7], unused constant, w [7,6] -> y [5,6]. The row is summed up in scratch.
HONE_PHASE test_dense(const HoneCall* call) {
  const float* x = Buffer<const float>(call, 0);
  const float* w = Buffer<const float>(call, 2);
  float* y = Buffer<float>(call, 3);
  float* sums = static_cast<float*>(call->scratch);
  for (int64_t row = call->begin; row < call->end; ++row) {
    for (int64_t j = 0; j < kOut; ++j) sums[j] = 0;
    for (int64_t k = 0; k < kIn; ++k) {
      for (int64_t j = 0; j < kOut; ++j) sums[j] += x[row * kIn + k] * w[k * kOut + j];
    }
    for (int64_t j = 0; j < kOut; ++j) y[row * kOut + j] = sums[j];
  }
  return 0;
}

// Buffers: y [5,6], ids i64 [5], table [9,6] -> z [5,6].
HONE_PHASE test_embed(const HoneCall* call) {
  const float* y = Buffer<const float>(call, 0);
  const int64_t* ids = Buffer<const int64_t>(call, 1);
  const float* table = Buffer<const float>(call, 2);
  float* z = Buffer<float>(call, 3);
  for (int64_t row = call->begin; row < call->end; ++row) {
    if (ids[row] < 0 || ids[row] >= kTable) return (kPhaseBadIndex << 16) | 1;
    for (int64_t j = 0; j < kOut; ++j) {
      z[row * kOut + j] = y[row * kOut + j] + table[ids[row] * kOut + j];
    }
  }
  return 0;
}

// A scan over the rows: carried [6+1 slots of 6] in workspace. Buffers: z [5,6] -> last [6],
// carried [6,6]. Each step reads its neighbour's value of the step before, so it needs the barrier.
HONE_PHASE test_scan_start(const HoneCall* call) {
  float* carried = Buffer<float>(call, 2);
  for (int64_t j = call->begin; j < call->end; ++j) carried[j] = 1;
  return 0;
}
HONE_PHASE test_scan_step(const HoneCall* call) {
  const float* z = Buffer<const float>(call, 0);
  float* carried = Buffer<float>(call, 2);
  const int64_t t = call->step;
  for (int64_t j = call->begin; j < call->end; ++j) {
    carried[(t + 1) * kOut + j] = 0.5F * carried[t * kOut + (j + 1) % kOut] + z[t * kOut + j];
  }
  return 0;
}
HONE_PHASE test_scan_end(const HoneCall* call) {
  float* last = Buffer<float>(call, 1);
  const float* carried = Buffer<const float>(call, 2);
  for (int64_t j = call->begin; j < call->end; ++j) last[j] = carried[kRows * kOut + j];
  return 0;
}

// Says something no runtime knows.
HONE_PHASE test_broken(const HoneCall*) { return 77 << 16; }

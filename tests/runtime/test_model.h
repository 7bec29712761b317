#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/package.h"

// A small model made by hand, since the compiler stands above the runtime:
//
//   x f32 [5,7], ids i64 [5]
//   y = x . w                              kernel 0: scratch, parallel rows
//   z = y + table[ids]                     kernel 1: checks its indices
//   c_0 = 1, c_{t+1}[j] = c_t[j+1] / 2 + z[t][j], last = c_5      kernel 2: a scan, workspace
//   top, places = TopK(z, k = 2, axis = 1)                        extern
//   outputs: z f32 [5,6], last f32 [6], top f32 [5,2], places i64 [5,2]
namespace hone::runtime::testing {

inline constexpr size_t kRows = 5;
inline constexpr size_t kIn = 7;
inline constexpr size_t kOut = 6;
inline constexpr size_t kTable = 9;
inline constexpr size_t kTop = 2;

/// The package with the memory its spans refer to.
struct TestModel {
  std::vector<float> constants;
  std::string code;
  Package package;
};

/// Numbers of the plan's parts, for tests that break it.
enum TestBuffer : int32_t {
  kX,
  kIds,
  kW,
  kTableBuffer,
  kY,
  kZ,
  kCarried,
  kLast,
  kTopValues,
  kPlaces
};

/// `target` is the package's; all phases state `threads`. Kernels run on any x86-64.
TestModel MakeTestModel(const std::string& target = "cpu:avx2,threads=2", int threads = 4);

/// The same for a batch of `images`, one after the other: a loop over all steps, in which no part
/// of an input or output but the first begins at a multiple of 64.
TestModel MakeLoopedTestModel(int64_t images);

/// The package's bytes.
std::string MakeTestPackage(const std::string& target = "cpu:avx2,threads=2", int threads = 4);

/// Inputs from a seed, and the outputs they give by a calculation in plain loops.
struct TestInputs {
  std::vector<float> x;
  std::vector<int64_t> ids;
};
struct TestOutputs {
  std::vector<float> z, last, top;
  std::vector<int64_t> places;

  friend bool operator==(const TestOutputs&, const TestOutputs&) = default;
};
TestInputs MakeInputs(uint64_t seed);
TestOutputs Expected(const TestInputs& inputs);
/// Outputs of the right sizes.
TestOutputs EmptyOutputs();

/// Where they lie, as a run takes them: of runtime/plan's buffers or of the C API's. They must
/// outlive it.
template <typename Input, typename Output>
struct TestBuffers {
  TestBuffers(const TestInputs& inputs, TestOutputs& outputs)
      : in{{inputs.x.data(), inputs.x.size() * 4}, {inputs.ids.data(), inputs.ids.size() * 8}},
        out{{outputs.z.data(), outputs.z.size() * 4},
            {outputs.last.data(), outputs.last.size() * 4},
            {outputs.top.data(), outputs.top.size() * 4},
            {outputs.places.data(), outputs.places.size() * 8}} {}

  Input in[2];
  Output out[4];
};

/// What programs call that were built before the header's inline hone_context_options_init: the
/// symbol of that name, which a file that has the header may find in itself.
void FillOlderContextOptions(void* options);

/// Whole file, or a test failure.
std::string ReadFile(const std::string& path);

}  // namespace hone::runtime::testing

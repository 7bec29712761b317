#include "schedule/tiny_exponentials.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "ir/stmt.h"
#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/run_code.h"

// Exponentials of a softmax that would be subnormal are zeros, in compiled code; others are kept.
namespace hone::schedule {
namespace {

constexpr int kKeys = 8;
const float kInputs[kKeys] = {0, -1, -87.3F, -87.4F, -100, -1000, -INFINITY, NAN};

/// What `exponential`, of the input x0 and of s0, the maximum of its first six values, gives.
std::vector<float> RowOf(const std::string& exponential) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[1,8] input range(-1,1)\n"
      "s0: f32[1] = max[r0:6] (x0[i0, r0])\n"
      "s1: f32[1,8] output = " + exponential + "\n");
  const ir::Target target = TargetOf("cpu:avx2,threads=1");
  const auto lowered = LowerTrace(workload, TraceOf(""), target, {}, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  std::vector<std::vector<uint8_t>> buffers;
  for (const ir::Buffer& buffer : lowered->nest.buffers)
    buffers.emplace_back(static_cast<size_t>(buffer.elements) * sizeof(float));
  std::memcpy(buffers[0].data(), kInputs, sizeof(kInputs));
  const absl::Status status = RunCode(lowered->nest, target, &buffers);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> result(kKeys);
  std::memcpy(result.data(), buffers[1].data(), sizeof(kInputs));
  return result;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TinyExponentials, OfASoftmaxAreZeros) {
  const std::vector<float> row = RowOf("exp(x0[i0, i1] - s0[i0])");
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(row[k] / std::exp(kInputs[k]), 1, 1e-5) << k;
  for (int k = 3; k < 7; ++k) EXPECT_EQ(row[k], 0) << kInputs[k];
  EXPECT_TRUE(std::isnan(row[7]));
}

TEST(TinyExponentials, OfAnythingElseAreKept) {
  for (const char* other :
       {"exp(x0[i0, i1])", "exp(x0[i0, i1] - 0.0)", "exp(x0[i0, i1] - x0[i0, 0])",
        "exp(x0[i0, i1] + s0[i0])", "exp(s0[i0] + x0[i0, i1] - 0.0)"}) {
    SCOPED_TRACE(other);
    const std::vector<float> row = RowOf(other);
    EXPECT_NEAR(row[3] / std::exp(-87.4), 1, 1e-4);
    EXPECT_NEAR(row[4] / std::exp(-100.0), 1, 2e-2) << "few bits are left of it";
    EXPECT_EQ(row[5], 0);
  }
}

TEST(TinyExponentials, OfBlocksOfKeysAreZerosToo) {
  const std::string attention =
      "workload 1\n"
      "x0: f32[5,3] input range(-1,1)\n"
      "x1: f32[10,3] input range(-1,1)\n"
      "x2: f32[10,8] input range(-1,1)\n"
      "s0: f32[5,10] = sum[r0:3] (x0[i0, r0] * x1[i1, r0])\n"
      "s1: f32[5] = max[r0:10] (s0[i0, r0])\n"
      "s2: f32[5,10] = exp(s0[i0, i1] - s1[i0])\n"
      "s3: f32[5] = sum[r0:10] (s2[i0, r0])\n"
      "s4: f32[5,8] output = sum[r0:10] (s2[i0, r0] * (1.0 / s3[i0]) * x2[r0, i1])\n";
  for (const char* trace : {"", "s5 = algorithm(s4, online_softmax, 4)"}) {
    const std::string loops = Loops(attention, trace);
    const size_t exponentials = Count(loops, "exp(");
    EXPECT_GE(exponentials, trace[0] == 0 ? 1U : 2U) << loops;
    EXPECT_EQ(Count(loops, "< -87.3"), exponentials) << loops;
  }
}

}  // namespace
}  // namespace hone::schedule

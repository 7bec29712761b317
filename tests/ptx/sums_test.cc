#include "schedule/cuda/sums.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Long sums with few results by partial results: products of a row with a matrix, pooling of whole
// images.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using ::testing::HasSubstr;

std::string RowTimesMatrix(int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: f32[1,{1}] input range(-1,1)\nx1: f32[{0},{1}] constant\n"
      "x2: f32[{0}] constant\ns0: f32[1,{0}] = sum[r0:{1}] (x0[0, r0] * x1[i1, r0])\n"
      "s1: f32[1,{0}] output = max(s0[i0, i1] + x2[i1], 0.0)\n",
      columns, depth);
}

std::string Pool(int64_t size, int64_t channels) {
  return fmt::format(
      "workload 1\nx0: f32[2,{0},{0},{1}] input range(-1,1)\n"
      "s0: f32[2,{1}] output = sum[r0:{0},r1:{0}] (x0[i0, r0, r1, i1])\n",
      size, channels);
}

TEST(SumsTest, EveryNumberOfPartialResults) {
  Random random(8);
  for (int n = 0; n < 8; ++n) {
    const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
    const std::string text =
        n % 2 == 0 ? RowTimesMatrix(size(40), 256 + size(200)) : Pool(16 + size(6), size(30));
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto sketch = schedule::SumsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value()) << text;
    for (const auto& row : sketch->tables[0].rows) {
      const schedule::Values values{row[0]};
      schedule::TraceWriter writer(workload);
      ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
      const auto read = sketch->rule->Read(*sketch, writer.trace());
      ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
      const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 4));
      ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
      EXPECT_EQ(result.lowered.nest.phases.size(), 2U) << ToText(writer.trace());
    }
  }
}

// Neighbours of a block read what lies side by side: terms of a row, or channels of a pixel.
TEST(SumsTest, NeighboursReadSideBySide) {
  const auto text_of = [](const std::string& workload) {
    const auto trace = schedule::DefaultTrace(schedule::WorkloadOf(workload), CudaTarget("sm_90a"));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return ToText(*trace);
  };
  const std::string row = text_of(RowTimesMatrix(1000, 2048));
  EXPECT_THAT(row, HasSubstr("s2 = rfactor(s0, s0.r0, 128, inner)"));
  EXPECT_THAT(row, HasSubstr("s2.f0 = fuse(s2.i0, s2.i1)"));
  EXPECT_THAT(row, HasSubstr("epilogue(s0, s1)"));
  EXPECT_THAT(row, HasSubstr("bind(s0.r0.1, thread.x)")) << "a warp sums what they found";
  EXPECT_THAT(text_of(Pool(28, 512)), HasSubstr("reorder(s1.i2, s1.i0, s1.i1)"));
  EXPECT_EQ(text_of(RowTimesMatrix(64, 100)).find("rfactor"), std::string::npos) << "few terms";
  EXPECT_EQ(text_of(RowTimesMatrix(40000, 512)).find("rfactor"), std::string::npos)
      << "results enough for a card";
}

}  // namespace
}  // namespace hone::ptx

#include <iostream>
#include <map>
#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "schedule/cuda/products.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Grouped convolutions as products of matrices, one for each group: by tensor cores where the
// numbers are narrow, by threads where they are not.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using ::testing::HasSubstr;
using ::testing::Not;

struct Grouped {
  std::string type = "bf16";                                    ///< f32, f16, bf16 or u8
  int64_t images = 1, size = 7, groups = 2, in = 16, out = 16;  ///< channels of a group
  int64_t kernel = 3, stride = 1;
  bool residual = false;

  std::string Text() const {
    const int64_t pad = kernel / 2, o = (size + 2 * pad - kernel) / stride + 1;
    const bool bytes = type == "u8";
    const std::string sum = bytes ? "i32" : "f32";
    const std::string result = fmt::format("[{},{},{},{}]", images, o, o, groups * out);
    const auto cast = [&](const std::string& load) {
      return type == sum ? load : fmt::format("{}({})", sum, load);
    };
    std::string text = fmt::format(
        "workload 1\nx0: {0}[{1},{2},{2},{3}] input range({4})\n"
        "x1: {5}[{6},{7},{8},{8}] constant\nx2: f32[{6}] constant\n",
        type, images, size, groups * in, bytes ? "0,256" : "-1,1", bytes ? "i8" : type,
        groups * out, in, kernel);
    if (residual) text += fmt::format("x3: f32{} input range(-1,1)\n", result);
    text += fmt::format(
        "s0: {0}[{1},{2},{2},{3}] = select(i1 >= {4} & i1 < {5} & i2 >= {4} & i2 < {5}, "
        "x0[i0, i1 - {4}, i2 - {4}, i3], {6})\n",
        type, images, size + 2 * pad, groups * in, pad, size + pad,
        bytes           ? "u8(0)"
        : type == "f32" ? "0.0"
                        : fmt::format("{}(0.0)", type));
    text +=
        fmt::format("s1: {0}{1} = sum[r0:{2},r1:{2},r2:{3}] ({4} * {5})\n", sum, result, kernel, in,
                    cast(fmt::format("s0[i0, i1 * {0} + r0, i2 * {0} + r1, i3 // {1} * {2} + r2]",
                                     stride, out, in)),
                    cast("x1[i3, r2, r0, r1]"));
    return text + fmt::format("s2: f32{} output = max({}(s1[i0, i1, i2, i3]) + x2[i3]{}, 0.0)\n",
                              result, bytes ? "f32" : "", residual ? " + x3[i0, i1, i2, i3]" : "");
  }
};

Grouped RandomGrouped(Random& random) {
  constexpr const char* kTypes[] = {"f32", "f16", "bf16", "u8"};
  constexpr int64_t kIn[] = {4, 8, 12, 16}, kOut[] = {16, 24, 32};
  return {.type = kTypes[random.Below(4)],
          .images = 1 + static_cast<int64_t>(random.Below(2)),
          .size = 4 + static_cast<int64_t>(random.Below(2)),
          .groups = 2 + static_cast<int64_t>(random.Below(2)),
          .in = kIn[random.Below(std::size(kIn))],
          .out = kOut[random.Below(std::size(kOut))],
          .kernel = random.Chance(0.7) ? 3 : 1,
          .stride = random.Chance(0.3) ? 2 : 1,
          .residual = random.Chance(0.3)};
}

TEST(GroupedTest, RandomTilesOfRandomGroups) {
  constexpr int kConvolutions = 24;
  Random seeds(12);
  std::map<std::string, int> sketches;
  for (int n = 0; n < kConvolutions; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const std::string text = RandomGrouped(random).Text();
    const ir::Workload workload = schedule::WorkloadOf(text);
    const schedule::Space space(workload, CudaTarget("sm_80"), ir::AccuracyClass::kDefault);
    uint64_t id = random.Chance(0.3) ? space.DefaultId() : random.Below(space.product());
    const auto wanted = [&] {
      return space.Admits(id) && (n % 2 == 0 || space.ValueOf(id, "depth") == 0);
    };
    for (int tries = 0; tries < 40 && !wanted(); ++tries) id = random.Below(space.product());
    if (!space.Admits(id)) continue;
    const schedule::Space::Point point = space.PointOf(id);
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << text;
    const auto result = schedule::CheckTrace(workload, *trace, OnGpu("sm_80", seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ": " << result.why << "\n"
                                                   << text << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    const auto found = space.Locate(ToText(*trace));
    EXPECT_TRUE(found && ToText(*space.TraceOf(*found)) == ToText(*trace)) << ToText(*trace);
    ++sketches[point.sketch.name];
  }
  for (const auto& [name, count] : sketches) std::cout << count << " of " << name << "\n";
  EXPECT_GE(sketches["mma"], kConvolutions / 6);
  EXPECT_GE(sketches["products"], kConvolutions / 10);
}

std::string DefaultOf(const Grouped& convolution) {
  const auto trace =
      schedule::DefaultTrace(schedule::WorkloadOf(convolution.Text()), CudaTarget("sm_90a"));
  EXPECT_TRUE(trace.ok()) << trace.status();
  return ToText(*trace);
}

// Each group is a batch: its columns are an axis of their own, of result, epilogue and weights.
TEST(GroupedTest, DefaultsAreTiles) {
  for (const char* type : {"bf16", "f16", "u8"}) {
    const std::string text =
        DefaultOf({.type = type, .size = 14, .groups = 32, .in = 16, .out = 16});
    EXPECT_THAT(text, HasSubstr("unflatten(s1, i1, 16)")) << type;
    EXPECT_THAT(text, HasSubstr("unflatten(s2, i1, 16)")) << type;
    EXPECT_THAT(text, HasSubstr(", mma)")) << type;
    EXPECT_THAT(text, HasSubstr("epilogue(s1, s2)")) << type;
  }
  const std::string wide = DefaultOf({.type = "f32", .size = 14, .groups = 8, .in = 32, .out = 32});
  EXPECT_THAT(wide, HasSubstr("unflatten(s1, i1, 32)"));
  EXPECT_THAT(wide, HasSubstr("storage=shared"));
  // Groups that are no matrices are boxes, as of ResNeXt's first layers.
  const std::string narrow =
      DefaultOf({.type = "f32", .size = 28, .groups = 32, .in = 4, .out = 4});
  EXPECT_THAT(narrow, Not(HasSubstr("unflatten")));
  EXPECT_THAT(narrow, HasSubstr("compute_at(s0, s1.i3.1, shared)"));
}

}  // namespace
}  // namespace hone::ptx

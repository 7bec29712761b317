#include "runtime/launch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>

#include "runtime/package.h"
#include "tests/runtime/test_model.h"

// Launches in packages: all that is said of them is kept, and what no GPU can do is refused.
namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

/// A grid of three dimensions in clusters, with shared memory and what is said of two arguments of
/// kernel 1, y [5,6] and the table [9,6].
ir::Launch LaunchWithAll() {
  ir::Launch launch = {.grid_x = 6,
                       .grid_y = 4,
                       .grid_z = 3,
                       .block_x = 32,
                       .block_y = 2,
                       .block_z = 4,
                       .cluster_x = 2,
                       .cluster_y = 4,
                       .cluster_z = 1,
                       .shared_bytes = 100'000};
  launch.descriptors = {{.argument = 0, .shape = {5, 6}, .strides = {24}, .box = {2, 4}},
                        {.argument = 2,
                         .dtype = ir::DType::kF16,
                         .shape = {9, 2, 6},
                         .strides = {24, 12},
                         .box = {1, 1, 6},
                         .swizzle = ir::Swizzle::k128}};
  return launch;
}

TEST(LaunchCheck, LaunchesAreKept) {
  TestModel model = MakeTestModel();
  model.package.plan.kernels[1].phases[0].launch = LaunchWithAll();
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->plan.kernels[1].phases[0].launch, LaunchWithAll());
  EXPECT_EQ(read->plan.kernels[0].phases[0].launch, ir::Launch());
  EXPECT_EQ(*SerializePackage(*read), bytes);
}

TEST(LaunchCheck, LaunchesThatNoGpuCanDoAreNamed) {
  const auto why = [](const std::function<void(ir::Launch&)>& change) {
    TestModel model = MakeTestModel();
    ir::Launch& launch = model.package.plan.kernels[1].phases[0].launch;
    launch = LaunchWithAll();
    change(launch);
    return SerializePackage(model.package).status().message();
  };
  using Launch = ir::Launch;
  EXPECT_EQ(why([](Launch&) {}), "");
  EXPECT_THAT(why([](Launch& l) { l.grid_z = 65'536; }),
              HasSubstr("kernel 1: phase 0: a grid of 6 x 4 x 65536 blocks"));
  EXPECT_THAT(why([](Launch& l) { l.grid_x = 0; }), HasSubstr("a grid of 0 x 4 x 3"));
  EXPECT_THAT(why([](Launch& l) { l.block_z = 65; }), HasSubstr("a block of 32 x 2 x 65 threads"));
  EXPECT_THAT(why([](Launch& l) { l.block_y = 17, l.block_z = 2; }),
              HasSubstr("a block of 32 x 17 x 2 threads"));
  EXPECT_THAT(why([](Launch& l) { l.cluster_x = 4; }),
              HasSubstr("clusters of 4 x 4 x 1 blocks in a grid of 6 x 4 x 3"));
  EXPECT_THAT(why([](Launch& l) { l.cluster_x = 6, l.cluster_z = 3; }),
              HasSubstr("clusters of 6 x 4 x 3"));
  EXPECT_THAT(why([](Launch& l) { l.cluster_z = -1; }), HasSubstr("clusters of 2 x 4 x -1"));
  EXPECT_THAT(why([](Launch& l) { l.shared_bytes = -1; }), HasSubstr("-1 bytes of shared"));
  EXPECT_THAT(why([](Launch& l) { l.shared_bytes = 1 << 20; }),
              HasSubstr("1048576 bytes of shared memory"));
  EXPECT_THAT(why([](Launch& l) { l.descriptors.resize(65); }), HasSubstr("65 descriptors"));
  EXPECT_THAT(why([](Launch& l) { l.descriptors[0].argument = 4; }),
              HasSubstr("descriptor 0: of argument 4 of 4"));
  EXPECT_THAT(why([](Launch& l) { l.descriptors[1].argument = -1; }),
              HasSubstr("descriptor 1: of argument -1 of 4"));
  EXPECT_THAT(why([](Launch& l) { l.descriptors[0].strides = {25}; }),
              HasSubstr("descriptor 0: of 124 bytes of argument 0, which has 120"));
  for (const auto& broken : std::initializer_list<std::function<void(ir::Descriptor&)>>{
           [](auto& d) { d.shape = {}, d.strides = {}, d.box = {}; },
           [](auto& d) { d.shape.push_back(1); }, [](auto& d) { d.strides.push_back(1); },
           [](auto& d) { d.box.pop_back(); }, [](auto& d) { d.box[0] = 257; },
           [](auto& d) { d.box[1] = 0; }, [](auto& d) { d.shape[0] = 0; },
           [](auto& d) { d.strides[0] = 0; }, [](auto& d) { d.strides[0] = -24; },
           [](auto& d) { d.shape[0] = int64_t{1} << 62; },
           [](auto& d) { d.strides[0] = int64_t{1} << 62; }}) {
    EXPECT_THAT(why([&](Launch& l) { broken(l.descriptors[0]); }),
                HasSubstr("descriptor 0: of no tensor, or of boxes that do not lie in it"));
  }
}

}  // namespace
}  // namespace hone::runtime::testing

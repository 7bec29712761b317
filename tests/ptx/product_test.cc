#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/launch.h"
#include "schedule/cuda/products.h"
#include "schedule/cuda/tile.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Sums of products as tiles in shared memory and registers: the loop interpreter and the executor
// of PTX find races and unset reads, the interpreter in double decides what is right, ptxas whether
// registers suffice.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using schedule::BlockTile;

/// A product of these sizes: second factor as [K, N] or [N, K], with a batch or without, with what
/// follows it or without.
struct Product {
  int64_t rows = 1, columns = 1, depth = 1, batch = 0;
  bool transposed_first = false, transposed_second = false, activation = false;

  std::string Text() const {
    const std::string b = batch > 0 ? fmt::format("{},", batch) : "";
    const std::string i = batch > 0 ? "i0, i1" : "i0", j = batch > 0 ? "i2" : "i1";
    const std::string lead = batch > 0 ? "i0, " : "", row = batch > 0 ? "i1" : "i0";
    const auto [m, n, k] = std::tuple(rows, columns, depth);
    const std::string first =
        transposed_first ? fmt::format("{},{}", k, m) : fmt::format("{},{}", m, k);
    const std::string second =
        transposed_second ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n);
    std::string text = fmt::format(
        "workload 1\nx0: f32[{}{}] input range(-1,1)\nx1: f32[{}{}] input range(-1,1)\n"
        "s0: f32[{}{},{}]{} = sum[r0:{}] (x0[{}{}] * x1[{}{}])\n",
        b, first, b, second, b, m, n, activation ? "" : " output", k, lead,
        transposed_first ? "r0, " + row : row + ", r0", lead,
        transposed_second ? j + ", r0" : "r0, " + j);
    if (activation)
      text += fmt::format("s1: f32[{}{},{}] output = max(s0[{}, {}], 0.0)\n", b, m, n, i, j);
    return text;
  }
};

Product RandomProduct(Random& random) {
  constexpr int64_t kDepths[] = {4, 8, 12, 16, 20, 32, 48};
  return {.rows = 4 + static_cast<int64_t>(random.Below(60)),
          .columns = 16 + static_cast<int64_t>(random.Below(80)),
          .depth = kDepths[random.Below(std::size(kDepths))],
          .batch = random.Chance(0.3) ? 1 + static_cast<int64_t>(random.Below(3)) : 0,
          .transposed_first = random.Chance(0.3),
          .transposed_second = random.Chance(0.3),
          .activation = random.Chance(0.3)};
}

TEST(ProductTest, RandomTilesOfRandomProducts) {
  constexpr int kProducts = 40;
  Random seeds(77);
  std::map<std::string, int> sketches;
  for (int n = 0; n < kProducts; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const Product product = RandomProduct(random);
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const char* chip = random.Chance(0.5) ? "sm_80" : "sm_90a";
    const schedule::Space space(workload, CudaTarget(chip), ir::AccuracyClass::kDefault);
    const uint64_t id = random.Chance(0.2) ? space.DefaultId() : random.Below(space.product());
    const schedule::Space::Point point = space.PointOf(id);
    if (!point.sketch.rule->Refusal(point.sketch, point.values).empty()) continue;
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << product.Text();
    const schedule::CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu(chip, seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ": " << result.why << "\n"
                                                   << product.Text() << "\n"
                                                   << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    ++sketches[point.sketch.name];
  }
  for (const auto& [name, count] : sketches) std::cout << count << " of " << name << "\n";
  EXPECT_GE(sketches["products"], kProducts / 3);
}

TEST(ProductTest, EveryTileIsRight) {
  const Product product{.rows = 130, .columns = 132, .depth = 8};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  ASSERT_TRUE(axes.has_value());
  for (BlockTile tile : schedule::BlockTiles()) {
    tile.depth = 4;
    schedule::TraceWriter writer(workload);
    schedule::ScheduleProduct(writer, 0, *axes, tile);
    ASSERT_TRUE(writer.status().ok()) << writer.status();
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 1));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(writer.trace());
    ASSERT_EQ(result.lowered.nest.phases.size(), 1U);
    const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
    EXPECT_EQ(launch.block_x * launch.block_y, tile.threads());
    EXPECT_EQ(launch.grid_x * launch.grid_y, schedule::BlocksOf(*axes, tile));
  }
}

// A tile much wider than the result has slices of the result's width, which is no whole vectors.
TEST(ProductTest, ATileMuchWiderThanTheResult) {
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 20, .columns = 33, .depth = 8}.Text());
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  ASSERT_TRUE(axes.has_value());
  schedule::TraceWriter writer(workload);
  schedule::ScheduleProduct(writer, 0, *axes, {8, 8, 16, 2, 4});
  const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 1));
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(writer.trace());
}

TEST(ProductTest, ReadsBackWhatItWrites) {
  Random random(3);
  for (int n = 0; n < 40; ++n) {
    const ir::Workload workload = schedule::WorkloadOf(RandomProduct(random).Text());
    const auto sketch = schedule::ProductsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value());
    for (const auto& tile : sketch->tables[0].rows) {
      for (const auto& depth : sketch->tables[1].rows) {
        for (const auto& parts : sketch->tables[2].rows) {
          const int64_t stages = 1 + n % 4;
          const schedule::Values values{tile[0],  tile[1],  tile[2], tile[3],
                                        depth[0], parts[0], stages};
          if (parts[0] * stages > 1 && !sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
        }
      }
    }
  }
}

// Parts of a long sum with few results are products of their own, added up in order by a second
// launch, which has the epilogue.
TEST(ProductTest, SumsInParts) {
  for (const Product& product :
       {Product{.rows = 20, .columns = 40, .depth = 64},
        Product{.rows = 33, .columns = 24, .depth = 96, .batch = 2, .transposed_second = true},
        Product{.rows = 8,
        .columns = 36,
        .depth = 128,
        .transposed_first = true,
        .activation = true}}) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto sketch = schedule::ProductsSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value());
    const schedule::Values nominal = *sketch->rule->Default(*sketch);
    EXPECT_EQ(nominal[5], 1);
    EXPECT_EQ(nominal[6], 1);
    int cut = 0;
    for (const auto& parts : sketch->tables[2].rows) {
      const schedule::Values values{8, 2, 8, 1, 4, parts[0], parts[0] > 1 ? 2 : 1};
      ASSERT_EQ(sketch->rule->Refusal(*sketch, values), "");
      schedule::TraceWriter writer(workload);
      ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
      const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 6));
      ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
      const std::vector<ir::Phase>& phases = result.lowered.nest.phases;
      ASSERT_EQ(phases.size(), parts[0] == 1 ? 1U : 2U) << ToText(writer.trace());
      const auto blocks = [&](const ir::Launch& l) { return l.grid_x * l.grid_y; };
      const auto axes = schedule::FindProduct(workload, workload.stages[0]);
      EXPECT_EQ(blocks(ir::LaunchOf(result.lowered.nest, phases[0])),
                parts[0] * schedule::BlocksOf(*axes, {8, 2, 8, 1, 4}));
      cut += parts[0] > 1 ? 1 : 0;
    }
    EXPECT_GE(cut, 2);
  }
}

TEST(ProductTest, OnlyLongSumsWithFewResultsAreCut) {
  const auto parts_of = [](const Product& product, int64_t wanted) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    return schedule::PartsOfSum(*schedule::FindProduct(workload, workload.stages[0]), wanted);
  };
  EXPECT_EQ(parts_of({.rows = 16, .columns = 768, .depth = 3072}, 16), 16);
  EXPECT_EQ(parts_of({.rows = 16, .columns = 768, .depth = 96}, 16), 4) << "24 terms of a part";
  EXPECT_EQ(parts_of({.rows = 16, .columns = 768, .depth = 20}, 16), 1);
  EXPECT_EQ(parts_of({.rows = 2048, .columns = 2048, .depth = 4096}, 16), 1);
}

// A large product has large tiles, one of few rows or few blocks smaller ones.
TEST(ProductTest, DefaultsFillTheCard) {
  const auto tile_of = [](const Product& product) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto axes = schedule::FindProduct(workload, workload.stages[0]);
    return *schedule::NominalBlock(*axes, CudaTarget("sm_90a").As<ir::CudaTarget>());
  };
  const BlockTile large = tile_of({.rows = 4096, .columns = 4096, .depth = 4096});
  EXPECT_EQ(large.block_rows(), 128);
  EXPECT_EQ(large.block_columns(), 128);
  EXPECT_LT(tile_of({.rows = 512, .columns = 512, .depth = 512}).block_rows(), 128);
  EXPECT_EQ(tile_of({.rows = 16, .columns = 4096, .depth = 4096}).block_rows(), 16);
}

TEST(ProductTest, EveryTileAssemblesWithoutSpills) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 2048, .columns = 2048, .depth = 2048}.Text());
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  for (BlockTile tile : schedule::BlockTiles()) {
    for (const char* chip : {"sm_80", "sm_90a"}) {
      tile.depth = 16;
      schedule::TraceWriter writer(workload);
      schedule::ScheduleProduct(writer, 0, *axes, tile);
      const auto lowered =
          schedule::LowerTrace(workload, writer.trace(), CudaTarget(chip), {}, "k");
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const auto text = codegen::Assembly({&lowered->nest}, CudaTarget(chip));
      ASSERT_TRUE(text.ok()) << text.status();
      for (const auto& assembler : assemblers) {
        const auto made = assembler->Assemble(*text, chip);
        ASSERT_TRUE(made.ok()) << made.status();
        EXPECT_EQ(codegen::AssemblerRefusal(made->log), "") << chip;
        ASSERT_EQ(made->log.kernels.size(), 1U);
        const codegen::KernelUsage& usage = made->log.kernels[0];
        EXPECT_LE(usage.shared_bytes, 4 * 16 * (tile.block_rows() + tile.block_columns() + 2));
        std::cout << chip << ": " << tile.block_rows() << " x " << tile.block_columns() << " by "
                  << tile.threads() << " threads, " << usage.registers << " registers, "
                  << usage.shared_bytes << " bytes\n";
      }
    }
  }
}

// Tiles that want more shared memory than code may declare get it from the launch, up to what the
// chip has.
TEST(ProductTest, SharedMemoryBeyondWhatCodeDeclares) {
  for (const auto& [chip, product, tile] :
       {std::tuple{"sm_86", Product{.rows = 64, .columns = 60, .depth = 128},
                   BlockTile{8, 8, 8, 2, 32, 4}},
        {"sm_80", Product{.rows = 70, .columns = 64, .depth = 64, .transposed_second = true},
         BlockTile{16, 8, 16, 2, 16, 4}},
        {"sm_90a", Product{.rows = 33, .columns = 64, .depth = 128, .activation = true},
         BlockTile{16, 4, 16, 1, 128, 1}}}) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto sketch = schedule::ProductsSketch(workload, CudaTarget(chip));
    ASSERT_TRUE(sketch.has_value());
    const schedule::Values values{tile.threads_y, tile.rows, tile.threads_x, tile.vectors,
                                  tile.depth,     1,         tile.stages};
    schedule::TraceWriter writer(workload);
    ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu(chip, 9));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
    const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
    EXPECT_GT(launch.shared_bytes, 48 << 10);
    EXPECT_LE(launch.shared_bytes, tile.shared_bytes());
    const auto text = codegen::Assembly({&result.lowered.nest}, CudaTarget(chip));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_NE(text->find(".extern .shared .align 64 .b8 k_p0_shared[]"), std::string::npos)
        << *text;
  }
}

// What fits a block depends on the chip: by the rule, and by who makes the code.
TEST(ProductTest, TooMuchSharedMemoryIsRefused) {
  const Product product{.rows = 256, .columns = 256, .depth = 256};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  const auto why_rule = [&](const char* chip, int64_t depth, int64_t stages) {
    const auto sketch = schedule::ProductsSketch(workload, CudaTarget(chip));
    return std::string(sketch->rule->Refusal(*sketch, {16, 8, 16, 2, depth, 1, stages}));
  };
  EXPECT_EQ(why_rule("sm_86", 16, 3), "");
  EXPECT_EQ(why_rule("sm_80", 32, 4), "");
  EXPECT_EQ(why_rule("sm_86", 32, 4), "slices larger than a block's shared memory");
  EXPECT_EQ(why_rule("sm_89", 32, 3), "slices larger than a block's shared memory");
  const auto why_code = [&](const char* chip, int64_t depth, int64_t stages) {
    schedule::TraceWriter writer(workload);
    schedule::ScheduleProduct(writer, 0, *axes, {16, 8, 16, 2, depth, stages});
    const auto lowered = schedule::LowerTrace(workload, writer.trace(), CudaTarget(chip), {}, "k");
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return codegen::Assembly({&lowered->nest}, CudaTarget(chip)).status();
  };
  EXPECT_TRUE(why_code("sm_80", 32, 4).ok());
  for (const auto& [chip, most] : {std::pair{"sm_86", 101'376}, {"sm_80", 166'912}}) {
    const absl::Status refused = why_code(chip, 64, 4);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(refused.message())
                  .find(fmt::format("bytes of shared memory, {} can be had", most)),
              std::string::npos)
        << refused;
  }
}

// A third dimension of the grid, as for batches that are too many for the second one.
TEST(ProductTest, BatchesAlongTheThirdDimension) {
  const std::string text = Product{.rows = 16, .columns = 32, .depth = 8, .batch = 3}.Text();
  const ir::Workload workload = schedule::WorkloadOf(text);
  schedule::TraceWriter writer(workload);
  schedule::ScheduleProduct(writer, 0, *schedule::FindProduct(workload, workload.stages[0]),
                            {.threads_y = 4, .rows = 2, .threads_x = 8, .vectors = 1, .depth = 4});
  std::string trace = ToText(writer.trace());
  const std::string fused = "s0.f0 = fuse(s0.i0, s0.i1.0)\nbind(s0.f0, block.y)\n";
  ASSERT_NE(trace.find(fused), std::string::npos) << trace;
  trace.replace(trace.find(fused), fused.size(), "bind(s0.i0, block.z)\nbind(s0.i1.0, block.y)\n");
  const auto result = schedule::CheckTexts(text, trace, OnGpu("sm_80", 4));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << trace;
  const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
  EXPECT_EQ(launch.grid_z, 3);
  EXPECT_EQ(launch.grid_y, 2);
}

TEST(ProductTest, NoGridHasMoreBlocksThanItMay) {
  // 3 x 40,000 tiles of 16 rows.
  const Product product{.rows = 640'000, .columns = 16, .depth = 4, .batch = 3};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const auto sketch = schedule::ProductsSketch(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(sketch.has_value());
  const auto launch_of = [&](const schedule::Values& values) {
    EXPECT_EQ(sketch->rule->Refusal(*sketch, values), "");
    schedule::TraceWriter writer(workload);
    EXPECT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
    const auto read = sketch->rule->Read(*sketch, writer.trace());
    EXPECT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
    const auto lowered =
        schedule::LowerTrace(workload, writer.trace(), CudaTarget("sm_80"), {}, "k");
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return ir::LaunchOf(lowered->nest, lowered->nest.phases[0]);
  };
  const ir::Launch small = launch_of({8, 2, 8, 1, 4, 1, 1});
  EXPECT_EQ(small.grid_y, 40'000);
  EXPECT_EQ(small.grid_z, 3);
  const ir::Launch large = launch_of({16, 4, 16, 1, 4, 1, 1});
  EXPECT_EQ(large.grid_y, 3 * 10'000);
  EXPECT_EQ(large.grid_z, 1);
  const ir::Workload taller =
      schedule::WorkloadOf(Product{.rows = 2'000'000, .columns = 16, .depth = 4}.Text());
  const auto of_taller = schedule::ProductsSketch(taller, CudaTarget("sm_80"));
  ASSERT_TRUE(of_taller.has_value());
  EXPECT_EQ(of_taller->rule->Refusal(*of_taller, {8, 2, 8, 1, 4, 1, 1}),
            "more blocks than a grid has");
}

}  // namespace
}  // namespace hone::ptx

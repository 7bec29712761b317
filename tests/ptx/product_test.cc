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
    const ir::Launch launch = ir::LaunchOf(result.lowered.nest.phases[0]);
    EXPECT_EQ(launch.block_x * launch.block_y, tile.threads());
    EXPECT_EQ(launch.grid_x * launch.grid_y, schedule::BlocksOf(*axes, tile));
  }
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
      EXPECT_EQ(blocks(ir::LaunchOf(phases[0])),
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

// More shared memory than a module may declare is refused before anybody assembles it.
TEST(ProductTest, TooMuchSharedMemoryIsRefused) {
  const Product product{.rows = 256, .columns = 256, .depth = 64};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  schedule::TraceWriter writer(workload);
  schedule::ScheduleProduct(writer, 0, *axes, {16, 8, 16, 2, 64});
  const auto lowered = schedule::LowerTrace(workload, writer.trace(), CudaTarget("sm_80"), {}, "k");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto text = codegen::Assembly({&lowered->nest}, CudaTarget("sm_80"));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(text.status().message()).find("bytes of shared memory, 49152 can be had"),
            std::string::npos)
      << text.status();
}

}  // namespace
}  // namespace hone::ptx

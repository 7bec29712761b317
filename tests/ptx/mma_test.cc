#include "schedule/cuda/mma.h"

#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "codegen/codegen.h"
#include "ir/launch.h"
#include "schedule/cuda/warp_tile.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/narrow_product.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Products of f16 and bf16 by tensor cores: the loop interpreter multiplies lane by lane and finds
// races, the executor of PTX runs what is emitted, the interpreter in double decides what is right.
namespace hone::ptx {
namespace {

using Product = NarrowProduct;

using schedule::Agreement;
using schedule::CheckResult;
using schedule::WarpTile;
using testing::HasSubstr;
using testing::Not;

Product RandomProduct(Random& random) {
  constexpr int64_t kDepths[] = {16, 20, 32, 33, 48, 64, 96};
  return {.type = random.Chance(0.5) ? "f16" : "bf16",
          .rows = 16 + static_cast<int64_t>(random.Below(60)),
          .columns = 16 + static_cast<int64_t>(random.Below(80)),
          .depth = kDepths[random.Below(std::size(kDepths))],
          .batch = random.Chance(0.3) ? 1 + static_cast<int64_t>(random.Below(3)) : 0,
          .transposed_first = random.Chance(0.3),
          .transposed_second = random.Chance(0.5),
          .follows = random.Chance(0.4)};
}

/// The Trace of one tile of the Workload's first Stage.
schedule::Trace TileTrace(const ir::Workload& workload, const WarpTile& tile) {
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  EXPECT_TRUE(axes && schedule::SuitsTensorCores(*axes));
  schedule::TraceWriter writer(workload);
  if (axes) schedule::ScheduleWarpTile(writer, 0, *axes, tile);
  EXPECT_TRUE(writer.status().ok()) << writer.status();
  return writer.trace();
}

std::string AssemblyOf(const CheckResult& result, const std::string& chip) {
  const auto text = codegen::Assembly({&result.lowered.nest}, CudaTarget(chip));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

size_t CountOf(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(MmaTest, RandomTilesOfRandomProducts) {
  constexpr int kProducts = 60;
  Random seeds(99);
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
    const CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu(chip, seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ": " << result.why << "\n"
                                                   << product.Text() << "\n"
                                                   << ToText(*trace) << "\n"
                                                   << ir::ToText(result.lowered.nest);
    ++sketches[point.sketch.name];
  }
  for (const auto& [name, count] : sketches) std::cout << count << " of " << name << "\n";
  EXPECT_GE(sketches["mma"], kProducts / 6);
  EXPECT_GE(sketches["products"], 1);
}

// Results that are no whole tiles, factors either way round, slices of each depth, none or some on
// their way.
TEST(MmaTest, EveryTileIsRight) {
  int n = 0;
  for (WarpTile tile : schedule::WarpTiles()) {
    tile.depth = n % 3 == 0 ? 16 : n % 3 == 1 ? 32 : 64;
    tile.stages = 1 + n % 4;
    const Product product{.type = n % 2 == 0 ? "bf16" : "f16",
                          .rows = tile.block_rows() + 3,
                          .columns = tile.block_columns() + 8,
                          .depth = tile.depth * (n % 2 == 0 ? 2 : 1),
                          .transposed_first = n % 3 == 2,
                          .transposed_second = n % 4 >= 2,
                          .follows = n % 3 == 1};
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto result =
        schedule::CheckTrace(workload, TileTrace(workload, tile), OnGpu("sm_80", 1));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << product.Text();
    const ir::Launch launch = ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]);
    EXPECT_EQ(launch.block_x, 32);
    EXPECT_EQ(launch.block_y, tile.warps());
    EXPECT_EQ(launch.grid_x * launch.grid_y, 4);
    ++n;
  }
}

/// One text for another, once, where it stands and the seed wants it.
void MayReplace(Random& random, double chance, const std::string& from, const std::string& to,
                std::string* text) {
  const size_t at = text->find(from);
  if (at != std::string::npos && random.Chance(chance)) text->replace(at, from.size(), to);
}

// Beyond the rule: other numbers of warps and matrices, loops in another order or not unrolled,
// other gaps, terms and slices on their way. What is accepted must be right.
TEST(MmaTest, RandomTracesAreRightOrRefused) {
  Random seeds(17);
  int right = 0, refused = 0;
  for (int n = 0; n < 100; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const auto upto = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
    Product product = RandomProduct(random);
    product.depth = 16 * upto(5);
    const WarpTile tile{upto(3), upto(2), upto(2), upto(3), 16 * upto(5), upto(4)};
    if (product.depth % tile.depth != 0) continue;
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    std::string text = ToText(TileTrace(workload, tile));
    const std::string row = product.batch > 0 ? "i1" : "i0",
                      column = product.batch > 0 ? "i2" : "i1";
    MayReplace(random, 0.2, fmt::format("vectorize(s0.{}.4)\n", column), "", &text);
    MayReplace(random, 0.1, fmt::format("unroll(s0.{}.2)\n", row), "", &text);
    MayReplace(random, 0.3, fmt::format("s0.{}.2, s0.{}.2", row, column),
               fmt::format("s0.{}.2, s0.{}.2", column, row), &text);
    MayReplace(random, 0.3, ", 8)\nsplit", fmt::format(", {})\nsplit", 8 * random.Below(4)), &text);
    MayReplace(random, 0.1, ", 8)\nsplit", ", 4)\nsplit", &text);
    MayReplace(random, 0.1, "2,8], mask", "2,8]", &text);
    MayReplace(random, 0.1, fmt::format("fuse(s0.{}.4, s0.{}.3)", row, column),
               fmt::format("fuse(s0.{}.1, s0.{}.1)", row, column), &text);
    const CheckResult result =
        schedule::CheckTrace(workload, schedule::TraceOf(text), OnGpu("sm_80", seed));
    ASSERT_NE(result.agreement, Agreement::kDifferent)
        << "seed " << seed << ": " << result.why << "\n"
        << product.Text() << text;
    (result.agreement == Agreement::kEqual ? right : refused) += 1;
  }
  std::cout << right << " right, " << refused << " refused\n";
  EXPECT_GE(right, 15);
  EXPECT_GE(refused, 3);
}

TEST(MmaTest, ReadsBackWhatItWrites) {
  Random random(5);
  for (int n = 0; n < 20; ++n) {
    const ir::Workload workload = schedule::WorkloadOf(RandomProduct(random).Text());
    const auto sketch = schedule::MmaSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value());
    for (const auto& tile : sketch->tables[0].rows) {
      for (const auto& depth : sketch->tables[1].rows) {
        for (const auto& parts : sketch->tables[2].rows) {
          const schedule::Values values{tile[0],  tile[1],  tile[2],  tile[3],
                                        depth[0], parts[0], 1 + n % 4, n % 2};
          if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
        }
      }
    }
  }
}

// Every number of the slices is fetched by ldmatrix and copied by 16 bytes; nothing is widened.
TEST(MmaTest, FetchesMatricesAndCopiesSixteenBytes) {
  for (const bool turned : {false, true}) {
    const Product product{.rows = 64, .columns = 64, .depth = 128, .transposed_first = turned};
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const WarpTile tile{2, 2, 2, 4, 32, 3};
    const CheckResult result =
        schedule::CheckTrace(workload, TileTrace(workload, tile), OnGpu("sm_80", 2));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
    const std::string text = AssemblyOf(result, "sm_80");
    EXPECT_EQ(CountOf(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), 2 * 4 * 2U);
    // Each once: two of the first factor for each of two tiles of rows, one of the second for each
    // of four tiles of columns.
    EXPECT_EQ(CountOf(text, "ldmatrix.sync.aligned.m8n8.x4"), 2 * 2 + 4U) << text;
    EXPECT_EQ(CountOf(text, "ldmatrix.sync.aligned.m8n8.x4.trans"), turned ? 8U : 4U);
    EXPECT_EQ(CountOf(text, "ld.shared"), 0U);
    EXPECT_EQ(CountOf(text, "st.shared"), 0U);
    EXPECT_GT(CountOf(text, "cp.async.cg.shared.global"), 0U);
  }
}

// 72 terms are 80 with zeros behind them, rows and columns no whole tiles: 16 bytes are all there
// or not.
TEST(MmaTest, WhatSticksOutIsFilledByTheCopy) {
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 50, .columns = 40, .depth = 72}.Text());
  const auto trace = schedule::DefaultTrace(workload, CudaTarget("sm_80"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  const CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu("sm_80", 2));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  const std::string text = AssemblyOf(result, "sm_80");
  EXPECT_GT(CountOf(text, "mma.sync"), 0U);
  EXPECT_GT(CountOf(text, "cp.async.cg.shared.global"), 0U);
  EXPECT_EQ(CountOf(text, "st.shared"), 0U) << ToText(*trace) << text;
}

TEST(MmaTest, WithoutAPipelineSixteenBytesGoThroughRegisters) {
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.type = "f16", .rows = 60, .columns = 64, .depth = 64}.Text());
  const CheckResult result =
      schedule::CheckTrace(workload, TileTrace(workload, {2, 2, 2, 4, 32, 1}), OnGpu("sm_80", 2));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  const std::string text = AssemblyOf(result, "sm_80");
  EXPECT_GT(CountOf(text, "ld.global.nc.v4") + CountOf(text, "ld.global.v4"), 0U) << text;
  EXPECT_EQ(CountOf(text, "st.shared.v4"), CountOf(text, "st.shared")) << text;
}

// The eight rows of a matrix lie in 32 different banks.
TEST(MmaTest, RowsOfAMatrixLieInDifferentBanks) {
  for (const bool turned : {false, true}) {
    for (const int64_t depth : {16, 32, 64}) {
      const Product product{.rows = 64,
                            .columns = 128,
                            .depth = depth,
                            .transposed_first = turned,
                            .transposed_second = !turned};
      const ir::Workload workload = schedule::WorkloadOf(product.Text());
      const auto lowered = schedule::LowerTrace(
          workload, TileTrace(workload, {2, 2, 2, 8, depth, 1}), CudaTarget("sm_80"), {}, "k");
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      int slices = 0;
      for (const ir::Buffer& buffer : lowered->nest.buffers) {
        if (buffer.scope != ir::Scope::kShared) continue;
        const int64_t length = slices++ == 0 ? 64 : 128;
        const int64_t rows = turned ? depth : length;
        ASSERT_EQ(buffer.elements % rows, 0);
        const int64_t row_bytes = 2 * buffer.elements / rows;
        EXPECT_EQ(row_bytes % 16, 0);
        std::vector<bool> used(32);
        for (int64_t row = 0; row < 8; ++row) {
          for (int64_t word = 0; word < 4; ++word) {
            const auto bank = static_cast<size_t>((row * row_bytes / 4 + word) % 32);
            EXPECT_FALSE(used[bank]) << depth << " " << turned;
            used[bank] = true;
          }
        }
      }
      EXPECT_EQ(slices, 2);
    }
  }
}

std::string WhyNot(const std::string& workload, const schedule::Trace& trace) {
  return schedule::CheckTrace(schedule::WorkloadOf(workload), trace, OnGpu("sm_80", 1)).why;
}

/// The tile's Trace with one text for another.
schedule::Trace Changed(const std::string& workload, const std::string& from,
                        const std::string& to) {
  std::string text = ToText(TileTrace(schedule::WorkloadOf(workload), {1, 1, 2, 2, 16, 1}));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return schedule::TraceOf(text);
}

TEST(MmaTest, RefusesWhatWarpsDoNotMultiply) {
  const std::string text = Product{.rows = 32, .columns = 32, .depth = 32}.Text();
  ASSERT_EQ(WhyNot(text, Changed(text, "mma", "mma")), "");
  const auto why = [&](const std::string& from, const std::string& to) {
    return WhyNot(text, Changed(text, from, to));
  };
  std::string wide = text;
  for (size_t at = wide.find("bf16"); at != std::string::npos; at = wide.find("bf16"))
    wide.replace(at, 4, "f32");
  EXPECT_THAT(WhyNot(wide, Changed(text, "mma", "mma")),
              HasSubstr("adds up no products of two f16 or two bf16 in f32"));
  EXPECT_THAT(why("tensorize(s0.i0.3, mma)", "tensorize(s0.i1.4, mma)"),
              HasSubstr("is not the third loop from inside"));
  EXPECT_THAT(why("split(s0.i0, [1,1,2,8], mask)", "split(s0.i0, [1,1,4,8], mask)"),
              HasSubstr("an mma has 2 rows of each thread"));
  EXPECT_THAT(why("split(s0.r0, 16)", "split(s0.r0, 8)"), HasSubstr("a multiple of 16 terms"));
  EXPECT_THAT(why("fuse(s0.i0.4, s0.i1.3)", "fuse(s0.i1.3, s0.i0.4)"), Not(HasSubstr("OK")));
  EXPECT_THAT(why("split(s0.i0, [1,1,2,8], mask)", "split(s0.i0, [1,1,2,16], mask)"),
              HasSubstr("a loop of 32 iterations that is thread.x"));
  EXPECT_THAT(why("storage=shared", "storage=register"), HasSubstr("is not in shared memory"));
  EXPECT_THAT(why("align(s2, 1, 8)", "align(s2, 1, 4)"), HasSubstr("in whole 16 bytes"));
  EXPECT_THAT(why("align(s3, 1, 8)", "align(s3, 1, 1)"), HasSubstr("in whole 16 bytes"));
}

TEST(MmaTest, AMachineWithoutTensorCoresRefusesTheCode) {
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 32, .columns = 32, .depth = 32}.Text());
  const ir::Target cpu = schedule::TargetOf("cpu:avx2,threads=1");
  const auto lowered =
      schedule::LowerTrace(workload, TileTrace(workload, {1, 1, 2, 2, 16, 1}), cpu, {}, "k");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(codegen::Assembly({&lowered->nest}, cpu).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Tensor cores are the default where they can be had and there is enough for them.
TEST(MmaTest, DefaultsUseTensorCores) {
  const auto uses = [](const std::string& text) {
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto trace = schedule::DefaultTrace(workload, CudaTarget("sm_80"));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return ToText(*trace).find("mma)") != std::string::npos;
  };
  EXPECT_TRUE(uses(Product{.rows = 512, .columns = 512, .depth = 512}.Text()));
  EXPECT_TRUE(uses(Product{.type = "f16", .rows = 16, .columns = 16, .depth = 16}.Text()));
  EXPECT_FALSE(uses(Product{.rows = 8, .columns = 512, .depth = 512}.Text())) << "few rows";
  EXPECT_FALSE(
      uses("workload 1\nx0: f32[64,64] input range(-1,1)\nx1: f16[64,64] input range(-1,1)\n"
           "s0: f32[64,64] output = sum[r0:64] (x0[i0, r0] * f32(x1[r0, i1]))\n"))
      << "one factor is f32";
  const auto tile_of = [](const Product& product) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto axes = schedule::FindProduct(workload, workload.stages[0]);
    return *schedule::NominalWarpTile(*axes, CudaTarget("sm_90a").As<ir::CudaTarget>());
  };
  const WarpTile large = tile_of({.rows = 4096, .columns = 4096, .depth = 4096});
  EXPECT_EQ(large.block_rows(), 128);
  EXPECT_EQ(large.block_columns(), 128);
  EXPECT_LE(large.shared_bytes(), 48 << 10);
  EXPECT_EQ(large.stages, 2);
  EXPECT_LT(tile_of({.rows = 512, .columns = 512, .depth = 512}).block_rows(), 128);
  EXPECT_EQ(tile_of({.rows = 16, .columns = 4096, .depth = 4096}).block_rows(), 16);
}

TEST(MmaTest, TilesThatMostlyStickOutAreRefused) {
  const auto why = [](const Product& product, const WarpTile& tile) {
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto sketch = schedule::MmaSketch(workload, CudaTarget("sm_86"));
    EXPECT_TRUE(sketch.has_value());
    return std::string(sketch->rule->Refusal(*sketch, {tile.warps_y, tile.rows, tile.warps_x,
                                                       tile.columns, tile.depth, 1, tile.stages}));
  };
  const WarpTile large{2, 4, 2, 8, 32, 2};
  EXPECT_EQ(why({.rows = 70, .columns = 70, .depth = 64}, large), "");
  EXPECT_EQ(why({.rows = 64, .columns = 70, .depth = 64}, large), "half of the block has no rows");
  EXPECT_EQ(why({.rows = 70, .columns = 64, .depth = 64}, large),
            "half of the block has no columns");
  EXPECT_EQ(why({.rows = 70, .columns = 70, .depth = 48}, large),
            "a slice does not divide the sum");
  EXPECT_EQ(why({.rows = 70, .columns = 70, .depth = 32}, large),
            "fewer slices than are on their way");
  EXPECT_EQ(why({.rows = 70, .columns = 70, .depth = 256}, {2, 4, 2, 8, 64, 3}),
            "slices larger than a block's shared memory");
  EXPECT_EQ(why({.rows = 70, .columns = 70, .depth = 64}, {1, 8, 2, 8, 32, 2}),
            "too many registers");
}

// What a thread converts on its way, and windows of images with padding: 1 x 1 and 3 x 3.
TEST(MmaTest, ConvolutionsAndConvertedFactors) {
  const auto conv = [](int window) {
    return fmt::format(
        "workload 1\nx0: bf16[2,9,7,16] input range(-1,1)\nx1: bf16[24,16,{0},{0}] constant\n"
        "x2: f32[24] constant\n"
        "s0: bf16[2,{1},{2},16] = select(i1 - {3} >= 0 & i1 - {3} < 9 & (i2 - {3} >= 0 & "
        "i2 - {3} < 7), x0[i0, i1 - {3}, i2 - {3}, i3], 0.0:bf16)\n"
        "s1: f32[2,9,7,24] = sum[r0:{0},r1:{0},r2:16] "
        "(f32(s0[i0, i1 + r0, i2 + r1, r2]) * f32(x1[i3, r2, r0, r1]))\n"
        "s2: bf16[2,9,7,24] output = bf16(max(s1[i0, i1, i2, i3] + x2[i3], 0.0))\n",
        window, 9 + window - 1, 7 + window - 1, window / 2);
  };
  const std::string converted =
      "workload 1\nx0: f32[40,48] input range(-1,1)\nx1: bf16[48,32] input range(-1,1)\n"
      "s0: bf16[40,48] = bf16(x0[i0, i1] * 2.0)\n"
      "s1: f32[40,32] output = sum[r0:48] (f32(s0[i0, r0]) * f32(x1[r0, i1]))\n";
  for (const std::string& text : {conv(1), conv(3), converted}) {
    const ir::Workload workload = schedule::WorkloadOf(text);
    const auto trace = schedule::DefaultTrace(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(trace.ok()) << trace.status();
    const CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu("sm_80", 3));
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << result.why << "\n"
        << text << ToText(*trace) << ir::ToText(result.lowered.nest);
    EXPECT_GT(CountOf(AssemblyOf(result, "sm_80"), "mma.sync"), 0U) << ToText(*trace);
  }
}

TEST(MmaTest, EveryTileAssemblesWithoutSpills) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 2048, .columns = 2048, .depth = 2048}.Text());
  for (WarpTile tile : schedule::WarpTiles()) {
    tile.stages = 2;
    const auto lowered =
        schedule::LowerTrace(workload, TileTrace(workload, tile), CudaTarget("sm_80"), {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto text = codegen::Assembly({&lowered->nest}, CudaTarget("sm_80"));
    ASSERT_TRUE(text.ok()) << text.status();
    for (const auto& assembler : assemblers) {
      const auto made = assembler->Assemble(*text, "sm_80");
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(codegen::AssemblerRefusal(made->log), "");
      std::cout << tile.block_rows() << " x " << tile.block_columns() << ": "
                << made->log.kernels[0].registers << " registers\n";
    }
  }
}

}  // namespace
}  // namespace hone::ptx

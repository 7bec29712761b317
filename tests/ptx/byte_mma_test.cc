#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "codegen/codegen.h"
#include "schedule/cuda/mma.h"
#include "schedule/cuda/warp_tile.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/product_text.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Products of bytes by tensor cores, with sums in i32: loop interpreter, executor of PTX and the
// interpreter of Workloads agree bit for bit.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using schedule::CheckResult;
using schedule::WarpTile;
using testing::HasSubstr;

std::string RangeOf(const std::string& type) {
  return type == "u8" ? "range(0,256)" : "range(-128,128)";
}

/// A product of these sizes; `second` may be a constant, and a scale, a bias and a rectifier may
/// follow, the result in bytes again.
struct Product {
  std::string first = "u8", second = "i8";
  int64_t rows = 1, columns = 1, depth = 1, batch = 0;
  bool transposed_first = false, transposed_second = false, constant = false, follows = false;

  std::string Text() const {
    const ProductText p(rows, columns, depth, batch, transposed_first, transposed_second);
    std::string text = fmt::format("workload 1\nx0: {}[{}] input {}\nx1: {}[{}] {}\n", first,
                                   p.first, RangeOf(first), second, p.second,
                                   constant ? "constant" : "input " + RangeOf(second));
    if (follows) text += fmt::format("x2: f32[{0}] constant\nx3: i32[{0}] constant\n", columns);
    text += p.Sum("i32", !follows);
    if (follows) {
      text += fmt::format(
          "s1: u8[{0}] output = u8(max(min(round(f32(s0[{1}{2}, {3}] - x3[{3}]) * x2[{3}]) "
          "+ 3.0, 255.0), 0.0))\n",
          p.result, p.lead, p.row, p.column);
    }
    return text;
  }
};

Product RandomProduct(Random& random) {
  constexpr int64_t kDepths[] = {16, 20, 32, 33, 48, 64, 96, 128};
  const auto type = [&] { return random.Chance(0.5) ? "u8" : "i8"; };
  return {.first = type(),
          .second = type(),
          .rows = 16 + static_cast<int64_t>(random.Below(60)),
          .columns = 16 + static_cast<int64_t>(random.Below(80)),
          .depth = kDepths[random.Below(std::size(kDepths))],
          .batch = random.Chance(0.3) ? 1 + static_cast<int64_t>(random.Below(3)) : 0,
          .transposed_first = random.Chance(0.3),
          .transposed_second = random.Chance(0.5),
          .constant = random.Chance(0.4),
          .follows = random.Chance(0.4)};
}

/// The Trace of one tile of the Workload's first Stage.
schedule::Trace TileTrace(const ir::Workload& workload, WarpTile tile) {
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  EXPECT_TRUE(axes && schedule::SuitsTensorCores(*axes));
  tile.number_bytes = 1;
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

TEST(ByteMmaTest, RandomTilesOfRandomProducts) {
  constexpr int kProducts = 60;
  Random seeds(41);
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

// Results that are no whole tiles, factors either way round and of either sign, slices of each
// depth, none or some on their way.
TEST(ByteMmaTest, EveryTileIsRight) {
  int n = 0;
  for (WarpTile tile : schedule::WarpTiles()) {
    tile.depth = n % 3 == 0 ? 32 : n % 3 == 1 ? 64 : 128;
    tile.stages = 1 + n % 4;
    const Product product{.first = n % 2 == 0 ? "u8" : "i8",
                          .second = n % 4 < 3 ? "i8" : "u8",
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
    ++n;
  }
}

// All four pairs of signs, each by its instruction; sums wrap as those of the interpreter do.
TEST(ByteMmaTest, SignsAreThoseOfTheFactors) {
  for (const std::string first : {"u8", "i8"}) {
    for (const std::string second : {"u8", "i8"}) {
      const ir::Workload workload = schedule::WorkloadOf(
          Product{.first = first, .second = second, .rows = 32, .columns = 32, .depth = 64}.Text());
      const CheckResult result =
          schedule::CheckTrace(workload, TileTrace(workload, {1, 1, 2, 2, 64}), OnGpu("sm_80", 3));
      ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
      const auto of = [](const std::string& type) { return type == "u8" ? "u8" : "s8"; };
      EXPECT_EQ(CountOf(AssemblyOf(result, "sm_80"),
                        fmt::format("mma.sync.aligned.m16n8k32.row.col.s32.{}.{}.s32", of(first),
                                    of(second))),
                2 * 2U);
    }
  }
}

// Bytes along the sum are fetched by ldmatrix and copied by 16; nothing is widened.
TEST(ByteMmaTest, FetchesMatricesAndCopiesSixteenBytes) {
  const Product product{.rows = 64, .columns = 64, .depth = 256, .transposed_second = true};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const CheckResult result =
      schedule::CheckTrace(workload, TileTrace(workload, {2, 2, 2, 4, 64, 3}), OnGpu("sm_80", 2));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  const std::string text = AssemblyOf(result, "sm_80");
  EXPECT_EQ(CountOf(text, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"), 2 * 4 * 2U);
  EXPECT_EQ(CountOf(text, "ldmatrix.sync.aligned.m8n8.x4"), 2 * 2 + 4U) << text;
  EXPECT_EQ(CountOf(text, ".trans"), 0U);
  EXPECT_EQ(CountOf(text, "ld.shared"), 0U);
  EXPECT_EQ(CountOf(text, "st.shared"), 0U);
  EXPECT_GT(CountOf(text, "cp.async.cg.shared.global"), 0U);
}

// Where terms lie apart, lanes load bytes: each once for all tiles of the warp. They are copied by
// 16 all the same.
TEST(ByteMmaTest, LanesLoadBytesOfFactorsThatLieTheOtherWayRound) {
  for (const bool first : {false, true}) {
    const Product product{.rows = 64,
                          .columns = 64,
                          .depth = 128,
                          .transposed_first = first,
                          .transposed_second = first};
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const CheckResult result =
        schedule::CheckTrace(workload, TileTrace(workload, {2, 2, 2, 4, 64, 2}), OnGpu("sm_80", 2));
    ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
    const std::string text = AssemblyOf(result, "sm_80");
    // 16 bytes of each of two tiles of rows, or eight of each of four of columns, twice.
    EXPECT_EQ(CountOf(text, "ld.shared"), 2 * 32U) << text;
    EXPECT_EQ(CountOf(text, "ldmatrix.sync.aligned.m8n8.x4"), 4U);
    EXPECT_EQ(CountOf(text, "st.shared"), 0U);
    EXPECT_GT(CountOf(text, "cp.async.cg.shared.global"), 0U);
  }
}

std::string DefaultOf(const std::string& text, const char* chip, std::string* code,
                      uint64_t seed = 3) {
  const ir::Workload workload = schedule::WorkloadOf(text);
  const auto trace = schedule::DefaultTrace(workload, CudaTarget(chip));
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  const CheckResult result = schedule::CheckTrace(workload, *trace, OnGpu(chip, seed));
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << text << ToText(*trace);
  if (result.agreement == Agreement::kEqual) *code = AssemblyOf(result, chip);
  return ToText(*trace);
}

// Constant weights are laid out once, each column's terms together, however the model has them.
TEST(ByteMmaTest, WeightsAreLaidOutAlongTheSum) {
  for (const bool transposed : {false, true}) {
    std::string code;
    const std::string trace = DefaultOf(Product{.rows = 50,
                                                .columns = 40,
                                                .depth = 128,
                                                .transposed_second = transposed,
                                                .constant = true,
                                                .follows = true}
                                            .Text(),
                                        "sm_80", &code);
    EXPECT_EQ(trace.find("pack(s0, x1, [i1,i0])") == std::string::npos, transposed) << trace;
    EXPECT_GT(CountOf(code, "mma.sync.aligned.m16n8k32"), 0U);
    EXPECT_EQ(CountOf(code, "ld.shared"), 0U) << code;
    EXPECT_EQ(CountOf(code, "st.shared"), 0U) << code;
  }
}

/// A convolution of bytes in NHWC, padded with its zero point or with zeros.
std::string Convolution(int64_t in, int64_t window, bool zero_point) {
  return fmt::format(
      "workload 1\nx0: u8[2,9,7,{0}] input range(0,256)\nx1: i8[24,{0},{1},{1}] constant\n"
      "x2: u8[] constant\nx3: f32[24] constant\nx4: f32[24] constant\n"
      "s0: u8[2,{2},{3},{0}] = select(i1 - {4} >= 0 & i1 - {4} < 9 & (i2 - {4} >= 0 & "
      "i2 - {4} < 7), x0[i0, i1 - {4}, i2 - {4}, i3], {5})\n"
      "s1: i32[2,9,7,24] = sum[r0:{1},r1:{1},r2:{0}] "
      "(i32(s0[i0, i1 + r0, i2 + r1, r2]) * i32(x1[i3, r2, r0, r1]))\n"
      "s2: u8[2,9,7,24] output = "
      "u8(max(min(round(f32(s1[i0, i1, i2, i3]) * x3[i3] + x4[i3]), 255.0), 0.0))\n",
      in, window, 9 + window - 1, 7 + window - 1, window / 2, zero_point ? "x2[]" : "0:u8");
}

TEST(ByteMmaTest, ConvolutionsOfImagesWithTheirZeroPoint) {
  for (const int64_t in : {4, 12, 24, 64}) {
    for (const int64_t window : {1, 3}) {
      for (const bool zero_point : {false, true}) {
        if (in * window * window < 16) continue;
        SCOPED_TRACE(fmt::format("{} channels, {} x {}, {}", in, window, window, zero_point));
        std::string code;
        const std::string trace = DefaultOf(Convolution(in, window, zero_point), "sm_80", &code);
        EXPECT_GT(CountOf(code, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"), 0U) << trace;
        if (window == 1 || trace.find("pipeline") == std::string::npos) continue;
        // By 16 bytes, or as many as lie together and divide the channels. A padding that is not
        // zero is stored; what is there is copied all the same.
        EXPECT_EQ(CountOf(code, "cp.async.cg") > 0, in % 16 == 0) << trace << code;
        EXPECT_EQ(CountOf(code, "], 8") > 0, in == 24) << trace << code;
        EXPECT_GT(CountOf(code, "cp.async.c"), 0U) << trace << code;
        EXPECT_EQ(CountOf(code, "st.shared") > 0, zero_point) << trace << code;
      }
    }
  }
}

// Both are computed: the second moves to signed bytes on its way, row sums put that right.
TEST(ByteMmaTest, AttentionOfBytes) {
  for (const bool rows : {true, false}) {
    const std::string text = fmt::format(
        "workload 1\nx0: u8[3,33,64] input range(0,256)\nx1: u8[3,{}] input range(0,256)\n"
        "s0: i8[3,{}] = i8(x1[i0, i1, i2] ^ 128:u8)\n"
        "s1: i32[3,33,40] = sum[r0:64] (i32(x0[i0, i1, r0]) * i32(s0[i0, {}]))\n"
        "s2: i32[3,33,1] = sum[r0:64] (i32(x0[i0, i1, r0]))\n"
        "s3: f32[3,33,40] output = f32(s1[i0, i1, i2] + 128:i32 * s2[i0, i1, 0])\n",
        rows ? "40,64" : "64,40", rows ? "40,64" : "64,40", rows ? "i2, r0" : "r0, i2");
    std::string code;
    const std::string trace = DefaultOf(text, "sm_90a", &code);
    EXPECT_GT(CountOf(code, "mma.sync.aligned.m16n8k32"), 0U) << trace;
  }
}

// A zero point that is taken off before the product leaves no bytes: threads multiply.
TEST(ByteMmaTest, WhatIsNoByteStaysWithThreads) {
  std::string code;
  DefaultOf(
      "workload 1\nx0: u8[32,64] input range(0,256)\nx1: i8[64,32] constant\nx2: u8[] constant\n"
      "s0: i32[32,32] output = sum[r0:64] ((i32(x0[i0, r0]) - i32(x2[])) * i32(x1[r0, i1]))\n",
      "sm_80", &code);
  EXPECT_EQ(CountOf(code, "mma.sync"), 0U);
  DefaultOf(Product{.rows = 8, .columns = 64, .depth = 64, .constant = true}.Text(), "sm_80",
            &code);
  EXPECT_EQ(CountOf(code, "mma.sync"), 0U) << "few rows";
}

TEST(ByteMmaTest, RefusesWhatWarpsDoNotMultiply) {
  const std::string product =
      Product{.rows = 32, .columns = 32, .depth = 64, .transposed_second = true}.Text();
  const std::string tile = ToText(TileTrace(schedule::WorkloadOf(product), {1, 1, 2, 2, 32, 1}));
  const auto why = [&](const std::string& from, const std::string& to) {
    std::string text = tile;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    return schedule::CheckTrace(schedule::WorkloadOf(product), schedule::TraceOf(text),
                                OnGpu("sm_80", 1))
        .why;
  };
  ASSERT_EQ(why("mma", "mma"), "");
  EXPECT_THAT(why("split(s0.r0, 32)", "split(s0.r0, 16)"), HasSubstr("i32 of 32 terms of bytes"));
  EXPECT_THAT(why("align(s2, 1, 16)", "align(s2, 1, 8)"), HasSubstr("in whole 16 bytes"));
  EXPECT_THAT(why("align(s3, 1, 16)", "align(s3, 1, 8)"), HasSubstr("in whole 16 bytes"));
}

TEST(ByteMmaTest, ReadsBackWhatItWrites) {
  Random random(6);
  int tried = 0;
  for (int n = 0; n < 20; ++n) {
    const ir::Workload workload = schedule::WorkloadOf(RandomProduct(random).Text());
    const auto sketch = schedule::MmaSketch(workload, CudaTarget("sm_80"));
    ASSERT_TRUE(sketch.has_value());
    for (const auto& tile : sketch->tables[0].rows) {
      for (const auto& depth : sketch->tables[1].rows) {
        for (const auto& parts : sketch->tables[2].rows) {
          const schedule::Values values{tile[0],  tile[1],  tile[2],   tile[3],
                                        depth[0], parts[0], 1 + n % 4, n % 2};
          if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
          ++tried;
        }
      }
    }
  }
  EXPECT_GE(tried, 50);
}

TEST(ByteMmaTest, EveryTileAssemblesWithoutSpills) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  for (const bool rows : {true, false}) {
    const ir::Workload workload = schedule::WorkloadOf(
        Product{.rows = 2048, .columns = 2048, .depth = 2048, .transposed_second = rows}.Text());
    for (WarpTile tile : schedule::WarpTiles()) {
      tile.depth = 64;
      tile.stages = 2;
      const auto lowered =
          schedule::LowerTrace(workload, TileTrace(workload, tile), CudaTarget("sm_80"), {}, "k");
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      for (const char* chip : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"}) {
        const auto text = codegen::Assembly({&lowered->nest}, CudaTarget(chip));
        ASSERT_TRUE(text.ok()) << text.status();
        for (const auto& assembler : assemblers) {
          const auto made = assembler->Assemble(*text, chip);
          ASSERT_TRUE(made.ok()) << made.status();
          EXPECT_EQ(codegen::AssemblerRefusal(made->log), "") << chip;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::ptx

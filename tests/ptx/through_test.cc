#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "codegen/codegen.h"
#include "schedule/cuda/warp_tile.h"
#include "schedule/lower.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Results of matrix products that are stored through shared memory, so that a lane stores 16 bytes
// and neighbours store what lies together; the epilogue reads so too.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using schedule::CheckResult;
using schedule::WarpTile;
using testing::HasSubstr;

/// A product of bf16 with a bias, a residual and a rectifier, stored as `stored`; none follows
/// where that is empty.
std::string Product(int64_t rows, int64_t columns, int64_t depth, const std::string& stored) {
  std::string text = fmt::format(
      "workload 1\nx0: bf16[{0},{2}] input range(-1,1)\nx1: bf16[{2},{1}] input range(-1,1)\n",
      rows, columns, depth);
  if (!stored.empty())
    text += fmt::format("x2: f32[{1}] input range(-1,1)\nx3: {2}[{0},{1}] input range(-1,1)\n",
                        rows, columns, stored);
  text += fmt::format("s0: f32[{0},{1}]{3} = sum[r0:{2}] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n",
                      rows, columns, depth, stored.empty() ? " output" : "");
  if (stored.empty()) return text;
  const std::string sum =
      "s0[i0, i1] + x2[i1] + " + (stored == "f32" ? "x3[i0, i1]" : std::string("f32(x3[i0, i1])"));
  const std::string value = "max(" + sum + ", 0.0)";
  return text + fmt::format("s1: {0}[{1},{2}] output = {3}\n", stored, rows, columns,
                            stored == "f32" ? value : stored + "(" + value + ")");
}

schedule::Trace TileTrace(const ir::Workload& workload, const WarpTile& tile) {
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  EXPECT_TRUE(axes && schedule::SuitsTensorCores(*axes));
  schedule::TraceWriter writer(workload);
  if (workload.stages.size() > 1) writer.Emit("epilogue(s0, s1)");
  if (axes) schedule::ScheduleWarpTile(writer, 0, *axes, tile);
  EXPECT_TRUE(writer.status().ok()) << writer.status();
  return writer.trace();
}

size_t CountOf(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string CodeOf(const std::string& text, const WarpTile& tile) {
  const ir::Workload workload = schedule::WorkloadOf(text);
  const schedule::Trace trace = TileTrace(workload, tile);
  const CheckResult result = schedule::CheckTrace(workload, trace, OnGpu("sm_80", 4));
  EXPECT_EQ(result.agreement, Agreement::kEqual)
      << result.why << "\n"
      << text << ToText(trace) << ir::ToText(result.lowered.nest);
  const auto read = schedule::ReadWarpTile(trace, "s0");
  EXPECT_TRUE(read && read->through == tile.through && read->columns == tile.columns);
  const auto code = codegen::Assembly({&result.lowered.nest}, CudaTarget("sm_80"));
  EXPECT_TRUE(code.ok()) << code.status();
  return code.value_or("");
}

// Results that are no whole tiles, wide and narrow, with what follows and without.
TEST(ThroughTest, EveryTileIsRight) {
  int n = 0;
  for (WarpTile tile : schedule::WarpTiles()) {
    tile.through = true;
    tile.stages = 1 + n % 3;
    const std::string stored = n % 3 == 0 ? "" : n % 3 == 1 ? "f32" : "bf16";
    CodeOf(Product(tile.block_rows() + 3, tile.block_columns() + 8, 64, stored), tile);
    if (testing::Test::HasFailure()) return;
    ++n;
  }
}

TEST(ThroughTest, RandomTilesAreRightOrRefused) {
  Random seeds(23);
  int right = 0;
  for (int n = 0; n < 20; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const auto upto = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
    WarpTile tile{upto(3), upto(2), upto(2), upto(4), 16 * upto(2), upto(2)};
    tile.through = true;
    constexpr const char* kStored[] = {"", "f32", "bf16", "f16"};
    const std::string text =
        Product(15 + upto(40), 15 + upto(50), tile.depth * upto(2), kStored[random.Below(4)]);
    const ir::Workload workload = schedule::WorkloadOf(text);
    const CheckResult result =
        schedule::CheckTrace(workload, TileTrace(workload, tile), OnGpu("sm_80", seed));
    ASSERT_NE(result.agreement, Agreement::kDifferent)
        << "seed " << seed << ": " << result.why << "\n"
        << text << ir::ToText(result.lowered.nest);
    right += result.agreement == Agreement::kEqual ? 1 : 0;
  }
  EXPECT_GE(right, 12);
}

// By pairs without it, by 16 bytes with it: results, bias and residual.
TEST(ThroughTest, LanesStoreWholePieces) {
  const WarpTile direct{2, 2, 2, 4, 32, 2};
  WarpTile through = direct;
  through.through = true;
  const std::string wide = Product(128, 128, 64, "f32");
  const std::string pairs = CodeOf(wide, direct), pieces = CodeOf(wide, through);
  EXPECT_GT(CountOf(pairs, "st.global.v2"), 0U);
  EXPECT_EQ(CountOf(pairs, "st.global.v4"), 0U);
  EXPECT_EQ(CountOf(pieces, "st.global.v2"), 0U) << pieces;
  // A warp has 32 × 32 numbers: 32 lanes store 4 of them, 8 times.
  EXPECT_EQ(CountOf(pieces, "st.global.v4"), 8U) << pieces;
  EXPECT_EQ(CountOf(pieces, "ld.global.v4") + CountOf(pieces, "ld.global.nc.v4"), 8 + 2U)
      << "of the bias one for each step\n"
      << pieces;
  // Eight narrow numbers are 16 bytes.
  const std::string narrow = CodeOf(Product(128, 128, 64, "bf16"), through);
  EXPECT_EQ(CountOf(narrow, "st.global.v4"), 4U) << narrow;
}

TEST(ThroughTest, RefusesWhatIsNoBox) {
  const std::string text = Product(32, 32, 32, "");
  const std::string tile =
      ToText(TileTrace(schedule::WorkloadOf(text), {1, 1, 2, 2, 32, 1, 2, true}));
  const auto why = [&](const std::string& from, const std::string& to) {
    std::string changed = tile;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << changed;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    return schedule::CheckTexts(text, changed, OnGpu("sm_80", 1)).why;
  };
  EXPECT_EQ(why("through=shared", "through=shared"), "");
  EXPECT_THAT(why("through=shared", "through=memory"), HasSubstr("no other"));
  EXPECT_THAT(why("register, at", "memory, at"), HasSubstr("no other"));
  const std::string sums =
      "workload 1\nx0: f32[8,64] input range(-1,1)\ns0: f32[8] output = sum[r0:64] (x0[i0, r0])\n";
  const auto of_sums = [&](const std::string& trace) {
    return schedule::CheckTexts(sums, trace, OnGpu("sm_80", 1)).why;
  };
  EXPECT_THAT(of_sums("s1 = cache_write(s0, register, at=s0.i0, through=shared)\n"),
              HasSubstr("that is thread.x"));
  EXPECT_THAT(of_sums("bind(s0.i0, thread.x)\n"
                      "s1 = cache_write(s0, register, at=s0.i0, through=shared)\n"),
              HasSubstr("a thread has one number of it"));
  EXPECT_THAT(of_sums("split(s0.r0, 32)\nreorder(s0.r0.1, s0.r0.0, s0.i0)\n"
                      "bind(s0.r0.1, thread.x)\n"
                      "s1 = cache_write(s0, register, at=s0.r0.1, through=shared)\n"),
              HasSubstr("around its reduce loops"));
}

}  // namespace
}  // namespace hone::ptx

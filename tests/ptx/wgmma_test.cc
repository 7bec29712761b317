#include "schedule/cuda/wgmma.h"

#include <bit>
#include <cstring>
#include <functional>
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
#include "ir/async_copy.h"
#include "ir/box_copy.h"
#include "ir/launch.h"
#include "ir/wgmma.h"
#include "schedule/cuda/group_tile.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/narrow_product.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Products of f16 and bf16 by warpgroups: small ones against the interpreter in double, tiles of
// every size against whole numbers multiplied here, both by executing what is emitted.
namespace hone::ptx {
namespace {

using Product = NarrowProduct;

using schedule::Agreement;
using schedule::CheckResult;
using schedule::GroupTile;
using testing::HasSubstr;

constexpr char kChip[] = "sm_90a";

/// The Trace of one tile of the Workload's first Stage.
schedule::Trace TileTrace(const ir::Workload& workload, const GroupTile& tile) {
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  const ir::Target target = CudaTarget(kChip);
  EXPECT_TRUE(axes && schedule::SuitsGroups(*axes, target.As<ir::CudaTarget>()));
  schedule::TraceWriter writer(workload);
  if (axes) schedule::ScheduleGroupTile(writer, 0, *axes, tile);
  EXPECT_TRUE(writer.status().ok()) << writer.status();
  return writer.trace();
}

absl::StatusOr<schedule::Lowered> LoweredTile(const Product& product, const GroupTile& tile) {
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  return schedule::LowerTrace(workload, TileTrace(workload, tile), CudaTarget(kChip), {}, "k");
}

/// Small whole numbers, whose products are exact sums in f32 whatever the order.
std::vector<int> Numbers(Random& random, int64_t count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  for (int& number : numbers) number = static_cast<int>(random.Below(9)) - 4;
  return numbers;
}

std::vector<uint8_t> Stored(const std::vector<int>& numbers, const std::string& type) {
  std::vector<uint8_t> bytes;
  for (const int number : numbers) {
    const auto value = static_cast<float>(number);
    const auto bits = type == "f16" ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                    : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    bytes.push_back(static_cast<uint8_t>(bits));
    bytes.push_back(static_cast<uint8_t>(bits >> 8));
  }
  return bytes;
}

/// Executes a product without what follows; empty, or what is wrong.
std::string RunTile(const Product& p, const ir::LoopNest& nest, uint64_t seed) {
  Random random(seed);
  const int64_t batches = std::max<int64_t>(1, p.batch);
  const std::vector<int> first = Numbers(random, batches * p.rows * p.depth),
                         second = Numbers(random, batches * p.columns * p.depth);
  std::vector<std::vector<uint8_t>> buffers = {Stored(first, p.type), Stored(second, p.type)};
  buffers.emplace_back(static_cast<size_t>(4 * batches * p.rows * p.columns));
  if (const absl::Status s = RunPtx(nest, kChip, seed, &buffers); !s.ok())
    return std::string(s.message());
  const auto at = [](bool turned, int64_t i, int64_t k, int64_t length, int64_t depth) {
    return turned ? k * length + i : i * depth + k;
  };
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t m = 0; m < p.rows; ++m) {
      for (int64_t n = 0; n < p.columns; ++n) {
        int sum = 0;
        for (int64_t k = 0; k < p.depth; ++k) {
          sum += first[static_cast<size_t>(b * p.rows * p.depth +
                                           at(p.transposed_first, m, k, p.rows, p.depth))] *
                 second[static_cast<size_t>(b * p.columns * p.depth +
                                            at(!p.transposed_second, n, k, p.columns, p.depth))];
        }
        float found = 0;
        std::memcpy(&found,
                    &buffers[2][static_cast<size_t>(4 * ((b * p.rows + m) * p.columns + n))], 4);
        if (found != static_cast<float>(sum))
          return fmt::format("[{},{},{}] is {}, not {}", b, m, n, found, sum);
      }
    }
  }
  return {};
}

// Results that are no whole tiles, factors either way round, one slice at a time or up to eight,
// brought by threads or as boxes.
TEST(WgmmaTest, EveryTileIsRight) {
  int n = 0;
  for (GroupTile tile : schedule::GroupTiles()) {
    tile.stages = 1 + n % 8;
    tile.boxes = tile.stages > 1 && n % 3 != 0;
    Product product{.type = n % 2 == 0 ? "bf16" : "f16",
                    .rows = tile.block_rows() + (n % 3 == 0 ? 8 : 0),
                    .columns = tile.columns - (n % 3 == 1 ? 8 : 0),
                    .depth = GroupTile::kDepth * (tile.stages + n % 2),
                    .batch = n % 5 == 4 ? 2 : 0,
                    .transposed_first = n % 4 == 3,
                    .transposed_second = n % 2 == 1 || tile.columns % 64 != 0};
    const auto lowered = LoweredTile(product, tile);
    ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << product.Text();
    EXPECT_EQ(RunTile(product, lowered->nest, static_cast<uint64_t>(n) + 1), "")
        << product.Text() << ir::ToText(lowered->nest);
    const ir::Launch launch = ir::LaunchOf(lowered->nest, lowered->nest.phases[0]);
    EXPECT_EQ(launch.block_x, 32);
    EXPECT_EQ(launch.block_y, tile.warps());
    EXPECT_EQ(launch.descriptors.size(), tile.boxes ? 2U : 0U);
    ++n;
  }
}

Product RandomProduct(Random& random) {
  return {.type = random.Chance(0.5) ? "f16" : "bf16",
          .rows = 40 + static_cast<int64_t>(random.Below(30)),
          .columns = 8 * (2 + static_cast<int64_t>(random.Below(6))),
          .depth = 64 * (2 + static_cast<int64_t>(random.Below(2))),
          .batch = random.Chance(0.3) ? 1 + static_cast<int64_t>(random.Below(2)) : 0,
          .transposed_second = random.Chance(0.6),
          .follows = random.Chance(0.5)};
}

// Points of the space against the interpreter in double, which runs the loops as they are written.
TEST(WgmmaTest, RandomTilesOfRandomProducts) {
  constexpr int kWanted = 5;
  Random seeds(7);
  int right = 0, boxes = 0;
  for (int n = 0; n < 2000 && right < kWanted; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const Product product = RandomProduct(random);
    const ir::Workload workload = schedule::WorkloadOf(product.Text());
    const auto sketch = schedule::WgmmaSketch(workload, CudaTarget(kChip));
    ASSERT_TRUE(sketch.has_value()) << product.Text();
    schedule::Values values;
    for (const schedule::DecisionTable& table : sketch->tables) {
      for (const int64_t number : table.rows[random.Below(table.rows.size())]) values.Add(number);
    }
    if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
    schedule::TraceWriter writer(workload);
    ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
    const auto read = sketch->rule->Read(*sketch, writer.trace());
    ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
    const CheckResult result = schedule::CheckTrace(workload, writer.trace(), OnGpu(kChip, seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << "seed " << seed << ": " << result.why << "\n"
        << product.Text() << ToText(writer.trace()) << ir::ToText(result.lowered.nest);
    ++right;
    boxes += ToText(writer.trace()).find("boxes") != std::string::npos ? 1 : 0;
  }
  std::cout << right << " right, " << boxes << " with boxes\n";
  EXPECT_EQ(right, kWanted);
  EXPECT_GE(boxes, 1);
}

// Parts of a sum are a batch, and what adds them up is a launch of its own.
TEST(WgmmaTest, PartsOfASumComeAsBoxes) {
  const Product product{.rows = 64, .columns = 16, .depth = 384, .transposed_second = true};
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  const auto sketch = schedule::WgmmaSketch(workload, CudaTarget(kChip));
  ASSERT_TRUE(sketch.has_value());
  const schedule::Values values = {1, 1, 16, /*parts=*/2, /*stages=*/3, /*boxes=*/1};
  ASSERT_EQ(sketch->rule->Refusal(*sketch, values), "");
  schedule::TraceWriter writer(workload);
  ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
  const CheckResult result = schedule::CheckTrace(workload, writer.trace(), OnGpu(kChip, 5));
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
  EXPECT_EQ(result.lowered.nest.maps.size(), 2U);
  EXPECT_EQ(result.lowered.nest.phases.size(), 2U);
}

/// The same statement with others in the place of those that `is` tells.
ir::Stmt Replaced(const ir::Stmt& stmt, const std::function<bool(const ir::StmtNode&)>& is,
                  const ir::Stmt& with) {
  if (is(*stmt)) return with;
  ir::StmtNode node = *stmt;
  for (ir::Stmt& inner : node.body) inner = Replaced(inner, is, with);
  return std::make_shared<const ir::StmtNode>(std::move(node));
}

const Product kSmall = {.rows = 64, .columns = 16, .depth = 384, .transposed_second = true};

std::string RunBroken(bool boxes, const std::function<bool(const ir::StmtNode&)>& is,
                      const ir::Stmt& with) {
  auto lowered = LoweredTile(kSmall, {.groups = 1, .columns = 16, .stages = 4, .boxes = boxes});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  for (ir::Phase& phase : lowered->nest.phases) phase.body = Replaced(phase.body, is, with);
  return RunTile(kSmall, lowered->nest, 3);
}

// What is emitted is executed with products and copies that land late: nothing that keeps order may
// be missing.
TEST(WgmmaTest, AMissingWaitIsFound) {
  const ir::Stmt nothing = ir::Block({});
  const auto none = [](const ir::StmtNode&) { return false; };
  const auto copies = [](const ir::StmtNode& n) { return ir::AwaitedGroups(n) >= 0; };
  const auto products = [](const ir::StmtNode& n) { return ir::AwaitedProducts(n) >= 0; };
  const auto last = [](const ir::StmtNode& n) { return ir::AwaitedProducts(n) == 0; };
  const auto sync = [](const ir::StmtNode& n) {
    return n.kind == ir::StmtKind::kSync && n.extent == 0;
  };
  for (const bool boxes : {false, true}) {
    EXPECT_EQ(RunBroken(boxes, none, nothing), "");
    EXPECT_NE(RunBroken(boxes, copies, nothing), "") << boxes;
    EXPECT_THAT(RunBroken(boxes, products, nothing), HasSubstr("nobody waited for"));
    EXPECT_THAT(RunBroken(boxes, last, nothing), HasSubstr("nobody waited for"));
    EXPECT_NE(RunBroken(boxes, sync, nothing), "") << boxes;
  }
  EXPECT_THAT(RunBroken(false, ir::IsShowToProducts, nothing), HasSubstr("fence.proxy.async"));
  EXPECT_NE(RunBroken(false, ir::IsCommit, nothing), "");
  const auto expects = [](const ir::StmtNode& n) { return ir::ExpectedBytes(n) > 0; };
  EXPECT_THAT(RunBroken(true, expects, nothing), HasSubstr("phase"));
  const auto begins = [](const ir::StmtNode& n) { return ir::BegunBarriers(n) > 0; };
  EXPECT_THAT(RunBroken(true, begins, nothing), HasSubstr("no barrier"));
}

/// The instructions between a loop's label and the branch back to it, of the loop with wgmma.
std::vector<std::string> MainLoop(const std::string& text) {
  std::vector<std::string> loop;
  std::string label;
  bool found = false;
  size_t begin = text.find("wgmma.mma_async");
  begin = text.rfind("\n$L__BB", begin) + 1;
  for (size_t at = begin; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(" \t"));
    if (label.empty()) label = line.substr(0, line.find(':'));
    if (line.ends_with(';') && !line.starts_with("."))
      loop.push_back(line.substr(0, line.find_first_of(" \t;")));
    found |= line.find("bra") != std::string::npos && line.find(label + ";") != std::string::npos;
    if (found) break;
  }
  EXPECT_TRUE(found) << "no loop of " << label;
  return loop;
}

// As boxes, slices cost their threads next to nothing: what stands in the main loop beside wgmma.
TEST(WgmmaTest, FewOtherInstructionsStandInTheMainLoop) {
  const Product product{.rows = 2048, .columns = 2048, .depth = 2048, .transposed_second = true};
  for (GroupTile tile : {GroupTile{2, 1, 128}, {2, 1, 256}, {2, 2, 128}}) {
    tile.boxes = true;
    const auto lowered = LoweredTile(product, tile);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto text = codegen::Assembly({&lowered->nest}, CudaTarget(kChip));
    ASSERT_TRUE(text.ok()) << text.status();
    int products = 0, others = 0;
    std::string all;
    for (const std::string& name : MainLoop(*text)) {
      all += name + "\n";
      (name.starts_with("wgmma.mma_async") ? products : others) += 1;
    }
    EXPECT_EQ(products, 4 * tile.rows) << all;
    EXPECT_LE(others, 8 * products) << all;
    std::cout << tile.block_rows() << " x " << tile.columns << ": " << products << " wgmma, "
              << others << " other instructions\n";
  }
}

TEST(WgmmaTest, EveryTileAssemblesWithoutSpills) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  const Product product{.rows = 2048, .columns = 2304, .depth = 2048};
  for (GroupTile tile : schedule::GroupTiles()) {
    Product own = product;
    own.transposed_second = tile.columns % 64 != 0;
    tile.boxes = true;
    const auto lowered = LoweredTile(own, tile);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto text = codegen::Assembly({&lowered->nest}, CudaTarget(kChip));
    ASSERT_TRUE(text.ok()) << text.status();
    for (const auto& assembler : assemblers) {
      const auto made = assembler->Assemble(*text, kChip);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(codegen::AssemblerRefusal(made->log), "");
      EXPECT_EQ(made->log.kernels[0].spill_store_bytes, 0);
      std::cout << tile.block_rows() << " x " << tile.columns << ": "
                << made->log.kernels[0].registers << " registers\n";
    }
  }
}

std::string WhyNot(const std::string& from, const std::string& to,
                   const Product& product = kSmall) {
  const ir::Workload workload = schedule::WorkloadOf(product.Text());
  std::string text = ToText(TileTrace(workload, {.groups = 1, .columns = 16, .stages = 1}));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return std::string(
      schedule::LowerTrace(workload, schedule::TraceOf(text), CudaTarget(kChip), {}, "k")
          .status()
          .message());
}

TEST(WgmmaTest, RefusesWhatWarpgroupsDoNotMultiply) {
  EXPECT_EQ(WhyNot("wgmma", "wgmma"), "");
  EXPECT_THAT(WhyNot("swizzle(s2)\n", ""), HasSubstr("is not in swizzled shared memory"));
  EXPECT_THAT(WhyNot("tensorize(s0.i0.4, wgmma)", "tensorize(s0.i1.3, wgmma)"),
              HasSubstr("is not the fourth loop from inside"));
  EXPECT_THAT(WhyNot("split(s0.r0, 64)", "split(s0.r0, 32)"),
              HasSubstr("no multiple of 64 numbers"));
  EXPECT_THAT(WhyNot("[1,1,4,2,8]", "[1,1,6,2,8]"), HasSubstr("a multiple of four thread.y"));
  EXPECT_THAT(WhyNot("swizzle(s3)\n", "swizzle(s3)\nswizzle(s3)\n"),
              HasSubstr("is swizzled already"));
  EXPECT_THAT(WhyNot("[2,4,2], mask", "[1,4,2], mask"), HasSubstr("2 to 32 eights of columns"));
}

// Four warps whose rows are two and two of different places.
TEST(WgmmaTest, RefusesRowsThatDoNotFollowEachOther) {
  Product product = kSmall;
  product.rows = 128;
  EXPECT_EQ(WhyNot("[1,1,4,2,8]", "[1,2,4,2,8]", product), "");
  EXPECT_THAT(WhyNot("[1,1,4,2,8]", "[2,2,2,2,8]", product),
              HasSubstr("the rows of four warps must follow each other"));
}

TEST(WgmmaTest, ReadsBackWhatItWrites) {
  const ir::Workload workload =
      schedule::WorkloadOf(Product{.rows = 512, .columns = 768, .depth = 512}.Text());
  const auto sketch = schedule::WgmmaSketch(workload, CudaTarget(kChip));
  ASSERT_TRUE(sketch.has_value());
  int read_back = 0;
  for (const GroupTile& tile : schedule::GroupTiles()) {
    for (const int64_t parts : {1, 2}) {
      for (const int64_t boxes : {0, 1}) {
        const schedule::Values values = {tile.groups, tile.rows, tile.columns,
                                         parts,       2 + boxes, boxes};
        if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
        schedule::TraceWriter writer(workload);
        ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
        const auto read = sketch->rule->Read(*sketch, writer.trace());
        ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
        ++read_back;
      }
    }
  }
  EXPECT_GE(read_back, 24);
}

TEST(WgmmaTest, OtherMachinesRefuseTheCode) {
  const auto lowered = LoweredTile(kSmall, {.groups = 1, .columns = 16, .stages = 1});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  for (const char* const chip : {"sm_80", "sm_100a"}) {
    EXPECT_EQ(codegen::Assembly({&lowered->nest}, CudaTarget(chip)).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(
        schedule::WgmmaSketch(schedule::WorkloadOf(kSmall.Text()), CudaTarget(chip)).has_value());
  }
}

}  // namespace
}  // namespace hone::ptx

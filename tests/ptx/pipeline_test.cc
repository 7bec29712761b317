#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/async_copy.h"
#include "schedule/cuda/tile.h"
#include "schedule/lower.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Slices of products that are on their way while earlier ones are read.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using schedule::BlockTile;
using schedule::CheckResult;
using testing::HasSubstr;

constexpr BlockTile kTile = {.threads_y = 4, .rows = 4, .threads_x = 8, .vectors = 1, .depth = 4};

/// Rows and columns that are no whole tiles.
ir::Workload Product(int64_t rows, int64_t columns, int64_t depth, bool turned) {
  return schedule::WorkloadOf(fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\nx1: f32[{3}] input range(-1,1)\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[{4}])\n",
      rows, columns, depth,
      turned ? fmt::format("{},{}", columns, depth) : fmt::format("{},{}", depth, columns),
      turned ? "i1, r0" : "r0, i1"));
}

schedule::Trace Pipelined(const ir::Workload& workload, int64_t stages) {
  const auto axes = schedule::FindProduct(workload, workload.stages[0]);
  EXPECT_TRUE(axes.has_value());
  schedule::TraceWriter writer(workload);
  schedule::ScheduleProduct(writer, 0, *axes, kTile);
  writer.Emit(fmt::format("pipeline(s0.r0.0, {})", stages));
  EXPECT_TRUE(writer.status().ok()) << writer.status();
  return writer.trace();
}

size_t CountOf(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(PipelineTest, EveryNumberOfTilesAndSlices) {
  for (const int64_t stages : {2, 3, 4}) {
    for (const int64_t slices : {1, 2, 3, 4, 7}) {
      for (const bool turned : {false, true}) {
        const ir::Workload workload = Product(19, 36, 4 * slices, turned);
        const schedule::Trace trace = Pipelined(workload, stages);
        const auto seed = static_cast<uint64_t>(stages * 10 + slices);
        const CheckResult result = schedule::CheckTrace(workload, trace, OnGpu("sm_80", seed));
        ASSERT_EQ(result.agreement, Agreement::kEqual)
            << result.why << "\n"
            << ToText(trace) << ir::ToText(result.lowered.nest);
      }
    }
  }
}

TEST(PipelineTest, CopiesGoAroundTheRegisters) {
  const ir::Workload workload = Product(64, 64, 64, false);
  const schedule::Trace trace = Pipelined(workload, 3);
  const auto lowered = schedule::LowerTrace(workload, trace, CudaTarget("sm_80"), {}, "k");
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto text = codegen::Assembly({&lowered->nest}, CudaTarget("sm_80"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_GT(CountOf(*text, "cp.async.cg.shared.global"), 0U) << *text;
  EXPECT_EQ(CountOf(*text, "st.shared"), 0U) << "every element is copied\n" << *text;
  EXPECT_GT(CountOf(*text, "cp.async.wait_group \t1"), 0U) << *text;
  SystemMonotonicClock clock;
  for (const auto& assembler : codegen::AssemblersHere(clock)) {
    const auto made = assembler->Assemble(*text, "sm_80");
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(codegen::AssemblerRefusal(made->log), "");
  }
}

/// The same nest without the n-th statement that `is` tells, or with another in its place.
ir::Stmt Replaced(const ir::Stmt& stmt, const std::function<bool(const ir::StmtNode&)>& is,
                  const ir::Stmt& with) {
  if (is(*stmt)) return with;
  ir::StmtNode node = *stmt;
  for (ir::Stmt& inner : node.body) inner = Replaced(inner, is, with);
  return std::make_shared<const ir::StmtNode>(std::move(node));
}

absl::Status RunBroken(const std::function<bool(const ir::StmtNode&)>& is, const ir::Stmt& with) {
  const ir::Workload workload = Product(16, 32, 32, false);
  auto lowered =
      schedule::LowerTrace(workload, Pipelined(workload, 3), CudaTarget("sm_80"), {}, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (is != nullptr) {
    for (ir::Phase& phase : lowered->nest.phases) phase.body = Replaced(phase.body, is, with);
  }
  std::vector<std::vector<uint8_t>> buffers;
  for (const size_t floats : {16 * 32, 32 * 32, 16 * 32}) buffers.emplace_back(4 * floats);
  return RunPtx(lowered->nest, "sm_80", 7, &buffers);
}

// What is emitted is executed with copies that land late: nothing that keeps order may be missing.
TEST(PipelineTest, AMissingWaitIsFound) {
  EXPECT_TRUE(RunBroken(nullptr, nullptr).ok());
  const auto is_wait = [](const ir::StmtNode& n) { return ir::AwaitedGroups(n) >= 0; };
  EXPECT_THAT(RunBroken(is_wait, ir::Block({})).ToString(), HasSubstr("nobody waited for"));
  EXPECT_THAT(RunBroken(is_wait, ir::AwaitCopies(2)).ToString(), HasSubstr("nobody waited for"));
  const auto is_sync = [](const ir::StmtNode& n) {
    return n.kind == ir::StmtKind::kSync && n.extent == 0;
  };
  EXPECT_FALSE(RunBroken(is_sync, ir::Block({})).ok());
  EXPECT_FALSE(RunBroken(ir::IsCommit, ir::Block({})).ok());
}

TEST(PipelineTest, RefusesWhatIsNoCopy) {
  const auto why = [](const std::string& workload, const std::string& trace) {
    return schedule::CheckTexts(workload, trace, OnGpu("sm_80", 1)).why;
  };
  const std::string map =
      "workload 1\nx0: f32[8,64] input range(-1,1)\ns0: f32[8,64] = x0[i0, i1] + 1.0\n"
      "s1: f32[8,64] output = s0[i0, i1] * 2.0\n";
  EXPECT_THAT(why(map, "pipeline(s1.i0, 2)\n"), HasSubstr("nothing is computed there"));
  EXPECT_THAT(why(map, "pipeline(s1.i0, 9)\n"), HasSubstr("must lie in 2..8"));
  EXPECT_THAT(why(map, "compute_at(s0, s1.i0, register)\npipeline(s1.i0, 2)\n"),
              HasSubstr("inside of thread loops"));
  EXPECT_THAT(why(map,
                  "reorder(s1.i1, s1.i0)\nbind(s1.i1, thread.x)\n"
                  "compute_at(s0, s1.i0, register)\npipeline(s1.i0, 2)\n"),
              HasSubstr("no copy of memory into shared memory"));
}

}  // namespace
}  // namespace hone::ptx

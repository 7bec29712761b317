#include <span>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/launch.h"
#include "ir/loop_interpreter.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"

// Recurrent layers in one launch: the threads of a block take the elements of a step, and wait for
// each other where they read what others made. The loop interpreter and the executor of PTX find
// what is read too early; the interpreter in double decides what is right.
namespace hone::ptx {
namespace {

using schedule::Agreement;
using ::testing::HasSubstr;

std::string Before(const std::string& state, const std::string& unit) {
  return fmt::format("select(i0 >= 1, {}[i0 - 1, i1, {}], 0.0)", state, unit);
}

std::string Lstm(int64_t steps, int64_t rows, int64_t units) {
  const auto gate = [&](const std::string& function, int64_t from) {
    return fmt::format("{0}(x0[i0, i1, i2 + {1}] + s0[i0, i1, i2 + {1}])", function, from);
  };
  return fmt::format(
             "workload 1\nx0: f32[{0},{1},{2}] input range(-1,1)\nx1: f32[{2},{3}] constant\n"
             "s0: f32[{0},{1},{2}] scan 0 = sum[r0:{3}] ({4} * x1[i2, r0])\n",
             steps, rows, 4 * units, units, Before("s2", "r0")) +
         fmt::format("s1: f32[{0},{1},{2}] scan 0 = {3} * {4} + {5} * {6}\n", steps, rows, units,
                     gate("sigmoid", 2 * units), Before("s1", "i2"), gate("sigmoid", 0),
                     gate("tanh", 3 * units)) +
         fmt::format("s2: f32[{0},{1},{2}] output scan 0 = {3} * tanh(s1[i0, i1, i2])\n", steps,
                     rows, units, gate("sigmoid", units));
}

std::string Gru(int64_t steps, int64_t rows, int64_t units) {
  const auto gate = [&](int64_t from) {
    return fmt::format("sigmoid(x0[i0, i1, i2 + {0}] + s0[i0, i1, i2 + {0}])", from);
  };
  return fmt::format(
             "workload 1\nx0: f32[{0},{1},{2}] input range(-1,1)\nx1: f32[{2},{3}] constant\n"
             "s0: f32[{0},{1},{4}] scan 0 = sum[r0:{3}] ({5} * x1[i2, r0])\n",
             steps, rows, 3 * units, units, 2 * units, Before("s3", "r0")) +
         fmt::format(
             "s1: f32[{0},{1},{2}] scan 0 = {3} * {4}\n"
             "s2: f32[{0},{1},{2}] scan 0 = sum[r0:{2}] (s1[i0, i1, r0] * x1[i2 + {5}, r0])\n"
             "s3: f32[{0},{1},{2}] output scan 0 = tanh(x0[i0, i1, i2 + {5}] + s2[i0, i1, i2]) * "
             "{6}\n",
             steps, rows, units, gate(0), Before("s3", "i2"), 2 * units, gate(units));
}

int CountSyncs(const ir::Stmt& stmt) {
  int count = stmt->kind == ir::StmtKind::kSync ? 1 : 0;
  for (const ir::Stmt& inner : stmt->body) count += CountSyncs(inner);
  return count;
}

schedule::Trace DefaultOf(const ir::Workload& workload) {
  const auto trace = schedule::DefaultTrace(workload, CudaTarget("sm_80"));
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *trace;
}

/// The default is right, and one launch of one block; its barriers of a step.
int SyncsOfAStep(const std::string& text, uint64_t seed) {
  const ir::Workload workload = schedule::WorkloadOf(text);
  const auto result =
      schedule::CheckTrace(workload, DefaultOf(workload), OnGpu("sm_80", seed));
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << text;
  const ir::LoopNest& nest = result.lowered.nest;
  EXPECT_EQ(nest.phases.size(), 1U) << text;
  EXPECT_EQ(nest.steps, (std::vector<ir::KernelStep>{{0, 1, 1}})) << text;
  if (nest.phases.empty()) return -1;
  const ir::Launch launch = ir::LaunchOf(nest, nest.phases[0]);
  EXPECT_EQ(launch.grid_x * launch.grid_y * launch.grid_z, 1) << text;
  EXPECT_LE(launch.block_x, 1024) << text;
  return CountSyncs(nest.phases[0].body);
}

// One barrier before the product, which reads the units of the step before, and one behind it. The
// state and the result of a unit are one thread's.
TEST(ScanTest, AnLstmIsOneLaunch) {
  EXPECT_EQ(SyncsOfAStep(Lstm(5, 1, 64), 3), 2);
  EXPECT_EQ(SyncsOfAStep(Lstm(3, 2, 24), 4), 2);
  EXPECT_EQ(SyncsOfAStep(Lstm(3, 2, 37), 5), 2) << "not all threads have an element";
  EXPECT_EQ(SyncsOfAStep(Lstm(3, 1, 300), 6), 2) << "a thread has two gates";
  EXPECT_EQ(SyncsOfAStep(Lstm(1, 1, 20), 7), 1) << "one step";
}

// Two products, each between barriers of its own. With one row the thread that sums a unit's first
// gate also multiplies by it; with more rows another one does.
TEST(ScanTest, AGruIsOneLaunch) {
  EXPECT_EQ(SyncsOfAStep(Gru(5, 1, 64), 3), 2);
  EXPECT_EQ(SyncsOfAStep(Gru(5, 1, 40), 3), 2);
  EXPECT_EQ(SyncsOfAStep(Gru(3, 3, 37), 4), 3);
}

TEST(ScanTest, ThreadsThatReadOnlyTheirOwnNeedNoBarrier) {
  const auto running = [](int64_t steps, int64_t columns) {
    return fmt::format(
        "workload 1\nx0: f32[{0},{1}] input range(-1,1)\ns0: f32[{0},{1}] output scan 0 = "
        "select(i0 >= 1, s0[i0 - 1, i1], 0.0) + x0[i0, i1]\n",
        steps, columns);
  };
  EXPECT_EQ(SyncsOfAStep(running(7, 40), 1), 0);
  EXPECT_EQ(SyncsOfAStep(running(4, 1500), 1), 0) << "in two turns, the second of which is short";
  // Each step reads the neighbour's.
  EXPECT_EQ(SyncsOfAStep("workload 1\nx0: f32[6,40] input range(-1,1)\n"
                         "s0: f32[6,40] output scan 0 = select(i0 >= 1 & i1 >= 1, s0[i0 - 1, i1 - "
                         "1], 0.0) + x0[i0, i1]\n",
                         1),
            1);
  // What one thread makes alone all others wait for.
  EXPECT_EQ(SyncsOfAStep("workload 1\nx0: f32[6,40] input range(-1,1)\n"
                         "s0: f32[6] scan 0 = sum[r0:40] (select(i0 >= 1, s1[i0 - 1, r0], 1.0))\n"
                         "s1: f32[6,40] output scan 0 = s0[i0] * 0.025 + x0[i0, i1]\n",
                         1),
            2);
}

TEST(ScanTest, RandomRecurrences) {
  Random random(17);
  const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
  for (int n = 0; n < 24; ++n) {
    const bool lstm = random.Chance(0.5);
    const int64_t steps = 1 + size(4), rows = size(4), units = 1 + size(50);
    SyncsOfAStep(lstm ? Lstm(steps, rows, units) : Gru(steps, rows, units), random.Next());
  }
}

ir::Stmt WithoutSync(const ir::Stmt& stmt, int* which) {
  if (stmt->kind == ir::StmtKind::kSync && (*which)-- == 0) return ir::Block({});
  ir::StmtNode node = *stmt;
  for (ir::Stmt& inner : node.body) inner = WithoutSync(inner, which);
  return std::make_shared<const ir::StmtNode>(std::move(node));
}

// Each barrier is needed: interpreter and executor both find that one is missing.
TEST(ScanTest, AMissingBarrierIsFound) {
  for (const std::string& text : {Lstm(3, 1, 40), Gru(3, 1, 40), Gru(3, 2, 40)}) {
    const ir::Workload workload = schedule::WorkloadOf(text);
    const ir::Target target = CudaTarget("sm_80");
    const auto lowered = schedule::LowerTrace(workload, DefaultOf(workload), target, {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const int syncs = CountSyncs(lowered->nest.phases[0].body);
    for (int left_out = -1; left_out < syncs; ++left_out) {
      ir::LoopNest nest = lowered->nest;
      int which = left_out < 0 ? syncs : left_out;
      nest.phases[0].body = WithoutSync(nest.phases[0].body, &which);
      std::vector<std::vector<uint8_t>> buffers;
      std::vector<std::span<uint8_t>> arguments;
      for (const ir::Buffer& b : nest.buffers) {
        if (b.scope == ir::Scope::kArgument)
          buffers.emplace_back(static_cast<size_t>(b.elements * ir::SizeOf(b.dtype)));
      }
      for (auto& buffer : buffers) arguments.emplace_back(buffer);
      const absl::Status interpreted = ir::RunLoopNest(nest, arguments, {.find_races = true});
      const absl::Status executed = RunPtx(nest, "sm_80", 5, &buffers);
      EXPECT_EQ(interpreted.ok(), left_out < 0) << interpreted << "\n" << ir::ToText(nest);
      EXPECT_EQ(executed.ok(), left_out < 0) << executed << "\n" << ir::ToText(nest);
    }
  }
}

TEST(ScanTest, RefusesWhatOneBlockCannotDo) {
  const std::string text = Lstm(3, 4, 64);
  const auto why = [&](const std::string& trace) {
    return schedule::CheckTexts(text, trace, OnGpu("sm_80", 1)).why;
  };
  EXPECT_THAT(why("bind(s0.i1, block.x)\n"), HasSubstr("s0 belongs to a scan: a loop of it can be "
                                                       "thread.x"));
  EXPECT_THAT(why("bind(s0.i1, thread.y)\n"), HasSubstr("s0 belongs to a scan"));
  EXPECT_THAT(why("bind(s0.i2, thread.x)\n"), HasSubstr("thread loops just inside them"));
  EXPECT_THAT(why("bind(s0.i1, thread.x)\nparallel(s2.i1, 2)\n"),
              HasSubstr("no blocks or barriers inside"));
  EXPECT_EQ(why("bind(s0.i1, thread.x)\n"), "") << "what is not bound is the first thread's";
}

}  // namespace
}  // namespace hone::ptx

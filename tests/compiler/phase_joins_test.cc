#include "compiler/phase_joins.h"

#include <cstring>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "compiler/compile_model.h"
#include "runtime/context.h"
#include "runtime/phase_order.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/runtime/others_threads.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

using ir::PhaseAccess;
using ir::PlanJoin;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Kernels of one phase each with 8 iterations on 2 threads; argument k of each is buffer k. Arena
/// buffers of 512 bytes, one after the other, then a constant.
ir::Plan Rows(const std::vector<std::vector<PhaseAccess>>& kernels, int64_t constant_bytes = 64) {
  constexpr int64_t kBytes = 512;
  ir::Plan plan;
  for (int64_t b = 0; b < 4; ++b) {
    plan.buffers.push_back({ir::PlanBufferKind::kArena, kBytes * b, kBytes});
  }
  plan.buffers.push_back({ir::PlanBufferKind::kConstant, 0, constant_bytes});
  for (const std::vector<PhaseAccess>& accesses : kernels) {
    ir::PlanStep& step = plan.steps.emplace_back();
    step.kernel = static_cast<int32_t>(plan.kernels.size());
    step.threads = 2;
    step.buffers = {0, 1, 2, 3, 4};
    ir::Artifact& kernel = plan.kernels.emplace_back();
    kernel.phases = {{"p", 8, 0, 2, {}, accesses}};
    kernel.steps = {{0, 1, 1}};
  }
  return plan;
}

PhaseAccess Read(int32_t argument, int64_t begin = 0, int64_t end = 64, int64_t stride = 64) {
  return {argument, false, stride, begin, end};
}
PhaseAccess Write(int32_t argument, int64_t begin = 0, int64_t end = 64, int64_t stride = 64) {
  return {argument, true, stride, begin, end};
}

TEST(FindJoins, JoinsPhasesThatMeetInTheSameIterationAlone) {
  EXPECT_THAT(FindJoins(Rows({{Read(0), Write(1)}, {Read(1), Write(2)}})),
              ElementsAre(PlanJoin{1, 0}));
  EXPECT_THAT(FindJoins(Rows({{Read(0), Write(1)}, {Read(1), Write(2)}, {Read(2), Write(3)}})),
              ElementsAre(PlanJoin{1, 0}, PlanJoin{2, 0}));
}

TEST(FindJoins, KeepsBarriersBetweenNeighbours) {
  // A window of three rows, the row before alone, all rows.
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(1, -64, 128), Write(2)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(1, -64, 0), Write(2)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(1, 0, 512, 0), Write(2)}})), IsEmpty());
  // Rows of another size, and half a row too much.
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(1, 0, 32, 32), Write(2)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(1, 0, 65), Write(2)}})), IsEmpty());
}

TEST(FindJoins, KeepsBarriersBeforeMemoryIsWrittenAgain) {
  EXPECT_THAT(FindJoins(Rows({{Read(0, -64, 128), Write(1)}, {Read(1), Write(0)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Read(0, 0, 512, 0), Write(1)}, {Read(1), Write(0)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Write(0, 0, 128, 128), Write(1)}, {Read(1), Write(0)}})), IsEmpty());
  // The third phase could follow the second alone. The first, which the second is joined to, still
  // reads what the third writes.
  EXPECT_THAT(FindJoins(Rows({{Read(0, -64, 128), Write(1)}, {Read(1), Write(2)}, {Write(0)}})),
              ElementsAre(PlanJoin{1, 0}));
  // Accesses beyond a buffer's end reach into the next one's memory.
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {Read(0, 64, 576), Write(2)}})), IsEmpty());
}

TEST(FindJoins, KeepsBarriersWhereItKnowsTooLittle) {
  EXPECT_THAT(FindJoins(Rows({{}, {Read(1), Write(2)}})), IsEmpty());
  EXPECT_THAT(FindJoins(Rows({{Write(1)}, {}})), IsEmpty());
  ir::Plan other = Rows({{Write(1)}, {Read(1), Write(2)}});
  other.kernels[1].phases[0].parallel_extent = 9;
  EXPECT_THAT(FindJoins(other), IsEmpty());
  other = Rows({{Write(1)}, {Read(1), Write(2)}});
  other.steps[0].threads = 1;
  EXPECT_THAT(FindJoins(other), IsEmpty());
  other = Rows({{Write(1)}, {Read(1), Write(2)}});
  other.kernels[0].steps[0].repeats = 2;
  EXPECT_THAT(FindJoins(other), IsEmpty());
}

TEST(FindJoins, LeavesLargeConstantsInTheCache) {
  const std::vector<std::vector<PhaseAccess>> kernels = {{Write(1)},
                                                         {Read(1), Read(4, 0, 64, 0), Write(2)}};
  EXPECT_THAT(FindJoins(Rows(kernels, 512 << 10)), ElementsAre(PlanJoin{1, 0}));
  EXPECT_THAT(FindJoins(Rows(kernels, (512 << 10) + 64)), IsEmpty());
}

/// Makes the calls of a parallel_for one after the other, the last first if told so: a phase that
/// reads what another part of the one before writes then reads poison.
runtime::Executor OneByOne(bool* last_first) {
  return {.parallel_for =
              [](void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
                const bool last = *static_cast<const bool*>(self);
                for (int32_t i = 0; i < n; ++i) body(context, last ? n - 1 - i : i);
              },
          .self = last_first};
}

/// Stops the pool's threads now and then, before a claim, within a part and after it.
class Sluggish final : public runtime::LaneObserver {
 public:
  void At(Point, int slot) override {
    const uint64_t visit = visits_.fetch_add(1, std::memory_order_relaxed);
    if (visit % 3 == 0) std::this_thread::yield();
    if (slot != 0 && visit % 23 == 0) clock_.SleepNs(100'000);
  }

 private:
  const SystemMonotonicClock clock_;
  std::atomic<uint64_t> visits_{0};
};

class JoinedModel : public ::testing::Test {
 protected:
  // Rows, then rows with their neighbours, again and again: products, windows, softmax.
  static graph::Graph Network() {
    GraphMaker maker(3);
    const auto conv = [&](graph::ValueId x, int64_t from, int64_t to, int64_t window) {
      return maker.Node("Conv",
                        {{"strides", std::vector<int64_t>{1, 1}},
                         {"pads", std::vector<int64_t>(4, window / 2)},
                         {"dilations", std::vector<int64_t>{1, 1}},
                         {"group", int64_t{1}}},
                        {x, maker.Weights({to, from, window, window})});
    };
    const graph::ValueId x = maker.Input("x", {1, 8, 24, 24});
    graph::ValueId h = conv(x, 8, 24, 1);
    h = maker.Unary("tanh", conv(h, 24, 16, 1));
    h = conv(h, 16, 16, 3);
    h = conv(h, 16, 20, 1);
    h = maker.Unary("tanh", conv(h, 20, 8, 1));
    h = conv(h, 8, 8, 3);
    return maker.Finish({maker.Node("Softmax", {{"axis", int64_t{3}}}, {h})});
  }

  void SetUp() override {
    DefaultTraceSource traces;
    Compile(Network(), traces);
  }

  void Compile(graph::Graph graph, TraceSource& traces) {
    ir::Target target;
    std::string why;
    ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=8", &target, &why));
    if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    const SystemMonotonicClock clock;
    measure::BuilderClient builder(options, clock);
    graph_ = std::move(graph);
    absl::StatusOr<CompiledModel> model =
        CompileModel(graph_, {.target = target.text}, builder, traces);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<CompiledModel>(*std::move(model));
  }

  std::vector<std::byte> Run(const runtime::RunOptions& options, int runs = 1) {
    const Result<std::string> bytes = runtime::SerializePackage(model_->package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(*bytes)), {});
    EXPECT_TRUE(executable.ok()) << executable.status().ToString();
    auto context = runtime::Context::Create(*executable, options);
    EXPECT_TRUE(context.ok()) << context.status().ToString();
    const std::vector<graph::ConstantPtr> inputs = RandomInputs(graph_, 1);
    const graph::TensorType& type = graph_.values[graph_.outputs[0]].type;
    std::vector<std::byte> y(static_cast<size_t>(type.NumElements()) * sizeof(float)), first;
    for (int run = 0; run < runs; ++run) {
      const runtime::InputBuffer in{inputs[0]->bytes.data(), inputs[0]->bytes.size()};
      const runtime::OutputBuffer out{y.data(), y.size()};
      const Status status = (*context)->Run({&in, 1}, {&out, 1});
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (run == 0) first = y;
      EXPECT_EQ(first, y) << "run " << run;
    }
    return y;
  }

  graph::Graph graph_;
  std::unique_ptr<CompiledModel> model_;
};

TEST_F(JoinedModel, GivesTheSameBytesWhoeverRunsWhat) {
  const runtime::BarrierCount count = runtime::CountBarriers(model_->package.plan);
  EXPECT_GE(count.left_out, 1);
  EXPECT_GE(count.barriers, 3);
  const auto joins = std::exchange(model_->package.plan.joins, {});
  const std::vector<std::byte> expected = Run({.threads = 1, .poison = true});
  model_->package.plan.joins = joins;
  for (const int threads : {1, 2, 3, 5, 8}) {
    for (bool last_first : {false, true}) {
      EXPECT_EQ(Run({.threads = threads, .executor = OneByOne(&last_first), .poison = true}, 3),
                expected)
          << threads << " threads" << (last_first ? ", the last first" : "");
    }
    Sluggish sluggish;
    auto pool = runtime::ThreadPool::Create({.threads = threads, .observer = &sluggish});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    EXPECT_EQ(Run({.threads = threads, .pool = *pool, .poison = true}, 20), expected)
        << threads << " threads, some stopped";
  }
}

/// Cuts the sum of a product into parts that threads share.
class CutSums final : public TraceSource {
 public:
  absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                  const ir::Target&) override {
    return FoundTrace{.trace =
                          "s1 = rfactor(s0, s0.r0, 12, outer, first)\n"
                          "parallel(s1.i0, 1)\nparallel(s0.i0, 1)\n",
                      .rung = "exact"};
  }
};

TEST_F(JoinedModel, GivesTheSameBytesOnAnyThreadsBesideAnyLoad) {
  GraphMaker maker(4);
  const graph::ValueId x = maker.Input("x", {10, 300});
  const graph::Graph product =
      maker.Finish({maker.Node("MatMul", {}, {x, maker.Weights({300, 24})})});
  for (const bool cut : {false, true}) {
    CutSums cuts;
    if (cut) Compile(product, cuts);
    const std::vector<std::byte> expected = Run({.threads = 1, .poison = true});
    for (const int busy : {0, 1, 3}) {
      const runtime::testing::BusyThreads load(busy);
      for (int threads = 1; threads <= 8; ++threads) {
        const std::string where =
            std::to_string(threads) + " threads beside " + std::to_string(busy) + " busy ones";
        EXPECT_EQ(Run({.threads = threads, .poison = true}, 8), expected) << where;
        const runtime::Executor lent{.parallel_for = &runtime::testing::CallOnThreads};
        EXPECT_EQ(Run({.threads = threads, .executor = lent, .poison = true}, 3), expected)
            << where << ", an executor's";
      }
    }
  }
}

// What the first of these tests rests on: each barrier that was kept is needed, and it shows if one
// is not.
TEST_F(JoinedModel, ANeededBarrierThatIsLeftOutShows) {
  bool first_first = false, last_first = true;
  const auto differs = [&](const std::vector<std::byte>& expected) {
    return Run({.threads = 8, .executor = OneByOne(&first_first), .poison = true}) != expected ||
           Run({.threads = 8, .executor = OneByOne(&last_first), .poison = true}) != expected;
  };
  ir::Plan& plan = model_->package.plan;
  const std::vector<std::byte> expected = Run({.threads = 1, .poison = true});
  const std::vector<PlanJoin> joins = plan.joins;
  int needed = 0;
  const std::vector<runtime::PhaseGroup> order = runtime::PhaseOrder(plan);
  for (size_t i = 1; i < order.size(); ++i) {
    if (!order[i - 1].Fits(order[i])) continue;
    plan.joins = joins;
    plan.joins.push_back(order[i].phases.front());
    std::ranges::sort(plan.joins);
    ++needed;
    EXPECT_TRUE(differs(expected)) << "before step " << order[i].step;
  }
  EXPECT_GE(needed, 2);
}

}  // namespace
}  // namespace hone::compiler

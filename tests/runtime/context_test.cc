#include "runtime/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cstring>
#include <thread>

#include "base/core/fake_clock.h"
#include "runtime/executable.h"
#include "runtime/node_copies.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Executable> Load(const std::string& bytes) {
  auto executable =
      Executable::OpenMemory(std::as_bytes(std::span(bytes.data(), bytes.size())), {});
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  return executable.ok() ? *executable : nullptr;
}

std::unique_ptr<Context> NewContext(std::shared_ptr<const Executable> executable,
                                    const Context::Options& options) {
  auto context = Context::Create(std::move(executable), options);
  EXPECT_TRUE(context.ok()) << context.status().ToString();
  return context.ok() ? *std::move(context) : nullptr;
}

Status RunModel(Context& context, const TestInputs& inputs, TestOutputs& outputs) {
  TestBuffers<InputBuffer, OutputBuffer> buffers(inputs, outputs);
  return context.Run(buffers.in, buffers.out);
}

TEST(Context, ThreeRunsWithPoisonBetweenThemAreRight) {
  for (const int threads : {1, 2, 3, 4}) {
    const auto context = NewContext(Load(MakeTestPackage()), {.threads = threads, .poison = true});
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(context->threads(), threads);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TestOutputs outputs = EmptyOutputs();
      const TestInputs inputs = MakeInputs(seed);
      ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
      EXPECT_EQ(outputs, Expected(inputs)) << threads << " threads, seed " << seed;
    }
  }
}

/// Those of one image after those of another.
void Append(const TestOutputs& image, TestOutputs* all) {
  const auto add = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(image.z, all->z);
  add(image.last, all->last);
  add(image.top, all->top);
  add(image.places, all->places);
}

TEST(Context, ALoopRunsItsStepsForEachImage) {
  constexpr int64_t kImages = 3;
  const std::string bytes = *SerializePackage(MakeLoopedTestModel(kImages).package);
  for (const int threads : {1, 2, 3}) {
    const auto context = NewContext(Load(bytes), {.threads = threads, .poison = true});
    ASSERT_NE(context, nullptr);
    for (uint64_t run = 0; run < 3; ++run) {
      TestInputs inputs;
      TestOutputs expected, outputs;
      for (uint64_t image = 0; image < kImages; ++image) {
        const TestInputs one = MakeInputs(run * kImages + image);
        inputs.x.insert(inputs.x.end(), one.x.begin(), one.x.end());
        inputs.ids.insert(inputs.ids.end(), one.ids.begin(), one.ids.end());
        Append(Expected(one), &expected);
        Append(EmptyOutputs(), &outputs);
      }
      ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
      EXPECT_EQ(outputs, expected) << threads << " threads, run " << run;
    }
  }
}

TEST(Context, BarriersHoldOverManyRuns) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 4});
  const TestInputs inputs = MakeInputs(11);
  const TestOutputs expected = Expected(inputs);
  for (int run = 0; run < 300; ++run) {
    TestOutputs outputs = EmptyOutputs();
    ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
    ASSERT_EQ(outputs, expected) << "run " << run;
  }
}

TEST(Context, UnalignedBuffersAreCopied) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 2, .poison = true});
  const TestInputs inputs = MakeInputs(5);
  const TestOutputs expected = Expected(inputs);
  for (const size_t shift : {size_t{0}, size_t{1}, size_t{4}, size_t{32}}) {
    alignas(64) std::byte x[256], ids[256], z[256], last[256], top[256], places[256];
    std::memcpy(x + shift, inputs.x.data(), 140);
    std::memcpy(ids + shift, inputs.ids.data(), 40);
    const std::vector<InputBuffer> in = {{x + shift, 140}, {ids + shift, 40}};
    const std::vector<OutputBuffer> out = {
        {z + shift, 120}, {last + shift, 24}, {top + shift, 40}, {places + shift, 80}};
    ASSERT_TRUE(context->Run(in, out).ok());
    EXPECT_EQ(std::memcmp(z + shift, expected.z.data(), 120), 0) << shift;
    EXPECT_EQ(std::memcmp(last + shift, expected.last.data(), 24), 0) << shift;
    EXPECT_EQ(std::memcmp(top + shift, expected.top.data(), 40), 0) << shift;
    EXPECT_EQ(std::memcmp(places + shift, expected.places.data(), 80), 0) << shift;
  }
}

TEST(Context, BadIndexNamesTheModelsInput) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 3});
  TestInputs inputs = MakeInputs(1);
  inputs.ids[3] = static_cast<int64_t>(kTable);
  TestOutputs outputs = EmptyOutputs();
  const Status status = RunModel(*context, inputs, outputs);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("step 1"));
  EXPECT_THAT(status.message(), HasSubstr("the model's input 'ids'"));
  // The model's words come first where a package has them.
  TestModel model = MakeTestModel();
  model.package.plan.names = {{1, 1, "/embeddings/Gather", "ids"}};
  const auto named = NewContext(Load(*SerializePackage(model.package)), {.threads = 3});
  EXPECT_THAT(RunModel(*named, inputs, outputs).message(),
              HasSubstr("node '/embeddings/Gather': an index in the model's input 'ids' is out of "
                        "range; give indices within the tensor they look up (step 1, "));
  // The context is as good as before.
  inputs.ids[3] = 0;
  ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
  EXPECT_EQ(outputs, Expected(inputs));
}

TEST(Context, UnknownResultOfAPhaseIsAnError) {
  TestModel model = MakeTestModel();
  model.package.plan.kernels[1].phases[0].symbol = "test_broken";
  const auto context = NewContext(Load(*SerializePackage(model.package)), {.threads = 2});
  TestOutputs outputs = EmptyOutputs();
  const Status status = RunModel(*context, MakeInputs(1), outputs);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("test_broken"));
}

TEST(Context, RefusesBuffersThatDoNotFit) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 1});
  const TestInputs inputs = MakeInputs(1);
  TestOutputs outputs = EmptyOutputs();
  const InputBuffer x{inputs.x.data(), 140};
  const InputBuffer ids{inputs.ids.data(), 40};
  const std::vector<OutputBuffer> out = {{outputs.z.data(), 120},
                                         {outputs.last.data(), 24},
                                         {outputs.top.data(), 40},
                                         {outputs.places.data(), 80}};
  const auto message = [&](std::vector<InputBuffer> in, const std::vector<OutputBuffer>& o) {
    const Status status = context->Run(in, o);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(message({x}, out), HasSubstr("has 2 inputs, 1 were given"));
  EXPECT_THAT(message({x, {inputs.ids.data(), 32}}, out),
              HasSubstr("'ids' takes 40 bytes, 32 were given"));
  EXPECT_THAT(message({x, {nullptr, 40}}, out), HasSubstr("'ids' is a null pointer"));
  // In memory of their own: what begins at the last byte of 'z' reaches beyond it.
  std::vector<std::byte> room(256);
  std::vector<OutputBuffer> overlapping = out;
  overlapping[0].data = room.data();
  overlapping[1].data = room.data() + 119;
  EXPECT_THAT(message({x, ids}, overlapping),
              HasSubstr("output 'last' overlaps that of output 'z'"));
  overlapping[1].data = const_cast<float*>(inputs.x.data());
  EXPECT_THAT(message({x, ids}, overlapping),
              HasSubstr("output 'last' overlaps that of input 'x'"));
}

TEST(Context, ConcurrentContextsOfOneModelAndOfTwo) {
  const auto first = Load(MakeTestPackage());
  const auto second = Load(MakeTestPackage("cpu:avx2,threads=1", 3));
  std::vector<std::thread> callers;
  std::vector<int> wrong(4, 0);
  for (size_t caller = 0; caller < wrong.size(); ++caller) {
    callers.emplace_back([&, caller] {
      const auto context = NewContext(caller % 2 == 0 ? first : second, {.threads = 2});
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const TestInputs inputs = MakeInputs(100 * caller + seed);
        TestOutputs outputs = EmptyOutputs();
        if (!RunModel(*context, inputs, outputs).ok() || outputs != Expected(inputs))
          ++wrong[caller];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

TEST(Context, ConcurrentRunsOfOneContextTakeTurns) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 2});
  std::vector<std::thread> callers;
  std::vector<int> wrong(3, 0);
  for (size_t caller = 0; caller < wrong.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const TestInputs inputs = MakeInputs(100 * caller + seed);
        TestOutputs outputs = EmptyOutputs();
        if (!RunModel(*context, inputs, outputs).ok() || outputs != Expected(inputs))
          ++wrong[caller];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

TEST(Context, ModelLivesAsLongAsItsContexts) {
  auto context =
      NewContext(Load(MakeTestPackage()), {.threads = 2});  // nobody else holds the model
  TestOutputs outputs = EmptyOutputs();
  const TestInputs inputs = MakeInputs(3);
  ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
  EXPECT_EQ(outputs, Expected(inputs));
}

TEST(Context, StartsNoMoreThreadsThanSomeStepIsWorth) {
  TestModel model = MakeTestModel("cpu:avx2,threads=4", 4);
  const auto threads = [&] { return Load(*SerializePackage(model.package))->threads(); };
  EXPECT_EQ(threads(), 4);
  for (ir::PlanStep& step : model.package.plan.steps) step.threads = 1;
  EXPECT_EQ(threads(), 1);
  model.package.plan.steps[1].threads = 3;
  EXPECT_EQ(threads(), 3);
}

/// Makes the calls of a parallel_for one after the other, the last first if told so.
Executor OneByOne(bool* last_first) {
  return {.parallel_for =
              [](void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
                const bool last = *static_cast<const bool*>(self);
                for (int32_t i = 0; i < n; ++i) body(context, last ? n - 1 - i : i);
              },
          .self = last_first};
}

TEST(Context, JoinedPhasesTakeTurnsOnEachPart) {
  // Both compute row by row: the sums, then what is looked up.
  TestModel model = MakeTestModel();
  model.package.plan.joins = {{1, 0}};
  const auto executable = Load(*SerializePackage(model.package));
  const TestInputs inputs = MakeInputs(7);
  for (bool last_first : {false, true}) {
    for (const int threads : {1, 2, 3, 4}) {
      const auto context = NewContext(
          executable, {.threads = threads, .executor = OneByOne(&last_first), .poison = true});
      TestOutputs outputs = EmptyOutputs();
      ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
      EXPECT_EQ(outputs, Expected(inputs)) << threads << " threads";
    }
  }
}

TEST(Context, AJoinedPhaseThatStopsIsNamed) {
  TestModel model = MakeTestModel();
  model.package.plan.joins = {{1, 0}};
  const auto context = NewContext(Load(*SerializePackage(model.package)), {.threads = 2});
  TestInputs inputs = MakeInputs(1);
  inputs.ids[4] = -1;
  TestOutputs outputs = EmptyOutputs();
  const Status status = RunModel(*context, inputs, outputs);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("step 1"));
}

TEST(Context, OfBranchesThatStopTheFirstIsNamed) {
  TestModel model = MakeTestModel();
  ir::Plan& plan = model.package.plan;
  ir::PlanStep again = plan.steps[1];  // looks the same up, for nobody
  again.buffers.back() = static_cast<int32_t>(plan.buffers.size());
  plan.buffers.push_back({ir::PlanBufferKind::kArena, plan.arena_bytes, 120});
  plan.arena_bytes += 128;
  plan.steps.insert(plan.steps.begin() + 1, again);
  plan.forks = {{1, {1, 1}}};
  const std::string bytes = *SerializePackage(model.package);
  for (const int threads : {1, 2, 3}) {
    const auto context = NewContext(Load(bytes), {.threads = threads});
    TestInputs inputs = MakeInputs(1);
    TestOutputs outputs = EmptyOutputs();
    ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
    EXPECT_EQ(outputs, Expected(inputs));
    inputs.ids[4] = -1;
    const Status status = RunModel(*context, inputs, outputs);
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_THAT(status.message(), HasSubstr("step 1"));
  }
}

TEST(Context, ProfileHoldsATimeForEachStep) {
  class TickingClock final : public MonotonicClock {
   public:
    int64_t NowNs() const override { return now_ns_ += 10; }
    void SleepNs(int64_t) const override {}

   private:
    mutable int64_t now_ns_ = 0;
  };
  const TickingClock clock;
  TestModel model = MakeTestModel();
  model.package.plan.joins = {{1, 0}};
  const auto context =
      NewContext(Load(*SerializePackage(model.package)), {.threads = 1, .profile_clock = &clock});
  TestOutputs outputs = EmptyOutputs();
  ASSERT_TRUE(RunModel(*context, MakeInputs(1), outputs).ok());
  EXPECT_THAT(context->step_times_ns(), ::testing::ElementsAre(10, 10, 10, 10));
  // A step of a loop: all its repeats, of one run.
  const auto looped = NewContext(Load(*SerializePackage(MakeLoopedTestModel(1).package)),
                                 {.threads = 1, .profile_clock = &clock});
  ASSERT_TRUE(RunModel(*looped, MakeInputs(1), outputs).ok());
  ASSERT_TRUE(RunModel(*looped, MakeInputs(1), outputs).ok());
  EXPECT_THAT(looped->step_times_ns(), ::testing::ElementsAre(10, 10, 10, 10));
}

TEST(Context, WithoutProfileNoTimes) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 1});
  EXPECT_TRUE(context->step_times_ns().empty());
}

TEST(Context, CallersRoundingChangesNothingAndIsKept) {
  // 0x6000 rounds towards zero, 0x8040 flushes denormals.
  const unsigned before = _mm_getcsr();
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 2});
  TestInputs inputs = MakeInputs(1);
  for (float& x : inputs.x) x = x / 3 + 1e-40F;
  TestOutputs plain = EmptyOutputs();
  ASSERT_TRUE(RunModel(*context, inputs, plain).ok());
  TestOutputs odd = EmptyOutputs();
  _mm_setcsr(0x1f80 | 0x6000 | 0x8040);
  const Status status = RunModel(*context, inputs, odd);
  const unsigned after = _mm_getcsr() & 0xffc0;  // without the sticky flags
  _mm_setcsr(before);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(after, 0x1f80U | 0x6000 | 0x8040);
  EXPECT_EQ(plain, odd);
}

TEST(Context, RunsInAChildAfterForkToo) {
  const auto context = NewContext(Load(MakeTestPackage()), {.threads = 2});
  const TestInputs inputs = MakeInputs(1);
  TestOutputs outputs = EmptyOutputs();
  ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
  auto idle = NewContext(Load(MakeTestPackage()), {.threads = 2});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    idle.reset();  // its threads are not here and not waited for
    TestOutputs again = EmptyOutputs();
    const bool good = RunModel(*context, inputs, again).ok() && again == Expected(inputs) &&
                      context->threads() == 2;
    ::_exit(good ? 7 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 7);
  TestOutputs after = EmptyOutputs();
  ASSERT_TRUE(RunModel(*context, inputs, after).ok());
  EXPECT_EQ(after, Expected(inputs));
}

/// As different as executors can be: in turn on the calling thread, backwards, and on new threads.
void RunBodies(void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
  int& calls = *static_cast<int*>(self);
  if (++calls % 3 == 0) {
    std::vector<std::thread> threads;
    for (int32_t i = 0; i < n; ++i) threads.emplace_back(body, context, i);
    for (std::thread& thread : threads) thread.join();
    return;
  }
  for (int32_t i = 0; i < n; ++i) body(context, calls % 3 == 1 ? i : n - 1 - i);
}

TEST(Context, OutputsDependNeitherOnThreadsNorOnWhoLendsThem) {
  const TestInputs inputs = MakeInputs(3);
  const TestOutputs expected = Expected(inputs);
  auto pool = ThreadPool::Create({.threads = 8});
  ASSERT_TRUE(pool.ok());
  int calls = 0;
  TestModel forked = MakeTestModel("cpu:avx2,threads=8");
  forked.package.plan.forks = {{2, {1, 1}}};  // the scan beside TopK
  const std::string packages[] = {MakeTestPackage("cpu:avx2,threads=8"),
                                  *SerializePackage(forked.package)};
  for (int i = 2; i < 18; ++i) {
    const int threads = i / 2;
    const Executor executor{.parallel_for = &RunBodies, .self = &calls};
    const auto executable = Load(packages[i % 2]);
    const auto own = NewContext(executable, {.threads = threads, .spin_ns = 0});
    const auto shared = NewContext(executable, {.threads = threads, .pool = *pool});
    const auto fixed = NewContext(executable, {.threads = threads, .fixed_shares = true});
    const auto lent = NewContext(executable, {.threads = threads, .executor = executor});
    for (Context* context : {own.get(), shared.get(), fixed.get(), lent.get()}) {
      for (int run = 0; run < 20; ++run) {
        TestOutputs outputs = EmptyOutputs();
        ASSERT_TRUE(RunModel(*context, inputs, outputs).ok());
        ASSERT_EQ(outputs, expected) << threads << " threads";
      }
    }
  }
  EXPECT_GT(calls, 0);
}

TEST(Context, CopiesOfConstantsGiveTheSame) {
  // Every CPU on another of three nodes, of which this machine has one perhaps: placing is advice.
  std::vector<int> node_of_cpu;
  for (int cpu = 0; cpu < 256; ++cpu) node_of_cpu.push_back(cpu % 3);
  const std::string looped = *SerializePackage(MakeLoopedTestModel(1).package);
  for (const std::string& bytes : {MakeTestPackage(), looped}) {
    const auto executable = Load(bytes);
    for (const int threads : {1, 2, 4}) {
      const Context::Options options = {
          .threads = threads, .node_of_cpu = node_of_cpu, .poison = true};
      const auto context = NewContext(executable, options), other = NewContext(executable, options);
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        const TestInputs inputs = MakeInputs(seed);
        for (Context* each : {context.get(), other.get()}) {
          TestOutputs outputs = EmptyOutputs();
          ASSERT_TRUE(RunModel(*each, inputs, outputs).ok());
          EXPECT_EQ(outputs, Expected(inputs)) << threads << " threads, seed " << seed;
        }
      }
    }
  }
}

TEST(NodeCopies, HaveTheBytesOnceForEachNodeAndAreShared) {
  const std::string bytes(5000, 'x');
  const auto constants = std::as_bytes(std::span(bytes.data(), bytes.size()));
  NodeCopyShelf shelf;
  auto copies = shelf.Get(constants, {4, -1, 4, 0});
  ASSERT_TRUE(copies.ok()) << copies.status().ToString();
  ASSERT_EQ((*copies)->count(), 2);
  for (int copy = 0; copy < 2; ++copy) {
    EXPECT_EQ(std::memcmp((*copies)->data(copy), bytes.data(), bytes.size()), 0);
  }
  EXPECT_NE((*copies)->data(0), (*copies)->data(1));
  EXPECT_LT((*copies)->OfThisThread(), 2);
  EXPECT_EQ(shelf.Get(constants, {4, -1, 4, 0})->get(), copies->get());
}

TEST(Context, DefaultThreadsAreThePackagesAtMost) {
  const auto context = NewContext(Load(MakeTestPackage("cpu:avx2,threads=1")), {});
  EXPECT_EQ(context->threads(), 1);
}

// How many cores there are is for those to ask who make the context.
TEST(Context, DefaultThreadsAreThePackagesOnAnyMachine) {
  const auto executable = Load(MakeTestPackage("cpu:avx2,threads=300", 300));
  bool last_first = false;
  const auto context = NewContext(executable, {.executor = OneByOne(&last_first)});
  EXPECT_EQ(context->threads(), 300);
}

TEST(Context, APackageWithoutParallelPhasesWantsOneThread) {
  const auto executable = Load(MakeTestPackage("cpu:avx2,threads=2", 1));
  EXPECT_EQ(executable->threads(), 1);
  EXPECT_EQ(NewContext(executable, {})->threads(), 1);
  EXPECT_EQ(Load(MakeTestPackage("cpu:avx2,threads=2", 2))->threads(), 2);
}

TEST(Context, RefusesImpossibleThreads) {
  const auto executable = Load(MakeTestPackage());
  EXPECT_EQ(Context::Create(executable, {.threads = -1}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Context::Create(executable, {.threads = 5000}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hone::runtime::testing

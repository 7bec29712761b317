#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/versions.h"
#include "hone/hone.h"
#include "tests/runtime/child.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string bytes = MakeTestPackage();
    ASSERT_EQ(hone_model_open_memory(bytes.data(), bytes.size(), nullptr, &model_), HONE_OK)
        << hone_last_error();
  }
  void TearDown() override { hone_model_close(model_); }

  hone_status RunModel(hone_context* context, const TestInputs& inputs, TestOutputs& outputs) {
    TestBuffers<hone_input, hone_output> buffers(inputs, outputs);
    return hone_context_run(context, buffers.in, 2, buffers.out, 4);
  }

  /// Nothing: it could not be made; hone_last_error says why.
  hone_context* NewContext(int threads) {
    hone_context_options options;
    hone_context_options_init(&options);
    options.threads = threads;
    hone_context* context = nullptr;
    hone_context_create(model_, &options, &context);
    return context;
  }

  hone_model* model_ = nullptr;
};

TEST_F(CApi, DescribesTheModel) {
  EXPECT_STREQ(hone_version(), kProgramVersion);
  EXPECT_STREQ(hone_model_target(model_), "cpu:avx2,threads=2");
  EXPECT_STREQ(hone_model_device_class(model_), "a test's");
  ASSERT_EQ(hone_model_input_count(model_), 2U);
  ASSERT_EQ(hone_model_output_count(model_), 4U);
  const hone_tensor_info* ids = hone_model_input(model_, 1);
  EXPECT_STREQ(ids->name, "ids");
  EXPECT_EQ(ids->dtype, HONE_I64);
  EXPECT_EQ(ids->rank, 1);
  EXPECT_EQ(ids->shape[0], 5);
  EXPECT_EQ(ids->bytes, 40U);
  const hone_tensor_info* z = hone_model_output(model_, 0);
  EXPECT_STREQ(z->name, "z");
  EXPECT_EQ(z->dtype, HONE_F32);
  EXPECT_EQ((std::vector<int64_t>(z->shape, z->shape + z->rank)), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(hone_model_input(model_, 2), nullptr);
  EXPECT_EQ(hone_model_output(model_, 4), nullptr);
}

TEST_F(CApi, RunsAndProfiles) {
  hone_context_options options;
  hone_context_options_init(&options);
  options.threads = 2;
  options.pin = 1;
  options.profile = 1;
  options.poison = 1;
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model_, &options, &context), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_context_threads(context), 2);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    TestOutputs outputs = EmptyOutputs();
    const TestInputs inputs = MakeInputs(seed);
    ASSERT_EQ(RunModel(context, inputs, outputs), HONE_OK) << hone_last_error();
    EXPECT_EQ(outputs, Expected(inputs));
  }
  ASSERT_EQ(hone_context_step_count(context), 4U);
  hone_step_info step;
  ASSERT_EQ(hone_context_step(context, 1, &step), HONE_OK);
  EXPECT_EQ(step.is_kernel, 1);
  EXPECT_EQ(step.name, std::string(32, '2'));
  EXPECT_STREQ(step.rung, "nearest");
  EXPECT_STREQ(step.record_id, "fedcba9876543210fedcba9876543210");
  EXPECT_GT(step.time_ns, 0);
  ASSERT_EQ(hone_context_step(context, 3, &step), HONE_OK);
  EXPECT_EQ(step.is_kernel, 0);
  EXPECT_STREQ(step.name, "TopK");
  EXPECT_EQ(hone_context_step(context, 4, &step), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("step 4 of 4"));
  hone_context_destroy(context);
}

TEST_F(CApi, ContextOutlivesTheModelHandle) {
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model_, nullptr, &context), HONE_OK);
  hone_model_close(model_);
  model_ = nullptr;
  TestOutputs outputs = EmptyOutputs();
  const TestInputs inputs = MakeInputs(9);
  ASSERT_EQ(RunModel(context, inputs, outputs), HONE_OK);
  EXPECT_EQ(outputs, Expected(inputs));
  hone_step_info step;
  ASSERT_EQ(hone_context_step(context, 0, &step), HONE_OK);
  EXPECT_EQ(step.time_ns, -1);  // not asked for
  hone_context_destroy(context);
}

TEST_F(CApi, UsesMemoryInPlaceWhenAsked) {
  const std::string bytes = MakeTestPackage();
  std::vector<char> room(bytes.size() + 128);
  char* aligned = room.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) ++aligned;
  std::memcpy(aligned, bytes.data(), bytes.size());
  hone_model_options options;
  hone_model_options_init(&options);
  EXPECT_EQ(options.in_place, 0);
  options.in_place = 1;
  hone_model* model = nullptr;
  ASSERT_EQ(hone_model_open_memory(aligned, bytes.size(), &options, &model), HONE_OK)
      << hone_last_error();
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model, nullptr, &context), HONE_OK);
  TestOutputs outputs = EmptyOutputs();
  const TestInputs inputs = MakeInputs(3);
  ASSERT_EQ(RunModel(context, inputs, outputs), HONE_OK);
  EXPECT_EQ(outputs, Expected(inputs));
  hone_context_destroy(context);
  hone_model_close(model);
  EXPECT_EQ(hone_model_open_memory(aligned + 1, bytes.size(), &options, &model),
            HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("multiple of 64"));
}

TEST_F(CApi, ErrorsHaveCodeAndMessage) {
  hone_model* model = model_;
  EXPECT_EQ(hone_model_open("/nowhere/m.hone", nullptr, &model), HONE_NOT_FOUND);
  EXPECT_EQ(model, nullptr);
  EXPECT_THAT(hone_last_error(), HasSubstr("/nowhere/m.hone"));
  EXPECT_STREQ(hone_status_name(HONE_NOT_FOUND), "NOT_FOUND");
  EXPECT_EQ(hone_model_open(nullptr, nullptr, &model), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_model_open_memory("PK", 2, nullptr, &model), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_model_open_memory(nullptr, 2, nullptr, &model), HONE_INVALID_ARGUMENT);

  hone_context* context = nullptr;
  hone_context_options options;
  hone_context_options_init(&options);
  options.threads = -3;
  EXPECT_EQ(hone_context_create(model_, &options, &context), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
  ASSERT_EQ(hone_context_create(model_, nullptr, &context), HONE_OK);
  TestInputs inputs = MakeInputs(1);
  TestOutputs outputs = EmptyOutputs();
  inputs.ids[0] = -1;
  EXPECT_EQ(RunModel(context, inputs, outputs), HONE_OUT_OF_RANGE);
  EXPECT_THAT(hone_last_error(), HasSubstr("'ids'"));
  EXPECT_EQ(hone_context_run(context, nullptr, 2, nullptr, 4), HONE_INVALID_ARGUMENT);
  hone_context_destroy(context);
  hone_context_destroy(nullptr);
}

TEST_F(CApi, RunsOnTheCallersExecutorAndOnThreadsOfItsOwn) {
  hone_context_options lent, own;
  hone_context_options_init(&lent);
  hone_context_options_init(&own);
  int calls = 0;
  lent.threads = own.threads = 2;
  lent.executor = &calls;
  lent.parallel_for = [](void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
    ++*static_cast<int*>(self);
    for (int32_t i = n; i-- > 0;) body(context, i);
  };
  own.own_threads = 1;
  own.spin_us = 0;
  const TestInputs inputs = MakeInputs(4);
  for (const hone_context_options* options : {&lent, &own}) {
    hone_context* context = nullptr;
    ASSERT_EQ(hone_context_create(model_, options, &context), HONE_OK) << hone_last_error();
    TestOutputs outputs = EmptyOutputs();
    EXPECT_EQ(RunModel(context, inputs, outputs), HONE_OK) << hone_last_error();
    EXPECT_EQ(outputs, Expected(inputs));
    hone_context_destroy(context);
  }
  EXPECT_GT(calls, 0);
}

/// The threads of this process, once those that were joined have left: no more than `expected`, or
/// what there is after two seconds.
int AwaitThreads(int expected) {
  const SystemMonotonicClock clock;
  int threads = ThreadsOfThisProcess();
  for (int turn = 0; turn < 2000 && threads > expected; ++turn) {
    clock.SleepNs(1'000'000);
    threads = ThreadsOfThisProcess();
  }
  return threads;
}

TEST_F(CApi, NoMoreThreadsStartThanContextsAskFor) {
  const int cores = UsableCores();
  // Those of the test before may still be leaving.
  int before = 0;
  for (int now = ThreadsOfThisProcess(); now != before; now = ThreadsOfThisProcess()) {
    before = now;
    SystemMonotonicClock().SleepNs(10'000'000);
  }
  hone_context* const alone = NewContext(1);
  EXPECT_EQ(AwaitThreads(before), before);
  hone_context* const two = NewContext(2);
  EXPECT_EQ(AwaitThreads(before + 1), before + 1);
  // A second caller is the third thread that works, where there is a core for it.
  hone_context* const two_more = NewContext(2);
  const int with_two = before + std::max(2, std::min(4, cores)) - 1;
  EXPECT_EQ(AwaitThreads(with_two), with_two);
  hone_context* const many = NewContext(cores + 3);
  EXPECT_EQ(AwaitThreads(before + cores + 2), before + cores + 2);
  const TestInputs inputs = MakeInputs(2);
  for (hone_context* context : {alone, two, two_more, many}) {
    TestOutputs outputs = EmptyOutputs();
    EXPECT_EQ(RunModel(context, inputs, outputs), HONE_OK) << hone_last_error();
    EXPECT_EQ(outputs, Expected(inputs));
    hone_context_destroy(context);
  }
  EXPECT_EQ(AwaitThreads(before), before);
}

// As the pool that two contexts share grows, one of them runs.
TEST_F(CApi, ThreadsAreStartedWhileOthersRun) {
  hone_context* const running = NewContext(2);
  std::atomic<bool> done{false};
  const TestInputs inputs = MakeInputs(5);
  std::thread caller([&] {
    while (!done.load()) {
      TestOutputs outputs = EmptyOutputs();
      EXPECT_EQ(RunModel(running, inputs, outputs), HONE_OK);
      EXPECT_EQ(outputs, Expected(inputs));
    }
  });
  for (int threads = 2; threads <= 9; ++threads) {
    hone_context* const context = NewContext(threads);
    TestOutputs outputs = EmptyOutputs();
    EXPECT_EQ(RunModel(context, inputs, outputs), HONE_OK) << hone_last_error();
    EXPECT_EQ(outputs, Expected(inputs));
    hone_context_destroy(context);
  }
  done = true;
  caller.join();
  hone_context_destroy(running);
}

TEST_F(CApi, AProcessMayEndInMidRun) {
  for (int delay_us = 0; delay_us < 2000; delay_us += 100) {
    const int status = InChild([&] {
      hone_context* const context = NewContext(4);
      const TestInputs inputs = MakeInputs(5);
      std::atomic<int> runs{0};
      std::thread([&] {
        TestOutputs outputs = EmptyOutputs();
        for (;; ++runs) RunModel(context, inputs, outputs);
      }).detach();
      while (runs.load() < 3) std::this_thread::yield();
      SystemMonotonicClock().SleepNs(int64_t{1000} * delay_us);
      std::exit(7);
      return 0;
    });
    ASSERT_EQ(status, 7) << "after " << delay_us << " us";
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The children say by their status where they got to.
TEST_F(CApi, MemoryForAThreadThatIsRefusedIsAnErrorAndWhatRunsGoesOn) {
  const int status = InChild([&]() -> int {
    hone_context* const running = NewContext(2);
    if (running == nullptr) return 1;
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto bytes = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0) return 2;
    const rlimit before = limit;
    limit.rlim_cur = bytes;
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 3;
    if (NewContext(512) != nullptr) return 4;
    if (std::string(hone_last_error()).find("HONE_THREADS") == std::string::npos) return 5;
    const TestInputs inputs = MakeInputs(6);
    TestOutputs outputs = EmptyOutputs();
    if (RunModel(running, inputs, outputs) != HONE_OK || !(outputs == Expected(inputs))) return 6;
    if (::setrlimit(RLIMIT_AS, &before) != 0) return 7;
    hone_context* const later = NewContext(16);
    outputs = EmptyOutputs();
    if (later == nullptr || RunModel(later, inputs, outputs) != HONE_OK) return 8;
    hone_context_destroy(later);
    hone_context_destroy(running);
    return outputs == Expected(inputs) ? 0 : 9;
  });
  EXPECT_EQ(status, 0);
}
#endif

TEST_F(CApi, TheEnvironmentSetsDefaultsAndIsChecked) {
  hone_context* context = nullptr;
  ASSERT_EQ(::setenv("HONE_THREADS", "3", 1), 0);
  EXPECT_EQ(hone_context_create(model_, nullptr, &context), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_context_threads(context), 3);
  hone_context_destroy(context);
  ASSERT_EQ(::setenv("HONE_THREADS", "many", 1), 0);
  EXPECT_EQ(hone_context_create(model_, nullptr, &context), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("HONE_THREADS=many"));
  ::unsetenv("HONE_THREADS");
}

// A library that knows more options than the program leaves alone what lies behind the program's.
TEST_F(CApi, OptionsAreFilledAsFarAsTheCallersStructGoes) {
  hone_context_options options;
  std::memset(static_cast<void*>(&options), 0x55, sizeof(options));
  const hone_context_options untouched = options;
  hone_context_options_fill(&options, offsetof(hone_context_options, poison));
  EXPECT_EQ(options.struct_bytes, offsetof(hone_context_options, poison));
  EXPECT_EQ(options.profile, 0);
  EXPECT_EQ(options.poison, untouched.poison);
  EXPECT_EQ(options.spin_us, untouched.spin_us);
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model_, &options, &context), HONE_OK) << hone_last_error();
  hone_context_destroy(context);
  hone_context_options_init(&options);
  EXPECT_EQ(options.struct_bytes, sizeof(options));
  EXPECT_EQ(options.spin_us, -1);
  // The symbol that programs of before the function call has their struct's size.
  FillOlderContextOptions(&options);
  EXPECT_EQ(options.struct_bytes, 48U);
}

TEST_F(CApi, OptionsOfOtherVersionsAreHandled) {
  hone_context_options options;
  hone_context_options_init(&options);
  options.threads = 1;
  options.pin = 77;  // beyond what this caller's version knows
  options.struct_bytes = offsetof(hone_context_options, pin);
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model_, &options, &context), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_context_threads(context), 1);
  hone_context_destroy(context);
  options.struct_bytes = sizeof(options) + 8;
  EXPECT_EQ(hone_context_create(model_, &options, &context), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("newer library"));
  options.struct_bytes = 0;
  EXPECT_EQ(hone_context_create(model_, &options, &context), HONE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace hone::runtime::testing

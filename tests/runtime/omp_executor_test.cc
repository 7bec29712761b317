// A context within OpenMP: its threads are those of gcc's libgomp, which Hone knows nothing of.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "hone/hone.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

struct OpenMp {
  std::mutex mutex;
  std::set<pthread_t> callers;
  std::atomic<int> calls{0};

  static void ParallelFor(void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
    auto& openmp = *static_cast<OpenMp*>(self);
#pragma omp parallel for num_threads(3) schedule(static, 1)
    for (int32_t i = 0; i < n; ++i) {
      body(context, i);
      ++openmp.calls;
      const std::lock_guard<std::mutex> lock(openmp.mutex);
      openmp.callers.insert(::pthread_self());
    }
  }
};

#if !defined(__SANITIZE_THREAD__)  // which does not see how libgomp's threads wait
TEST(OpenMpExecutor, RunsAContextOfTheCApi) {
  const std::string bytes = MakeTestPackage("cpu:avx2,threads=3");
  hone_model* model = nullptr;
  ASSERT_EQ(hone_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), HONE_OK)
      << hone_last_error();
  OpenMp openmp;
  hone_context_options options;
  hone_context_options_init(&options);
  options.threads = 3;
  options.parallel_for = &OpenMp::ParallelFor;
  options.executor = &openmp;
  hone_context* context = nullptr;
  ASSERT_EQ(hone_context_create(model, &options, &context), HONE_OK) << hone_last_error();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const TestInputs inputs = MakeInputs(seed);
    TestOutputs outputs = EmptyOutputs();
    TestBuffers<hone_input, hone_output> buffers(inputs, outputs);
    ASSERT_EQ(hone_context_run(context, buffers.in, 2, buffers.out, 4), HONE_OK)
        << hone_last_error();
    ASSERT_EQ(outputs, Expected(inputs)) << "seed " << seed;
  }
  EXPECT_GE(openmp.calls.load(), 3);
  EXPECT_EQ(openmp.callers.size(), 3U) << "it had three threads";
  hone_context_destroy(context);
  hone_model_close(model);
}
#endif

}  // namespace
}  // namespace hone::runtime::testing

#include "compiler/thread_choice.h"

#include "gtest/gtest.h"

namespace hone::compiler {
namespace {

ir::Target TargetOf(const std::string& text) {
  ir::Target target;
  std::string error;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &error)) << error;
  return target;
}

TEST(WorthThreads, SmallKernelsRunOnTheCaller) {
  const ir::Target target = TargetOf("cpu:avx512,threads=64");
  EXPECT_EQ(WorthThreads({}, target), 1);
  EXPECT_EQ(WorthThreads({.operations = {2000}, .bytes = 8000}, target), 1);
  EXPECT_EQ(WorthThreads({.operations = {1e9}, .bytes = 1e6}, target), 64);
}

TEST(WorthThreads, EachThreadHasAShare) {
  const ir::Target target = TargetOf("cpu:avx512,threads=64");
  int32_t before = 1;
  for (double bytes = 1000; bytes < 1e7; bytes *= 1.5) {
    const int32_t threads = WorthThreads({.bytes = bytes}, target);
    EXPECT_GE(threads, before);
    if (threads > 1) {
      EXPECT_GE(bytes / threads, 32'000);
    }
    before = threads;
  }
  EXPECT_EQ(before, 64);
  EXPECT_EQ(WorthThreads({.operations = {1e9}, .bytes = 1e6}, TargetOf("cpu:avx512,threads=2")), 2);
}

}  // namespace
}  // namespace hone::compiler

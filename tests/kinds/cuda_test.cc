#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/cuda/cuda_code.h"
#include "ir/cuda/cuda_driver.h"
#include "ir/cuda/cuda_target.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Target Parsed(std::string_view text) {
  Target target;
  std::string error;
  EXPECT_TRUE(ParseTarget(text, &target, &error)) << error;
  return target;
}

std::string Refused(std::string_view text) {
  Target target;
  std::string error;
  EXPECT_FALSE(ParseTarget(text, &target, &error)) << text;
  return error;
}

TEST(CudaTarget, TableGivesACardOfTheChip) {
  const Target target = Parsed("cuda:sm_90a");
  EXPECT_EQ(target.text, "cuda:sm_90a");
  EXPECT_EQ(target.kind, "cuda");
  EXPECT_EQ(target.family, "cuda:sm_90a");
  EXPECT_EQ(target.threads, 1);
  const auto& card = target.As<CudaTarget>();
  EXPECT_EQ(card.chip, "sm_90a");
  EXPECT_EQ(card.multiprocessors, 132);
  EXPECT_EQ(card.block_shared_bytes, 227 << 10);
  EXPECT_TRUE(card.exact);
  EXPECT_EQ(PackageBits(target), kIsaCuda);
}

TEST(CudaTarget, BadPartsAreNamed) {
  EXPECT_THAT(Refused("cuda:sm_70"), HasSubstr("unknown chip 'sm_70'; accepted: cuda:sm_80|"));
  EXPECT_THAT(Refused("cuda:sm_80,threads=2"), HasSubstr("a GPU has no options"));
  EXPECT_THAT(Refused("cuda:native"), HasSubstr("'native' m"));
}

TEST(CudaTarget, CodeOfAnExactChipRunsThereAlone) {
  const auto covers = [](const char* device, const char* code) {
    return Covers(Parsed(device), Parsed(code));
  };
  EXPECT_TRUE(covers("cuda:sm_90a", "cuda:sm_90a"));
  EXPECT_TRUE(covers("cuda:sm_90a", "cuda:sm_80"));
  EXPECT_TRUE(covers("cuda:sm_89", "cuda:sm_86"));
  EXPECT_FALSE(covers("cuda:sm_80", "cuda:sm_86"));
  EXPECT_FALSE(covers("cuda:sm_100a", "cuda:sm_90a"));
  EXPECT_FALSE(covers("cuda:sm_90a", "cpu:avx2"));
  EXPECT_FALSE(covers("cpu:avx2", "cuda:sm_80"));
}

TEST(CudaTarget, AMachineWithoutADriverSaysWhatToInstall) {
  std::string why;
  if (CudaCapability(&why) != 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(ResolveNative("cuda:native", 2), "cuda:native");
  EXPECT_THAT(Refused("cuda:native"), HasSubstr("'native' means this machine's GPU, and "));
  EXPECT_FALSE(HostCanRun(Parsed("cuda:sm_80"), &why));
  EXPECT_THAT(why, HasSubstr("needs a GPU of compute capability 8.0 or above, and "));
}

TEST(CudaCode, ModulesComeBack) {
  const std::string bytes = PackCudaModules({".version 8.0", "",
                                             std::string("\x7f"
                                                         "ELF\0",
                                                         5)});
  std::vector<std::string_view> modules;
  ASSERT_TRUE(UnpackCudaModules(bytes, &modules));
  EXPECT_THAT(modules, ElementsAre(".version 8.0", "",
                                   std::string_view("\x7f"
                                                    "ELF\0",
                                                    5)));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(UnpackCudaModules(std::string_view(bytes).substr(0, size), &modules)) << size;
  }
  EXPECT_FALSE(UnpackCudaModules(bytes + "x", &modules));
  EXPECT_FALSE(UnpackCudaModules("HONECUDA\xff\xff\xff\xff\xff\xff\xff\xff", &modules));
}

}  // namespace
}  // namespace hone::ir

#include "ir/narrow_target.h"

#include <string>

#include "gtest/gtest.h"

#include "ir/text.h"

namespace hone::ir {
namespace {

constexpr char kAll[] = "cpu:avx512+vnni+bf16,threads=2";

Workload Copy(const std::string& type) {
  auto workload = ParseWorkload("workload 1\nx0: " + type + "[4] input range(0,1)\ns0: " + type +
                                "[4] output = x0[i0]\n");
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

Target Parsed(const std::string& text) {
  Target target;
  std::string error;
  EXPECT_TRUE(ParseTarget(text, &target, &error)) << error;
  return target;
}

TEST(NarrowedTo, KeepsWhatTheDtypesCanUse) {
  EXPECT_EQ(NarrowedTo(Parsed(kAll), Copy("f32")).text, "cpu:avx512,threads=2");
  EXPECT_EQ(NarrowedTo(Parsed(kAll), Copy("u8")).text, "cpu:avx512+vnni,threads=2");
  EXPECT_EQ(NarrowedTo(Parsed(kAll), Copy("bf16")).text, "cpu:avx512+bf16,threads=2");
  EXPECT_EQ(NarrowedTo(Parsed("cpu:avx2+vnni,threads=1"), Copy("i32")).text, "cpu:avx2,threads=1");
  EXPECT_EQ(NarrowedTo(Parsed("cpu:avx2,threads=1"), Copy("i8")).text, "cpu:avx2,threads=1");
}

TEST(NarrowedTo, KeepsTilesForBytesAndForBf16) {
  const Target all = Parsed("cpu:avx512+vnni+bf16+amx,threads=2");
  EXPECT_EQ(NarrowedTo(all, Copy("f32")).text, "cpu:avx512,threads=2");
  EXPECT_EQ(NarrowedTo(all, Copy("u8")).text, "cpu:avx512+vnni+amx,threads=2");
  EXPECT_EQ(NarrowedTo(all, Copy("bf16")).text, "cpu:avx512+bf16+amx,threads=2");
}

// A model's package asks for what any of its kernels uses.
TEST(NarrowedTo, OfSeveralKeepsWhatAnyCanUse) {
  const Workload bytes = Copy("i8"), floats = Copy("f32");
  EXPECT_EQ(NarrowedTo(Parsed(kAll), {&floats, &bytes}).text, "cpu:avx512+vnni,threads=2");
  EXPECT_EQ(NarrowedTo(Parsed(kAll), {&floats}).text, "cpu:avx512,threads=2");
  EXPECT_EQ(NarrowedTo(Parsed(kAll), std::vector<const Workload*>{}).text, "cpu:avx512,threads=2");
}

}  // namespace
}  // namespace hone::ir

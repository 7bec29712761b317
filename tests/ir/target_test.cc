#include "ir/target.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/cpu/cpu_target.h"

namespace hone::ir {
namespace {

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

/// What the CPU's table says of a target's text.
CpuTarget Cpu(std::string_view text) { return Parsed(text).As<CpuTarget>(); }

TEST(TargetTest, TableGivesTheMachineOfAnIsa) {
  const CpuTarget avx2 = Cpu("cpu:avx2,threads=4");
  EXPECT_EQ(avx2.llvm_cpu, "x86-64-v3");
  EXPECT_EQ(avx2.lanes, 8);
  EXPECT_EQ(avx2.registers, 16);
  EXPECT_EQ(avx2.l2_bytes, 512 << 10);
  const CpuTarget avx512 = Cpu("cpu:avx512");
  EXPECT_EQ(avx512.llvm_cpu, "x86-64-v4");
  EXPECT_EQ(avx512.llvm_features, "-prefer-256-bit");
  EXPECT_EQ(avx512.lanes, 16);
  EXPECT_EQ(avx512.registers, 32);
  EXPECT_EQ(avx512.l2_bytes, 1 << 20);
  EXPECT_EQ(avx512.l1_bytes, 32 << 10);
  EXPECT_EQ(avx512.l3_bytes, 16 << 20);
}

TEST(TargetTest, TextIsNormalised) {
  EXPECT_EQ(Parsed("cpu:avx2").text, "cpu:avx2,threads=1");
  const Target target = Parsed("cpu:avx512+bf16+vnni,threads=2");
  EXPECT_EQ(target.text, "cpu:avx512+vnni+bf16,threads=2");
  EXPECT_EQ(target.kind, "cpu");
  EXPECT_EQ(target.family, "cpu:avx512+vnni+bf16");
  EXPECT_EQ(target.threads, 2);
  EXPECT_EQ(Cpu("cpu:avx512+bf16+vnni").llvm_features, "-prefer-256-bit,+avx512vnni,+avx512bf16");
  EXPECT_EQ(Cpu("cpu:avx2+vnni").llvm_features, "+avxvnni");
  EXPECT_EQ(Parsed("cpu:avx512+amx+bf16+vnni").text, "cpu:avx512+vnni+bf16+amx,threads=1");
  EXPECT_EQ(Cpu("cpu:avx512+amx").llvm_features, "-prefer-256-bit,+amx-tile,+amx-int8,+amx-bf16");
}

TEST(TargetTest, ADeviceCoversWhatHasNoMoreInstructions) {
  const auto covers = [](const char* device, const char* code) {
    return Covers(Parsed(device), Parsed(code));
  };
  EXPECT_FALSE(covers("cpu:avx512+vnni", "cpu:avx2+vnni")) << "AVX-VNNI is another extension";
  EXPECT_TRUE(covers("cpu:avx2+vnni", "cpu:avx2+vnni"));
  EXPECT_TRUE(covers("cpu:avx512+vnni+bf16", "cpu:avx512"));
  EXPECT_FALSE(covers("cpu:avx2+vnni", "cpu:avx512"));
  EXPECT_FALSE(covers("cpu:avx512", "cpu:avx512+vnni"));
  EXPECT_FALSE(covers("cpu:avx512+vnni", "cpu:avx512+bf16"));
  EXPECT_FALSE(covers("cpu:avx512+vnni", "cpu:avx512+vnni+amx"));
  EXPECT_TRUE(covers("cpu:avx512+vnni+amx", "cpu:avx512+vnni"));
}

TEST(TargetTest, ThePackageSaysWhichInstructionsItsCodeNeeds) {
  EXPECT_EQ(PackageBits(Parsed("cpu:avx2")), kIsaAvx2);
  EXPECT_EQ(PackageBits(Parsed("cpu:avx512+vnni+bf16")),
            kIsaAvx2 | kIsaAvx512 | kIsaVnni | kIsaBf16);
  EXPECT_EQ(PackageBits(Parsed("cpu:avx512+amx")), kIsaAvx2 | kIsaAvx512 | kIsaAmx);
}

TEST(TargetTest, BadPartsAreNamed) {
  EXPECT_NE(Refused("cpu:avx3").find("'avx3'"), std::string::npos);
  EXPECT_NE(Refused("gpu").find("cpu:"), std::string::npos);
  EXPECT_NE(Refused("cpu:native").find("resolved"), std::string::npos);
  EXPECT_NE(Refused("cpu:avx2+tpu").find("'+tpu'"), std::string::npos);
  EXPECT_NE(Refused("cpu:avx2+amx").find("+amx needs avx512"), std::string::npos);
  EXPECT_NE(Refused("cpu:avx2+bf16").find("needs avx512"), std::string::npos);
  for (const char* bad : {"cpu:avx2,threads=0", "cpu:avx2,threads=", "cpu:avx2,threads=2x",
                          "cpu:avx2,threads=99999999999", "cpu:avx2,threads=-1"}) {
    EXPECT_NE(Refused(bad).find("1 to 1024"), std::string::npos) << bad;
  }
  EXPECT_NE(Refused("cpu:avx2,cores=3").find("cores=3"), std::string::npos);
  EXPECT_NE(Refused("cpu:avx512+vnni+vnni").find("repeated"), std::string::npos);
}

TEST(TargetTest, CodeThatACpuCannotRunIsExplained) {
  const CpuFeatures old = {.avx2 = true}, wide = {.avx2 = true, .avx512 = true};
  Target bf16, plain;
  std::string why;
  ASSERT_TRUE(ParseTarget("cpu:avx512+bf16,threads=2", &bf16, &why)) << why;
  ASSERT_TRUE(ParseTarget("cpu:avx512,threads=2", &plain, &why)) << why;
  EXPECT_EQ(WhyNotOn(wide, plain), "");
  EXPECT_EQ(WhyNotOn(wide, bf16),
            "code for cpu:avx512+bf16,threads=2 needs AVX512-BF16, which this host (avx512) does "
            "not have; code for a target without +bf16 multiplies in f32");
  EXPECT_EQ(WhyNotOn(old, bf16),
            "code for cpu:avx512+bf16,threads=2 needs AVX-512 (F, BW, CD, DQ, VL), which this host "
            "(avx2) does not have; compile the model for --target cpu:avx2");
  EXPECT_EQ(WhyNotOn({}, Parsed("cpu:avx2,threads=2")),
            "code for cpu:avx2,threads=2 needs AVX2 with FMA and BMI2, which this host (older than "
            "avx2) does not have; use a CPU of 2013 or later, or let the virtual machine pass its "
            "CPU's features through");
}

TEST(TargetTest, CodeWithTilesNeedsTheKernelsLeave) {
  const Target tiles = Parsed("cpu:avx512+vnni+amx,threads=2");
  CpuFeatures host = {.avx2 = true, .avx512 = true, .avx512_vnni = true};
  EXPECT_EQ(WhyNotOn(host, tiles),
            "code for cpu:avx512+vnni+amx,threads=2 needs AMX (tiles, int8, bf16), with the "
            "kernel's leave to use it, which this host (avx512) does not have; code for a target "
            "without +amx multiplies in vectors");
  host.amx = true;
  EXPECT_EQ(WhyNotOn(host, tiles), "");
}

TEST(TargetTest, NativeResolvesToWhatTheHostCanRun) {
  const std::string text = ResolveNative("cpu:native", 3);
  const Target target = Parsed(text);
  EXPECT_EQ(target.threads, 3);
  std::string why;
  EXPECT_TRUE(HostCanRun(target, &why)) << why;
  EXPECT_EQ(ResolveNative("cpu:avx2,threads=5", 3), "cpu:avx2,threads=5");
  EXPECT_EQ(ResolveNative("cpu:avx2", 3), "cpu:avx2,threads=3");
}

}  // namespace
}  // namespace hone::ir

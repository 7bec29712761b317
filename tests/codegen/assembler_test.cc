#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "codegen/cuda/assemble.h"
#include "tests/codegen/assemblers.h"

// NVIDIA's assembler: what its log says, and where there is one, that it takes what we give it.
namespace hone::codegen {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// ptxas 13.0.88 --verbose, as it wrote it: two kernels, one with -maxrregcount 24.
constexpr char kSpilled[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'plain' for 'sm_80'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 21.710 ms
ptxas info    : Compiling entry function 'spilled' for 'sm_80'
ptxas info    : Function properties for spilled
    288 bytes stack frame, 800 bytes spill stores, 848 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers, 288 bytes cumulative stack size, 364 bytes
ptxas info    : Compile time = 14.592 ms
)";

// The same program on code that touches an accumulator between wgmma and its wait.
constexpr char kSerialised[] =
    "ptxas info    : (C7517) warpgroup.wait is injected in around line 14 by compiler to allow use "
    "of registers defined by GMMA in function 'wg'\n"
    R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'wg' for 'sm_90a'
ptxas info    : Function properties for wg
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
)";

// ... and on code that gives registers away without having said how many it has.
constexpr char kIgnored[] =
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
    "register count at entry.\n";

TEST(AssemblerLogTest, TellsWhatEachKernelUses) {
  const AssemblerLog log = ParseAssemblerLog(kSpilled);
  ASSERT_EQ(log.kernels.size(), 2u);
  const KernelUsage* plain = log.Find("plain");
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->registers, 10);
  EXPECT_EQ(plain->barriers, 1);
  EXPECT_EQ(plain->shared_bytes, 256);
  EXPECT_EQ(plain->stack_bytes, 0);
  EXPECT_EQ(plain->spill_store_bytes, 0);
  const KernelUsage* spilled = log.Find("spilled");
  ASSERT_NE(spilled, nullptr);
  EXPECT_EQ(spilled->registers, 24);
  EXPECT_EQ(spilled->stack_bytes, 288);
  EXPECT_EQ(spilled->spill_store_bytes, 800);
  EXPECT_EQ(spilled->spill_load_bytes, 848);
  EXPECT_EQ(spilled->shared_bytes, 0);
  EXPECT_EQ(log.Find("other"), nullptr);
  EXPECT_THAT(AssemblerRefusal(log),
              HasSubstr("spills registers of 'spilled': 800 bytes stored, 848 loaded"));
}

TEST(AssemblerLogTest, RefusesSerialisedAndIgnoredInstructions) {
  const AssemblerLog serialised = ParseAssemblerLog(kSerialised);
  ASSERT_EQ(serialised.messages.size(), 1u);
  EXPECT_EQ(serialised.messages[0].code, "C7517");
  EXPECT_THAT(AssemblerRefusal(serialised), HasSubstr("C7517: warpgroup.wait is injected"));
  ASSERT_EQ(serialised.kernels.size(), 1u);
  EXPECT_EQ(serialised.kernels[0].registers, 30);
  EXPECT_THAT(AssemblerRefusal(ParseAssemblerLog(kIgnored)), HasSubstr("'setmaxnreg' ignored"));
}

TEST(AssemblerLogTest, PassesOverWhatItDoesNotKnow) {
  EXPECT_TRUE(ParseAssemblerLog("").kernels.empty());
  const AssemblerLog log = ParseAssemblerLog(
      "Used 7 registers\n(C\n(Cx)\n(C12a) no\nptxas warning : (C7999)\n"
      "Compiling entry function 'k' for 'sm_80'\nUsed 99999999999999999999 registers, (see C)\n");
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].code, "C7999");
  EXPECT_EQ(log.messages[0].text, "");
  ASSERT_EQ(log.kernels.size(), 1u);
  EXPECT_EQ(log.kernels[0].registers, 0);
  EXPECT_EQ(AssemblerRefusal(log), "");
}

std::string Ptx(const std::string& chip, const std::string& body) {
  return ".version 8.0\n.target " + chip +
         "\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n"
         ".reg .b32 %r<3>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n" +
         body + "st.global.u32 [%rd1], %r1;\nret;\n}\n";
}

class AssemblerTest : public testing::Test {
 protected:
  SystemMonotonicClock clock_;
  const std::vector<std::unique_ptr<Assembler>> assemblers_ = AssemblersHere(clock_);
};

TEST_F(AssemblerTest, MakesCodeForEachChip) {
  if (assemblers_.empty()) GTEST_SKIP() << kNoAssembler;
  for (const auto& assembler : assemblers_) {
    SCOPED_TRACE(assembler->version());
    for (const char* chip : {"sm_80", "sm_90a", "sm_100a"}) {
      const auto made = assembler->Assemble(Ptx("sm_80", ""), chip);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_THAT(made->cubin, StartsWith("\x7f"
                                          "ELF"));
      const KernelUsage* usage = made->log.Find("k");
      ASSERT_NE(usage, nullptr);
      EXPECT_GT(usage->registers, 0);
      EXPECT_LT(usage->registers, 32);
      EXPECT_EQ(usage->spill_store_bytes, 0);
    }
  }
}

TEST_F(AssemblerTest, RefusesWithItsOwnWords) {
  if (assemblers_.empty()) GTEST_SKIP() << kNoAssembler;
  for (const auto& assembler : assemblers_) {
    SCOPED_TRACE(assembler->version());
    const auto wrong = assembler->Assemble(Ptx("sm_80", "mov.u32 %r2, %nope;\n"), "sm_80");
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("%nope"));
    // Code for 9.0 alone, for a chip of before.
    const auto chip = assembler->Assemble(Ptx("sm_90a", ""), "sm_80");
    EXPECT_EQ(chip.status().code(), absl::StatusCode::kInvalidArgument) << chip.status();
  }
}

TEST_F(AssemblerTest, TellsOfIgnoredRequestsForRegisters) {
  if (assemblers_.empty()) GTEST_SKIP() << kNoAssembler;
  for (const auto& assembler : assemblers_) {
    SCOPED_TRACE(assembler->version());
    const auto made =
        assembler->Assemble(Ptx("sm_90a", "setmaxnreg.dec.sync.aligned.u32 24;\n"), "sm_90a");
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT(AssemblerRefusal(made->log), HasSubstr("setmaxnreg"));
  }
}

TEST(PtxasTest, RefusesAnotherProgram) {
  const SystemMonotonicClock clock;
  const auto missing = PtxasAssembler("/nowhere/ptxas", clock);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound) << missing.status();
  const auto other = PtxasAssembler("/bin/true", clock);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("not NVIDIA's assembler"));
}

}  // namespace
}  // namespace hone::codegen

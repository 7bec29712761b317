// Kept winners: what the machine executes in their innermost loops.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "ir/target.h"
#include "ir/text.h"
#include "schedule/lower.h"
#include "schedule/space.h"
#include "schedule/trace.h"
#include "tests/test_paths.h"
#include "tests/traces/hot_loops.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using testing::HotLoop;
using testing::HotLoops;
using ::testing::IsEmpty;
using ::testing::StrEq;

/// A file NAME.ISA.trace of this folder and the register tiles of its innermost loops, as its Trace
/// asks for them: accumulators, and reduce steps unrolled in one iteration.
struct Winner {
  const char* name;
  const char* isa;
  std::set<std::pair<int, int>> tiles;
};

const Winner kWinners[] = {
    // Rows of 6 and 5 (two sizes) by 4 vectors; AVX2 has half the registers: by 2.
    {"gemm_512", "avx512", {{24, 1}, {20, 1}}},
    {"gemm_512", "avx2", {{12, 1}, {10, 1}}},
    {"gemm_49x512x4608", "avx512", {{24, 1}, {20, 1}}},
    {"gemm_49x512x4608", "avx2", {{12, 1}, {10, 1}}},
    // 14 pixels by 2 vectors; AVX2: 6 and 5 pixels (two sizes).
    {"conv_64_56_tile_pad", "avx512", {{28, 1}}},
    {"conv_64_56_tile_pad", "avx2", {{12, 1}, {10, 1}}},
    // At the borders one pixel of the 14 lies in the padding of the outermost column.
    {"conv_64_56_peeled", "avx512", {{28, 1}, {26, 1}}},
    // 7 pixels by 2 vectors, all 9 taps unrolled; AVX2: 7 pixels by 1.
    {"depthwise_32_112_tile_pad", "avx512", {{14, 9}}},
    {"depthwise_32_112_tile_pad", "avx2", {{7, 9}}},
    {"depthwise_32_112_peeled", "avx512", {{14, 9}}},
    // Found by bench-kernels from an empty log within 64 candidates (--write-traces). Not kept:
    // depthwise ones whose pixels at borders leave out taps, so that accumulators differ.
    {"gemm_512_512_512", "avx512", {{16, 1}, {20, 1}}},
    {"gemm_1024_1024_1024", "avx512", {{20, 1}, {24, 1}}},
    {"gemm_128_768_768", "avx512", {{24, 1}, {26, 1}}},
    {"gemm_128_3072_768", "avx512", {{16, 1}, {20, 1}}},
    {"conv_64_56", "avx512", {{26, 1}, {28, 1}}},
    {"conv_128_28", "avx512", {{26, 1}, {28, 1}}},
    {"conv_256_14", "avx512", {{13, 1}, {14, 1}}},
    {"conv_512_7", "avx512", {{12, 1}, {14, 1}}},
    {"conv1_64_256", "avx512", {{4, 1}, {5, 1}}},
    {"conv1_256_64", "avx512", {{8, 1}}},
    {"conv1_1024_256", "avx512", {{7, 1}}},
    {"dw_32_112", "avx512", {{14, 9}}},
};

void PrintTo(const Winner& w, std::ostream* out) { *out << w.name << " for " << w.isa; }

std::string FileOf(const Winner& w) { return std::string(w.name) + "." + w.isa + ".trace"; }
std::string Folder() { return testing::SourceDir() + "/tests/traces"; }

absl::StatusOr<std::string> AssemblyOf(const std::string& text, const ir::Target& target) {
  const size_t cut = text.find("\n---\n");
  if (cut == std::string::npos) return absl::InvalidArgumentError("no line --- after the workload");
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text.substr(0, cut + 1)));
  HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, schedule::ParseTrace(text.substr(cut + 5)));
  HONE_ASSIGN_OR_RETURN(const schedule::Lowered lowered,
                        schedule::LowerTrace(workload, trace, target, {}, "kernel"));
  return codegen::Assembly({&lowered.nest}, target);
}

class TracesTest : public ::testing::TestWithParam<Winner> {};

TEST_P(TracesTest, InnermostLoopsDoNothingButTheWork) {
  const Winner& w = GetParam();
  std::ifstream in(Folder() + "/" + FileOf(w));
  std::stringstream text;
  text << in.rdbuf();
  ir::Target target;
  std::string error;
  ASSERT_TRUE(ir::ParseTarget(std::string("cpu:") + w.isa + ",threads=1", &target, &error))
      << error;
  const auto assembly = AssemblyOf(text.str(), target);
  ASSERT_TRUE(assembly.ok()) << assembly.status();

  const bool wide = target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512;
  const std::vector<HotLoop> loops = HotLoops(*assembly, wide ? "zmm" : "ymm");
  std::set<std::pair<int, int>> tiles;
  for (const HotLoop& loop : loops) {
    EXPECT_THAT(loop.faults, IsEmpty());
    // One multiply-add for each accumulator and step: no accumulator has more than another.
    const int steps = loop.steps_of.begin()->second;
    for (const auto& [accumulator, count] : loop.steps_of) EXPECT_EQ(count, steps) << accumulator;
    tiles.emplace(static_cast<int>(loop.steps_of.size()), steps);
  }
  EXPECT_EQ(tiles, w.tiles);
  if (HasFailure()) std::printf("%s\n", assembly->c_str());
}

INSTANTIATE_TEST_SUITE_P(Kept, TracesTest, ::testing::ValuesIn(kWinners), [](const auto& instance) {
  return std::string(instance.param.name) + "_" + instance.param.isa;
});

// Whatever tile the search takes for a product, its sums stay in registers: a Space holds no tile
// for which LLVM would store one to the stack in each step.
TEST(SpaceTilesTest, NoTileOfAProductStoresToTheStack) {
  const auto workload = ir::ParseWorkload(
      "workload 1\nx0: f32[49,512] input range(-1,1)\nx1: f32[512,2048] constant\n"
      "x2: f32[2048] constant\n"
      "s0: f32[49,2048] = sum[r0:512] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[49,2048] output = max(s0[i0, i1] + x2[i1], 0.0)\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  for (const auto& [isa, full] : {std::pair("avx2", "ymm"), std::pair("avx512", "zmm")}) {
    ir::Target target;
    std::string error;
    ASSERT_TRUE(ir::ParseTarget(std::string("cpu:") + isa + ",threads=1", &target, &error))
        << error;
    const schedule::Space space(*workload, target, ir::AccuracyClass::kDefault);
    const auto& tiles = space.sketches()[0].tables[0].rows;
    for (size_t row = 0; row < tiles.size(); ++row) {
      SCOPED_TRACE(std::string(isa) + " " + std::to_string(tiles[row][0]) + " by " +
                   std::to_string(tiles[row][1]));
      schedule::Candidate candidate{0, std::vector<int>(space.sketches()[0].tables.size(), 0)};
      candidate.rows[0] = static_cast<int>(row);
      const auto trace = space.TraceOf(space.IdOf(candidate));
      ASSERT_TRUE(trace.ok()) << trace.status();
      const auto assembly = AssemblyOf(ToText(*workload) + "---\n" + ToText(*trace), target);
      ASSERT_TRUE(assembly.ok()) << assembly.status();
      const std::vector<HotLoop> loops = HotLoops(*assembly, full);
      EXPECT_FALSE(loops.empty());
      for (const HotLoop& loop : loops) EXPECT_THAT(loop.faults, IsEmpty());
    }
  }
}

// A Trace that is added must be read, too.
TEST(TracesListTest, NamesEveryFile) {
  std::set<std::string> files, named;
  for (const auto& file : std::filesystem::directory_iterator(Folder())) {
    if (file.path().extension() == ".trace") files.insert(file.path().filename().string());
  }
  for (const Winner& w : kWinners) named.insert(FileOf(w));
  EXPECT_EQ(named, files);
}

// The reader of loops itself, against text written by hand.
constexpr char kOneLoop[] =
    "f:\n"
    "\tvmovups\tzmmword ptr [rsp + 8], zmm3\n"  // outside of any loop
    ".LBB0_1:\n"
    "\tmov\trax, rdi\n"
    ".LBB0_2:\n"
    "\tvbroadcastss\tzmm24, dword ptr [rdi]\n"
    "\tvfmadd231ps\tzmm0, zmm24, zmmword ptr [rsi]\n"
    "\tvfmadd231ps\tzmm1, zmm24, zmmword ptr [rsp + 64]\n"  // reads the stack
    "\tcmp\tqword ptr [rsp], 5\n"
    "\tjl\t.LBB0_2\n"
    "\tjmp\t.LBB0_1\n";

TEST(HotLoopsTest, ReadsTheInnermostLoopOnly) {
  const std::vector<HotLoop> loops = HotLoops(kOneLoop, "zmm");
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].steps_of, (std::map<std::string, int>{{"zmm0", 1}, {"zmm1", 1}}));
  EXPECT_THAT(loops[0].faults, IsEmpty());
}

std::vector<std::string> FaultsWith(const std::string& instruction) {
  std::string text = kOneLoop;
  text.insert(text.find("\tcmp"), "\t" + instruction + "\n");
  return HotLoops(text, "zmm").at(0).faults;
}

TEST(HotLoopsTest, ReportsWhatSlowsALoopDown) {
  EXPECT_THAT(FaultsWith("vmovups\tzmmword ptr [rsp - 48], zmm17"),
              ElementsAre(StrEq("vmovups\tzmmword ptr [rsp - 48], zmm17: stores to the stack")));
  EXPECT_THAT(FaultsWith("mov\tqword ptr [rsp], rax"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("inc\tqword ptr [rsp + 8]"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("push\trax"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("call\texpf"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("vgatherdps\tzmm5 {k1}, zmmword ptr [rax + zmm4]"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("vfmadd231ps\tymm2, ymm3, ymm4"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("vaddss\txmm2, xmm3, xmm4"), ::testing::SizeIs(1));
  EXPECT_THAT(FaultsWith("vmovups\tzmmword ptr [rbp], zmm17"), IsEmpty());
  EXPECT_THAT(FaultsWith("mov\trax, qword ptr [rsp + 8]"), IsEmpty());
}

TEST(HotLoopsTest, CountsAProductAsAFirstStep) {
  std::string text = kOneLoop;
  text.insert(text.find("\tvfmadd"), "\tvmulps\tzmm0, zmm24, zmm5\n\tvmulps\tzmm9, zmm24, zmm5\n");
  EXPECT_EQ(HotLoops(text, "zmm").at(0).steps_of,
            (std::map<std::string, int>{{"zmm0", 2}, {"zmm1", 1}}));
}

}  // namespace
}  // namespace hone

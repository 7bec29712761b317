#include "tests/ptx/machine.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/ptx/program.h"

// Threads, memory and barriers on PTX written by hand.
namespace hone::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kHead[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 .ptr .global .align 1 from, .param .u64 to)\n{\n"
    ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"
    ".shared .align 16 .b8 tile[256];\n"
    "ld.param.b64 %rd1, [from];\nld.param.b64 %rd2, [to];\n"
    "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
    "add.s64 %rd5, %rd2, %rd3;\n";

struct Outcome {
  std::string error;
  std::vector<uint32_t> out;
};

/// Runs a body after kHead: from holds 100, 101, ..., `to` nothing; %rd4 and %rd5 are this thread's
/// elements.
Outcome RunBody(const std::string& body, int64_t threads, int64_t blocks = 1, uint64_t seed = 1) {
  auto program = ParsePtx(kHead + body + "ret;\n}\n");
  if (!program.ok()) return {std::string(program.status().message()), {}};
  std::vector<uint32_t> from;
  for (uint32_t k = 0; k < 64; ++k) from.push_back(100 + k);
  std::vector<uint8_t> bytes(256);
  std::memcpy(bytes.data(), from.data(), bytes.size());
  Device device(*std::move(program));
  Launch launch;
  launch.block[0] = threads;
  launch.grid[0] = blocks;
  launch.seed = seed;
  launch.parameters = {device.Add(bytes, true), device.Add(bytes, false)};
  const absl::Status status = device.Run("k", launch);
  Outcome outcome{std::string(status.message()), std::vector<uint32_t>(64)};
  std::memcpy(outcome.out.data(), device.Bytes(launch.parameters[1]).data(), 256);
  outcome.out.resize(static_cast<size_t>(threads));
  return outcome;
}

constexpr char kLoad[] = "ld.global.b32 %r2, [%rd4];\n";
constexpr char kStore[] = "st.global.b32 [%rd5], %r2;\n";

TEST(PtxMachineTest, EachThreadHasItsIndex) {
  const Outcome o = RunBody(std::string(kLoad) + kStore, 4);
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.out, ElementsAre(100, 101, 102, 103));
}

TEST(PtxMachineTest, PredicatesAndLoops) {
  // 0 + 1 + ... + tid
  const Outcome o = RunBody(
      "mov.b32 %r2, 0;\nmov.b32 %r3, 0;\nagain:\nadd.s32 %r2, %r2, %r3;\nadd.s32 %r3, %r3, 1;\n"
      "setp.le.u32 %p1, %r3, %r1;\n@%p1 bra again;\nsetp.eq.and.s32 %p2|%p3, %r1, 2, !%p1;\n"
      "@!%p3 add.s32 %r2, %r2, 1000;\n" +
          std::string(kStore),
      4);
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.out, ElementsAre(0, 1, 1003, 6));
}

TEST(PtxMachineTest, VectorsAndHalves) {
  const Outcome o = RunBody(
      "shl.b64 %rd6, %rd3, 2;\nadd.s64 %rd7, %rd1, %rd6;\n"
      "ld.global.nc.v4.b32 {%r2, %r3, %r4, %r5}, [%rd7];\nmov.b64 %rd8, {%r2, %r5};\n"
      "mov.b64 {%r6, _}, %rd8;\nmov.b32 {%rs1, %rs2}, %r6;\ncvt.u32.u16 %r2, %rs1;\n" +
          std::string(kStore),
      2);
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.out, ElementsAre(100, 104));
}

// Thread t reads what thread 3 - t has written.
std::string Reversed(const std::string& barrier) {
  return std::string(kLoad) +
         "mov.b64 %rd6, tile;\nadd.s64 %rd7, %rd6, %rd3;\nst.shared.b32 [%rd7], %r2;\n" + barrier +
         "sub.s32 %r3, 3, %r1;\nmul.wide.s32 %rd8, %r3, 4;\nadd.s64 %rd9, %rd6, %rd8;\n"
         "ld.shared.b32 %r2, [%rd9];\n" +
         kStore;
}

TEST(PtxMachineTest, BarriersOrderSharedMemory) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Outcome o = RunBody(Reversed("bar.sync 0;\n"), 4, 1, seed);
    EXPECT_EQ(o.error, "") << seed;
    EXPECT_THAT(o.out, ElementsAre(103, 102, 101, 100)) << seed;
    const Outcome without = RunBody(Reversed(""), 4, 1, seed);
    EXPECT_THAT(without.error,
                testing::AnyOf(HasSubstr("a race"), HasSubstr("nothing was written")))
        << seed;
  }
}

TEST(PtxMachineTest, GenericAddressesReachSharedMemory) {
  const Outcome o = RunBody(std::string(kLoad) +
                                "mov.b64 %rd6, tile;\ncvta.shared.u64 %rd7, %rd6;\n"
                                "add.s64 %rd8, %rd7, %rd3;\nst.b32 [%rd8], %r2;\n"
                                "cvta.to.shared.u64 %rd9, %rd8;\nld.shared.b32 %r2, [%rd9];\n" +
                                kStore,
                            4);
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.out, ElementsAre(100, 101, 102, 103));
}

TEST(PtxMachineTest, DivergentBarriersAreFound) {
  const std::string some = "setp.lt.u32 %p1, %r1, 2;\n";
  EXPECT_THAT(RunBody(some + "@%p1 bar.sync 0;\n", 4).error,
              HasSubstr("ended without this barrier"));
  EXPECT_THAT(RunBody(some + "@%p1 bra first;\nbar.sync 0;\nret;\nfirst:\nbar.sync 0;\n", 4).error,
              HasSubstr("waits at another barrier"));
  EXPECT_EQ(RunBody("bar.sync 0;\nbar.sync 0;\n", 4).error, "");
}

TEST(PtxMachineTest, RacesOnGlobalMemoryAreFound) {
  const std::string all = "mov.b32 %r2, 7;\nst.global.b32 [%rd2], %r2;\n";
  EXPECT_EQ(RunBody(all, 1).error, "");
  EXPECT_THAT(RunBody(all, 2).error, HasSubstr("a race with a write"));
  EXPECT_THAT(RunBody(all, 1, 2).error, HasSubstr("a race with a write")) << "of another block";
  // One thread writes what the others have read.
  const std::string mixed =
      "mov.b32 %r2, 7;\nld.global.b32 %r3, [%rd1];\nBARRIER"
      "setp.eq.s32 %p1, %r1, 0;\n@%p1 st.global.b32 [%rd1], %r2;\n";
  std::string with = mixed, without = mixed;
  with.replace(mixed.find("BARRIER"), 7, "bar.sync 0;\n");
  without.replace(mixed.find("BARRIER"), 7, "");
  for (uint64_t seed = 1; seed < 10; ++seed) {
    EXPECT_EQ(RunBody(with, 3, 1, seed).error, "") << "a barrier orders a block's own threads";
    EXPECT_THAT(RunBody(without, 3, 1, seed).error, HasSubstr("a race")) << seed;
    EXPECT_THAT(RunBody(with, 3, 2, seed).error, HasSubstr("a race")) << "but not two blocks";
  }
}

TEST(PtxMachineTest, StrayAccessesAreFound) {
  EXPECT_THAT(RunBody("ld.global.b32 %r2, [%rd4+256];\n", 1).error,
              HasSubstr("outside of all memory"));
  EXPECT_THAT(RunBody("ld.global.b32 %r2, [%rd4+-4];\n", 1).error,
              HasSubstr("outside of all memory"));
  EXPECT_THAT(RunBody("ld.global.b32 %r2, [%rd4+2];\n", 1).error, HasSubstr("not aligned to 4"));
  EXPECT_THAT(RunBody("ld.global.v2.b32 {%r2, %r3}, [%rd4+4];\n", 1).error,
              HasSubstr("not aligned to 8"));
  EXPECT_THAT(RunBody("ld.global.b32 %r2, [%rd5];\n", 1).error,
              HasSubstr("nothing was written to"));
  EXPECT_THAT(RunBody("mov.b64 %rd6, tile;\nld.shared.b32 %r2, [%rd6];\n", 1).error,
              HasSubstr("nothing was written to"));
  EXPECT_THAT(RunBody("add.s32 %r2, %r3, 1;\n", 1).error, HasSubstr("register that holds nothing"));
}

TEST(PtxMachineTest, ShufflesOfAWarp) {
  const auto shuffled = [](const std::string& how) {
    return RunBody("add.s32 %r3, %r1, 10;\nshfl.sync." + how +
                       ";\nselp.b32 %r4, 1000, 0, %p1;\n"
                       "add.s32 %r2, %r2, %r4;\n" +
                       kStore,
                   4);
  };
  const Outcome butterfly = shuffled("bfly.b32 %r2|%p1, %r3, 1, 31, 15");
  EXPECT_EQ(butterfly.error, "");
  EXPECT_THAT(butterfly.out, ElementsAre(1011, 1010, 1013, 1012));
  // Beyond lane 3 there is nothing: the lane keeps its own value, the predicate is false.
  EXPECT_THAT(shuffled("down.b32 %r2|%p1, %r3, 2, 3, 15").out, ElementsAre(1012, 1013, 12, 13));
  EXPECT_THAT(shuffled("up.b32 %r2|%p1, %r3, 1, 0, 15").out, ElementsAre(10, 1010, 1011, 1012));
  EXPECT_THAT(shuffled("idx.b32 %r2|%p1, %r3, 2, 31, 15").out, ElementsAre(1012, 1012, 1012, 1012));
  // Halves of the four: two segments of two lanes.
  EXPECT_THAT(shuffled("idx.b32 %r2|%p1, %r3, 0, 7711, 15").out,
              ElementsAre(1010, 1010, 1012, 1012));
  EXPECT_THAT(
      RunBody("setp.eq.s32 %p1, %r1, 0;\n@%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, 3;\n", 2).error,
      HasSubstr("lane 1 of its mask does not come here"));
}

// %rd7 is this thread's element of `tile`.
std::string Copied(const std::string& after) {
  return "mov.b64 %rd6, tile;\nadd.s64 %rd7, %rd6, %rd3;\n"
         "cp.async.ca.shared.global [%rd7], [%rd4], 4;\n" +
         after;
}

TEST(PtxMachineTest, CopiesLandWhenTheyAreWaitedFor) {
  const std::string read = "ld.shared.b32 %r2, [%rd7];\n" + std::string(kStore);
  for (uint64_t seed = 1; seed < 10; ++seed) {
    for (const char* wait :
         {"cp.async.wait_all;\n", "cp.async.commit_group;\ncp.async.wait_group 0;\n",
          "cp.async.commit_group;\ncp.async.commit_group;\n"
          "cp.async.wait_group 1;\n"}) {
      const Outcome o = RunBody(Copied(wait + read), 4, 1, seed);
      EXPECT_EQ(o.error, "");
      EXPECT_THAT(o.out, ElementsAre(100, 101, 102, 103));
    }
    for (const char* wait : {"", "cp.async.commit_group;\n", "cp.async.wait_group 0;\n",
                             "cp.async.commit_group;\ncp.async.wait_group 1;\n", "bar.sync 0;\n"}) {
      EXPECT_THAT(RunBody(Copied(wait + read), 4, 1, seed).error,
                  HasSubstr("a copy that nobody waited for"))
          << wait << seed;
    }
  }
}

TEST(PtxMachineTest, ABarrierFollowsTheWait) {
  // Each thread reads what its neighbour copied.
  const std::string read =
      "xor.b32 %r3, %r1, 1;\nmul.wide.u32 %rd8, %r3, 4;\nadd.s64 %rd9, %rd6, %rd8;\n"
      "ld.shared.b32 %r2, [%rd9];\n" +
      std::string(kStore);
  for (uint64_t seed = 1; seed < 10; ++seed) {
    const Outcome o = RunBody(Copied("cp.async.wait_all;\nbar.sync 0;\n" + read), 4, 1, seed);
    EXPECT_EQ(o.error, "");
    EXPECT_THAT(o.out, ElementsAre(101, 100, 103, 102));
    EXPECT_NE(RunBody(Copied("cp.async.wait_all;\n" + read), 4, 1, seed).error, "");
    EXPECT_NE(RunBody(Copied("bar.sync 0;\ncp.async.wait_all;\n" + read), 4, 1, seed).error, "");
  }
}

TEST(PtxMachineTest, CopiesFillUpWithZeros) {
  const std::string wide =
      "mov.b64 %rd6, tile;\ncp.async.cg.shared.global [%rd6], [%rd1], 16, BYTES;\n"
      "cp.async.wait_all;\nadd.s64 %rd7, %rd6, %rd3;\nld.shared.b32 %r2, [%rd7];\n" +
      std::string(kStore);
  const auto run = [&](const std::string& bytes) {
    std::string body = wide;
    body.replace(body.find("BYTES"), 5, bytes);
    return RunBody(body, 1);
  };
  EXPECT_THAT(run("16").out, ElementsAre(100));
  EXPECT_THAT(run("0").out, ElementsAre(0));
  EXPECT_THAT(run("17").error, HasSubstr("reads more than it writes"));
  EXPECT_THAT(RunBody(Copied("cp.async.cg.shared.global [%rd7], [%rd4], 4;\n"), 1).error,
              HasSubstr("16 bytes"));
  EXPECT_THAT(RunBody(Copied("cp.async.ca.shared.global [%rd7+4], [%rd4], 8;\n"), 1).error,
              HasSubstr("not aligned to 8"));
}

TEST(PtxMachineTest, NamesWhatItCannotRead) {
  EXPECT_THAT(RunBody("wmma.sync.aligned.m16n16k16 %r1, %r2;\n", 1).error,
              HasSubstr("instruction wmma.sync.aligned.m16n16k16: wmma is not known"));
  EXPECT_THAT(RunBody("div.full.f32 %r2, %r1, %r1;\n", 1).error, HasSubstr(".full is not known"));
  EXPECT_THAT(RunBody("sqrt.f32 %r2, %r1;\n", 1).error, HasSubstr("only correctly rounded"));
  EXPECT_THAT(RunBody("bra nowhere;\n", 1).error, HasSubstr("no label nowhere"));
  EXPECT_THAT(RunBody("add.s32 %r2, %nothing, 1;\n", 1).error, HasSubstr("no register %nothing"));
  EXPECT_THAT(RunBody("add.s32 %r2, %r1;\n", 1).error, HasSubstr("2 operands"));
  EXPECT_THAT(RunBody("bar.sync 1;\n", 1).error, HasSubstr("only the barrier 0"));
  EXPECT_THAT(RunBody("again: bra again;\n", 1).error, HasSubstr("it runs for ever"));
}

}  // namespace
}  // namespace hone::ptx

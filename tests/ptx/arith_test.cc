#include "tests/ptx/arith.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/ptx/names.h"

// Instructions one by one against values worked out by hand from NVIDIA's PTX ISA and IEEE 754.
namespace hone::ptx {
namespace {

using testing::HasSubstr;

/// The result of an instruction on these bits; its error where it has one.
std::string Result(const std::string& name, const std::vector<uint64_t>& in) {
  Instruction instruction;
  const std::string unknown = ReadName(name, &instruction);
  if (!unknown.empty()) return "unknown " + unknown;
  uint64_t out = 0;
  const std::string wrong = Compute(instruction, in, &out);
  if (!wrong.empty()) return wrong;
  char text[32];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(out));
  return text;
}

constexpr uint64_t kOne = 0x3f800000, kTwo = 0x40000000, kThree = 0x40400000, kHalf = 0x3f000000;
constexpr uint64_t kMinus = 0x80000000, kMinusOne = 0xbf800000, kInfinity = 0x7f800000;
constexpr uint64_t kNan = 0x7fc00001, kTinyF32 = 1, kMaxF32 = 0x7f7fffff;

TEST(PtxArithTest, RoundsAsTheNameSays) {
  // 1/3 lies between 3eaaaaaa and 3eaaaaab, nearer to the second.
  EXPECT_EQ(Result("div.rn.f32", {kOne, kThree}), "3eaaaaab");
  EXPECT_EQ(Result("div.rz.f32", {kOne, kThree}), "3eaaaaaa");
  EXPECT_EQ(Result("div.rm.f32", {kMinusOne, kThree}), "beaaaaab");
  EXPECT_EQ(Result("div.rp.f32", {kMinusOne, kThree}), "beaaaaaa");
  EXPECT_EQ(Result("rcp.rn.f32", {kThree}), "3eaaaaab");
  EXPECT_EQ(Result("sqrt.rn.f32", {kTwo}), "3fb504f3");
  EXPECT_EQ(Result("sqrt.rp.f32", {kTwo}), "3fb504f4");
  EXPECT_EQ(Result("add.rp.f32", {kOne, kTinyF32}), "3f800001");
  EXPECT_EQ(Result("add.f32", {kOne, kTinyF32}), "3f800000");
  EXPECT_EQ(Result("add.rz.f32", {kMaxF32, kMaxF32}), "7f7fffff");
  EXPECT_EQ(Result("add.rn.f32", {kMaxF32, kMaxF32}), "7f800000");
  EXPECT_EQ(Result("div.rn.f64", {0x3ff0000000000000, 0x4008000000000000}), "3fd5555555555555");
  EXPECT_EQ(Result("div.rp.f64", {0x3ff0000000000000, 0x4008000000000000}), "3fd5555555555556");
}

TEST(PtxArithTest, FmaRoundsOnce) {
  // (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: the product alone would lose the last part.
  const uint64_t x = 0x3f800800;
  EXPECT_EQ(Result("fma.rn.f32", {x, x, kMinusOne}), "3a000400");
  EXPECT_EQ(Result("mul.rn.f32", {x, x}), "3f801000");
}

TEST(PtxArithTest, NanAndZeroOfMinAndMax) {
  EXPECT_EQ(Result("max.f32", {kNan, kOne}), "3f800000");
  EXPECT_EQ(Result("min.f32", {kOne, kNan}), "3f800000");
  EXPECT_EQ(Result("max.NaN.f32", {kNan, kOne}), "7fffffff");
  EXPECT_EQ(Result("max.f32", {kNan, kNan}), "7fffffff");
  EXPECT_EQ(Result("max.f32", {kMinus, 0}), "0");
  EXPECT_EQ(Result("max.f32", {0, kMinus}), "0");
  EXPECT_EQ(Result("min.f32", {0, kMinus}), "80000000");
  EXPECT_EQ(Result("min.s32", {1, 0xffffffff}), "ffffffff");
  EXPECT_EQ(Result("min.u32", {1, 0xffffffff}), "1");
  EXPECT_EQ(Result("add.f32", {kInfinity, kInfinity | kMinus}), "7fffffff") << "canonical NaN";
}

TEST(PtxArithTest, FlushesAndSaturates) {
  EXPECT_EQ(Result("mul.ftz.f32", {kTinyF32, kTwo}), "0");
  EXPECT_EQ(Result("mul.rn.f32", {kTinyF32, kTwo}), "2");
  EXPECT_EQ(Result("mul.ftz.f32", {0x00800000 | kMinus, kHalf}), "80000000");
  EXPECT_EQ(Result("add.sat.f32", {kOne, kOne}), "3f800000");
  EXPECT_EQ(Result("add.sat.f32", {kNan, kOne}), "0");
  EXPECT_EQ(Result("add.sat.f32", {kMinusOne, 0}), "0");
}

TEST(PtxArithTest, ComparesWithNan) {
  for (const char* ordered : {"eq", "ne", "lt", "le", "gt", "ge", "num"})
    EXPECT_EQ(Result(std::string("setp.") + ordered + ".f32", {kNan, kOne}), "0") << ordered;
  for (const char* unordered : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"})
    EXPECT_EQ(Result(std::string("setp.") + unordered + ".f32", {kNan, kOne}), "1") << unordered;
  EXPECT_EQ(Result("setp.neu.f32", {kOne, kOne}), "0");
  EXPECT_EQ(Result("setp.eq.f32", {kMinus, 0}), "1");
  EXPECT_EQ(Result("setp.lt.s32", {0xffffffff, 0}), "1");
  EXPECT_EQ(Result("setp.lt.u32", {0xffffffff, 0}), "0");
  EXPECT_EQ(Result("setp.hi.u16", {2, 1}), "1");
}

TEST(PtxArithTest, Conversions) {
  EXPECT_EQ(Result("cvt.rzi.s32.f32", {0xc0200000}), "fffffffe") << "-2.5";
  EXPECT_EQ(Result("cvt.rni.s32.f32", {0x40200000}), "2") << "2.5, to even";
  EXPECT_EQ(Result("cvt.rmi.s32.f32", {0xc0200000}), "fffffffd");
  EXPECT_EQ(Result("cvt.rpi.s32.f32", {0x40200000}), "3");
  EXPECT_EQ(Result("cvt.rzi.s32.f32", {kInfinity}), "7fffffff");
  EXPECT_EQ(Result("cvt.rzi.s32.f32", {kInfinity | kMinus}), "80000000");
  EXPECT_EQ(Result("cvt.rzi.u32.f32", {kMinusOne}), "0");
  EXPECT_EQ(Result("cvt.rzi.u8.f32", {0x43c80000}), "ff") << "400";
  EXPECT_EQ(Result("cvt.rzi.s32.f32", {kNan}), "0");
  EXPECT_EQ(Result("cvt.rzi.s64.f32", {kNan}), "8000000000000000");
  EXPECT_EQ(Result("cvt.rzi.s32.f64", {0x7ff8000000000000}), "80000000");
  EXPECT_EQ(Result("cvt.rni.f32.f32", {0x40200000}), "40000000");
  EXPECT_EQ(Result("cvt.rn.f32.s32", {0x01000001}), "4b800000") << "2^24 + 1, to even";
  EXPECT_EQ(Result("cvt.rp.f32.s32", {0x01000001}), "4b800001");
  EXPECT_EQ(Result("cvt.rn.f32.u64", {0xffffffffffffffff}), "5f800000");
  EXPECT_EQ(Result("cvt.rn.f32.f64", {0x3ff0000010000000}), "3f800000") << "a tie, to even";
  EXPECT_EQ(Result("cvt.rp.f32.f64", {0x3ff0000010000000}), "3f800001");
  EXPECT_EQ(Result("cvt.f64.f32", {kThree}), "4008000000000000");
  EXPECT_EQ(Result("cvt.f32.f16", {0x3c01}), "3f802000");
  EXPECT_EQ(Result("cvt.f32.f16", {0x0001}), "33800000") << "the least subnormal of f16";
  EXPECT_EQ(Result("cvt.rn.f16.f32", {0x477fe000}), "7bff") << "65504";
  EXPECT_EQ(Result("cvt.rn.f16.f32", {0x477ff000}), "7c00") << "65520 becomes infinity";
  EXPECT_EQ(Result("cvt.rn.f16x2.f32", {kOne, kTwo}), "3c004000") << "the first is the upper half";
  EXPECT_EQ(Result("cvt.s32.s8", {0x80}), "ffffff80");
  EXPECT_EQ(Result("cvt.u32.u8", {0x80}), "80");
  EXPECT_EQ(Result("cvt.u64.s32", {0x80000000}), "ffffffff80000000");
  EXPECT_THAT(Result("cvt.f32.f64", {0}), HasSubstr("without rounding"));
  EXPECT_THAT(Result("cvt.f32.s32", {0}), HasSubstr("without rounding"));
  EXPECT_THAT(Result("cvt.s32.f32", {0}), HasSubstr("without .rni"));
}

TEST(PtxArithTest, Integers) {
  EXPECT_EQ(Result("mul.lo.s32", {0xffffffff, 3}), "fffffffd");
  EXPECT_EQ(Result("mul.hi.s32", {0xffffffff, 3}), "ffffffff");
  EXPECT_EQ(Result("mul.hi.u32", {0xffffffff, 3}), "2");
  EXPECT_EQ(Result("mul.wide.s32", {0xffffffff, 3}), "fffffffffffffffd");
  EXPECT_EQ(Result("mul.wide.u32", {0xffffffff, 3}), "2fffffffd");
  EXPECT_EQ(Result("mul.hi.u64", {0xffffffffffffffff, 0xffffffffffffffff}), "fffffffffffffffe");
  EXPECT_EQ(Result("mad.lo.s32", {5, 6, 0xffffffff}), "1d");
  EXPECT_EQ(Result("mad.wide.u32", {0xffffffff, 2, 0x100000000}), "2fffffffe");
  EXPECT_EQ(Result("div.s32", {0xfffffff9, 2}), "fffffffd") << "-7 / 2 towards zero";
  EXPECT_EQ(Result("rem.s32", {0xfffffff9, 2}), "ffffffff");
  EXPECT_EQ(Result("div.s32", {0x80000000, 0xffffffff}), "80000000");
  EXPECT_THAT(Result("rem.u32", {1, 0}), HasSubstr("not specified"));
  EXPECT_EQ(Result("abs.s32", {0xfffffff9}), "7");
  EXPECT_EQ(Result("neg.s16", {1}), "ffff");
  EXPECT_EQ(Result("not.pred", {1}), "0");
  EXPECT_EQ(Result("not.b16", {1}), "fffe");
}

TEST(PtxArithTest, ShiftsStopAtTheWidth) {
  EXPECT_EQ(Result("shl.b32", {1, 31}), "80000000");
  EXPECT_EQ(Result("shl.b32", {1, 32}), "0");
  EXPECT_EQ(Result("shr.u32", {0x80000000, 40}), "0");
  EXPECT_EQ(Result("shr.s32", {0x80000000, 40}), "ffffffff");
  EXPECT_EQ(Result("shr.s16", {0x8000, 4}), "f800");
  EXPECT_EQ(Result("shf.l.wrap.b32", {0x80000001, 0x2, 33}), "5");
  EXPECT_EQ(Result("shf.l.clamp.b32", {0x80000001, 0x2, 33}), "80000001");
  EXPECT_EQ(Result("shf.r.wrap.b32", {0x80000001, 0x2, 1}), "40000000");
  EXPECT_EQ(Result("shf.r.clamp.b32", {0x80000001, 0x2, 40}), "2");
}

TEST(PtxArithTest, BitFields) {
  EXPECT_EQ(Result("bfe.u32", {0xabcd1234, 8, 8}), "12");
  EXPECT_EQ(Result("bfe.s32", {0x0000f000, 12, 4}), "ffffffff");
  EXPECT_EQ(Result("bfe.u32", {0xabcd1234, 8, 0}), "0");
  EXPECT_EQ(Result("bfe.s32", {0x80000000, 24, 16}), "ffffff80");
  EXPECT_EQ(Result("bfi.b32", {0xff, 0x12345678, 8, 8}), "1234ff78");
  EXPECT_EQ(Result("prmt.b32", {0x33221100, 0x77665544, 0x7531}), "77553311");
  EXPECT_EQ(Result("prmt.b32", {0x00008000, 0, 0x9990}), "ffffff00");
  EXPECT_EQ(Result("clz.b32", {0x00010000}), "f");
  EXPECT_EQ(Result("clz.b64", {1}), "3f");
  EXPECT_EQ(Result("popc.b32", {0xf0f0}), "8");
  EXPECT_EQ(Result("brev.b32", {1}), "80000000");
  EXPECT_EQ(Result("copysign.f32", {kMinus, kThree}), "c0400000");
  EXPECT_EQ(Result("selp.b32", {7, 8, 1}), "7");
  EXPECT_EQ(Result("selp.b32", {7, 8, 0}), "8");
}

TEST(PtxArithTest, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(Result("tanh.approx.f32", {0}), "unknown tanh");
  EXPECT_EQ(Result("add.cc.u32", {0, 0}), "unknown .cc");
  EXPECT_EQ(Result("add.bf16", {0, 0}), "unknown .bf16");
}

}  // namespace
}  // namespace hone::ptx

#include "tests/ptx/matrices.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/half.h"
#include "tests/ptx/machine.h"

// ldmatrix and mma.m16n8k16 on PTX written by hand: layouts as the figures of the PTX ISA show
// them, products against plain loops, and what the machine must refuse.
namespace hone::ptx {
namespace {

using testing::HasSubstr;

constexpr size_t kTile = 1024;

/// What the 32 threads give, four words each, and the error.
struct Outcome {
  std::string error;
  std::array<std::array<uint32_t, 4>, 32> out = {};
};

/// Runs a body after each thread has copied 32 bytes of `tile` to shared memory: %rd6 is the tile,
/// %rd5 the thread's four words of output, %r1 its number.
Outcome RunBody(const std::string& body, const std::vector<uint8_t>& tile, int64_t threads = 32,
                bool barrier = true) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 from, .param .u64 to)\n{\n"
      ".reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"
      ".shared .align 16 .b8 tile[1024];\n"
      "ld.param.b64 %rd1, [from];\nld.param.b64 %rd2, [to];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, 32;\nadd.s64 %rd4, %rd1, %rd3;\n"
      "mul.wide.u32 %rd7, %r1, 16;\nadd.s64 %rd5, %rd2, %rd7;\n"
      "mov.u64 %rd6, tile;\nadd.s64 %rd8, %rd6, %rd3;\n";
  for (int k = 0; k < 8; ++k)
    text += fmt::format("ld.global.b32 %r2, [%rd4+{0}];\nst.shared.b32 [%rd8+{0}], %r2;\n", 4 * k);
  if (barrier) text += "barrier.sync.aligned 0;\n";
  text += body + "ret;\n}\n";
  auto program = ParsePtx(text);
  if (!program.ok()) return {std::string(program.status().message()), {}};
  Device device(*std::move(program));
  Launch launch;
  launch.block[0] = threads;
  std::vector<uint8_t> out(512);
  launch.parameters = {device.Add(tile, true), device.Add(out, false)};
  Outcome outcome{std::string(device.Run("k", launch).message()), {}};
  std::memcpy(outcome.out.data(), device.Bytes(launch.parameters[1]).data(), 512);
  return outcome;
}

/// 16-bit elements: 8 to a row of 16 bytes, element 100 * row + column.
std::vector<uint8_t> NumberedRows() {
  std::vector<uint8_t> tile(kTile);
  for (uint16_t row = 0; row < 64; ++row) {
    for (uint16_t column = 0; column < 8; ++column) {
      const auto element = static_cast<uint16_t>(100 * row + column);
      std::memcpy(tile.data() + 16 * row + 2 * column, &element, 2);
    }
  }
  return tile;
}

/// Each thread's row is the one of its number.
constexpr char kOwnRow[] = "mul.wide.u32 %rd9, %r1, 16;\nadd.s64 %rd10, %rd6, %rd9;\n";

std::string StoreWords(int count) {
  std::string text;
  for (int k = 0; k < count; ++k)
    text += fmt::format("st.global.b32 [%rd5+{}], %r{};\n", 4 * k, 10 + k);
  return text;
}

TEST(PtxMatricesTest, FetchesMatricesAsTheFigureSays) {
  for (const int count : {1, 2, 4}) {
    for (const bool turned : {false, true}) {
      const char* const to = count == 1   ? "{%r10}"
                             : count == 2 ? "{%r10, %r11}"
                                          : "{%r10, %r11, %r12, %r13}";
      const Outcome ran =
          RunBody(kOwnRow +
                      fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%rd10];\n",
                                  count, turned ? ".trans" : "", to) +
                      StoreWords(count),
                  NumberedRows());
      ASSERT_EQ(ran.error, "");
      for (uint32_t t = 0; t < 32; ++t) {
        for (uint32_t matrix = 0; matrix < static_cast<uint32_t>(count); ++matrix) {
          const uint32_t pair = 2 * (t % 4), line = t / 4, first = 8 * matrix;
          const uint32_t low = turned ? 100 * (first + pair) + line : 100 * (first + line) + pair;
          const uint32_t high = turned ? low + 100 : low + 1;
          EXPECT_EQ(ran.out[t][matrix], low | high << 16) << t << " of x" << count;
        }
      }
    }
  }
}

// Thread 5 of the figures: a0 A[1][2], a2 A[9][2], a4 A[1][10], a6 A[9][10]; b0 B[2][1], b2
// B[10][1]; c0 C[1][2], c2 C[9][2].
TEST(PtxMatricesTest, FragmentsAreWhereTheFigureHasThem) {
  struct Case {
    size_t word;
    int row, term;
  };
  for (const Case& c : {Case{0, 1, 2}, {1, 9, 2}, {2, 1, 10}, {3, 9, 10}}) {
    for (const int half : {0, 1}) {
      WarpRegisters r;
      r.a[5][c.word] = uint32_t{ir::BF16FromDouble(1)} << (16 * half);
      // Row `term` of B is 1 to 8; thread 4n + t has B[2t][n] in the lower half of its first word.
      const int term = c.term + half;
      for (int n = 0; n < 8; ++n) {
        r.b[static_cast<size_t>(4 * n + term % 8 / 2)][term >= 8 ? 1 : 0] =
            uint32_t{ir::BF16FromDouble(n + 1)} << (16 * (term % 2));
      }
      r.c[5][0] = 1000;
      MultiplyAccumulate(/*bf16=*/true, &r);
      for (int n = 0; n < 8; ++n) {
        const auto lane = static_cast<size_t>(4 * (c.row % 8) + n / 2);
        const auto element = static_cast<size_t>(n % 2 + (c.row >= 8 ? 2 : 0));
        const float begun = lane == 5 && element == 0 ? 1000 : 0;
        EXPECT_EQ(r.d[lane][element], static_cast<float>(n + 1) + begun) << n;
      }
    }
  }
}

// A [16][16], then B: [16 terms][8] (turned when it is fetched), or [8][16].
TEST(PtxMatricesTest, MultipliesWhatItFetches) {
  for (const bool bf16 : {false, true}) {
    for (const bool turned : {false, true}) {
      Random random(bf16 ? 3 : 4);
      std::vector<uint8_t> tile(kTile);
      double a[16][16], b[16][8];
      const auto put = [&](size_t at, double* value) {
        *value = static_cast<double>(random.Below(17)) - 8;
        const uint16_t bits = bf16 ? ir::BF16FromDouble(*value) : ir::F16FromDouble(*value);
        std::memcpy(tile.data() + 2 * at, &bits, 2);
      };
      for (size_t row = 0; row < 16; ++row) {
        for (size_t k = 0; k < 16; ++k) put(16 * row + k, &a[row][k]);
      }
      for (size_t k = 0; k < 16; ++k) {
        for (size_t n = 0; n < 8; ++n) put(256 + (turned ? 8 * k + n : 16 * n + k), &b[k][n]);
      }
      // Thread t: row t % 16 of A, eight terms further from 16 on; row t % 16 of turned B, or row
      // t % 8, eight terms further from 8 on.
      const std::string body =
          "and.b32 %r20, %r1, 15;\nshr.u32 %r21, %r1, 4;\nshl.b32 %r22, %r20, 5;\n"
          "shl.b32 %r23, %r21, 4;\nadd.s32 %r24, %r22, %r23;\ncvt.u64.u32 %rd9, %r24;\n"
          "add.s64 %rd10, %rd6, %rd9;\n"
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%rd10];\n" +
          std::string(turned ? "shl.b32 %r25, %r20, 4;\n"
                             : "and.b32 %r26, %r1, 7;\nshl.b32 %r27, %r26, 5;\n"
                               "and.b32 %r28, %r1, 8;\nshl.b32 %r29, %r28, 1;\n"
                               "add.s32 %r25, %r27, %r29;\n") +
          "cvt.u64.u32 %rd11, %r25;\nadd.s64 %rd12, %rd6, %rd11;\n" +
          fmt::format("ldmatrix.sync.aligned.m8n8.x2{}.shared.b16 {{%r6, %r7}}, [%rd12+512];\n",
                      turned ? ".trans" : "") +
          "mov.b32 %r30, 0;\n" +
          fmt::format(
              "mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32 {{%r10, %r11, %r12, "
              "%r13}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, {{%r30, %r30, %r30, %r30}};\n",
              bf16 ? "bf16" : "f16") +
          StoreWords(4);
      const Outcome ran = RunBody(body, tile);
      ASSERT_EQ(ran.error, "");
      for (size_t row = 0; row < 16; ++row) {
        for (size_t n = 0; n < 8; ++n) {
          double sum = 0;
          for (size_t k = 0; k < 16; ++k) sum += a[row][k] * b[k][n];
          const uint32_t word = ran.out[4 * (row % 8) + n / 2][n % 2 + (row >= 8 ? 2 : 0)];
          EXPECT_EQ(static_cast<double>(std::bit_cast<float>(word)), sum) << row << ", " << n;
        }
      }
    }
  }
}

// Thread 5 of the figures of m16n8k32: a0 A[1][4], a4 A[9][4], a8 A[1][20], a12 A[9][20]; b0
// B[4][1], b4 B[20][1]; c0 C[1][2].
TEST(PtxMatricesTest, FragmentsOfBytesAreWhereTheFigureHasThem) {
  struct Case {
    size_t word;
    int row, term;
  };
  for (const Case& c : {Case{0, 1, 4}, {1, 9, 4}, {2, 1, 20}, {3, 9, 20}}) {
    for (int byte = 0; byte < 4; ++byte) {
      for (const bool a_signed : {false, true}) {
        WarpRegisters r;
        r.a[5][c.word] = 0xfeU << (8 * byte);
        const int term = c.term + byte;
        // Row `term` of B is -1 to -8; thread 4n + t has B[4t][n] in the lowest byte of a word.
        for (int n = 0; n < 8; ++n) {
          r.b[static_cast<size_t>(4 * n + term % 16 / 4)][term >= 16 ? 1 : 0] =
              (static_cast<uint32_t>(-(n + 1)) & 0xffU) << (8 * (term % 4));
        }
        r.integer_c[5][0] = 1000;
        MultiplyAccumulateBytes(a_signed, /*b_signed=*/true, &r);
        for (int n = 0; n < 8; ++n) {
          const auto lane = static_cast<size_t>(4 * (c.row % 8) + n / 2);
          const auto element = static_cast<size_t>(n % 2 + (c.row >= 8 ? 2 : 0));
          const int begun = lane == 5 && element == 0 ? 1000 : 0;
          EXPECT_EQ(static_cast<int32_t>(r.integer_d[lane][element]),
                    (a_signed ? -2 : 254) * -(n + 1) + begun)
              << n;
        }
      }
    }
  }
}

// A [16][32], then B by columns [8][32], both fetched as if they were numbers of 16 bits. Sums
// wrap.
TEST(PtxMatricesTest, MultipliesBytesThatItFetches) {
  for (const std::string types : {"u8.u8", "u8.s8", "s8.u8", "s8.s8"}) {
    Random random(7);
    std::vector<uint8_t> tile(kTile);
    int64_t a[16][32], b[8][32];
    const auto put = [&](size_t at, bool is_signed, int64_t* value) {
      tile[at] = static_cast<uint8_t>(random.Below(256));
      *value = is_signed ? static_cast<int8_t>(tile[at]) : tile[at];
    };
    for (size_t k = 0; k < 32; ++k) {
      for (size_t row = 0; row < 16; ++row) put(32 * row + k, types[0] == 's', &a[row][k]);
      for (size_t n = 0; n < 8; ++n) put(512 + 32 * n + k, types[3] == 's', &b[n][k]);
    }
    const std::string body =
        "and.b32 %r20, %r1, 15;\nshr.u32 %r21, %r1, 4;\nshl.b32 %r22, %r20, 5;\n"
        "shl.b32 %r23, %r21, 4;\nadd.s32 %r24, %r22, %r23;\ncvt.u64.u32 %rd9, %r24;\n"
        "add.s64 %rd10, %rd6, %rd9;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%rd10];\n"
        "and.b32 %r26, %r1, 7;\nshl.b32 %r27, %r26, 5;\nand.b32 %r28, %r1, 8;\n"
        "shl.b32 %r29, %r28, 1;\nadd.s32 %r25, %r27, %r29;\n"
        "cvt.u64.u32 %rd11, %r25;\nadd.s64 %rd12, %rd6, %rd11;\n"
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r7}, [%rd12+512];\n"
        "mov.b32 %r30, 2147483647;\n" +
        fmt::format(
            "mma.sync.aligned.m16n8k32.row.col.s32.{}.s32 {{%r10, %r11, %r12, %r13}}, "
            "{{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, {{%r30, %r30, %r30, %r30}};\n",
            types) +
        StoreWords(4);
    const Outcome ran = RunBody(body, tile);
    ASSERT_EQ(ran.error, "");
    for (size_t row = 0; row < 16; ++row) {
      for (size_t n = 0; n < 8; ++n) {
        int64_t sum = 2147483647;
        for (size_t k = 0; k < 32; ++k) sum += a[row][k] * b[n][k];
        EXPECT_EQ(ran.out[4 * (row % 8) + n / 2][n % 2 + (row >= 8 ? 2 : 0)],
                  static_cast<uint32_t>(sum))
            << types << " " << row << ", " << n;
      }
    }
  }
}

TEST(PtxMatricesTest, RefusesWhatTheMachineMayNot) {
  const std::string fetch = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%rd10];\n";
  const auto why = [](const std::string& body, int64_t threads = 32, bool barrier = true) {
    return RunBody(body, NumberedRows(), threads, barrier).error;
  };
  EXPECT_EQ(why(kOwnRow + fetch), "");
  EXPECT_THAT(why(kOwnRow + ("setp.lt.u32 %p1, %r1, 31;\n@%p1 " + fetch)),
              HasSubstr("thread 31,0 of its warp does not come here"));
  EXPECT_THAT(why(kOwnRow + fetch, 16), HasSubstr("its warp has not 32 threads"));
  EXPECT_THAT(why("mul.wide.u32 %rd9, %r1, 8;\nadd.s64 %rd10, %rd6, %rd9;\n" + fetch),
              HasSubstr("is not aligned to 16"));
  EXPECT_THAT(why("mov.b64 %rd10, %rd1;\n" + fetch), HasSubstr("is not in shared memory"));
  EXPECT_THAT(why(kOwnRow + fetch, 32, /*barrier=*/false), HasSubstr("race"));
  EXPECT_THAT(why("mov.b32 %r10, 0;\nmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                  "{%r10, %r10, %r10, %r10}, {%r10, %r10}, {%r10}, {%r10, %r10, %r10, %r10};\n"),
              HasSubstr("m16n8k16"));
  EXPECT_THAT(why("mov.b32 %r10, 0;\nmma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 "
                  "{%r10, %r10, %r10, %r10}, {%r10, %r10, %r10, %r10}, {%r10, %r10}, "
                  "{%r10, %r10, %r10, %r10};\n"),
              HasSubstr("m16n8k32"));
}

}  // namespace
}  // namespace hone::ptx

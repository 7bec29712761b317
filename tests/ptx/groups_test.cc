#include "tests/ptx/groups.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/half.h"
#include "tests/gpu/swizzle.h"
#include "tests/gpu/truth_ptx.h"
#include "tests/ptx/machine.h"

// wgmma on tiles that are laid out here by hand, and programs that forget something.
namespace hone::ptx {
namespace {

using testing::HasSubstr;

constexpr int kRows = 64, kTerms = 16;
constexpr size_t kTile = 40'960, kBegin = 8'192;  // B's

std::string SumsOf(int columns) {
  std::string text = "{%f0";
  for (int k = 1; k < columns / 2; ++k) text += fmt::format(", %f{}", k);
  return text + "}";
}

/// k(image, a, b, out): brings the image to shared memory, multiplies once, stores out[thread][…].
/// `extra` stands between wgmma and what ends its group.
std::string KernelText(int columns, bool a_across, bool b_across) {
  std::string text = fmt::format(
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 image, .param .u64 a, .param .u64 b, .param .u64 out)\n{{\n"
      ".reg .pred %p<3>;\n.reg .f32 %f<{0}>;\n.reg .b32 %r<8>;\n.reg .b64 %d<14>;\n"
      ".shared .align 1024 .b8 tile[{1}];\n"
      "mov.u32 %r1, %tid.x;\nmov.u64 %d1, tile;\nld.param.u64 %d2, [image];\n"
      "mul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d1, %d3;\nadd.s64 %d5, %d2, %d3;\n"
      "mov.b32 %r2, 0;\nnext:\nld.global.b32 %r3, [%d5];\nst.shared.b32 [%d4], %r3;\n"
      "add.s64 %d4, %d4, 512;\nadd.s64 %d5, %d5, 512;\nadd.s32 %r2, %r2, 512;\n"
      "setp.lt.u32 %p1, %r2, {1};\n@%p1 bra next;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "ld.param.u64 %d6, [a];\nld.param.u64 %d7, [b];\nshr.b64 %d8, %d1, 4;\n"
      "add.s64 %d6, %d6, %d8;\nadd.s64 %d7, %d7, %d8;\nsetp.eq.u32 %p2, %r2, %r2;\n",
      columns / 2, kTile);
  for (int k = 0; k < columns / 2; ++k) text += fmt::format("mov.f32 %f{}, 0f3F800000;\n", k);
  text += "wgmma.fence.sync.aligned;\n";
  text += fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16 {}, %d6, %d7, %p2, 1, 1, {}, {};\n",
      columns, SumsOf(columns), a_across ? 1 : 0, b_across ? 1 : 0);
  text +=
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "ld.param.u64 %d9, [out];\n";
  text += fmt::format("mul.wide.u32 %d10, %r1, {};\nadd.s64 %d9, %d9, %d10;\n", 2 * columns);
  for (int k = 0; k < columns / 2; ++k)
    text += fmt::format("st.global.f32 [%d9+{}], %f{};\n", 4 * k, k);
  return text + "ret;\n}\n";
}

float NumberA(int m, int k) { return static_cast<float>((3 * m + 5 * k) % 13) - 6; }
float NumberB(int n, int k) { return static_cast<float>((7 * n + 2 * k) % 11) - 5; }

void Put(float number, size_t at, std::vector<uint8_t>* image) {
  const uint16_t bits = ir::BF16FromDouble(static_cast<double>(number));
  std::memcpy(image->data() + at, &bits, 2);
}

/// The figures of a swizzle of 128 bytes: piece p of 16 bytes in row r of eight lies at p ^ r.
size_t InRows(size_t row, size_t byte) {
  return row / 8 * 1024 + row % 8 * 128 + ((byte / 16) ^ (row % 8)) * 16 + byte % 16;
}

/// Where numbers lie: rows of 128 bytes along the terms, of which `step` times 32 come before, or
/// along rows, 64 of them, and the next 64 `apart` bytes further.
struct Placed {
  bool across = false;
  size_t step = 0, apart = 2'048;

  size_t Of(size_t i, size_t k) const {
    return across ? i / 64 * apart + InRows(k, i % 64 * 2) : InRows(i, 32 * step + 2 * k);
  }
  uint64_t Descriptor(size_t begin) const {
    const uint64_t leading = across ? apart / 16 : 1;
    return (begin + 32 * step) / 16 | leading << 16 | uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
  }
};

struct Outcome {
  std::string error;
  std::vector<float> out;
};

Outcome RunText(const std::string& text, int columns, const Placed& a, const Placed& b,
                uint64_t seed = 1) {
  std::vector<uint8_t> image(kTile);
  for (int k = 0; k < kTerms; ++k) {
    for (int m = 0; m < kRows; ++m)
      Put(NumberA(m, k), a.Of(static_cast<size_t>(m), static_cast<size_t>(k)), &image);
    for (int n = 0; n < columns; ++n)
      Put(NumberB(n, k), kBegin + b.Of(static_cast<size_t>(n), static_cast<size_t>(k)), &image);
  }
  auto program = ParsePtx(text);
  if (!program.ok()) return {std::string(program.status().message()), {}};
  Device device(*std::move(program));
  Outcome outcome;
  outcome.out.resize(static_cast<size_t>(kRows * columns));
  const std::vector<uint8_t> unset(4 * outcome.out.size());
  Launch launch;
  launch.block[0] = kGroupSize;
  launch.seed = seed;
  launch.parameters = {device.Add(image, true), a.Descriptor(0), b.Descriptor(kBegin),
                       device.Add(unset, false)};
  outcome.error = std::string(device.Run("k", launch).message());
  std::memcpy(outcome.out.data(), device.Bytes(launch.parameters[3]).data(), unset.size());
  return outcome;
}

float SumOf(int m, int n, float begun) {
  float sum = begun;
  for (int k = 0; k < kTerms; ++k) sum += NumberA(m, k) * NumberB(n, k);
  return sum;
}

TEST(PtxGroupsTest, MultipliesTilesOfEveryLayout) {
  for (const int columns : {8, 64, 128}) {
    for (const Placed& a : {Placed{}, Placed{.step = 3}, Placed{.across = true}}) {
      for (const Placed& b :
           {Placed{.step = 1}, Placed{.across = true}, Placed{.across = true, .apart = 4'096}}) {
        const Outcome ran = RunText(KernelText(columns, a.across, b.across), columns, a, b);
        ASSERT_EQ(ran.error, "");
        for (int m = 0; m < kRows; ++m) {
          for (int n = 0; n < columns; ++n) {
            // The figure of the accumulators: thread 5 of a warp has D[1][2], D[1][3], D[9][2],
            // D[9][3], D[1][10], …
            const int thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2;
            const int number = n / 8 * 4 + m % 16 / 8 * 2 + n % 2;
            ASSERT_EQ(ran.out[static_cast<size_t>(thread * columns / 2 + number)], SumOf(m, n, 1))
                << m << ", " << n << " of " << columns;
          }
        }
      }
    }
  }
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(PtxGroupsTest, FindsWhatIsForgotten) {
  const auto why = [](const std::string& from, const std::string& to) {
    const std::string text = Replaced(KernelText(8, false, false), from, to);
    return RunText(text, 8, {}, {}).error;
  };
  const std::string commit = "wgmma.commit_group.sync.aligned;\n",
                    wait = "wgmma.wait_group.sync.aligned 0;\n",
                    fence = "wgmma.fence.sync.aligned;\n";
  EXPECT_THAT(why(wait, "wgmma.wait_group.sync.aligned 1;\n"), HasSubstr("nobody waited for"));
  EXPECT_THAT(why(wait, ""), HasSubstr("nobody waited for"));
  EXPECT_THAT(why(commit, ""), HasSubstr("nobody waited for"));
  EXPECT_THAT(why(commit, "mov.f32 %f1, %f2;\n" + commit), HasSubstr("nobody waited for"));
  EXPECT_THAT(why(fence, ""), HasSubstr("no wgmma.fence"));
  EXPECT_THAT(why(fence, fence + "mov.f32 %f3, 0f00000000;\n"), HasSubstr("was touched since"));
  EXPECT_THAT(why("fence.proxy.async.shared::cta;\nbar", "bar"), HasSubstr("fence.proxy.async"));
  EXPECT_THAT(why("fence.proxy.async.shared::cta;\nbar.sync 0;\n",
                  "bar.sync 0;\nfence.proxy.async.shared::cta;\n"),
              HasSubstr("fence.proxy.async"));
  EXPECT_THAT(why("bar.sync 0;\n", ""), HasSubstr("a race with a write"));
  EXPECT_THAT(why(wait, "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.b32 [%d1], %r1;\n" + wait),
              HasSubstr("may read it"));
  EXPECT_THAT(why(commit, commit + "ret;\n"), HasSubstr("ends before a wgmma"));
  EXPECT_THAT(why("shr.b64 %d8, %d1, 4;\n", "shr.b64 %d8, %d1, 4;\nadd.s64 %d8, %d8, %d3;\n"),
              HasSubstr("different operands"));
  EXPECT_THAT(why(fence, "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra over;\n" + fence + "over:\n"),
              HasSubstr("no wgmma.fence"));
  EXPECT_THAT(why(fence, "setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\n" + fence),
              HasSubstr("does not come here"));
}

TEST(PtxGroupsTest, AMatrixOfAnotherLayoutIsUnknown) {
  const auto with = [](uint64_t bits) {
    std::string why;
    const bool known = GroupDescriptor::Of(bits, &why).has_value();
    return known ? std::string() : why;
  };
  const uint64_t known = Placed{}.Descriptor(1024);
  EXPECT_EQ(with(known), "");
  EXPECT_THAT(with(known | uint64_t{1} << 49), HasSubstr("base offset"));
  EXPECT_THAT(with(known ^ uint64_t{3} << 62), HasSubstr("swizzle of 128 bytes"));
  EXPECT_THAT(with(known | uint64_t{1} << 15), HasSubstr("bits of no field"));
  const auto parsed = [](const std::string& from, const std::string& to) {
    return std::string(
        ParsePtx(Replaced(KernelText(16, false, false), from, to)).status().message());
  };
  EXPECT_EQ(parsed("n16", "n16"), "");
  EXPECT_THAT(parsed("n16", "n12"), HasSubstr("only m64nNk16"));
  EXPECT_THAT(parsed("n16", "n24"), HasSubstr("another number of registers"));
  EXPECT_THAT(parsed("bf16.bf16", "tf32.tf32"), HasSubstr("only m64nNk16"));
  EXPECT_THAT(parsed("1, 1, 0", "1, -1, 0"), HasSubstr("not negated"));
  EXPECT_THAT(parsed("wgmma.fence.sync", "wgmma.fence.async"), HasSubstr("are known"));
  EXPECT_THAT(parsed("fence.proxy.async.shared::cta", "fence.proxy.alias"), HasSubstr("is known"));
}

// The kernels of the truth table, which a GPU is asked first (tests/gpu), on layouts as our
// emulation has them.
TEST(PtxGroupsTest, RunsTheKernelsOfTheTruthTable) {
  for (const bool across : {false, true}) {
    std::vector<uint8_t> image(gpu::kImageBytes);
    for (int k = 0; k < kTerms; ++k) {
      for (int m = 0; m < kRows; ++m) {
        const auto offset = static_cast<uint32_t>(across ? k * 128 + 2 * m : m * 128 + 2 * k);
        Put(NumberA(m, k), gpu::Swizzled(offset, 128), &image);
      }
      for (int n = 0; n < 8; ++n)
        Put(NumberB(n, k), kBegin + gpu::Swizzled(static_cast<uint32_t>(n * 128 + 2 * k), 128),
            &image);
    }
    auto program = ParsePtx(gpu::WgmmaPtx());
    ASSERT_TRUE(program.ok()) << program.status();
    Device device(*std::move(program));
    std::vector<float> out(kRows * 8);
    const std::vector<uint8_t> unset(4 * out.size());
    Launch launch;
    launch.block[0] = gpu::kTruthThreads;
    launch.parameters = {device.Add(image, true), gpu::Descriptor(0, 1'024, 1'024, 128),
                         gpu::Descriptor(kBegin, 16, 1'024, 128), device.Add(unset, false)};
    const absl::Status ran = device.Run(across ? "wgmma_mn" : "wgmma_k", launch);
    ASSERT_TRUE(ran.ok()) << ran;
    std::memcpy(out.data(), device.Bytes(launch.parameters[3]).data(), unset.size());
    for (int m = 0; m < kRows; ++m) {
      for (int n = 0; n < 8; ++n) {
        const int thread = m / 16 * 32 + m % 8 * 4 + n / 2, part = m % 16 / 8 * 2 + n % 2;
        EXPECT_EQ(out[static_cast<size_t>(thread * 4 + part)], SumOf(m, n, 0)) << m << ", " << n;
      }
    }
  }
}

}  // namespace
}  // namespace hone::ptx

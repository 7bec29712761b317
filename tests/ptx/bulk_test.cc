#include <cstring>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/gpu/swizzle.h"
#include "tests/gpu/truth_ptx.h"
#include "tests/mock_cuda/mock_map.h"
#include "tests/ptx/machine.h"

// Boxes of tensors that are copied to shared memory, and barriers there, by the kernel of the truth
// table and by such that forget something.
namespace hone::ptx {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr unsigned kBoxRows = 32, kRowBytes = 128;
constexpr unsigned kRows = 40, kColumns = 80;

struct Outcome {
  std::string error;
  std::vector<uint16_t> out;
};

Outcome RunText(const std::string& text, uint64_t seed) {
  auto program = ParsePtx(text);
  if (!program.ok()) return {std::string(program.status().message()), {}};
  Device device(*std::move(program));
  std::vector<uint8_t> tensor(2 * kRows * kColumns);
  for (unsigned i = 0; i < kRows * kColumns; ++i) {
    const auto number = static_cast<uint16_t>(i + 1);
    std::memcpy(tensor.data() + 2 * i, &number, 2);
  }
  const uint64_t address = device.Add(tensor, true);
  const uint64_t extents[] = {kColumns, kRows}, strides[] = {2 * kColumns};
  const unsigned box[] = {kRowBytes / 2, kBoxRows}, steps[] = {1, 1};
  const auto map = mock_cuda::MapBytes(9, 2, address, extents, strides, box, steps, 3);
  EXPECT_TRUE(map.has_value());
  const std::vector<uint8_t> unset(kRowBytes * kBoxRows);
  Launch launch;
  launch.block[0] = gpu::kTruthThreads;
  launch.seed = seed;
  launch.parameters = {device.Add(unset, false), unset.size()};
  launch.wide = {{map->begin(), map->end()}};
  Outcome outcome{std::string(device.Run("tma_tile", launch).message()), {}};
  outcome.out.resize(unset.size() / 2);
  std::memcpy(outcome.out.data(), device.Bytes(launch.parameters[0]).data(), unset.size());
  return outcome;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The truth table's kernel for a box from (column, row) on, its map the last parameter.
std::string KernelText(int column, int row) {
  std::string text = Replaced(gpu::TmaPtx(), ".param .align 64 .b8 map[128], ", "");
  text = Replaced(text, ".param .u32 bytes)", ".param .u32 bytes, .param .align 64 .b8 map[128])");
  text = Replaced(text, "mov.u32 %r9, 0;\n",
                  fmt::format("mov.u32 %r9, {};\nmov.u32 %r10, {};\n", column, row));
  return Replaced(text, "{%r9, %r9}", "{%r9, %r10}");
}

TEST(PtxBulkTest, ABoxLiesWhereTheSwizzleSays) {
  for (const auto& [column, row] : {std::pair{0, 0}, {16, 8}, {64, 16}}) {
    const Outcome ran = RunText(KernelText(column, row), static_cast<uint64_t>(column) + 3);
    ASSERT_EQ(ran.error, "");
    for (unsigned r = 0; r < kBoxRows; ++r) {
      for (unsigned c = 0; c < kRowBytes / 2; ++c) {
        const unsigned y = r + static_cast<unsigned>(row), x = c + static_cast<unsigned>(column);
        // Zeros outside of the tensor.
        const unsigned wanted = y < kRows && x < kColumns ? y * kColumns + x + 1 : 0;
        ASSERT_EQ(ran.out[gpu::Swizzled(r * kRowBytes + 2 * c, kRowBytes) / 2], wanted)
            << r << ", " << c;
      }
    }
  }
}

TEST(PtxBulkTest, FindsWhatIsForgotten) {
  // The first of several seeds that finds it.
  const auto why = [](const std::string& from, const std::string& to) {
    const std::string text = Replaced(KernelText(0, 0), from, to);
    std::string error;
    for (uint64_t seed = 1; seed < 9 && error.empty(); ++seed) error = RunText(text, seed).error;
    return error;
  };
  EXPECT_THAT(why("mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra spin;\n", ""),
              HasSubstr("copy"));
  EXPECT_THAT(why("[%r3], 0;\n@!%p2", "[%r3], 1;\n@!%p2"),
              AnyOf(HasSubstr("copy"), HasSubstr("nobody ends the phase")));
  EXPECT_THAT(why("[%r3], %r4;\n", "[%r3], 64;\n"), HasSubstr("nobody ends the phase"));
  EXPECT_THAT(why("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n", ""),
              HasSubstr("not shown by a fence"));
  EXPECT_THAT(why("ready:\nbar.sync 0;\n", "ready:\n"), HasSubstr("barrier"));
  EXPECT_THAT(why("mbarrier.init.shared::cta.b64 [%r3], 1;\n", ""), HasSubstr("no barrier at"));
  EXPECT_THAT(why("[%r3], 1;\n", "[%r3], 2;\n"), HasSubstr("nobody ends the phase"));
  EXPECT_THAT(why("[%r2], [%d1", "[%r2+64], [%d1"), HasSubstr("not aligned to 128"));
  EXPECT_THAT(why("cvta.param.u64 %d1, %d1;\n", "ld.param.u64 %d1, [out];\n"),
              HasSubstr("no parameter"));
  EXPECT_THAT(why("cvta.param.u64 %d1, %d1;\n", "add.u64 %d1, %d1, 8;\n"), HasSubstr("map"));
  EXPECT_THAT(why("tensor.2d", "tensor.3d"), HasSubstr("boxes of matrices"));
}

}  // namespace
}  // namespace hone::ptx

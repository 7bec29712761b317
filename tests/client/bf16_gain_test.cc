#include "client/bf16_gain.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/model_options.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kWide[] = "cpu:avx512+vnni+bf16,threads=2";

/// A processor that multiplies bf16 `gain` times as fast as f32; 0: not at all.
class FakeProbe final : public measure::DeviceProbe {
 public:
  explicit FakeProbe(double gain) : gain_(gain) {}
  absl::StatusOr<measure::DeviceRates> Rates(const ir::Target&,
                                             const MonotonicClock&) const override {
    constexpr double kFma = 1e11;
    return measure::DeviceRates{.operations_per_second = {kFma, 4 * kFma, gain_ * kFma},
                                .caches = {},
                                .memory_bytes_per_second = 0};
  }
  absl::StatusOr<double> Noise(const ir::Target&, const MonotonicClock&) const override {
    return 0.0;
  }
  int64_t CacheBytes(const ir::Target&) const override { return 0; }

 private:
  const double gain_;
};

ir::Target TargetOf(const std::string& text) {
  ir::Target target;
  std::string why;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &why)) << why;
  return target;
}

std::string Chosen(double gain) {
  const ir::Target wide = TargetOf(kWide);
  return WithoutSlowBf16(wide, Bf16Gain(FakeProbe(gain), wide, SystemMonotonicClock())).text;
}

// Intel's Xeons do vdpbf16ps at half or a quarter of the rate of FMA, Zen at all of it.
TEST(Bf16GainTest, TheRatesThatAreProbedDecide) {
  EXPECT_EQ(Chosen(2.0), kWide);
  EXPECT_EQ(Chosen(1.3), kWide);
  EXPECT_EQ(Chosen(1.0), "cpu:avx512+vnni,threads=2");
  EXPECT_EQ(Chosen(0.5), "cpu:avx512+vnni,threads=2");
  EXPECT_EQ(Chosen(0), kWide) << "nothing was measured";
  EXPECT_EQ(WithoutSlowBf16(TargetOf("cpu:avx2,threads=3"), 0.5).text, "cpu:avx2,threads=3");
}

TEST(Bf16GainTest, TheNoteSaysWhyAndWhatRoundsAllTheSame) {
  const ir::Target target = TargetOf("cpu:avx512+vnni,threads=2");
  EXPECT_EQ(KeptInF32Text(target, 0.98),
            "this processor multiplies bf16 at 0.98 times the rate of f32: --precision bf16 leaves "
            "products in f32, but for large weights that at most 8 rows read; --target "
            "cpu:native+bf16 rounds all the same\n");
  EXPECT_EQ(KeptInF32Text(target, std::nullopt),
            "cpu:avx512+vnni has no products of bf16: --precision bf16 leaves products in f32, but "
            "for large weights that at most 8 rows read\n");
}

TEST(Bf16GainTest, OnlyWhatThisMachineMayChooseIsChosen) {
  Arguments arguments(*FindCommand("run"));
  arguments.Set("precision", {"bf16"});
  arguments.Set("target", {"cpu:avx512+vnni+bf16,threads=2"});
  EXPECT_EQ(*ReadTarget(arguments), kWide) << "a target that is named is as it is everywhere";
  EXPECT_EQ(KeptInF32Note(arguments, kWide), "");
  EXPECT_THAT(KeptInF32Note(arguments, "cpu:avx2,threads=2"),
              HasSubstr("cpu:avx2 has no products of bf16"));
  EXPECT_TRUE(IsPlainNative("cpu:native"));
  EXPECT_TRUE(IsPlainNative("cpu:native,threads=4"));
  EXPECT_FALSE(IsPlainNative("cpu:native+bf16"));
  EXPECT_FALSE(IsPlainNative("cpu:avx512+bf16"));

  // Whatever machine this is: native is one of two, and a note stands beside the one without.
  arguments.Set("target", {"cpu:native"});
  arguments.Set("threads", {"2"});
  const std::string native = *ReadTarget(arguments), best = ir::ResolveNative("cpu:native", 2);
  EXPECT_THAT(native, AnyOf(best, WithoutSlowBf16(TargetOf(best), 0.5).text));
  EXPECT_EQ(KeptInF32Note(arguments, native).empty(), native.find("+bf16") != std::string::npos);
  arguments.Set("precision", {"f32"});
  EXPECT_EQ(*ReadTarget(arguments), best);
  EXPECT_EQ(KeptInF32Note(arguments, best), "");
}

TEST(Bf16GainTest, CompilingSaysWhatStaysInF32) {
  const testing::TemporaryFolder folder;
  const std::string model = folder.Path("mlp.onnx");
  ASSERT_EQ(testing::RunHone({"zoo", "mlp", "-o", model}).exit_code, 0);
  const testing::ProgramRun run =
      testing::RunHone({"compile", model, "--no-log", "--precision", "bf16", "--target",
                        "cpu:avx2,threads=1", "-o", folder.Path("m.hone")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("cpu:avx2 has no products of bf16"));
  EXPECT_THAT(run.out, HasSubstr("precision bf16"));
}

}  // namespace
}  // namespace hone::client

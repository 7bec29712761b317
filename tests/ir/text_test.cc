#include "ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/core/random.h"
#include "ir/half.h"
#include "ir/verify.h"
#include "ir/workload_builder.h"

namespace hone::ir {
namespace {

std::string Roundtrip(const std::string& text) {
  const absl::StatusOr<Workload> w = ParseWorkload(text);
  return w.ok() ? ToText(*w) : std::string(w.status().message());
}

constexpr char kEverything[] =
    "workload 1\n"
    "x0: f32[1,56,56,64] input range(-1,1)\n"
    "x1: f32[64,64,3,3] constant\n"
    "x2: i64[4] input range(0,30522)\n"
    "x3: f32[2,2] immediate {1, -0.5, 0, 1e-30}\n"
    "x4: u8[3] immediate {0, 255, 7}\n"
    "x5: f16[] constant\n"
    "s0: f32[1,56,56,64] = sum[r0:3,r1:3,r2:64] (select(i1 + r0 - 1 >= 0 & i1 + r0 - 1 < 56 & "
    "(i2 + r1 - 1 >= 0 & i2 + r1 - 1 < 56), x0[i0, i1 + r0 - 1, i2 + r1 - 1, r2], 0.0) * "
    "x1[i3, r2, r0, r1])\n"
    "s1: f32[4,64] output = x0[0, x2[i0] // 56 % 56, 3, i1]\n"
    "s2: f32[64], s2.1: i64[64] output = argmax[r0:56] (s0[0, r0, 0, i0], r0)\n"
    "s3: f32[9,4] scan 0 = select(i0 >= 1, s4[i0 - 1, i1], -inf) * 2.5 + f32(x5[])\n"
    "s4: f32[9,4] scan 0 = s3[i0, i1] * (1.0 - (s3[i0, i1] - 0.1))\n"
    "s5: f32[1,8,8,4] output over [i0:1,i1:4,i2:4,i3:16] at [i0, 2 * i1 + i3 // 8, 2 * i2 + i3 // "
    "4 % 2, "
    "i3 % 4] = exp(s0[i0, i1, i2, i3]) / tdiv(3.0, nan)\n"
    "s6: bool[3] output = (i0 < 2) == (not(true) | false ^ x4[i0] > 3:u8)\n"
    "s7: u64[2] output = 18446744073709551615:u64 >> u64(i0 << 3) & 5:u64\n"
    "s8: f64[2], s8.1: f64[2] output = sum_sumsq[r0:4,r1:2] (0.1:f64, 0.1:f64)\n"
    "s9: i64[2] output = -9223372036854775808 - -1\n"
    "s10: f16[2] output = 0.099975586:f16 + inf:f16\n"
    "s11: f32[2] output = max[] (-0.0 - neg(-1e+20) + select(isnan(s4[8, i0]), pow(2.0, x3[i0, "
    "i0]), "
    "3.4028235e+38))\n"
    "s12: f32[] output = 1e-45\n";

TEST(TextTest, EveryFormReadsBackToItself) { EXPECT_EQ(Roundtrip(kEverything), kEverything); }

TEST(TextTest, ReadsMeaningNotOnlyText) {
  const absl::StatusOr<Workload> w = ParseWorkload(kEverything);
  ASSERT_TRUE(w.ok()) << w.status();
  ASSERT_EQ(w->stages.size(), 13U);
  const Stage& conv = w->stages[0];
  EXPECT_EQ(conv.combiner, Combiner::kSum);
  EXPECT_EQ(conv.spatial, (std::vector<int64_t>{1, 56, 56, 64}));
  EXPECT_EQ(conv.reduce, (std::vector<int64_t>{3, 3, 64}));
  EXPECT_EQ(conv.body[0]->args[1]->args[1]->id, 6) << "r2 is the axis after four spatial ones";
  EXPECT_EQ(w->tensors[3].immediate,
            (std::vector<double>{1, -0.5, 0, static_cast<double>(1e-30F)}));
  EXPECT_EQ(w->tensors[2].range, (ValueRange{0, 30522}));
  EXPECT_EQ(w->stages[3].scan, 0);
  EXPECT_EQ(w->stages[5].spatial, (std::vector<int64_t>{1, 4, 4, 16}));
  EXPECT_EQ(w->stages[5].store.size(), 4U);
  EXPECT_TRUE(w->tensors[static_cast<size_t>(w->stages[5].results[0])].output);
  EXPECT_FALSE(w->tensors[static_cast<size_t>(w->stages[4].results[0])].output);
  EXPECT_EQ(w->FindTensor("s2.1"), w->stages[2].results[1]);
}

TEST(TextTest, PrintsAndReadsPrecedenceExactly) {
  const ExprNames names{[](int id) { return "i" + std::to_string(id); },
                        [](int id) { return "x" + std::to_string(id); }};
  const Expr a = Var(0), b = Var(1), c = Var(2);
  EXPECT_EQ(ToText(a - (b - c), names), "i0 - (i1 - i2)");
  EXPECT_EQ(ToText(a - b - c, names), "i0 - i1 - i2");
  EXPECT_EQ(ToText((a + b) * c, names), "(i0 + i1) * i2");
  EXPECT_EQ(ToText(a + b * c, names), "i0 + i1 * i2");
  EXPECT_EQ(ToText(FloorMod(FloorDiv(a, 2), 3), names), "i0 // 2 % 3");
  EXPECT_EQ(ToText(FloorDiv(a * 2, 3), names), "i0 * 2 // 3");
  EXPECT_EQ(ToText(a * FloorDiv(b, 3), names), "i0 * (i1 // 3)");
  EXPECT_EQ(ToText(a + -1, names), "i0 + -1");
  EXPECT_EQ(ToText(InRange(a, 5), names), "i0 >= 0 & i0 < 5");
}

// A random well-typed expression over two axes and loads of f32, u8 and bool tensors.
class RandomExpr {
 public:
  explicit RandomExpr(Random* random) : random_(*random) {}

  Expr Make(DType type, int depth) {
    if (depth == 0 || random_.Chance(0.1)) return Leaf(type);
    const auto sub = [&](DType t) { return Make(t, depth - 1); };
    switch (random_.Below(5)) {
      case 0: return Cast(type, sub(static_cast<DType>(random_.Below(kNumDTypes))));
      case 1: return Select(sub(DType::kBool), sub(type), sub(type));
      case 2: {
        const auto op = static_cast<UnaryOp>(random_.Below(kNumUnaryOps));
        if (ResultType(op, type) == type) return Unary(op, sub(type));
        break;
      }
      default: {
        const auto op = static_cast<BinaryOp>(random_.Below(kNumBinaryOps));
        const DType from = IsComparison(op) ? static_cast<DType>(random_.Below(kNumDTypes)) : type;
        if (ResultType(op, from) == type) return Binary(op, sub(from), sub(from));
      }
    }
    return Leaf(type);
  }

 private:
  Expr Leaf(DType type) {
    if (type == DType::kI64 && random_.Chance(0.5)) return Var(static_cast<int>(random_.Below(2)));
    if (type == DType::kF32 && random_.Chance(0.5)) {
      return Load(0, type, {Make(DType::kI64, 1), Make(DType::kI32, 1)});
    }
    if (!IsFloat(type)) return ConstInt(type, static_cast<int64_t>(random_.Next()));
    const uint64_t bits = random_.Next();
    return Const(type, random_.Chance(0.5) ? std::bit_cast<double>(bits)
                                           : static_cast<double>(random_.Between(-9, 9)) / 4);
  }

  Random& random_;
};

TEST(TextTest, RandomExpressionsReadBackEqual) {
  constexpr uint64_t kSeed = 20240601;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const auto type = static_cast<DType>(random.Below(kNumDTypes));
    Workload w;
    w.tensors.push_back({.name = "x0", .kind = TensorKind::kInput, .shape = {4, 4}});
    w.tensors.push_back({.name = "s0", .kind = TensorKind::kStage, .dtype = type, .shape = {4, 4}});
    w.tensors[1].output = true;
    Stage stage;
    stage.name = "s0";
    stage.spatial = {4, 4};
    stage.results = {1};
    stage.body = {RandomExpr(&random).Make(type, 5)};
    w.stages.push_back(stage);
    const std::string text = ToText(w);
    const absl::StatusOr<Workload> read = ParseWorkload(text);
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
    ASSERT_TRUE(Equal(read->stages[0].body[0], stage.body[0])) << text;
    ASSERT_EQ(ToText(*read), text);
  }
}

TEST(TextTest, EveryHalfAndManyFloatsReadBackToTheirBits) {
  const ExprNames none;
  const auto check = [&](DType type, double value) {
    const std::string text = NumberText(type, value);
    const std::string line = "workload 1\ns0: " + std::string(ToString(type)) +
                             "[] output = " + text + ":" + std::string(ToString(type)) + "\n";
    const absl::StatusOr<Workload> w = ParseWorkload(line);
    ASSERT_TRUE(w.ok()) << w.status() << text;
    const double read = w->stages[0].body[0]->float_value;
    ASSERT_EQ(std::bit_cast<uint64_t>(read), std::bit_cast<uint64_t>(value)) << text;
  };
  for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
    const double f16 = F16ToDouble(static_cast<uint16_t>(bits));
    const double bf16 = BF16ToDouble(static_cast<uint16_t>(bits));
    if (!std::isnan(f16)) check(DType::kF16, f16);
    if (!std::isnan(bf16)) check(DType::kBF16, bf16);
  }
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int i = 0; i < 5000; ++i) {
    const auto f32 =
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(random.Next())));
    const auto f64 = std::bit_cast<double>(random.Next());
    if (!std::isnan(f32)) check(DType::kF32, f32);
    if (!std::isnan(f64)) check(DType::kF64, f64);
  }
}

TEST(TextTest, ErrorsNameLineColumnAndCause) {
  const auto error = [](const std::string& body) {
    return Roundtrip("workload 1\nx0: f32[4,4] input range(-1,1)\n" + body + "\n");
  };
  const auto at = [](int column, const std::string& what) {
    return "workload text, line 3, column " + std::to_string(column) + ": " + what;
  };
  EXPECT_EQ(error("s0: f32[4] = x0[i0]"), at(20, "x0 has rank 2 and is loaded with 1 indices"));
  EXPECT_EQ(error("s0: f32[4] = x9[i0]"), at(14, "unknown tensor 'x9[i0]'"));
  EXPECT_EQ(error("s0: f32[4] = x0[i0, i1]"), at(21, "the Stage has no axis i1"));
  EXPECT_EQ(error("s0: f32[4] = i0 + 1.0"), at(17, "'add' does not take i64 and f32"));
  EXPECT_EQ(error("s0: f32[4] = i0"), at(16, "the body is i64, but s0 is f32"));
  EXPECT_EQ(error("s0: f32[4] = 1.0 // 2.0"),
            at(18, "'/' divides floats and '//' integers, this is f32"));
  EXPECT_EQ(error("s0: f32[4] = foo(1.0)"), at(14, "'foo' is no function"));
  EXPECT_EQ(error("s0: f32[4] = exp(1)"), at(14, "'exp' does not take i64"));
  EXPECT_EQ(error("s0: f32[4] = 1.0 2.0"), at(18, "expected the end of the line, found '2.0'"));
  EXPECT_EQ(error("x0: f32[4] constant"), at(1, "'x0' is declared twice"));
  EXPECT_EQ(error("max: f32[4] constant"), at(1, "'max' is a word of the language"));
  EXPECT_EQ(error("s0: u8[4] = 256:u8"), at(19, "256 is not a value of u8"));
  EXPECT_EQ(error("s0: f32[4] = 1e39"), at(18, "1e39 is out of range for f32"));
  EXPECT_EQ(error("x1: f32[3] immediate {1, 2}"),
            at(28, "the shape has 3 elements, but there are 2 values"));
  EXPECT_EQ(error("s0: f32[99999999999999999999] = 1.0"), at(9, "an extent is out of range"));
  EXPECT_EQ(error("s0: f32[4], s1: f32[4] = argmax[r0:4] (1.0)"),
            at(44, "the Stage has 2 results and 1 bodies"));
  EXPECT_EQ(Roundtrip(""),
            "workload text, line 1, column 1: expected 'workload 1', found the end of the line");
  EXPECT_EQ(Roundtrip("workload 2\n"),
            "workload text, line 1, column 11: version 2 of the text is newer than this program");
}

TEST(TextTest, CommentsAndBlankLinesAreSkipped) {
  EXPECT_EQ(Roundtrip("# a matmul\n\nworkload 1 # v\n\n  s0 : f32[ 4 ]  output = 1.0  # one\n"),
            "workload 1\ns0: f32[4] output = 1.0\n");
}

TEST(TextTest, DeepAndHugeTextsAreRefused) {
  const std::string head = "workload 1\ns0: f32[] = ";
  const auto repeat = [](const std::string& part, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += part;
    return all;
  };
  EXPECT_NE(Roundtrip(head + repeat("(", 100000)).find("nested too deeply"), std::string::npos);
  EXPECT_NE(Roundtrip(head + repeat("exp(", 100000)).find("nested too deeply"), std::string::npos);
  EXPECT_NE(Roundtrip(head + "1.0" + repeat(" + 1.0", 100000)).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(Roundtrip(head + repeat("x[", 100000)).find("unknown tensor"), std::string::npos);
  EXPECT_NE(Roundtrip(std::string(5 << 20, ' ')).find("more than the limit"), std::string::npos);
  std::string wide = "workload 1\nx0: f32[1] constant\n";
  for (int s = 0; s < 1200; ++s) {
    wide += "s" + std::to_string(s) + ": i64[] = " + "max(" + repeat("0+0+", 100) + "0,0)\n";
  }
  EXPECT_NE(Roundtrip(wide).find("too many expressions"), std::string::npos);
}

// The parser reads logs that somebody merged. Mutations of valid texts must end in a Workload or a
// Status.
TEST(TextFuzzTest, MutatedTextsNeverCrash) {
  constexpr uint64_t kSeed = 42;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  const std::string seed_text = kEverything;
  const std::string alphabet = "()[]{},:+-*/%<>=&|^#. \n019eirxsfu\0\xff";
  int accepted = 0;
  int verified = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed_text;
    const auto edits = 1 + random.Below(4);
    for (uint64_t k = 0; k < edits && !text.empty(); ++k) {
      const size_t at = random.Below(text.size());
      const size_t length = std::min<size_t>(random.Below(20), text.size() - at);
      switch (random.Below(5)) {
        case 0: text[at] = alphabet[random.Below(alphabet.size())]; break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, text.substr(random.Below(text.size()), length)); break;
        case 3: text.insert(at, 1, alphabet[random.Below(alphabet.size())]); break;
        default: text.resize(at); break;
      }
    }
    const absl::StatusOr<Workload> w = ParseWorkload(text);
    if (!w.ok()) {
      ASSERT_EQ(w.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    const std::string printed = ToText(*w);
    ASSERT_EQ(Roundtrip(printed), printed) << text;
    verified += Verify(*w).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 200) << "mutations should sometimes be valid";
  EXPECT_LT(verified, accepted) << "some parse, but mean nothing";
  EXPECT_LT(accepted, 19000) << "mutations should mostly be invalid";
}

}  // namespace
}  // namespace hone::ir

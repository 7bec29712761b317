#include "schedule/algorithms/causal_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/index/simplify.h"
#include "ir/text.h"
#include "schedule/cpu/attention.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// Attention under a causal mask: blocks of keys that no row of a block sees are not computed, and
// the result is that of the plain form.
namespace hone::schedule {
namespace {

struct Sizes {
  int64_t heads, rows, keys, offset, depth, width;
};

constexpr char kLowest[] = "-3.4028235e+38";

/// softmax of `score` (made of s1, which is the scaled product) times the values; `after` divides
/// after the second product.
std::string Attention(const Sizes& n, const std::string& score, bool after = false) {
  std::string text = fmt::format(
      "workload 1\nx0: f32[{0},{1},{3}] input range(-1,1)\nx1: f32[{0},{2},{3}] input range(-1,1)\n"
      "x2: f32[{0},{2},{4}] input range(-1,1)\nx3: f32[{2}] input range(-1,1)\n",
      n.heads, n.rows, n.keys, n.depth, n.width);
  const std::string all = fmt::format("f32[{},{},{}]", n.heads, n.rows, n.keys);
  const std::string row = fmt::format("f32[{},{}]", n.heads, n.rows);
  const std::string out = fmt::format("f32[{},{},{}]", n.heads, n.rows, n.width);
  text += fmt::format("s0: {} = sum[r0:{}] (x0[i0, i1, r0] * x1[i0, i2, r0])\n", all, n.depth);
  text += fmt::format("s1: {} = s0[i0, i1, i2] * 0.25\n", all);
  text += fmt::format("s2: {} = {} + x3[i2] * 0.0\n", all, "s1[i0, i1, i2]");
  text += fmt::format("s3: {} = {}\n", all, score);
  text += fmt::format("s4: {} = max[r0:{}] (s3[i0, i1, r0])\n", row, n.keys);
  text += fmt::format("s5: {} = exp(s3[i0, i1, i2] - s4[i0, i1])\n", all);
  text += fmt::format("s6: {} = sum[r0:{}] (s5[i0, i1, r0])\n", row, n.keys);
  if (after) {
    text += fmt::format("s7: {} = sum[r0:{}] (s5[i0, i1, r0] * x2[i0, r0, i2])\n", out, n.keys);
    return text + fmt::format("s8: {} output = s7[i0, i1, i2] / s6[i0, i1]\n", out);
  }
  return text + fmt::format("s7: {} output = sum[r0:{}] (s5[i0, i1, r0] * (1.0 / s6[i0, i1]) * "
                            "x2[i0, r0, i2])\n",
                            out, n.keys);
}

std::string Causal(const Sizes& n, const std::string& hidden = "-inf") {
  return fmt::format("select(i1 + {} >= i2, s1[i0, i1, i2], {})", n.offset, hidden);
}

Trace Planned(const ir::Workload& workload, const std::string& target, int64_t rows, int64_t keys) {
  TraceWriter writer(workload);
  const AttentionChoice choice{.tile = {3, 2}, .query_rows = rows, .key_block = keys};
  EXPECT_TRUE(PlanAttention(writer, choice, TargetOf(target)).ok()) << ir::ToText(workload);
  return writer.trace();
}

bool HasCondition(const ir::Stmt& s) {
  return s->kind == ir::StmtKind::kIf || std::ranges::any_of(s->body, HasCondition);
}

/// How often sums of products are added to, conditions taken as they fall.
int64_t MultiplyAdds(const ir::Stmt& s, std::vector<ir::Expr>& vars) {
  const auto inside = [&] {
    int64_t sum = 0;
    for (const ir::Stmt& inner : s->body) sum += MultiplyAdds(inner, vars);
    return sum;
  };
  switch (s->kind) {
    case ir::StmtKind::kBlock: return inside();
    case ir::StmtKind::kFor: {
      const auto var = static_cast<size_t>(s->var);
      if (vars.size() <= var) vars.resize(var + 1);
      if (!HasCondition(ir::Block(s->body))) return s->extent * inside();
      int64_t sum = 0;
      for (int64_t k = 0; k < s->extent; ++k) {
        vars[var] = ir::Int(k);
        sum += inside();
      }
      return sum;
    }
    case ir::StmtKind::kIf: {
      const auto taken = ir::Decide(ir::SubstituteVars(s->condition, vars), {});
      EXPECT_TRUE(taken.has_value());
      return taken.value_or(true) ? inside() : 0;
    }
    case ir::StmtKind::kStore: {
      const ir::Expr& value = s->values[0];
      const bool product = s->combiner == ir::Combiner::kSum &&
                           value->kind == ir::ExprKind::kBinary &&
                           value->binary() == ir::BinaryOp::kMul;
      return product ? 1 : 0;
    }
    default: return 0;
  }
}
int64_t MultiplyAdds(const ir::LoopNest& nest) {
  int64_t sum = 0;
  for (const ir::Phase& phase : nest.phases) {
    std::vector<ir::Expr> vars;
    sum += MultiplyAdds(phase.body, vars);
  }
  return sum;
}
int64_t MultiplyAdds(const std::string& text, int64_t rows, int64_t keys) {
  const ir::Workload workload = WorkloadOf(text);
  const std::string target = "cpu:avx512,threads=2";
  const auto lowered =
      LowerTrace(workload, Planned(workload, target, rows, keys), TargetOf(target), {}, "k");
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? MultiplyAdds(lowered->nest) : -1;
}

TEST(CausalAttention, EqualsTheInterpreterAtRandomSizes) {
  Random random(26);
  const auto pick = [&](int64_t low, int64_t high) { return random.Between(low, high); };
  for (int k = 0; k < 16; ++k) {
    Sizes n{pick(1, 3), pick(2, 40), pick(2, 70), 0, pick(1, 9), pick(9, 40)};
    if (k % 2 == 1) n.offset = pick(1, n.keys);
    if (k % 8 == 7) n.offset = n.keys - 2;
    const std::string text = Attention(n, Causal(n, k % 3 == 0 ? kLowest : "-inf"), k % 4 >= 2);
    const ir::Workload workload = WorkloadOf(text);
    for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
      SCOPED_TRACE(fmt::format("{} {}", target, text));
      const Trace trace = Planned(workload, target, pick(1, 24), pick(4, 40));
      const CheckResult result =
          CheckTrace(workload, trace, {.target = target, .compile = true, .slack = 2e-5});
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(trace);
    }
    // Every Stage a phase of its own, all iterations kept.
    const auto stepped = TraceOf("s9 = algorithm(s7, online_softmax, 2)");
    const CheckResult result = CheckTrace(workload, stepped, {.slack = 2e-5});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << text;
  }
}

TEST(CausalAttention, HiddenBlocksAreNotComputed) {
  // 8 blocks of 16 rows see the first 1, 1, 2, 2, 3, 3, 4, 4 blocks of 32 keys.
  const Sizes square{2, 128, 128, 0, 4, 16};
  const int64_t block = 2 * 16 * 32 * (4 + 16);
  EXPECT_EQ(MultiplyAdds(Attention(square, Causal(square)), 16, 32), 20 * block);
  EXPECT_EQ(MultiplyAdds(Attention(square, Causal(square, kLowest)), 16, 32), 20 * block);
  EXPECT_EQ(MultiplyAdds(Attention(square, Causal(square), true), 16, 32), 20 * block);
  EXPECT_EQ(MultiplyAdds(Attention(square, "s1[i0, i1, i2]"), 16, 32), 32 * block);
  // One key more: at the last row of every second block another block begins.
  Sizes shifted = square;
  shifted.offset = 1;
  EXPECT_EQ(MultiplyAdds(Attention(shifted, Causal(shifted)), 16, 32), 23 * block);
  // Two blocks of rows at the end of many keys: 65 to 96 are 3 blocks, 97 to 128 are 4.
  const Sizes last{2, 32, 128, 64, 4, 16};
  EXPECT_EQ(MultiplyAdds(Attention(last, Causal(last)), 16, 32), (3 + 3) * block);
}

TEST(CausalAttention, OtherMasksHideNoBlock) {
  const Sizes n{2, 128, 128, 0, 4, 16};
  const int64_t all = MultiplyAdds(Attention(n, "s1[i0, i1, i2]"), 16, 32);
  const std::string others[] = {
      // Hidden too little.
      Causal(n, "-1e9"),
      Causal(n, "0.0"),
      // Beside what may be as low, the lowest float hides nothing.
      fmt::format("select(i1 >= i2, s2[i0, i1, i2], {})", kLowest),
      // The first row sees nothing, keys before a row, of another slope.
      "select(i1 - 1 >= i2, s1[i0, i1, i2], -inf)",
      "select(i2 >= i1, s1[i0, i1, i2], -inf)",
      "select(i1 * 2 >= i2, s1[i0, i1, i2], -inf)",
      "select(i1 >= i2, s1[i0, i1, i2], -inf) + x3[i2]",
  };
  for (const std::string& score : others)
    EXPECT_EQ(MultiplyAdds(Attention(n, score), 16, 32), all) << score;
  EXPECT_LT(MultiplyAdds(Attention(n, "select(i1 >= i2, s2[i0, i1, i2], -inf)"), 16, 32), all);
}

TEST(CausalAttention, TheDefaultLeavesNearlyHalfOut) {
  const Sizes n{2, 1024, 1024, 0, 4, 16};
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
    const ir::Workload workload = WorkloadOf(Attention(n, Causal(n, kLowest)));
    const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
    const auto lowered =
        LowerTrace(workload, *space.TraceOf(space.DefaultId()), TargetOf(target), {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const double all = 2.0 * 1024 * 1024 * (4 + 16);
    EXPECT_LT(static_cast<double>(MultiplyAdds(lowered->nest)), 0.54 * all) << target;
  }
}

// What is carried of a large result stays in place: a block that is hidden from some rows of a
// block leaves them as they are.
TEST(CausalAttention, IterationsOverwriteTheOnesBefore) {
  const Sizes n{8, 64, 64, 0, 2, 64};
  const ir::Workload workload = WorkloadOf(Attention(n, Causal(n)));
  const std::string target = "cpu:avx2,threads=2";
  const CheckResult result = CheckTrace(workload, Planned(workload, target, 16, 8),
                                        {.target = target, .compile = true, .slack = 2e-5});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  int64_t largest = 0;
  for (const auto& b : result.lowered.artifact.workspace) largest = std::max(largest, b.bytes);
  EXPECT_EQ(largest, int64_t{8} * 64 * 64 * 4);
}

}  // namespace
}  // namespace hone::schedule

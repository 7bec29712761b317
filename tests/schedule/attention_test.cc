#include "schedule/cpu/attention.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/text.h"
#include "schedule/schedule.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// Attention in one phase: every way of scheduling it equals the interpreter, as a loop nest and as
// code.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Sizes {
  int64_t heads, rows, keys, depth, width;
};

/// Heads stand inside the rows of queries, keys and values, as a projection leaves them; `mask`
/// adds a bias a key; `stored` turns the result back; `after` divides after the second product.
std::string Attention(const Sizes& n, bool mask, bool stored, bool after) {
  const auto all = [&](const std::string& what) {
    return fmt::format("f32[{},{},{}]{}", n.heads, n.rows, what == "scores" ? n.keys : n.width, "");
  };
  std::string text = fmt::format(
      "workload 1\nx0: f32[{1},{0},{3}] input range(-1,1)\nx1: f32[{2},{0},{3}] input "
      "range(-1,1)\n",
      n.heads, n.rows, n.keys, n.depth);
  if (mask) text += fmt::format("x2: f32[{}] input range(-1,1)\n", n.keys);
  const std::string v = mask ? "x3" : "x2";
  text += fmt::format("{}: f32[{},{},{}] input range(-1,1)\n", v, n.keys, n.heads, n.width);
  const std::string scores = all("scores"), out = all("out");
  const std::string row = fmt::format("f32[{},{}]", n.heads, n.rows);
  text += fmt::format("s0: {} = sum[r0:{}] (x0[i1, i0, r0] * x1[i2, i0, r0])\n", scores, n.depth);
  text += fmt::format("s1: {} = s0[i0, i1, i2] * 0.25{}\n", scores, mask ? " + x2[i2]" : "");
  text += fmt::format("s2: {} = max[r0:{}] (s1[i0, i1, r0])\n", row, n.keys);
  text += fmt::format("s3: {} = exp(s1[i0, i1, i2] - s2[i0, i1])\n", scores);
  text += fmt::format("s4: {} = sum[r0:{}] (s3[i0, i1, r0])\n", row, n.keys);
  int next = 5;
  std::string weights = "s3";
  if (!after) {
    text += fmt::format("s5: {} = s3[i0, i1, i2] * (1.0 / s4[i0, i1])\n", scores);
    weights = "s5", next = 6;
  }
  text += fmt::format("s{}: {}{} = sum[r0:{}] ({}[i0, i1, r0] * {}[r0, i0, i2])\n", next, out,
                      stored ? "" : " output", n.keys, weights, v);
  if (!stored) return text;
  return text + fmt::format("s{}: f32[{},{},{}] output = s{}[i1, i0, i2]{}\n", next + 1, n.rows,
                            n.heads, n.width, next, after ? " / s4[i1, i0]" : "");
}

absl::StatusOr<Trace> PlannedTrace(const ir::Workload& workload, const ir::Target& target,
                                   const AttentionChoice& choice) {
  TraceWriter writer(workload);
  absl::Status planned = PlanAttention(writer, choice, target);
  if (!planned.ok()) return planned;
  return writer.trace();
}

void CheckAll(const std::string& text, const AttentionChoice& choice) {
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
    SCOPED_TRACE(fmt::format("{} rows {} keys {} lanes {} tile {}x{}", target, choice.query_rows,
                             choice.key_block, choice.lanes, choice.tile.rows,
                             choice.tile.vectors));
    const ir::Workload workload = WorkloadOf(text);
    const auto trace = PlannedTrace(workload, TargetOf(target), choice);
    ASSERT_TRUE(trace.ok()) << trace.status() << text;
    const CheckResult result =
        CheckTrace(workload, *trace, {.target = target, .compile = true, .slack = 2e-5});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n"
                                                   << text << "\n"
                                                   << ToText(*trace);
  }
}

TEST(AttentionSketch, RowsAndBlocksEqualTheInterpreter) {
  // Rows and keys that blocks do not divide, primes among them, and values that fill no vector.
  const Sizes sizes[] = {
      {2, 12, 40, 8, 24}, {3, 7, 13, 5, 9}, {1, 16, 64, 4, 64}, {2, 13, 37, 3, 9}};
  for (const Sizes& n : sizes) {
    for (int form = 0; form < 4; ++form) {
      const bool mask = form % 2 == 1, after = form == 2, stored = form >= 2;
      const std::string text = Attention(n, mask, stored, after);
      AttentionChoice choice;
      choice.tile = {3, 2};
      for (int64_t rows : {4, 64}) {
        for (int64_t keys : {0, 16}) {
          choice.query_rows = rows;
          choice.key_block = keys;
          CheckAll(text, choice);
        }
      }
    }
  }
}

TEST(AttentionSketch, RowsInTheLanesEqualTheInterpreter) {
  // Whole blocks of rows, one row over, most of a block over, and one block alone.
  const Sizes sizes[] = {
      {2, 32, 40, 8, 24}, {2, 33, 13, 5, 9}, {3, 47, 17, 20, 16}, {1, 16, 64, 4, 64}};
  for (const Sizes& n : sizes) {
    for (int form = 0; form < 4; ++form) {
      const bool mask = form % 2 == 1, after = form == 2, stored = form >= 2;
      AttentionChoice choice{.tile = {.rows = 5}, .lanes = true};
      for (const int64_t vectors : {1, 2}) {
        choice.tile.vectors = vectors;
        CheckAll(Attention(n, mask, stored, after), choice);
      }
    }
  }
}

// As PyTorch's exporter writes attention with a mask.
TEST(AttentionSketch, RowsWithoutProbabilitiesAreZeros) {
  for (const char* hidden : {"-inf", "nan"}) {
    const std::string text = absl::StrReplaceAll(
        Attention({2, 33, 40, 8, 24}, false, true, false),
        {{"s0[i0, i1, i2] * 0.25", fmt::format("select(i1 == 3, {}, s0[i0, i1, i2])", hidden)},
         {"s3[i0, i1, i2] * (1.0 / s4[i0, i1])",
          "select(isnan(s4[i0, i1]), 0.0, s3[i0, i1, i2] * (1.0 / s4[i0, i1]))"}});
    AttentionChoice choice{.tile = {.rows = 3, .vectors = 2}, .lanes = true};
    CheckAll(text, choice);
    choice.lanes = false;
    choice.query_rows = 8;
    CheckAll(text, choice);
    choice.key_block = 16;
    CheckAll(text, choice);
  }
}

// A bias a row and key, which is turned beside the queries.
TEST(AttentionSketch, RowsInTheLanesTurnTheirBias) {
  std::string text = Attention({2, 33, 13, 5, 9}, true, true, false);
  text = absl::StrReplaceAll(text, {{"x2: f32[13]", "x2: f32[33,13]"}, {"x2[i2]", "x2[i1, i2]"}});
  CheckAll(text, {.tile = {.rows = 4, .vectors = 2}, .lanes = true});
  text = absl::StrReplaceAll(text, {{"[33,13] input range(-1,1)", "[33,13] constant"}});
  CheckAll(text, {.tile = {.rows = 4, .vectors = 2}, .lanes = true});
}

TEST(AttentionSketch, RowsThatFillNoVectorAreNotInTheLanes) {
  const ir::Workload workload = WorkloadOf(Attention({2, 12, 40, 8, 24}, false, true, false));
  const AttentionChoice choice{.tile = {.rows = 4, .vectors = 1}, .lanes = true};
  EXPECT_EQ(PlannedTrace(workload, TargetOf("cpu:avx512,threads=2"), choice).status().message(),
            "attention: its rows fill no vector");
  EXPECT_TRUE(PlannedTrace(workload, TargetOf("cpu:avx2,threads=2"), choice).ok());
}

// Rows that are left over are computed as a whole vector, with some of those before.
TEST(AttentionSketch, WhatIsLeftOfTheRowsIsAWholeVector) {
  const ir::Workload workload = WorkloadOf(Attention({2, 37, 13, 4, 32}, false, true, false));
  const auto trace = PlannedTrace(workload, TargetOf("cpu:avx512,threads=2"),
                                  {.tile = {.rows = 4, .vectors = 2}, .lanes = true});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::string loops = Loops(ir::ToText(workload), ToText(*trace));
  EXPECT_THAT(loops, Not(::testing::ContainsRegex("vector v[0-9]+ < 5:")));
  EXPECT_THAT(loops, HasSubstr("+ 11]")) << "the first of the last five is the twelfth of sixteen";
}

TEST(AttentionSketch, ShortAttentionHasItsRowsInTheLanes) {
  const auto default_of = [&](const Sizes& n, const std::string& target, Trace* trace) {
    const Space space(WorkloadOf(Attention(n, true, true, false)), TargetOf(target),
                      ir::AccuracyClass::kDefault);
    *trace = *space.TraceOf(space.DefaultId());
    return space.ValuesText(space.DefaultId());
  };
  Trace trace;
  const std::string avx512 = "cpu:avx512,threads=2";
  for (const Sizes& n : {Sizes{2, 49, 49, 8, 32}, Sizes{4, 16, 64, 8, 8}, Sizes{1, 64, 64, 8, 8}}) {
    EXPECT_THAT(default_of(n, avx512, &trace), HasSubstr("attention/lanes"));
    const CheckResult result = CheckTrace(WorkloadOf(Attention(n, true, true, false)), trace,
                                          {.target = avx512, .compile = true, .slack = 2e-5});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
  // No vector of rows; one head, whose rows left over would make shares unequal.
  EXPECT_THAT(default_of({2, 15, 64, 8, 8}, avx512, &trace), Not(HasSubstr("attention")));
  EXPECT_THAT(default_of({1, 49, 64, 8, 8}, avx512, &trace), Not(HasSubstr("attention")));
  EXPECT_THAT(default_of({1, 49, 64, 8, 8}, "cpu:avx512,threads=1", &trace),
              HasSubstr("attention/lanes"));
}

TEST(AttentionSketch, ASpaceHoldsThemBesideEachOther) {
  const std::string target = "cpu:avx2,threads=2";
  const ir::Workload workload = WorkloadOf(Attention({2, 24, 80, 4, 16}, true, true, false));
  const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
  std::vector<std::string> names;
  for (const Sketch& s : space.sketches()) names.push_back(s.name);
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"attention/lanes", "attention/rows", "attention/online"}));
  uint64_t first = 0;
  for (const Sketch& s : space.sketches()) {
    if (s.name.starts_with("attention")) {
      for (uint64_t id : {first, first + s.Product() / 2, first + s.Product() - 1}) {
        SCOPED_TRACE(fmt::format("{} {}", s.name, id - first));
        EXPECT_TRUE(space.Admits(id));
        const auto trace = space.TraceOf(id);
        ASSERT_TRUE(trace.ok()) << trace.status();
        const CheckResult result = CheckTrace(workload, *trace, {.target = target, .slack = 2e-5});
        EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
      }
    }
    first += s.Product();
  }
}

TEST(AttentionSketch, LongAttentionIsByBlocksOfKeys) {
  const std::string target = "cpu:avx512,threads=2";
  const auto key_block = [&](const Sizes& n, Trace* trace) {
    const Space space(WorkloadOf(Attention(n, true, true, false)), TargetOf(target),
                      ir::AccuracyClass::kDefault);
    *trace = *space.TraceOf(space.DefaultId());
    return space.ValuesText(space.DefaultId());
  };
  Trace trace;
  EXPECT_THAT(key_block({2, 63, 256, 2, 8}, &trace), Not(HasSubstr("online")));
  EXPECT_THAT(key_block({2, 64, 255, 2, 8}, &trace), Not(HasSubstr("online")));
  for (const Sizes& n : {Sizes{2, 64, 256, 2, 8}, Sizes{2, 67, 521, 2, 8}}) {
    EXPECT_THAT(key_block(n, &trace), HasSubstr("attention/online"));
    const CheckResult result = CheckTrace(WorkloadOf(Attention(n, true, true, false)), trace,
                                          {.target = target, .compile = true, .slack = 2e-5});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

TEST(AttentionSketch, ManyThreadsGetEqualShares) {
  const ir::Workload workload = WorkloadOf(Attention({6, 1536, 256, 2, 8}, false, true, false));
  const auto rows = [&](const std::string& target) {
    const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
    return space.ValueOf(space.DefaultId(), "query_rows");
  };
  EXPECT_EQ(rows("cpu:avx512,threads=2"), 128);
  // 72 blocks of 128 rows would be two for some of the threads and one for the others.
  EXPECT_EQ(rows("cpu:avx512,threads=64"), 32);
}

// Keys beyond the last one are in the copies, so that no step of a product asks for them.
TEST(AttentionSketch, ProductsHaveNoConditionsWhereBlocksDoNotDivideTheKeys) {
  const ir::Workload workload = WorkloadOf(Attention({2, 12, 40, 8, 24}, true, true, false));
  AttentionChoice choice{.tile = {3, 1}, .query_rows = 4, .key_block = 16};
  const auto trace = PlannedTrace(workload, TargetOf("cpu:avx512,threads=2"), choice);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto schedule = Replay(workload, *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  int products = 0;
  for (const ir::Stage& stage : schedule->workload.stages) {
    if (stage.combiner != ir::Combiner::kSum || stage.body[0]->kind == ir::ExprKind::kLoad)
      continue;
    EXPECT_EQ(stage.body[0]->kind, ir::ExprKind::kBinary) << stage.name;
    ++products;
  }
  EXPECT_GE(products, 2);
}

TEST(AttentionSketch, IsRefusedWhereSomethingElseStandsBeside) {
  AttentionChoice choice;
  choice.query_rows = 4;
  const auto reason = [&](const std::string& text) {
    return std::string(
        PlannedTrace(WorkloadOf(text), TargetOf("cpu:avx2,threads=2"), choice).status().message());
  };
  EXPECT_EQ(reason("workload 1\nx0: f32[4] input range(-1,1)\ns0: f32[4] output = x0[i0]\n"),
            "attention: there is none");
  const std::string text = Attention({2, 12, 40, 8, 24}, false, true, false);
  EXPECT_EQ(reason(text + "s8: f32[12] output = sum[r0:24] (s7[i0, 0, r0])\n"),
            "attention: s8 stands beside it");
  EXPECT_THAT(Loops(Attention({2, 12, 40, 8, 24}, false, true, true),
                    "s7 = algorithm(s5, late_quotient, 0)"),
              HasSubstr("the weights of s5 are not divided"));
  EXPECT_THAT(Loops(text, "s8 = algorithm(s0, late_quotient, 0)"), HasSubstr("s0 is no attention"));
  EXPECT_EQ(reason(text + "s8: f32[2,12,24] output = s6[i0, i1, i2] + 1.0\n"),
            "attention: its result has several readers");
}

}  // namespace
}  // namespace hone::schedule

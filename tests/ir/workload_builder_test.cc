#include "ir/workload_builder.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace hone::ir {
namespace {

TEST(WorkloadBuilderTest, MatmulBiasReluIsCanonical) {
  WorkloadBuilder b;
  const int unused = b.AddInput(DType::kF32, {3});
  const int bias = b.AddConstant(DType::kF32, {4});
  const int w = b.AddConstant(DType::kF32, {16, 4});
  const int x = b.AddInput(DType::kF32, {8, 16});
  const int dead = b.AddMap({3}, b.At(unused, {Var(0)}));
  const int dot = b.AddReduce({8, 4}, {16}, Combiner::kSum,
                              b.At(x, {Var(0), Var(2)}) * b.At(w, {Var(2), Var(1)}));
  const int out = b.AddMap(
      {8, 4}, Max(b.At(dot, {Var(0), Var(1)}) + b.At(bias, {Var(1)}), Const(DType::kF32, 0)));
  b.MarkOutput(out);
  const WorkloadBuilder::Result result = b.Finish();
  EXPECT_EQ(ToText(result.workload),
            "workload 1\n"
            "x0: f32[8,16] input range(-1,1)\n"
            "x1: f32[16,4] constant\n"
            "x2: f32[4] constant\n"
            "s0: f32[8,4] = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n"
            "s1: f32[8,4] output = max(s0[i0, i1] + x2[i1], 0.0)\n");
  EXPECT_EQ(result.canonical[static_cast<size_t>(x)], 0);
  EXPECT_EQ(result.canonical[static_cast<size_t>(w)], 1);
  EXPECT_EQ(result.canonical[static_cast<size_t>(bias)], 2);
  EXPECT_EQ(result.canonical[static_cast<size_t>(dot)], 3);
  EXPECT_EQ(result.canonical[static_cast<size_t>(out)], 4);
  EXPECT_EQ(result.canonical[static_cast<size_t>(unused)], -1);
  EXPECT_EQ(result.canonical[static_cast<size_t>(dead)], -1);
  EXPECT_EQ(result.workload.Outputs(), std::vector<int>{4});
  EXPECT_EQ(result.workload.Inputs(), std::vector<int>{0});
  EXPECT_EQ(result.workload.Readers(0), std::vector<int>{1});
  EXPECT_EQ(result.workload.Producer(3), 0);
}

TEST(WorkloadBuilderTest, OrderOfAdditionDoesNotMatter) {
  const auto build = [](bool swapped) {
    WorkloadBuilder b;
    const int x = b.AddInput(DType::kF32, {4});
    const auto scale = [&](double c) {
      return b.AddMap({4}, b.At(x, {Var(0)}) * Const(DType::kF32, c));
    };
    int p = -1, q = -1;
    if (swapped) {
      q = scale(3), p = scale(2);
    } else {
      p = scale(2), q = scale(3);
    }
    b.MarkOutput(b.AddMap({4}, b.At(p, {Var(0)}) - b.At(q, {Var(0)})));
    return ToText(b.Finish().workload);
  };
  EXPECT_EQ(build(false), build(true));
}

TEST(WorkloadBuilderTest, OutputReadByAnotherOutputComesFirst) {
  WorkloadBuilder b;
  const int x = b.AddInput(DType::kF32, {4});
  const int c = b.AddMap({4}, b.At(x, {Var(0)}) + b.At(x, {Var(0)}));
  const int read = b.AddMap({4}, Unary(UnaryOp::kExp, b.At(x, {Var(0)})));
  const int last = b.AddMap({4}, b.At(c, {Var(0)}) * b.At(read, {Var(0)}));
  b.MarkOutput(last);
  b.MarkOutput(read);
  const Workload w = b.Finish().workload;
  EXPECT_EQ(ToText(w),
            "workload 1\n"
            "x0: f32[4] input range(-1,1)\n"
            "s0: f32[4] output = exp(x0[i0])\n"
            "s1: f32[4] = x0[i0] + x0[i0]\n"
            "s2: f32[4] output = s1[i0] * s0[i0]\n");
  EXPECT_EQ(ToText(Canonicalise(w).workload), ToText(w));
}

TEST(WorkloadBuilderTest, ScanRegionStaysTogether) {
  // h[t] = c[t] + 1, c[t] = h[t-1] * 2 + x[t]; read outside by their last element.
  WorkloadBuilder b;
  const int x = b.AddInput(DType::kF32, {5, 3});
  const int scan = b.AddScan();
  const int h = b.ReserveResult(DType::kF32, {5, 3});
  const Expr t = Var(0);
  Stage c;
  c.spatial = {5, 3};
  c.scan = scan;
  c.body = {Select(Ge(t, Int(1)), b.At(h, {t - 1, Var(1)}), Const(DType::kF32, 0)) *
                Const(DType::kF32, 2) +
            b.At(x, {t, Var(1)})};
  const int ct = b.AddStage(c)[0];
  Stage hs;
  hs.spatial = {5, 3};
  hs.scan = scan;
  hs.body = {b.At(ct, {t, Var(1)}) + Const(DType::kF32, 1)};
  hs.results = {h};
  b.AddStage(hs);
  b.MarkOutput(b.AddMap({3}, b.At(ct, {Int(4), Var(0)})));
  const Workload w = b.Finish().workload;
  EXPECT_EQ(ToText(w),
            "workload 1\n"
            "x0: f32[5,3] input range(-1,1)\n"
            "s0: f32[5,3] scan 0 = select(i0 >= 1, s1[i0 - 1, i1], 0.0) * 2.0 + x0[i0, i1]\n"
            "s1: f32[5,3] scan 0 = s0[i0, i1] + 1.0\n"
            "s2: f32[3] output = s0[4, i0]\n");
  EXPECT_EQ(ToText(Canonicalise(w).workload), ToText(w));
}

TEST(WorkloadBuilderTest, TupleResultsAreNumbered) {
  WorkloadBuilder b;
  const int x = b.AddInput(DType::kF32, {2, 7}, {0, 5});
  Stage s;
  s.spatial = {2};
  s.reduce = {7};
  s.combiner = Combiner::kArgMax;
  s.body = {b.At(x, {Var(0), Var(1)}), Var(1)};
  b.MarkOutput(b.AddStage(s)[1]);
  EXPECT_EQ(ToText(b.Finish().workload),
            "workload 1\n"
            "x0: f32[2,7] input range(0,5)\n"
            "s0: f32[2], s0.1: i64[2] output = argmax[r0:7] (x0[i0, r0], r0)\n");
}

TEST(WorkloadTest, ElementCountsSaturate) {
  Tensor t;
  t.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(t.NumElements(), std::numeric_limits<int64_t>::max());
  t.shape = {};
  EXPECT_EQ(t.NumElements(), 1);
}

}  // namespace
}  // namespace hone::ir

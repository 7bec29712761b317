#include "codegen/codegen.h"
#include "tests/codegen/kernel.h"

// Buffers that are no memory: registers and tables.
namespace hone::codegen {
namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::For;
using ir::Int;
using ir::LoopKind;
using ir::Var;

Expr Load(int buffer, Expr index) { return ir::Load(buffer, DType::kF32, {std::move(index)}); }
Expr F(double value) { return ir::Const(DType::kF32, value); }

TEST(RegisterTest, ReadInAnotherShape) {
  // Written in vectors of 8, read in threes, backwards and one by one.
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 24);
  const int y = b.Output("y", DType::kF32, 72);
  const int acc = b.Register("acc", DType::kF32, 24);
  const int i = b.NewVar(), l = b.NewVar();
  const auto rows = [&](int64_t count, int64_t lanes, const ir::Stmt& body) {
    return For(i, count, LoopKind::kUnrolled, For(l, lanes, LoopKind::kVector, body));
  };
  const Expr at8 = Var(i) * 8 + Var(l), at3 = Var(i) * 3 + Var(l);
  b.AddPhase(
      "shapes",
      ir::Block({rows(3, 8, ir::Store(acc, at8, Load(x, at8))),
                 rows(8, 3, ir::Store(y, at3, Load(acc, at3))),
                 rows(3, 8, ir::Store(y, at8 + 24, Load(acc, at8 * -1 + 23))),
                 For(i, 24, LoopKind::kUnrolled, ir::Store(y, Var(i) + 48, Load(acc, Var(i))))}));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> xs(24), ys(72);
    for (size_t k = 0; k < xs.size(); ++k) xs[k] = static_cast<float>(k) + 1;
    kernel.Run("shapes", {xs.data(), ys.data()});
    for (size_t k = 0; k < xs.size(); ++k) {
      EXPECT_EQ(ys[k], xs[k]);
      EXPECT_EQ(ys[24 + k], xs[23 - k]);
      EXPECT_EQ(ys[48 + k], xs[k]);
    }
  });
}

TEST(RegisterTest, FilledInsideAVectorLoopIsEveryLanesOwn) {
  // A sum over rows in each lane, of x's columns, and one over all lanes.
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 5 * 11);
  const int y = b.Output("y", DType::kF32, 11);
  const int total = b.Output("total", DType::kF32, 1);
  const int acc = b.Register("acc", DType::kF32, 1);
  const int l = b.NewVar(), k = b.NewVar();
  const ir::Stmt add = ir::Store(acc, Int(0), Load(x, Var(k) * 11 + Var(l)), Combiner::kSum);
  b.AddPhase("columns",
             For(l, 11, LoopKind::kVector,
                 ir::Block({ir::Fill(acc, 1, F(1)), For(k, 5, LoopKind::kSerial, add),
                            ir::Store(y, Var(l), Load(acc, Int(0))),
                            ir::Store(total, Int(0), Load(acc, Int(0)), Combiner::kSum)})));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> xs(55), ys(11);
    for (size_t at = 0; at < xs.size(); ++at) xs[at] = static_cast<float>(at);
    float sum = 0;
    kernel.Run("columns", {xs.data(), ys.data(), &sum});
    for (size_t lane = 0; lane < 11; ++lane) {
      EXPECT_EQ(ys[lane], 1 + 5 * static_cast<float>(lane) + 11 * 10);
    }
    EXPECT_EQ(sum, 11 + 54 * 55 / 2);
  });
}

TEST(RegisterTest, TablesOfOnesBecomeAdditions) {
  // y = A x for a matrix of 0, 1 and -1, unrolled: no multiplication, no load of the matrix.
  NestBuilder b;
  const std::vector<double> matrix = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
  const int x = b.Input("x", DType::kF32, 4 * 8);
  const int y = b.Output("y", DType::kF32, 4 * 8);
  const int a = b.Table("a", DType::kF32, matrix);
  const int acc = b.Register("acc", DType::kF32, 4 * 8);
  const int r = b.NewVar(), k = b.NewVar(), l = b.NewVar();
  const auto rows = [&](const ir::Stmt& body) {
    const ir::Stmt columns = For(k, 4, LoopKind::kUnrolled, For(l, 8, LoopKind::kVector, body));
    return For(r, 4, LoopKind::kUnrolled, columns);
  };
  const Expr at = Var(r) * 8 + Var(l);
  const Expr product = Load(a, Var(r) * 4 + Var(k)) * Load(x, Var(k) * 8 + Var(l));
  b.AddPhase("apply",
             ir::Block({ir::Fill(acc, 32, F(0)), rows(ir::Store(acc, at, product, Combiner::kSum)),
                        rows(ir::Store(y, at, Load(acc, at)))}));
  const auto text = Assembly({&b.nest}, MakeTarget("avx512"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "vmul|vfn?m"), 0U) << *text;
  EXPECT_EQ(CountOf(*text, "vaddps|vsubps"), 4U) << *text;
  ForEachTarget(b.nest, [&](const Kernel& kernel) {
    std::vector<float> xs(32), ys(32);
    for (size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i * i);
    kernel.Run("apply", {xs.data(), ys.data()});
    for (size_t i = 0; i < ys.size(); ++i) {
      double expected = 0;
      for (size_t column = 0; column < 4; ++column) {
        expected += matrix[i / 8 * 4 + column] * xs[column * 8 + i % 8];
      }
      EXPECT_EQ(ys[i], expected);
    }
  });
}

}  // namespace
}  // namespace hone::codegen

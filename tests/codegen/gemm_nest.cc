#include "tests/codegen/gemm_nest.h"

namespace hone::codegen {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::For;
using ir::Load;
using ir::LoopKind;
using ir::Var;

ir::LoopNest GemmNest(const GemmShape& s) {
  NestBuilder b;
  const int a = b.Input("a", DType::kF32, s.m * s.k);
  const int w = b.Input("b", DType::kF32, s.n * s.k);
  const int bias = b.Input("bias", DType::kF32, s.n);
  const int c = b.Output("c", DType::kF32, s.m * s.n);
  const int acc = b.Register("acc", DType::kF32, s.mr * s.nr);
  const int no = b.NewVar(), mo = b.NewVar(), k = b.NewVar();
  const auto tile = [&](auto make) {
    const int r = b.NewVar(), j = b.NewVar(), lane = b.NewVar();
    const Expr column = Var(j) * s.lanes + Var(lane);
    return For(r, s.mr, LoopKind::kUnrolled,
               For(j, s.nr / s.lanes, LoopKind::kUnrolled,
                   For(lane, s.lanes, LoopKind::kVector, make(Var(r), column))));
  };
  const ir::Stmt step = tile([&](const Expr& r, const Expr& column) {
    const Expr x = Load(a, DType::kF32, {(Var(mo) * s.mr + r) * s.k + Var(k)});
    const Expr y = Load(w, DType::kF32, {(Var(no) * s.k + Var(k)) * s.nr + column});
    return ir::Store(acc, r * s.nr + column, x * y, Combiner::kSum);
  });
  const ir::Stmt epilogue = tile([&](const Expr& r, const Expr& column) {
    const Expr n = Var(no) * s.nr + column;
    const Expr sum = Load(acc, DType::kF32, {r * s.nr + column}) + Load(bias, DType::kF32, {n});
    return ir::Store(c, (Var(mo) * s.mr + r) * s.n + n, ir::Max(sum, ir::Const(DType::kF32, 0)));
  });
  const ir::Stmt body = ir::Block({ir::Fill(acc, s.mr * s.nr, ir::Const(DType::kF32, 0)),
                                   For(k, s.k, LoopKind::kSerial, step), epilogue});
  b.AddPhase("gemm",
             For(no, s.n / s.nr, LoopKind::kParallel, For(mo, s.m / s.mr, LoopKind::kSerial, body)),
             s.n / s.nr);
  return b.nest;
}

}  // namespace hone::codegen

#include <vector>

#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "tests/codegen/kernel.h"

// Divisions by what does not change in a loop are made before it.
namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::LoopKind;

constexpr int64_t kRows = 3, kColumns = 128;

Expr Read(int buffer, const Expr& index) { return ir::Load(buffer, DType::kF32, {index}); }
Expr Quotient(const Expr& a, const Expr& b) { return ir::Binary(BinaryOp::kDiv, a, b); }

/// y[r, c] = x[r, c] * (1 / s[r]), two vectors an iteration.
ir::LoopNest ScaledRows(int64_t lanes) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, kRows * kColumns);
  const int s = b.Input("s", DType::kF32, kRows);
  const int y = b.Output("y", DType::kF32, kRows * kColumns);
  const int r = b.NewVar(), c = b.NewVar(), u = b.NewVar(), lane = b.NewVar();
  const Expr at =
      ir::Var(r) * kColumns + ir::Var(c) * (2 * lanes) + ir::Var(u) * lanes + ir::Var(lane);
  const Expr value = Read(x, at) * Quotient(ir::Const(DType::kF32, 1), Read(s, ir::Var(r)));
  b.AddPhase(
      "rows",
      ir::For(r, kRows, LoopKind::kSerial,
              ir::For(c, kColumns / (2 * lanes), LoopKind::kSerial,
                      ir::For(u, 2, LoopKind::kUnrolled,
                              ir::For(lane, lanes, LoopKind::kVector, ir::Store(y, at, value))))));
  return b.nest;
}

TEST(InvariantTest, OneReciprocalARow) {
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    const ir::LoopNest nest = ScaledRows(target.As<ir::CpuTarget>().lanes);
    const auto text = Assembly({&nest}, target);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(CountOf(*text, "vdiv"), 1U) << *text;
    const Kernel kernel(nest, target);
    std::vector<float> x(kRows * kColumns), s = {3, 5, -7}, y(x.size());
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k) * 0.25f - 9;
    ASSERT_EQ(kernel.Run("rows", {x.data(), s.data(), y.data()}), 0);
    for (size_t k = 0; k < x.size(); ++k) ASSERT_EQ(y[k], x[k] * (1 / s[k / kColumns])) << k;
  }
}

TEST(InvariantTest, WhatTheLoopWritesIsReadAnew) {
  NestBuilder b;
  const int s = b.Output("s", DType::kF32, 1);
  const int y = b.Output("y", DType::kF32, 16);
  const int i = b.NewVar(), j = b.NewVar();
  // Written in the outer loop only: kept in the inner one.
  const Expr inverse = Quotient(ir::Const(DType::kF32, 1), Read(s, ir::Int(0)));
  b.AddPhase(
      "steps",
      ir::For(i, 4, LoopKind::kSerial,
              ir::Block({ir::For(j, 4, LoopKind::kSerial,
                                 ir::Store(y, ir::Var(i) * 4 + ir::Var(j), inverse)),
                         ir::Store(s, ir::Int(0),
                                   Read(s, ir::Int(0)) * inverse * ir::Const(DType::kF32, 3))})));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> scale = {2}, out(16);
    ASSERT_EQ(kernel.Run("steps", {scale.data(), out.data()}), 0);
    for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(out[k], k < 4 ? 0.5f : 1.0f / 3) << k;
    EXPECT_EQ(scale[0], 3.0f);
  });
}

// A quotient under a condition may not exist where the condition does not hold.
TEST(InvariantTest, NothingMovesOutOfACondition) {
  NestBuilder b;
  const int s = b.Input("s", DType::kF32, 4);
  const int y = b.Output("y", DType::kF32, 8);
  const int i = b.NewVar(), j = b.NewVar();
  const Expr wanted = ir::Lt(ir::Var(i), ir::Int(4));
  b.AddPhase("guarded", ir::For(i, 8, LoopKind::kSerial,
                                ir::For(j, 2, LoopKind::kSerial,
                                        ir::If(wanted, ir::Store(y, ir::Var(i),
                                                                 Quotient(ir::Const(DType::kF32, 1),
                                                                          Read(s, ir::Var(i))))))));
  for (const ir::Target& target : RunnableTargets()) {
    const Kernel kernel(b.nest, target);
    const GuardedMemory scales(4 * sizeof(float));
    for (int k = 0; k < 4; ++k) scales.as<float>()[k] = 2;
    std::vector<float> out(8, 7);
    ASSERT_EQ(kernel.Run("guarded", {scales.as<void>(), out.data()}), 0);
    for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(out[k], k < 4 ? 0.5f : 7.0f);
  }
}

}  // namespace
}  // namespace hone::codegen

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "tests/codegen/kernel.h"

// What becomes of a nest as assembly and objects, and which nests are refused.
namespace hone::codegen {
namespace {

using ir::DType;
using ir::Expr;
using ir::For;
using ir::Int;
using ir::LoopKind;
using ir::Var;
using testing::HasSubstr;

Expr Load(int buffer, Expr index) { return ir::Load(buffer, DType::kF32, {std::move(index)}); }
Expr F(double value) { return ir::Const(DType::kF32, value); }

/// y[i] = value(x[i + shift] or 0 outside) over 999 elements in masked vectors.
std::string AssemblyOfMap(const ir::Target& target, int64_t shift, Expr (*value)(Expr)) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 999);
  const int y = b.Output("y", DType::kF32, 1024);
  const int o = b.NewVar(), l = b.NewVar();
  const Expr at = Var(o) * target.As<ir::CpuTarget>().lanes + Var(l);
  Expr load = Load(x, at + shift);
  if (shift != 0) load = ir::Select(ir::InRange(at + shift, 999), load, F(0));
  b.AddPhase("map", For(o, 992 / target.As<ir::CpuTarget>().lanes, LoopKind::kSerial,
                        For(l, target.As<ir::CpuTarget>().lanes, LoopKind::kVector,
                            ir::Store(y, at, value(load)))));
  const auto text = Assembly({&b.nest}, target);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

TEST(ObjectTest, GuardedVectorLoadIsOneMaskedInstruction) {
  for (const char* isa : {"avx2", "avx512"}) {
    const std::string text = AssemblyOfMap(MakeTarget(isa), 9, [](Expr x) { return x; });
    EXPECT_EQ(CountOf(text, "vmaskmovps|vmovups\\s+zmm\\d+ \\{k"), 1U) << text;
    // The loop and the empty part.
    EXPECT_EQ(CountOf(text, "\n\\s+j\\w+"), 2U) << text;
  }
}

TEST(ObjectTest, ReluIsOneInstruction) {
  for (const char* isa : {"avx2", "avx512"}) {
    const std::string text =
        AssemblyOfMap(MakeTarget(isa), 0, [](Expr x) { return ir::Max(x, F(0)); });
    EXPECT_EQ(CountOf(text, "vmaxps"), 1U) << text;
    EXPECT_EQ(CountOf(text, "vcmp|vblend"), 0U) << text;
  }
}

TEST(ObjectTest, WhatAConditionLoadsIsLoadedOnce) {
  for (const char* isa : {"avx2", "avx512"}) {
    const std::string text = AssemblyOfMap(MakeTarget(isa), 0, [](Expr x) {
      const Expr positive = ir::Binary(ir::BinaryOp::kGt, x, F(0));
      return ir::Select(positive, ir::Unary(ir::UnaryOp::kSqrt, x), x * F(0.5));
    });
    EXPECT_EQ(CountOf(text, "vmaskmovps|vmovups\\s+zmm\\d+ \\{k"), 0U) << text;
    EXPECT_EQ(CountOf(text, "vmovups\\s+[yz]mm\\d+, "), 1U) << text;
  }
}

TEST(ObjectTest, RegisterIndexMustBeConstant) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 8);
  const int acc = b.Register("accumulator", DType::kF32, 8);
  const int i = b.NewVar();
  b.AddPhase("bad", For(i, 8, LoopKind::kSerial, ir::Store(acc, Var(i), Load(x, Var(i)))));
  const auto object = CompileToObject({&b.nest}, MakeTarget("avx2"));
  ASSERT_FALSE(object.ok());
  EXPECT_THAT(object.status().ToString(),
              HasSubstr("'accumulator' has an index that is not constant"));
  EXPECT_THAT(object.status().ToString(), HasSubstr("phase 'bad'"));
}

TEST(ObjectTest, EndlessUnrollingIsRefused) {
  NestBuilder b;
  const int y = b.Output("y", DType::kF32, 1);
  const int i = b.NewVar(), j = b.NewVar();
  b.AddPhase("huge", For(i, 100000, LoopKind::kUnrolled,
                         For(j, 100000, LoopKind::kUnrolled, ir::Store(y, Int(0), F(1)))));
  const auto object = CompileToObject({&b.nest}, MakeTarget("avx2"));
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(object.status().ToString(), HasSubstr("unroll less"));
}

TEST(ObjectTest, StoreToReadOnlyIsRefused) {
  NestBuilder b;
  const int x = b.Input("weights", DType::kF32, 8);
  b.AddPhase("bad", ir::Store(x, Int(0), F(1)));
  const auto object = CompileToObject({&b.nest}, MakeTarget("avx2"));
  ASSERT_FALSE(object.ok());
  EXPECT_THAT(object.status().ToString(), HasSubstr("'weights' is read-only but stored to"));
}

TEST(ObjectTest, GpuLoopsAreRefused) {
  NestBuilder b;
  const int y = b.Output("y", DType::kF32, 8);
  const int i = b.NewVar();
  b.AddPhase("gpu", For(i, 8, LoopKind::kThreadX, ir::Store(y, Var(i), F(1))));
  const auto object = CompileToObject({&b.nest}, MakeTarget("avx2"));
  ASSERT_FALSE(object.ok());
  EXPECT_THAT(object.status().ToString(), HasSubstr("is for GPUs"));
}

TEST(ObjectTest, SymbolsMayNotRepeat) {
  NestBuilder b;
  const int y = b.Output("y", DType::kF32, 1);
  b.AddPhase("same", ir::Store(y, Int(0), F(1)));
  const auto twice = CompileToObject({&b.nest, &b.nest}, MakeTarget("avx2"));
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.status().ToString(), HasSubstr("'same' occurs twice"));
}

TEST(ObjectTest, ObjectsLinkTogetherAndAreTheSameEveryTime) {
  NestBuilder first, second;
  first.AddPhase("one", ir::Store(first.Output("y", DType::kF32, 1), Int(0), F(1)));
  second.AddPhase("two", ir::Store(second.Output("y", DType::kF32, 1), Int(0), F(2)));
  const ir::Target target = MakeTarget("avx512");
  const auto a = CompileToObject({&first.nest}, target);
  const auto b = CompileToObject({&second.nest}, target);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto shared = LinkShared({*a, *b});
  const auto again = LinkShared({*CompileToObject({&first.nest}, target), *b});
  ASSERT_TRUE(shared.ok() && again.ok());
  EXPECT_EQ(*shared, *again);
  EXPECT_THAT(*shared, HasSubstr("one"));
  EXPECT_THAT(*shared, HasSubstr("two"));
  const auto clash = LinkShared({*a, *a});
  ASSERT_FALSE(clash.ok());
  EXPECT_THAT(clash.status().ToString(), HasSubstr("duplicate symbol: one"));
}

}  // namespace
}  // namespace hone::codegen

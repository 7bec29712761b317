#include <cmath>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/half.h"
#include "tests/codegen/kernel.h"

// One feature of loop nests a test, against values worked out here.
namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::For;
using ir::Int;
using ir::LoopKind;
using ir::Var;
using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Expr Load(int buffer, Expr index, DType dtype = DType::kF32) {
  return ir::Load(buffer, dtype, {std::move(index)});
}
Expr F(double value) { return ir::Const(DType::kF32, value); }

TEST(NestTest, CopiesEveryExtentWithinItsBounds) {
  for (int64_t extent = 1; extent <= 64; ++extent) {
    SCOPED_TRACE(extent);
    NestBuilder b;
    const int x = b.Input("x", DType::kF32, extent);
    const int y = b.Output("y", DType::kF32, extent);
    const int i = b.NewVar();
    b.AddPhase("copy", For(i, extent, LoopKind::kVector, ir::Store(y, Var(i), Load(x, Var(i)))));
    ForEachTarget(b.nest, [&](const Kernel& kernel) {
      const GuardedMemory source(extent * 4), to(extent * 4);
      for (int64_t k = 0; k < extent; ++k) source.as<float>()[k] = static_cast<float>(k) + 1;
      ASSERT_EQ(kernel.Run("copy", {source.as<void>(), to.as<void>()}), 0);
      EXPECT_EQ(std::memcmp(source.as<void>(), to.as<void>(), static_cast<size_t>(extent) * 4), 0);
    });
  }
}

TEST(NestTest, ParallelLoopRunsItsPartOnly) {
  NestBuilder b;
  const int y = b.Output("y", DType::kI64, 6);
  const int i = b.NewVar();
  b.AddPhase("count", For(i, 6, LoopKind::kParallel, ir::Store(y, Var(i), Var(i) + 1)), 6);
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<int64_t> ys(6, -1);
    kernel.Run("count", {ys.data()}, 2, 5);
    EXPECT_THAT(ys, ElementsAre(-1, -1, 3, 4, 5, -1));
    kernel.Run("count", {ys.data()}, 5, 5);
    EXPECT_EQ(ys[5], -1);
  });
}

TEST(NestTest, ParallelLoopsBesideEachOtherNumberTheirIterationsOn) {
  NestBuilder b;
  const int y = b.Output("y", DType::kI64, 7);
  const int i = b.NewVar(), k = b.NewVar(), n = b.NewVar();
  const auto loop = [y](int var, int64_t extent, int64_t first) {
    return For(var, extent, LoopKind::kParallel,
               ir::Store(y, Var(var) + first, Var(var) + first * 10));
  };
  b.AddPhase("count", ir::Block({loop(i, 3, 0), loop(k, 1, 3), loop(n, 3, 4)}), 7);
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<int64_t> ys(7, -1);
    kernel.Run("count", {ys.data()}, 2, 5);
    EXPECT_THAT(ys, ElementsAre(-1, -1, 2, 30, 40, -1, -1));
    kernel.Run("count", {ys.data()}, 6, 7);
    EXPECT_THAT(ys, ElementsAre(-1, -1, 2, 30, 40, -1, 42));
    kernel.Run("count", {ys.data()}, 0, 1);
    EXPECT_THAT(ys, ElementsAre(0, -1, 2, 30, 40, -1, 42));
  });
}

TEST(NestTest, StepLoopTakesItsVariableFromTheCall) {
  NestBuilder b;
  const int y = b.Output("y", DType::kI64, 12);
  const int t = b.NewVar(), i = b.NewVar();
  b.AddPhase(
      "step",
      For(t, 3, LoopKind::kStep,
          For(i, 4, LoopKind::kParallel, ir::Store(y, Var(t) * 4 + Var(i), Var(t) * 10 + Var(i)))),
      4);
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<int64_t> ys(12, 0);
    for (int64_t step = 0; step < 3; ++step) kernel.Run("step", {ys.data()}, 0, 4, step);
    EXPECT_THAT(ys, ElementsAre(0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23));
  });
}

TEST(NestTest, MaskedTailNeitherLoadsNorStores) {
  constexpr int64_t kElements = 37;
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, kElements);
  const int y = b.Output("y", DType::kF32, kElements);
  const int o = b.NewVar(), l = b.NewVar();
  const Expr at = Var(o) * 16 + Var(l);
  b.AddPhase("scale",
             For(o, 3, LoopKind::kSerial,
                 For(l, 16, LoopKind::kVector,
                     ir::If(ir::Lt(at, Int(kElements)), ir::Store(y, at, Load(x, at) * F(2))))));
  ForEachTarget(b.nest, [&](const Kernel& kernel) {
    const GuardedMemory source(kElements * 4), to(kElements * 4);
    for (int64_t k = 0; k < kElements; ++k) source.as<float>()[k] = static_cast<float>(k);
    kernel.Run("scale", {source.as<void>(), to.as<void>()});
    for (int64_t k = 0; k < kElements; ++k) EXPECT_EQ(to.as<float>()[k], 2 * static_cast<float>(k));
  });
}

TEST(NestTest, MaskedLanesGiveTheIdentityToReductions) {
  constexpr int64_t kElements = 21;
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, kElements);
  const int y = b.Output("y", DType::kF32, 3);
  const int o = b.NewVar(), l = b.NewVar();
  const Expr at = Var(o) * 16 + Var(l);
  const auto reduce = [&](int64_t to, Combiner combiner) {
    return For(
        o, 2, LoopKind::kSerial,
        For(l, 16, LoopKind::kVector,
            ir::If(ir::Lt(at, Int(kElements)), ir::Store(y, Int(to), Load(x, at), combiner))));
  };
  b.AddPhase("reduce", ir::Block({reduce(0, Combiner::kSum), reduce(1, Combiner::kMax),
                                  reduce(2, Combiner::kProduct)}));
  ForEachTarget(b.nest, [&](const Kernel& kernel) {
    const GuardedMemory xs(kElements * 4);
    for (int64_t k = 0; k < kElements; ++k) xs.as<float>()[k] = -1;
    std::vector<float> ys = {100, -kInfinity, 3};
    kernel.Run("reduce", {xs.as<void>(), ys.data()});
    EXPECT_THAT(ys, ElementsAre(79, -1, -3));
  });
}

TEST(NestTest, GuardedLoadsStayInside) {
  // Padding by one on both sides, in vectors and in scalars.
  constexpr int64_t kElements = 20;
  for (const LoopKind kind : {LoopKind::kVector, LoopKind::kSerial, LoopKind::kUnrolled}) {
    NestBuilder b;
    const int x = b.Input("x", DType::kF32, kElements);
    const int y = b.Output("y", DType::kF32, kElements + 2);
    const int i = b.NewVar();
    const Expr from = Var(i) + -1;
    b.AddPhase(
        "pad",
        For(i, kElements + 2, kind,
            ir::Store(y, Var(i), ir::Select(ir::InRange(from, kElements), Load(x, from), F(-5)))));
    ForEachTarget(b.nest, [&](const Kernel& kernel) {
      for (const auto side : {GuardedMemory::Side::kStart, GuardedMemory::Side::kEnd}) {
        const GuardedMemory source(kElements * 4, side);
        for (int64_t k = 0; k < kElements; ++k) source.as<float>()[k] = static_cast<float>(k);
        std::vector<float> ys(kElements + 2, 99);
        kernel.Run("pad", {source.as<void>(), ys.data()});
        EXPECT_EQ(ys.front(), -5);
        EXPECT_EQ(ys.back(), -5);
        for (int64_t k = 0; k < kElements; ++k)
          EXPECT_EQ(ys[static_cast<size_t>(k + 1)], static_cast<float>(k));
      }
    });
  }
}

TEST(NestTest, StridedReversedAndRepeatedLoads) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 40);
  const int y = b.Output("y", DType::kF32, 64);
  const int l = b.NewVar();
  const auto row = [&](int64_t to, const Expr& from) {
    return ir::Store(y, Var(l) + to, Load(x, from));
  };
  b.AddPhase("shuffle", For(l, 16, LoopKind::kVector,
                            ir::Block({row(0, Var(l) * 2 + 3), row(16, Var(l) * -1 + 39),
                                       row(32, ir::FloorDiv(Var(l), 3)),
                                       row(48, ir::FloorMod(Var(l) * 5, 7))})));
  ForEachTarget(b.nest, [&](const Kernel& kernel) {
    const GuardedMemory xs(40 * 4);
    for (int64_t k = 0; k < 40; ++k) xs.as<float>()[k] = static_cast<float>(k);
    std::vector<float> ys(64);
    kernel.Run("shuffle", {xs.as<void>(), ys.data()});
    for (int lane = 0; lane < 16; ++lane) {
      const auto at = static_cast<size_t>(lane);
      EXPECT_EQ(ys[at], 2 * lane + 3);
      EXPECT_EQ(ys[at + 16], 39 - lane);
      EXPECT_EQ(ys[at + 32], lane / 3);
      EXPECT_EQ(ys[at + 48], lane * 5 % 7);
    }
  });
}

TEST(NestTest, GathersRowsByLoadedIndex) {
  NestBuilder b;
  const int ids = b.Input("ids", DType::kI32, 5);
  const int table = b.Input("table", DType::kF32, 7 * 16);
  const int y = b.Output("y", DType::kF32, 5 * 16);
  const int r = b.NewVar(), l = b.NewVar();
  const Expr id = ir::Cast(DType::kI64, Load(ids, Var(r), DType::kI32));
  b.AddPhase("gather", For(r, 5, LoopKind::kSerial,
                           For(l, 16, LoopKind::kVector,
                               ir::Store(y, Var(r) * 16 + Var(l), Load(table, id * 16 + Var(l))))));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<int32_t> rows = {6, 0, 3, 3, 1};
    std::vector<float> values(7 * 16), ys(5 * 16);
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k);
    kernel.Run("gather", {rows.data(), values.data(), ys.data()});
    for (size_t k = 0; k < ys.size(); ++k)
      EXPECT_EQ(ys[k], static_cast<float>(rows[k / 16] * 16 + static_cast<int>(k % 16)));
  });
}

TEST(NestTest, FailEndsThePhaseWithItsResult) {
  constexpr int32_t kResult = ir::kPhaseBadIndex << 16 | 3;
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kVector}) {
    NestBuilder b;
    const int ids = b.Input("ids", DType::kI32, 20);
    const int y = b.Output("y", DType::kI32, 20);
    const int i = b.NewVar();
    const Expr id = Load(ids, Var(i), DType::kI32);
    const Expr bad =
        ir::Unary(ir::UnaryOp::kNot, ir::Binary(BinaryOp::kLt, id, ir::ConstInt(DType::kI32, 9)));
    b.AddPhase("check", For(i, 20, kind,
                            ir::Block({ir::If(bad, ir::Fail(kResult)), ir::Store(y, Var(i), id)})));
    ForEachTarget(b.nest, [&](const Kernel& kernel) {
      std::vector<int32_t> rows(20, 8), ys(20, -1);
      EXPECT_EQ(kernel.Run("check", {rows.data(), ys.data()}), 0);
      EXPECT_EQ(ys, rows);
      rows[18] = 9;
      ys.assign(20, -1);
      EXPECT_EQ(kernel.Run("check", {rows.data(), ys.data()}), kResult);
      EXPECT_EQ(ys[18], -1);
    });
  }
}

TEST(NestTest, ArgMaxTakesTheFirstOfTies) {
  constexpr int64_t kElements = 35;
  for (const auto& [combiner, expected] :
       {std::pair(Combiner::kArgMax, 7), std::pair(Combiner::kArgMaxLast, 33)}) {
    NestBuilder b;
    const int x = b.Input("x", DType::kF32, kElements);
    const int value = b.Output("value", DType::kF32, 1);
    const int index = b.Output("index", DType::kI64, 1);
    const int i = b.NewVar();
    b.AddPhase("arg",
               For(i, kElements, LoopKind::kVector,
                   ir::StoreTuple({value, index}, Int(0), {Load(x, Var(i)), Var(i)}, combiner)));
    ForEachTarget(b.nest, [&, wanted = expected](const Kernel& kernel) {
      std::vector<float> xs(kElements, 1);
      xs[7] = xs[33] = xs[20] = 4;
      float best = -kInfinity;
      int64_t best_at = wanted == 7 ? std::numeric_limits<int64_t>::max() : -1;
      kernel.Run("arg", {xs.data(), &best, &best_at});
      EXPECT_EQ(best, 4);
      EXPECT_EQ(best_at, wanted);
      xs[12] = kNan;
      kernel.Run("arg", {xs.data(), &best, &best_at});
      EXPECT_EQ(best_at, 12);
    });
  }
}

TEST(NestTest, MaxAndMinKeepNan) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 8);
  const int z = b.Input("z", DType::kF32, 8);
  const int y = b.Output("y", DType::kF32, 24);
  const int l = b.NewVar();
  const Expr a = Load(x, Var(l)), c = Load(z, Var(l));
  b.AddPhase("minmax", For(l, 8, LoopKind::kVector,
                           ir::Block({ir::Store(y, Var(l), ir::Max(a, c)),
                                      ir::Store(y, Var(l) + 8, ir::Min(a, c)),
                                      ir::Store(y, Var(l) + 16, ir::Max(a, F(0)))})));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> xs = {kNan, 1, kNan, 2, -3, kInfinity, -kInfinity, 0};
    std::vector<float> zs = {1, kNan, kNan, 3, -4, 1, 1, 0};
    std::vector<float> ys(24);
    kernel.Run("minmax", {xs.data(), zs.data(), ys.data()});
    for (size_t k = 0; k < 3; ++k) EXPECT_TRUE(std::isnan(ys[k]) && std::isnan(ys[8 + k])) << k;
    for (size_t k = 3; k < 8; ++k) {
      EXPECT_EQ(ys[k], std::max(xs[k], zs[k]));
      EXPECT_EQ(ys[8 + k], std::min(xs[k], zs[k]));
    }
    EXPECT_TRUE(std::isnan(ys[16]));
    EXPECT_EQ(ys[17], 1);
    EXPECT_EQ(ys[20], 0);
  });
}

TEST(NestTest, IntegerDivisionNeitherTrapsNorTruncates) {
  NestBuilder b;
  const int x = b.Input("x", DType::kI32, 8);
  const int d = b.Input("d", DType::kI32, 8);
  const int y = b.Output("y", DType::kI32, 32);
  const int l = b.NewVar();
  const auto row = [&](int64_t to, BinaryOp op) {
    return ir::Store(y, Var(l) + to,
                     ir::Binary(op, Load(x, Var(l), DType::kI32), Load(d, Var(l), DType::kI32)));
  };
  for (const LoopKind kind : {LoopKind::kVector, LoopKind::kSerial}) {
    b.nest.phases.clear();
    b.AddPhase("divide",
               For(l, 8, kind,
                   ir::Block({row(0, BinaryOp::kDiv), row(8, BinaryOp::kMod),
                              row(16, BinaryOp::kTruncDiv), row(24, BinaryOp::kTruncMod)})));
    ForEachTarget(b.nest, [](const Kernel& kernel) {
      constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
      std::vector<int32_t> xs = {7, -7, 7, -7, 5, kLowest, kLowest, 0};
      std::vector<int32_t> ds = {2, 2, -2, -2, 0, -1, 0, 3};
      std::vector<int32_t> ys(32);
      kernel.Run("divide", {xs.data(), ds.data(), ys.data()});
      EXPECT_THAT(std::vector<int32_t>(ys.begin(), ys.begin() + 8),
                  ElementsAre(3, -4, -4, 3, 0, kLowest, 0, 0));
      EXPECT_THAT(std::vector<int32_t>(ys.begin() + 8, ys.begin() + 16),
                  ElementsAre(1, 1, -1, -1, 5, 0, kLowest, 0));
      EXPECT_THAT(std::vector<int32_t>(ys.begin() + 16, ys.begin() + 24),
                  ElementsAre(3, -3, -3, 3, 0, kLowest, 0, 0));
      EXPECT_THAT(std::vector<int32_t>(ys.begin() + 24, ys.end()),
                  ElementsAre(1, -1, 1, -1, 5, 0, kLowest, 0));
    });
  }
}

/// Casts every element of x to y's dtype.
ir::LoopNest CastNest(DType from, DType to, int64_t elements, int64_t lanes) {
  NestBuilder b;
  const int x = b.Input("x", from, elements);
  const int y = b.Output("y", to, elements);
  const int o = b.NewVar(), l = b.NewVar();
  const Expr at = Var(o) * lanes + Var(l);
  b.AddPhase("cast", For(o, elements / lanes, LoopKind::kSerial,
                         For(l, lanes, LoopKind::kVector,
                             ir::Store(y, at, ir::Cast(to, Load(x, at, from))))));
  return b.nest;
}

TEST(NestTest, SixteenBitFloatsRoundOnceToNearestEven) {
  constexpr int64_t kPatterns = 1 << 16;
  for (const DType to : {DType::kF16, DType::kBF16}) {
    const auto narrow = [&](double v) {
      return to == DType::kF16 ? ir::F16FromDouble(v) : ir::BF16FromDouble(v);
    };
    const auto widen = [&](uint16_t v) {
      return to == DType::kF16 ? ir::F16ToDouble(v) : ir::BF16ToDouble(v);
    };
    // Doubles at and just beside the middle between neighbours, which two roundings would get
    // wrong.
    std::vector<double> values;
    for (int64_t k = 0; k < kPatterns; ++k) {
      const double a = widen(static_cast<uint16_t>(k));
      const double middle = (a + widen(static_cast<uint16_t>(k + 1))) / 2;
      values.push_back(k % 3 == 0 ? middle
                                  : std::nextafter(middle, k % 3 == 1 ? kInfinity : -kInfinity));
    }
    ForEachTarget(CastNest(DType::kF64, to, kPatterns, 8), [&](const Kernel& kernel) {
      std::vector<uint16_t> ys(kPatterns);
      kernel.Run("cast", {values.data(), ys.data()});
      for (size_t k = 0; k < values.size(); ++k) {
        if (std::isnan(values[k])) {
          ASSERT_TRUE(std::isnan(widen(ys[k])));
        } else {
          ASSERT_EQ(ys[k], narrow(values[k])) << values[k];
        }
      }
    });
    ForEachTarget(CastNest(to, DType::kF32, kPatterns, 16), [&](const Kernel& kernel) {
      std::vector<uint16_t> xs(kPatterns);
      for (size_t k = 0; k < xs.size(); ++k) xs[k] = static_cast<uint16_t>(k);
      std::vector<float> ys(kPatterns);
      kernel.Run("cast", {xs.data(), ys.data()});
      for (size_t k = 0; k < xs.size(); ++k) {
        const auto wanted = static_cast<float>(widen(xs[k]));
        ASSERT_TRUE(ys[k] == wanted || (std::isnan(ys[k]) && std::isnan(wanted))) << k;
      }
    });
  }
}

TEST(NestTest, FloatToIntegerSaturates) {
  const std::vector<float> values = {1.9f, -1.9f, 300, -300, kNan, kInfinity, -kInfinity, 3e9f};
  ForEachTarget(CastNest(DType::kF32, DType::kI8, 8, 8), [&](const Kernel& kernel) {
    std::vector<float> xs = values;
    std::vector<int8_t> ys(8);
    kernel.Run("cast", {xs.data(), ys.data()});
    EXPECT_THAT(ys, ElementsAre(1, -1, 127, -128, 0, 127, -128, 127));
  });
  ForEachTarget(CastNest(DType::kF32, DType::kU8, 8, 8), [&](const Kernel& kernel) {
    std::vector<float> xs = values;
    std::vector<uint8_t> ys(8);
    kernel.Run("cast", {xs.data(), ys.data()});
    EXPECT_THAT(ys, ElementsAre(1, 0, 255, 0, 0, 255, 0, 255));
  });
  ForEachTarget(CastNest(DType::kF64, DType::kI16, 8, 8), [&](const Kernel& kernel) {
    std::vector<double> xs(values.begin(), values.end());
    std::vector<int16_t> ys(8);
    kernel.Run("cast", {xs.data(), ys.data()});
    EXPECT_THAT(ys, ElementsAre(1, -1, 300, -300, 0, 32767, -32768, 32767));
  });
  ForEachTarget(CastNest(DType::kF32, DType::kU32, 8, 8), [&](const Kernel& kernel) {
    std::vector<float> xs = values;
    std::vector<uint32_t> ys(8);
    kernel.Run("cast", {xs.data(), ys.data()});
    EXPECT_THAT(ys, ElementsAre(1, 0, 300, 0, 0, UINT32_MAX, 0, 3000000000U));
  });
}

TEST(NestTest, LooksBytesUpInATableOfThemAll) {
  for (const int64_t extent : {7, 16, 40, 64}) {
    SCOPED_TRACE(extent);
    NestBuilder b;
    const int x = b.Input("x", DType::kU8, extent);
    const int table = b.Input("table", DType::kI8, 256);
    const int y = b.Output("y", DType::kI8, extent);
    const int i = b.NewVar();
    const Expr at = ir::Cast(DType::kI64, Load(x, Var(i), DType::kU8));
    b.AddPhase("look", For(i, extent, LoopKind::kVector,
                           ir::Store(y, Var(i), Load(table, at, DType::kI8))));
    ForEachTarget(b.nest, [&](const Kernel& kernel) {
      std::vector<uint8_t> xs(static_cast<size_t>(extent));
      for (size_t k = 0; k < xs.size(); ++k) xs[k] = static_cast<uint8_t>(255 - 37 * k);
      std::vector<int8_t> entries(256), ys(xs.size());
      for (size_t k = 0; k < entries.size(); ++k) entries[k] = static_cast<int8_t>(k * 91 + 5);
      kernel.Run("look", {xs.data(), entries.data(), ys.data()});
      for (size_t k = 0; k < xs.size(); ++k) EXPECT_EQ(ys[k], entries[xs[k]]) << k;
    });
  }
}

TEST(NestTest, BoolIsOneByteZeroOrOne) {
  NestBuilder b;
  const int x = b.Input("x", DType::kF32, 19);
  const int y = b.Output("y", DType::kBool, 19);
  const int z = b.Output("z", DType::kF32, 19);
  const int l = b.NewVar();
  const Expr positive = ir::Binary(BinaryOp::kGt, Load(x, Var(l)), F(0));
  b.AddPhase("bool",
             For(l, 19, LoopKind::kVector,
                 ir::Block({ir::Store(y, Var(l), positive),
                            ir::Store(z, Var(l),
                                      ir::Select(Load(y, Var(l), DType::kBool), F(2), F(3)))})));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> xs(19), zs(19);
    for (size_t k = 0; k < xs.size(); ++k) xs[k] = k % 3 == 0 ? 1.f : -1.f;
    std::vector<uint8_t> ys(19, 77);
    kernel.Run("bool", {xs.data(), ys.data(), zs.data()});
    for (size_t k = 0; k < xs.size(); ++k) {
      EXPECT_EQ(ys[k], k % 3 == 0 ? 1 : 0);
      EXPECT_EQ(zs[k], k % 3 == 0 ? 2 : 3);
    }
  });
}

}  // namespace
}  // namespace hone::codegen

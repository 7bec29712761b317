#include <vector>

#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "ir/cpu/cpu_target.h"
#include "tests/codegen/kernel.h"

// Blocks of lines turned in registers: right, inside their bounds, and not element by element.
namespace hone::codegen {
namespace {

using ir::DType;
using ir::Expr;
using ir::LoopKind;

struct Shape {
  int64_t rows, columns;  ///< of the source; the result is columns × rows
  int64_t lines;          ///< columns turned at a time, unrolled
  int64_t lanes;          ///< rows turned at a time, a vector
};

/// y[c, r] = x[r, c] in whole blocks.
ir::LoopNest TransposeNest(const Shape& s, DType dtype) {
  NestBuilder b;
  const int x = b.Input("x", dtype, s.rows * s.columns);
  const int y = b.Output("y", dtype, s.rows * s.columns);
  const int block = b.NewVar(), line_block = b.NewVar(), line = b.NewVar(), lane = b.NewVar();
  const Expr row = ir::Var(block) * s.lanes + ir::Var(lane);
  const Expr column = ir::Var(line_block) * s.lines + ir::Var(line);
  b.AddPhase(
      "turn",
      ir::For(
          block, s.rows / s.lanes, LoopKind::kSerial,
          ir::For(line_block, s.columns / s.lines, LoopKind::kSerial,
                  ir::For(line, s.lines, LoopKind::kUnrolled,
                          ir::For(lane, s.lanes, LoopKind::kVector,
                                  ir::Store(y, column * s.rows + row,
                                            ir::Load(x, dtype, {row * s.columns + column})))))));
  return b.nest;
}

TEST(TransposeTest, EveryBlockIsRightAndInsideItsBounds) {
  const Shape shapes[] = {{32, 48, 16, 16}, {32, 30, 15, 16}, {28, 16, 16, 14}, {16, 8, 8, 8},
                          {8, 21, 7, 8},    {16, 32, 32, 16}, {12, 9, 9, 12},   {33, 5, 5, 11},
                          {16, 64, 16, 16}, {6, 24, 8, 6},    {64, 17, 17, 16}};
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message()
                 << s.rows << " x " << s.columns << ", " << s.lines << " x " << s.lanes);
    ForEachTarget(TransposeNest(s, DType::kF32), [&](const Kernel& kernel) {
      const int64_t bytes = s.rows * s.columns * 4;
      for (const auto side : {GuardedMemory::Side::kEnd, GuardedMemory::Side::kStart}) {
        const GuardedMemory x(bytes, side), y(bytes, side);
        for (int64_t k = 0; k < s.rows * s.columns; ++k)
          x.as<float>()[k] = static_cast<float>(k) + 0.5f;
        ASSERT_EQ(kernel.Run("turn", {x.as<void>(), y.as<void>()}), 0);
        for (int64_t r = 0; r < s.rows; ++r) {
          for (int64_t c = 0; c < s.columns; ++c)
            ASSERT_EQ(y.as<float>()[c * s.rows + r], x.as<float>()[r * s.columns + c])
                << r << ", " << c;
        }
      }
    });
  }
}

TEST(TransposeTest, NoElementIsLoadedAlone) {
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    const int64_t lanes = target.As<ir::CpuTarget>().lanes;
    const ir::LoopNest nest = TransposeNest({4 * lanes, 4 * lanes, lanes, lanes}, DType::kF32);
    const auto text = Assembly({&nest}, target);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(CountOf(*text, "vinsertps|vmovss|vpinsrd"), 0U) << *text;
    // log2(lanes) shuffles a line.
    EXPECT_LE(CountOf(*text, "vunpck|vshuf|vperm|vinsertf|vextractf|vblend"),
              static_cast<size_t>(lanes * (lanes == 16 ? 4 : 3)))
        << *text;
  }
}

// What the source's buffer takes in between is read anew.
TEST(TransposeTest, AStoreToTheSourceEndsABlock) {
  NestBuilder b;
  const int x = b.Output("x", DType::kF32, 8 * 8);
  const int y = b.Output("y", DType::kF32, 8 * 8);
  const int line = b.NewVar(), lane = b.NewVar();
  const Expr place = ir::Var(lane) * 8 + ir::Var(line);
  const Expr value = ir::Load(x, DType::kF32, {place});
  b.AddPhase("turn",
             ir::For(line, 8, LoopKind::kUnrolled,
                     ir::Block({ir::For(lane, 8, LoopKind::kVector,
                                        ir::Store(y, ir::Var(line) * 8 + ir::Var(lane), value)),
                                ir::Store(x, ir::Int(7), ir::Const(DType::kF32, -1))})));
  ForEachTarget(b.nest, [](const Kernel& kernel) {
    std::vector<float> from(64), to(64);
    for (size_t k = 0; k < from.size(); ++k) from[k] = static_cast<float>(k);
    ASSERT_EQ(kernel.Run("turn", {from.data(), to.data()}), 0);
    for (size_t c = 0; c < 8; ++c) {
      for (size_t r = 0; r < 8; ++r)
        ASSERT_EQ(to[c * 8 + r], c == 7 && r == 0 ? -1.0f : static_cast<float>(r * 8 + c));
    }
  });
}

}  // namespace
}  // namespace hone::codegen

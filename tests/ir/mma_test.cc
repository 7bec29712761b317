#include "ir/mma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "tests/ir/nest.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

// Thread 5 of the figures of the PTX ISA: a0 A[1][2], a3 A[9][3], a4 A[1][10], a7 A[9][11]; b1
// B[3][1], b2 B[10][1]; c1 C[1][3], c2 C[9][2].
TEST(MmaFragmentsTest, AreWhereTheFiguresHaveThem) {
  const auto is = [](const MmaPlace& at, int64_t row, int64_t column, int64_t term) {
    return at.row == row && at.column == column && at.term == term;
  };
  EXPECT_TRUE(is(FirstPlace(5, 0, 16), 1, 0, 2));
  EXPECT_TRUE(is(FirstPlace(5, 3, 16), 9, 0, 3));
  EXPECT_TRUE(is(FirstPlace(5, 4, 16), 1, 0, 10));
  EXPECT_TRUE(is(FirstPlace(5, 7, 16), 9, 0, 11));
  EXPECT_TRUE(is(SecondPlace(5, 1, 16), 0, 1, 3));
  EXPECT_TRUE(is(SecondPlace(5, 2, 16), 0, 1, 10));
  EXPECT_TRUE(is(SumPlace(5, 1), 1, 3, 0));
  EXPECT_TRUE(is(SumPlace(5, 2), 9, 2, 0));
}

// The same of bytes: a0 A[1][4], a5 A[9][5], a8 A[1][20], a15 A[9][23]; b1 B[5][1], b4 B[20][1].
TEST(MmaFragmentsTest, OfBytesAreWhereTheFiguresHaveThem) {
  const auto is = [](const MmaPlace& at, int64_t row, int64_t column, int64_t term) {
    return at.row == row && at.column == column && at.term == term;
  };
  EXPECT_TRUE(is(FirstPlace(5, 0, 32), 1, 0, 4));
  EXPECT_TRUE(is(FirstPlace(5, 5, 32), 9, 0, 5));
  EXPECT_TRUE(is(FirstPlace(5, 8, 32), 1, 0, 20));
  EXPECT_TRUE(is(FirstPlace(5, 15, 32), 9, 0, 23));
  EXPECT_TRUE(is(SecondPlace(5, 1, 32), 0, 1, 5));
  EXPECT_TRUE(is(SecondPlace(5, 4, 32), 0, 1, 20));
  EXPECT_EQ(MmaTermsOf(DType::kU8), 32);
  EXPECT_EQ(MmaTermsOf(DType::kBF16), 16);
}

/// A warp brings 16 by 16 and 16 by 8 numbers of bf16 to shared memory, multiplies them and stores
/// its sums.
class MmaLoopTest : public testing::Test {
 protected:
  std::string Run(const std::function<Stmt(Stmt)>& around = nullptr, bool barrier = true,
                  int64_t threads = 32) {
    constexpr DType kNarrow = DType::kBF16;
    Nest n;
    const int x = n.Argument("x", 256, true, kNarrow), w = n.Argument("w", 128, true, kNarrow);
    const int y = n.Argument("y", 128, false);
    const int a = n.Memory("a", Scope::kShared, 256, kNarrow);
    const int b = n.Memory("b", Scope::kShared, 128, kNarrow);
    const int sums = n.Memory("sums", Scope::kRegister, 4);
    const Expr lane = V(0), row = FloorDiv(lane, 4) + V(1) * 8,
               column = FloorMod(lane, 4) * 2 + V(2);
    const auto copy = [&](int to, int from, int64_t each) {
      const Expr at = lane * each + V(4);
      return For(4, each, LoopKind::kSerial, Store(to, at, Load(from, kNarrow, {at})));
    };
    const auto factor = [&](int from, const Expr& at) {
      return Cast(kF, Load(from, kNarrow, {at}));
    };
    const auto tile = [&](LoopKind kind, Stmt inner) {
      return For(1, 2, kind, For(2, 2, LoopKind::kSerial, std::move(inner)));
    };
    const Expr sum = V(1) * 2 + V(2);
    const Stmt mma =
        tile(LoopKind::kMma,
             For(3, 16, LoopKind::kSerial,
                 Store(sums, sum, factor(a, row * 16 + V(3)) * factor(b, V(3) * 8 + column),
                       Combiner::kSum)));
    std::vector<Stmt> body = {copy(a, x, 256 / threads), copy(b, w, 128 / threads)};
    if (barrier) body.push_back(Sync());
    body.push_back(Fill(sums, 4, F(1)));
    body.push_back(around ? around(mma) : mma);
    if (threads == 32)
      body.push_back(tile(LoopKind::kSerial, Store(y, row * 8 + column, At(sums, sum))));
    n.AddPhase(For(0, threads, LoopKind::kThreadX, Block(std::move(body))));
    Random random(11);
    x_ = TensorBuffer::Zeros(kNarrow, {256});
    w_ = TensorBuffer::Zeros(kNarrow, {128});
    y_ = TensorBuffer::Zeros(kF, {128});
    for (TensorBuffer* buffer : {&x_, &w_}) {
      for (int64_t i = 0; i < buffer->NumElements(); ++i)
        buffer->Set(i, ElementOf(kNarrow, static_cast<double>(random.Below(17)) - 8));
    }
    return std::string(n.Run({&x_, &w_, &y_}).message());
  }

  TensorBuffer x_, w_, y_;
};

TEST_F(MmaLoopTest, GivesTheProduct) {
  ASSERT_EQ(Run(), "");
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t column = 0; column < 8; ++column) {
      double sum = 1;
      for (int64_t k = 0; k < 16; ++k)
        sum += x_.DoubleAt(row * 16 + k) * w_.DoubleAt(k * 8 + column);
      EXPECT_EQ(y_.DoubleAt(row * 8 + column), sum) << row << ", " << column;
    }
  }
}

TEST_F(MmaLoopTest, AllOfAWarpCome) {
  EXPECT_THAT(Run([](Stmt mma) { return If(Lt(V(0), Int(31)), mma); }),
              HasSubstr("lanes of a group that do not all come to it"));
  EXPECT_THAT(Run(nullptr, true, 16), HasSubstr("lanes of a group that do not all come to it"));
}

TEST_F(MmaLoopTest, LanesReadWhatOthersHaveWritten) {
  EXPECT_THAT(Run(nullptr, /*barrier=*/false), HasSubstr("races"));
  // Written again by others while it is read.
  EXPECT_THAT(Run([](Stmt mma) {
                return Block({mma, Store(3, V(0) * 8, Load(0, DType::kBF16, {V(0)}))});
              }),
              HasSubstr("races"));
}

TEST_F(MmaLoopTest, AnotherFormIsRefused) {
  EXPECT_THAT(Run([](Stmt mma) { return For(1, 2, LoopKind::kMma, mma->body[0]->body[0]); }),
              HasSubstr("an mma of another form"));
}

}  // namespace
}  // namespace hone::ir

#include "ir/loop_interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "ir/combiner.h"
#include "ir/tensor_buffer.h"
#include "tests/ir/nest.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorBuffer RandomTensor(int64_t elements, Random* random) {
  TensorBuffer t = TensorBuffer::Zeros(kF, {elements});
  for (int64_t i = 0; i < elements; ++i)
    t.Set(i, ElementOf(kF, static_cast<double>(random->Between(-8, 8))));
  return t;
}

/// c[m,n] = a[m,k] b[k,n], whole numbers, so that every order gives the same bits.
TensorBuffer Matmul(const TensorBuffer& a, const TensorBuffer& b, int m, int n, int k) {
  TensorBuffer c = TensorBuffer::Zeros(kF, {m * n});
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int r = 0; r < k; ++r) sum += a.DoubleAt(i * k + r) * b.DoubleAt(r * n + j);
      c.Set(i * n + j, ElementOf(kF, sum));
    }
  }
  return c;
}

TEST(LoopInterpreterTest, TiledMatmulWithRegistersAndTail) {
  // 7x10 by 5: rows in tiles of 2 with a masked tail, columns in vectors of 4 with a masked tail.
  constexpr int kM = 7, kN = 10, kK = 5;
  Nest n;
  const int a = n.Argument("x0", kM * kK, true);
  const int b = n.Argument("x1", kK * kN, true);
  const int c = n.Argument("s0", kM * kN, false);
  const int acc = n.Memory("acc", Scope::kRegister, 2 * 4);
  const Expr row = V(0) * 2 + V(2);
  const Expr column = V(1) * 4 + V(3);
  const Expr inside = And(Lt(row, Int(kM)), Lt(column, Int(kN)));
  const auto tile = [&](Stmt body) {
    return For(2, 2, LoopKind::kUnrolled,
               For(3, 4, LoopKind::kVector, If(inside, std::move(body))));
  };
  const Expr product = At(a, row * kK + V(4)) * At(b, V(4) * kN + column);
  n.AddPhase(For(0, 4, LoopKind::kParallel,
                 For(1, 3, LoopKind::kSerial,
                     Block({Fill(acc, 8, F(0)),
                            For(4, kK, LoopKind::kSerial,
                                tile(Store(acc, V(2) * 4 + V(3), product, Combiner::kSum))),
                            tile(Store(c, row * kN + column, At(acc, V(2) * 4 + V(3))))}))));
  Random random(1);
  TensorBuffer x0 = RandomTensor(kM * kK, &random);
  TensorBuffer x1 = RandomTensor(kK * kN, &random);
  TensorBuffer s0 = TensorBuffer::Zeros(kF, {kM * kN});
  const absl::Status status = n.Run({&x0, &x1, &s0});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(s0.bytes, Matmul(x0, x1, kM, kN, kK).bytes);
}

TEST(LoopInterpreterTest, EveryIndexIsChecked) {
  Nest n;
  const int x = n.Argument("x0", 4, true);
  const int y = n.Argument("s0", 4, false);
  n.AddPhase(For(0, 5, LoopKind::kSerial, Store(y, V(0), At(x, V(0)))));
  TensorBuffer in = TensorBuffer::Zeros(kF, {4}), out = in;
  const absl::Status status = n.Run({&in, &out});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(std::string(status.message()),
            "phase 0, s0[v0] = x0[v0] with v0=4: index 4 is outside [0, 4) of x0");
}

TEST(LoopInterpreterTest, UnboundVariablesAreFound) {
  Nest n;
  const int y = n.Argument("s0", 4, false);
  n.AddPhase(Store(y, V(3), F(1)));
  TensorBuffer out = TensorBuffer::Zeros(kF, {4});
  EXPECT_EQ(n.Run({&out}).code(), absl::StatusCode::kOutOfRange);
}

TEST(LoopInterpreterTest, UnsetElementsAreFound) {
  const auto run = [](Scope scope, bool fill_first) {
    Nest n;
    const int y = n.Argument("s0", 2, false);
    const int tile = n.Memory("tile", scope, 2);
    const Stmt copy = For(1, 2, LoopKind::kSerial, Store(y, V(1), At(tile, V(1))));
    const Stmt set =
        Block({Store(tile, Int(0), F(3)), fill_first ? Fill(tile, 2, F(4)) : Block({})});
    // The second iteration must not see what the first one wrote.
    n.AddPhase(For(0, 2, LoopKind::kParallel,
                   Block({If(Binary(BinaryOp::kEq, V(0), Int(0)), Fill(tile, 2, F(1))), set,
                          If(Binary(BinaryOp::kEq, V(0), Int(1)), copy)})),
               64);
    TensorBuffer out = TensorBuffer::Zeros(kF, {2});
    return std::string(n.Run({&out}).message());
  };
  for (Scope scope : {Scope::kRegister, Scope::kScratch}) {
    EXPECT_EQ(run(scope, true), "");
    EXPECT_THAT(run(scope, false),
                HasSubstr("reads an element that nobody wrote: element 1 of tile"));
  }
}

TEST(LoopInterpreterTest, OutputsReadBeforeTheyAreWrittenAreFound) {
  Nest n;
  const int y = n.Argument("s0", 1, false);
  n.AddPhase(Store(y, Int(0), F(2), Combiner::kSum));
  TensorBuffer out = TensorBuffer::Of(kF, {1}, std::vector<double>{5});
  EXPECT_THAT(std::string(n.Run({&out}).message()), HasSubstr("nobody wrote"));
  EXPECT_TRUE(n.Run({&out}, {.outputs_start_unset = false}).ok());
  EXPECT_EQ(out.DoubleAt(0), 7);
}

TEST(LoopInterpreterTest, WritesToReadOnlyBuffersAreFound) {
  Nest n;
  const int x = n.Argument("x0", 1, true);
  n.AddPhase(Store(x, Int(0), F(2)));
  TensorBuffer in = TensorBuffer::Zeros(kF, {1});
  EXPECT_THAT(std::string(n.Run({&in}).message()), HasSubstr("read-only"));
  Nest t;
  t.Add({.name = "t", .scope = Scope::kTable, .elements = 1, .table = {1}});
  t.AddPhase(Store(0, Int(0), F(2)));
  EXPECT_THAT(std::string(t.Run({}).message()), HasSubstr("read-only"));
}

TEST(LoopInterpreterTest, WrongTypesAndSizesAreFound) {
  Nest n;
  const int y = n.Argument("s0", 2, false);
  n.AddPhase(Store(y, Int(0), Int(1)));
  TensorBuffer out = TensorBuffer::Zeros(kF, {2}), small = TensorBuffer::Zeros(kF, {1});
  EXPECT_THAT(std::string(n.Run({&out}).message()), HasSubstr("stores i64 into s0 of f32"));
  EXPECT_THAT(std::string(n.Run({&small}).message()), HasSubstr("too small"));
  EXPECT_THAT(std::string(n.Run({}).message()), HasSubstr("0 are given"));
  Nest s;
  s.Add({.name = "tile", .scope = Scope::kScratch, .elements = 16, .scratch_offset = 64});
  s.AddPhase(Store(0, Int(0), F(1)), 100);
  EXPECT_THAT(std::string(s.Run({}).message()),
              HasSubstr("does not fit into its memory of 100 bytes"));
}

TEST(LoopInterpreterTest, ParallelIterationsMustNotMeet) {
  const auto run = [](LoopKind kind, LoopNestChecks checks) {
    Nest n;
    const int y = n.Argument("s0", 1, false);
    n.AddPhase(For(0, 3, kind, Store(y, Int(0), Cast(kF, V(0)))));
    TensorBuffer out = TensorBuffer::Zeros(kF, {1});
    return std::string(n.Run({&out}, checks).message());
  };
  EXPECT_EQ(run(LoopKind::kSerial, {}), "");
  EXPECT_THAT(run(LoopKind::kParallel, {}), HasSubstr("races: 1 writes what 0 touches"));
  EXPECT_EQ(run(LoopKind::kParallel, {.find_races = false}), "");
}

TEST(LoopInterpreterTest, ParallelLoopsBesideEachOtherMustNotMeetEither) {
  const auto run = [](int64_t apart) {
    Nest n;
    const int y = n.Argument("s0", 8, false);
    const Stmt first = For(0, 3, LoopKind::kParallel, Store(y, V(0), F(1)));
    n.AddPhase(Block({first, For(1, 3, LoopKind::kParallel, Store(y, V(1) + Int(apart), F(2)))}));
    TensorBuffer out = TensorBuffer::Zeros(kF, {8});
    return std::string(n.Run({&out}).message());
  };
  EXPECT_EQ(run(3), "");
  EXPECT_THAT(run(0), HasSubstr("races: 3 writes what 0 touches"));
  EXPECT_THAT(run(2), HasSubstr("races: 3 writes what 2 touches"));
}

// Memory of arguments is that of all blocks: a barrier orders the threads of one of them alone.
TEST(LoopInterpreterTest, ThreadsMeetInArgumentsToo) {
  const auto run = [](bool sync, int64_t neighbour, LoopKind kind) {
    Nest n;
    const int y = n.Argument("s0", 8, false), z = n.Argument("s1", 8, false);
    const Stmt write = Store(y, V(0) * Int(4) + V(1), F(1));
    const Expr from = Select(Ge(V(1), Int(neighbour)), V(1) - Int(neighbour), V(1));
    const Stmt read = Store(z, V(0) * Int(4) + V(1), Load(y, kF, {V(0) * Int(4) + from}));
    const Stmt body = sync ? Block({write, Sync(), read}) : Block({write, read});
    n.AddPhase(For(0, 2, LoopKind::kBlockX, For(1, 4, kind, body)));
    TensorBuffer first = TensorBuffer::Zeros(kF, {8}), second = TensorBuffer::Zeros(kF, {8});
    return std::string(n.Run({&first, &second}).message());
  };
  EXPECT_EQ(run(false, 0, LoopKind::kThreadX), "");
  EXPECT_EQ(run(true, 1, LoopKind::kThreadX), "");
  EXPECT_THAT(run(false, 1, LoopKind::kThreadX), HasSubstr("races: "));
  const auto write_same = [](LoopKind outer, LoopKind inner, bool sync) {
    Nest n;
    const int y = n.Argument("s0", 1, false);
    const Stmt store = Store(y, Int(0), F(1));
    n.AddPhase(For(0, 2, outer, For(1, 2, inner, sync ? Block({Sync(), store}) : store)));
    TensorBuffer out = TensorBuffer::Zeros(kF, {1});
    return std::string(n.Run({&out}).message());
  };
  EXPECT_THAT(write_same(LoopKind::kSerial, LoopKind::kThreadX, false), HasSubstr("races: "));
  // A barrier says nothing of another block.
  EXPECT_THAT(write_same(LoopKind::kBlockX, LoopKind::kSerial, false), HasSubstr("races: "));
  EXPECT_THAT(write_same(LoopKind::kBlockX, LoopKind::kThreadX, true), HasSubstr("races: "));
}

TEST(LoopInterpreterTest, PhasesAreBarriers) {
  // The second phase reads across what parallel iterations of the first wrote.
  Nest n;
  const int ws = n.Argument("w0", 4, false);
  const int y = n.Argument("s0", 4, false);
  n.AddPhase(For(0, 4, LoopKind::kParallel, Store(ws, V(0), Cast(kF, V(0) * 10))));
  n.AddPhase(For(0, 4, LoopKind::kParallel, Store(y, V(0), At(ws, Int(3) - V(0)))));
  n.nest.steps = {{0, 2, 1}};
  TensorBuffer w = TensorBuffer::Zeros(kF, {4}), out = w;
  const absl::Status status = n.Run({&w, &out});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out.ToDoubles(), ElementsAre(30, 20, 10, 0));
}

TEST(LoopInterpreterTest, LanesOfAVectorAreCombined) {
  Nest n;
  const int x = n.Argument("x0", 10, true);
  const int y = n.Argument("s0", 2, false);
  // Sum and maximum over ten elements in lanes of four; the last two lanes are masked.
  const Expr at = V(0) * 4 + V(1);
  n.AddPhase(
      Block({Store(y, Int(0), F(0)), Store(y, Int(1), Identity(Combiner::kMax, kF, 0)),
             For(0, 3, LoopKind::kSerial,
                 For(1, 4, LoopKind::kVector,
                     If(Lt(at, Int(10)), Block({Store(y, Int(0), At(x, at), Combiner::kSum),
                                                Store(y, Int(1), At(x, at), Combiner::kMax)}))))}));
  TensorBuffer in =
      TensorBuffer::Of(kF, {10}, std::vector<double>{-1, -2, -3, -4, -5, -6, -7, -8, -9, -10});
  TensorBuffer out = TensorBuffer::Zeros(kF, {2});
  const absl::Status status = n.Run({&in, &out});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out.ToDoubles(), ElementsAre(-55, -1));
}

TEST(LoopInterpreterTest, TupleCombinersKeepPairsTogether) {
  const auto run = [](Combiner combiner) {
    Nest n;
    const int x = n.Argument("x0", 6, true);
    const int value = n.Argument("s0", 1, false);
    const int index = n.Argument("s0.1", 1, false, DType::kI64);
    n.AddPhase(Block({Store(value, Int(0), Identity(combiner, kF, 0)),
                      Store(index, Int(0), Identity(combiner, kF, 1)),
                      For(0, 6, LoopKind::kSerial,
                          StoreTuple({value, index}, Int(0), {At(x, V(0)), V(0)}, combiner))}));
    TensorBuffer in = TensorBuffer::Of(kF, {6}, std::vector<double>{2, 9, 1, 9, 1, 5});
    TensorBuffer v = TensorBuffer::Zeros(kF, {1}), i = TensorBuffer::Zeros(DType::kI64, {1});
    EXPECT_TRUE(n.Run({&in, &v, &i}).ok());
    return std::vector<double>{v.DoubleAt(0), i.DoubleAt(0)};
  };
  EXPECT_THAT(run(Combiner::kArgMax), ElementsAre(9, 1));
  EXPECT_THAT(run(Combiner::kArgMaxLast), ElementsAre(9, 3));
  EXPECT_THAT(run(Combiner::kArgMin), ElementsAre(1, 2));
  EXPECT_THAT(run(Combiner::kArgMinLast), ElementsAre(1, 4));
}

TEST(LoopInterpreterTest, ArgIdentityLosesAgainstEverything) {
  Nest n;
  const int value = n.Argument("s0", 1, false);
  const int index = n.Argument("s0.1", 1, false, DType::kI64);
  const Combiner c = Combiner::kArgMax;
  const Expr lowest = F(-std::numeric_limits<double>::infinity());
  n.AddPhase(
      Block({Store(value, Int(0), Identity(c, kF, 0)), Store(index, Int(0), Identity(c, kF, 1)),
             StoreTuple({value, index}, Int(0), {lowest, Int(4)}, c)}));
  TensorBuffer v = TensorBuffer::Zeros(kF, {1}), i = TensorBuffer::Zeros(DType::kI64, {1});
  ASSERT_TRUE(n.Run({&v, &i}).ok());
  EXPECT_EQ(i.At(0).i, 4);
}

TEST(LoopInterpreterTest, StepsRepeatPhasesInOrder) {
  // s[t] = s[t-1] + x[t] in one phase, y[t] = 2 s[t] in the next, five launches of both.
  Nest n;
  const int x = n.Argument("x0", 5, true);
  const int s = n.Argument("w0", 5, false);
  const int y = n.Argument("s1", 5, false);
  const Expr before = Select(Ge(V(0), Int(1)), At(s, V(0) - 1), F(0));
  n.AddPhase(For(0, 5, LoopKind::kStep, Store(s, V(0), before + At(x, V(0)))));
  n.AddPhase(For(0, 5, LoopKind::kStep, Store(y, V(0), At(s, V(0)) * F(2))));
  n.nest.steps = {{0, 2, 5}};
  TensorBuffer in = TensorBuffer::Of(kF, {5}, std::vector<double>{1, 2, 3, 4, 5});
  TensorBuffer w = TensorBuffer::Zeros(kF, {5}), out = w;
  const absl::Status status = n.Run({&in, &w, &out});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out.ToDoubles(), ElementsAre(2, 6, 12, 20, 30));
  n.nest.steps = {{0, 2, 6}};
  EXPECT_THAT(std::string(n.Run({&in, &w, &out}).message()), HasSubstr("step 5 is not below"));
}

TEST(LoopInterpreterTest, TablesAndStoresRoundToTheirType) {
  Nest n;
  n.Add({.name = "t",
         .scope = Scope::kTable,
         .dtype = DType::kF16,
         .elements = 2,
         .table = {0.1, 2049}});
  const int y = n.Argument("s0", 2, false, DType::kF16);
  n.AddPhase(For(0, 2, LoopKind::kSerial,
                 Store(y, V(0), Load(0, DType::kF16, {V(0)}) + Const(DType::kF16, 1))));
  TensorBuffer out = TensorBuffer::Zeros(DType::kF16, {2});
  ASSERT_TRUE(n.Run({&out}).ok());
  EXPECT_THAT(out.ToDoubles(), ElementsAre(1.099609375, 2048)) << "2048 + 1 is a tie";
}

/// A GPU matmul of 6x6 by 6: blocks of 3x3 threads stage tiles of 3 in shared memory.
class GpuMatmul : public Nest {
 public:
  static constexpr int kSize = 6, kTile = 3;
  enum class Syncs { kBoth, kNoSecond, kNoFirst };

  explicit GpuMatmul(Syncs syncs) {
    const int a = Argument("x0", kSize * kSize, true);
    const int b = Argument("x1", kSize * kSize, true);
    const int c = Argument("s0", kSize * kSize, false);
    const int as = Memory("as", Scope::kShared, kTile * kTile);
    const int bs = Memory("bs", Scope::kShared, kTile * kTile);
    const int acc = Memory("acc", Scope::kRegister, 1);
    const Expr ty = V(2), tx = V(3), kb = V(4), r = V(5);
    const Expr row = V(0) * kTile + ty, column = V(1) * kTile + tx;
    const Stmt first = syncs == Syncs::kNoFirst ? Block({}) : Sync();
    const Stmt body = Block(
        {Fill(acc, 1, F(0)),
         For(4, kSize / kTile, LoopKind::kSerial,
             Block({Store(as, ty * kTile + tx, At(a, row * kSize + kb * kTile + tx)),
                    Store(bs, ty * kTile + tx, At(b, (kb * kTile + ty) * kSize + column)), first,
                    For(5, kTile, LoopKind::kSerial,
                        Store(acc, Int(0), At(as, ty * kTile + r) * At(bs, r * kTile + tx),
                              Combiner::kSum)),
                    syncs == Syncs::kNoSecond ? Block({}) : Sync()})),
         Store(c, row * kSize + column, At(acc, Int(0)))});
    AddPhase(For(0, 2, LoopKind::kBlockY,
                 For(1, 2, LoopKind::kBlockX,
                     For(2, kTile, LoopKind::kThreadY, For(3, kTile, LoopKind::kThreadX, body)))));
  }

  std::string RunAndCompare() {
    Random random(9);
    TensorBuffer x0 = RandomTensor(kSize * kSize, &random),
                 x1 = RandomTensor(kSize * kSize, &random);
    TensorBuffer s0 = TensorBuffer::Zeros(kF, {kSize * kSize});
    const absl::Status status = Run({&x0, &x1, &s0});
    if (!status.ok()) return std::string(status.message());
    return s0.bytes == Matmul(x0, x1, kSize, kSize, kSize).bytes ? "equal" : "different";
  }
};

TEST(LoopInterpreterTest, SharedMemoryMatmulRunsPhaseByPhase) {
  EXPECT_EQ(GpuMatmul(GpuMatmul::Syncs::kBoth).RunAndCompare(), "equal");
}

TEST(LoopInterpreterTest, MissingSyncsAreFound) {
  EXPECT_THAT(GpuMatmul(GpuMatmul::Syncs::kNoFirst).RunAndCompare(), HasSubstr("nobody wrote"));
  EXPECT_THAT(GpuMatmul(GpuMatmul::Syncs::kNoSecond).RunAndCompare(), HasSubstr("races: "));
}

TEST(LoopInterpreterTest, DivergentSyncsAreFound) {
  const auto run = [](Stmt body) {
    Nest n;
    n.AddPhase(For(0, 3, LoopKind::kThreadX, std::move(body)));
    return std::string(n.Run({}).message());
  };
  const Stmt some = If(Lt(V(0), Int(2)), Sync());
  const Stmt others = If(Ge(V(0), Int(2)), Sync());
  EXPECT_EQ(run(Block({Sync(), Sync()})), "");
  EXPECT_THAT(run(some), HasSubstr("not all threads of the block reach"));
  EXPECT_THAT(run(Block({some, others})), HasSubstr("threads wait at different syncs"));
}

TEST(LoopInterpreterTest, ThreadsRunAllStatementsOfTheirLoop) {
  Nest n;
  const int first = n.Argument("s0", 3, false);
  const int second = n.Argument("s1", 3, false);
  // Passes leave the statements of a block in the loop itself.
  StmtNode loop = *For(0, 3, LoopKind::kThreadX, Sync());
  loop.body = {Store(first, V(0), F(1)), Store(second, V(0), F(2))};
  n.AddPhase(std::make_shared<const StmtNode>(loop));
  TensorBuffer s0 = TensorBuffer::Zeros(kF, {3});
  TensorBuffer s1 = TensorBuffer::Zeros(kF, {3});
  const absl::Status status = n.Run({&s0, &s1});
  ASSERT_TRUE(status.ok()) << status;
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s0.DoubleAt(i), 1) << i;
    EXPECT_EQ(s1.DoubleAt(i), 2) << i;
  }
}

TEST(LoopInterpreterTest, SyncOutsideOfThreadsIsAnError) {
  Nest n;
  n.AddPhase(Block({Sync(), Sync()}));
  EXPECT_THAT(std::string(n.Run({}).message()), HasSubstr("outside of thread loops"));
}

TEST(LoopNestTextTest, OneStatementALine) {
  Nest n;
  const int x = n.Argument("x0", 8, true);
  const int y = n.Argument("s0", 8, false);
  const int acc = n.Memory("acc", Scope::kRegister, 4);
  n.AddPhase(
      For(0, 2, LoopKind::kParallel,
          Block({Fill(acc, 4, F(0)),
                 For(1, 4, LoopKind::kVector,
                     If(Lt(V(0) * 4 + V(1), Int(7)),
                        Block({Store(acc, V(1), At(x, V(0) * 4 + V(1)) * F(0.5), Combiner::kSum),
                               Store(y, V(0) * 4 + V(1), At(acc, V(1)))})))})));
  n.nest.steps = {{0, 1, 1}};
  EXPECT_EQ(ToText(n.nest),
            "buffer x0: f32[8] argument 0 read-only\n"
            "buffer s0: f32[8] argument 1\n"
            "buffer acc: f32[4] register\n"
            "phase 0 extent=1 threads=1:\n"
            "  parallel v0 < 2:\n"
            "    fill acc[0..4] = 0.0\n"
            "    vector v1 < 4:\n"
            "      if v0 * 4 + v1 < 7:\n"
            "        acc[v1] sum= x0[v0 * 4 + v1] * 0.5\n"
            "        s0[v0 * 4 + v1] = acc[v1]\n"
            "step 0 count=1 repeats=1\n");
}

}  // namespace
}  // namespace hone::ir

#include "ir/phase_access.h"

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::ir {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// y[i, c] = x[from(i, c)] for 8 rows of 6 floats, two vectors of 4 lanes a row, the last masked.
LoopNest Rows(const std::function<Expr(Expr row, Expr column)>& from) {
  constexpr int64_t kRows = 8, kColumns = 6, kLanes = 4;
  LoopNest nest;
  for (int argument = 0; argument < 2; ++argument) {
    Buffer& buffer = nest.buffers.emplace_back();
    buffer.elements = kRows * kColumns;
    buffer.argument = argument;
  }
  const Expr row = Var(0), column = Var(1) * kLanes + Var(2);
  const Expr value = Load(0, DType::kF32, {from(row, column)});
  const Stmt store =
      If(Binary(BinaryOp::kLt, column, Int(kColumns)), Store(1, row * kColumns + column, value));
  Phase& phase = nest.phases.emplace_back();
  phase.body = For(0, kRows, LoopKind::kParallel,
                   For(1, 2, LoopKind::kUnrolled, For(2, kLanes, LoopKind::kVector, store)));
  phase.parallel_extent = kRows;
  phase.threads = 2;
  nest.num_vars = 3;
  return nest;
}

std::vector<PhaseAccess> Accesses(const LoopNest& nest) { return AccessesOf(nest, nest.phases[0]); }

constexpr PhaseAccess kWrites = {.argument = 1, .writes = true, .stride = 24, .end = 24};

TEST(AccessesOf, RowsEndWhereTheirMaskDoes) {
  EXPECT_THAT(Accesses(Rows([](Expr row, Expr column) { return row * 6 + column; })),
              UnorderedElementsAre(kWrites, PhaseAccess{.stride = 24, .end = 24}));
}

TEST(AccessesOf, NeighboursWidenAndOtherStridesStandApart) {
  EXPECT_THAT(Accesses(Rows([](Expr row, Expr column) { return row * 6 + column - 6; })),
              UnorderedElementsAre(kWrites, PhaseAccess{.stride = 24, .begin = -24}));
  EXPECT_THAT(Accesses(Rows([](Expr row, Expr column) { return column * 8 + row; })),
              UnorderedElementsAre(kWrites, PhaseAccess{.stride = 4, .end = 4 * 41}));
}

TEST(AccessesOf, WhatIsNotLinearMayBeAnywhere) {
  EXPECT_THAT(Accesses(Rows([](const Expr& row, Expr column) {
                return Binary(BinaryOp::kMod, row, Int(3)) * 6 + column;
              })),
              UnorderedElementsAre(kWrites, PhaseAccess{.end = 4 * 48}));
}

TEST(AccessesOf, NothingIsToldOfPhasesThatMayStopOrAreNotOneParallelLoop) {
  const auto same = [](Expr row, Expr column) { return row * 6 + column; };
  LoopNest stops = Rows(same);
  stops.phases[0].body = Block({stops.phases[0].body, Fail(1 << 16)});
  EXPECT_THAT(Accesses(stops), IsEmpty());
  LoopNest beside = Rows(same);
  beside.phases[0].body = Block({beside.phases[0].body, beside.phases[0].body});
  EXPECT_THAT(Accesses(beside), IsEmpty());
  LoopNest alone = Rows(same);
  alone.phases[0].threads = 1;
  EXPECT_THAT(Accesses(alone), IsEmpty());
}

}  // namespace
}  // namespace hone::ir

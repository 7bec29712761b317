#include "graph/index_map.h"

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/text.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::FloorDiv;
using ir::FloorMod;
using ir::Int;
using ir::Var;
using Shape = std::vector<int64_t>;

std::string Text(const Expr& e) {
  return ir::ToText(e, {[](int id) { return "i" + std::to_string(id); },
                        [](int id) { return "t" + std::to_string(id); }});
}

int64_t ValueOf(const Expr& e, const std::vector<int64_t>& point) {
  std::vector<Expr> values;
  for (int64_t value : point) values.push_back(Int(value));
  return ir::AsInt(ir::SubstituteVars(e, values)).value();
}

// All points of the axes, row-major.
std::vector<Shape> Points(const Shape& extents) {
  std::vector<Shape> points = {{}};
  for (int64_t extent : extents) {
    std::vector<Shape> longer;
    for (const Shape& point : points) {
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(point);
        longer.back().push_back(i);
      }
    }
    points = std::move(longer);
  }
  return points;
}

TEST(IndexMapTest, SplitAndJoinedDigitsCancel) {
  const Shape extents = {6, 8};
  EXPECT_EQ(Text(SimplifyIndex(FloorDiv(Var(0) * 8 + Var(1), 8), extents)), "i0");
  EXPECT_EQ(Text(SimplifyIndex(FloorMod(Var(0) * 8 + Var(1), 8), extents)), "i1");
  EXPECT_EQ(Text(SimplifyIndex(FloorDiv(Var(1), 4) * 4 + FloorMod(Var(1), 4), extents)), "i1");
  EXPECT_EQ(Text(SimplifyIndex(FloorMod(FloorDiv(Var(0) * 8 + Var(1), 4), 2), extents)), "i1 // 4");
  EXPECT_EQ(Text(SimplifyIndex(FloorDiv(Var(1) * 2 + 1, 2) - 3, extents)), "i1 - 3");
}

TEST(IndexMapTest, WhatDoesNotDivideStaysAsItIs) {
  const Shape extents = {6, 8};
  EXPECT_FALSE(AnalyseIndex(FloorDiv(Var(0) * 8 + Var(1), 3), extents));
  EXPECT_FALSE(AnalyseIndex(Var(0) * Var(1), extents));
  EXPECT_FALSE(AnalyseIndex(FloorDiv(Var(0) - 1, 2), extents));
  EXPECT_EQ(Text(SimplifyIndex(FloorDiv(Var(0) - 1, 2), extents)), "(i0 - 1) // 2");
}

TEST(IndexMapTest, SimplifiedIndicesHaveTheSameValues) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Shape extents = {random.Between(1, 6), random.Between(1, 6), random.Between(1, 4)};
    std::vector<Expr> pool = {Var(0), Var(1), Var(2), Int(random.Between(-3, 3))};
    for (int step = 0; step < 6; ++step) {
      const Expr a = random.Pick(pool);
      switch (random.Below(5)) {
        case 0: pool.push_back(a + random.Pick(pool)); break;
        case 1: pool.push_back(a - random.Pick(pool)); break;
        case 2: pool.push_back(a * random.Between(-2, 6)); break;
        case 3: pool.push_back(FloorDiv(a, random.Between(1, 6))); break;
        default: pool.push_back(FloorMod(a, random.Between(1, 6))); break;
      }
    }
    const Expr simple = SimplifyIndex(pool.back(), extents);
    for (const Shape& point : Points(extents)) {
      ASSERT_EQ(ValueOf(pool.back(), point), ValueOf(simple, point))
          << "seed " << seed << ": " << Text(pool.back()) << " and " << Text(simple);
    }
  }
}

TEST(IndexMapTest, InvertsWhatPermutesDigits) {
  // Heads: [4, 6] read from [2, 4, 3], the second axis split and its outer part moved to the front.
  const Shape extents = {4, 6};
  const Shape shape = {2, 4, 3};
  const std::vector<Expr> map = {FloorDiv(Var(1), 3), Var(0), FloorMod(Var(1), 3)};
  const auto inverse = InvertIndices(map, extents, shape);
  ASSERT_TRUE(inverse);
  EXPECT_EQ(Text((*inverse)[0]), "i1");
  EXPECT_EQ(Text((*inverse)[1]), "i0 * 3 + i2");
}

TEST(IndexMapTest, InvertsNothingThatIsNoBijection) {
  const Shape four = {4};
  EXPECT_FALSE(InvertIndices(std::vector<Expr>{Var(0) + 1}, four, Shape{5})) << "misses an element";
  EXPECT_FALSE(InvertIndices(std::vector<Expr>{Int(0)}, four, Shape{1}))
      << "reads an element four times";
  EXPECT_FALSE(InvertIndices(std::vector<Expr>{Var(0), Var(0)}, four, Shape{4, 4}))
      << "reads a diagonal";
  EXPECT_FALSE(InvertIndices(std::vector<Expr>{Var(0) * 2}, four, Shape{8}))
      << "reads every second one";
}

TEST(IndexMapTest, FindsPartsOfBuffers) {
  const Shape extents = {1, 3, 4};
  EXPECT_EQ(
      ContiguousOffset(std::vector<Expr>{Var(0) + 2, Var(1), Var(2)}, extents, Shape{5, 3, 4}), 24);
  EXPECT_EQ(ContiguousOffset(std::vector<Expr>{Var(1) * 4 + Var(2)}, extents, Shape{12}), 0);
  EXPECT_FALSE(
      ContiguousOffset(std::vector<Expr>{Var(0), Var(1), Var(2)}, extents, Shape{1, 3, 5}));
  EXPECT_FALSE(
      ContiguousOffset(std::vector<Expr>{Var(0), Var(2), Var(1)}, extents, Shape{1, 4, 3}));
}

TEST(IndexMapTest, KnowsWhichElementsAreReadOnce) {
  const Shape extents = {3, 4};
  EXPECT_TRUE(ReadsOnce(std::vector<Expr>{Var(1), Var(0) * 2 + 1}, extents));
  EXPECT_FALSE(ReadsOnce(std::vector<Expr>{Var(1)}, extents)) << "axis 0 reads it three times";
  EXPECT_FALSE(ReadsOnce(std::vector<Expr>{Var(0) + Var(1)}, extents)) << "windows overlap";
}

}  // namespace
}  // namespace hone::graph

#include "schedule/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/cpu/cpu_target.h"
#include "tests/schedule/nest_check.h"

// What a Space holds, and that all it may decide is right on Workloads of each kind.
namespace hone::schedule {
namespace {

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=2"};

std::string Product(int64_t rows, int64_t columns, int64_t depth) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\nx1: f32[{2},{1}] constant\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n",
      rows, columns, depth);
}

/// A convolution with padding and bias. `guard` says where the padded input is `source` of x0,
/// `product` what is added up. Shapes are lists of extents.
std::string Convolution(const std::string& input, const std::string& guard,
                        const std::string& source, const std::string& padded,
                        const std::string& filter, const std::string& out,
                        const std::string& product) {
  const auto rank = static_cast<size_t>(std::count(out.begin(), out.end(), ',')) + 1;
  const std::string point = std::string("i0, i1, i2, i3, i4").substr(0, 4 * rank - 2);
  return fmt::format(
      "workload 1\nx0: f32[{}] input range(-1,1)\nx1: f32[{}] constant\nx2: f32[{}] constant\n"
      "s0: f32[{}] = select({}, x0[{}], 0.0)\ns1: f32[{}] = sum{}\n"
      "s2: f32[{}] output = s1[{}] + x2[{}]\n",
      input, filter, out.substr(out.rfind(',') + 1), padded, guard, source, out, product, out,
      point, point.substr(4 * rank - 4));
}

struct Case {
  const char* name;
  std::string text;
};

/// Sizes at which every table has its rows: reductions long enough for blocks, rows for several
/// vectors, more channels than a vector has lanes.
std::vector<Case> Cases() {
  const auto grouped = [&](int channels, int group) {
    return Convolution(
        fmt::format("1,4,5,{}", channels), "i1 >= 1 & i1 < 5 & i2 >= 1 & i2 < 6",
        "0, i1 - 1, i2 - 1, i3", fmt::format("1,6,7,{}", channels),
        fmt::format("{},{},3,3", channels, group), fmt::format("1,4,5,{}", channels),
        fmt::format("[r0:3,r1:3,r2:{0}] (s0[0, i1 + r0, i2 + r1, i3 // {0} * {0} + r2] * "
                    "x1[i3, r2, r0, r1])",
                    group));
  };
  const auto before = [](const std::string& state, const std::string& unit) {
    return fmt::format("select(i0 >= 1, {}[i0 - 1, i1, {}], 0.0)", state, unit);
  };
  const auto gate = [](const std::string& function, const std::string& unit) {
    return fmt::format("{0}(x0[i0, i1, {1}] + s0[i0, i1, {1}])", function, unit);
  };
  return {
      {"product", Product(17, 70, 256)},
      {"vector by matrix", Product(1, 133, 512)},
      {"convolution 1-D, dilation 2",
       Convolution("1,19,12", "i1 >= 2 & i1 < 21", "0, i1 - 2, i2", "1,23,12", "37,12,3", "1,19,37",
                   "[r0:3,r1:12] (s0[0, i1 + r0 * 2, r1] * x1[i2, r1, r0])")},
      {"convolution 3-D, stride 2",
       Convolution("1,5,5,9,2", "i1 >= 1 & i1 < 6 & i2 >= 1 & i2 < 6 & i3 >= 1 & i3 < 10",
                   "0, i1 - 1, i2 - 1, i3 - 1, i4", "1,7,7,11,2", "35,2,3,3,3", "1,3,3,5,35",
                   "[r0:3,r1:3,r2:3,r3:2] (s0[0, i1 * 2 + r0, i2 * 2 + r1, i3 * 2 + r2, r3] * "
                   "x1[i4, r3, r0, r1, r2])")},
      {"convolution 3x3",
       Convolution("1,6,9,5", "i1 >= 1 & i1 < 7 & i2 >= 1 & i2 < 10", "0, i1 - 1, i2 - 1, i3",
                   "1,8,11,5", "33,5,3,3", "1,6,9,33",
                   "[r0:3,r1:3,r2:5] (s0[0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])")},
      {"groups of 3", grouped(24, 3)},
      {"groups of 8", grouped(24, 8)},
      {"depthwise", Convolution("1,5,7,37", "i1 >= 1 & i1 < 6 & i2 >= 1 & i2 < 8",
                                "0, i1 - 1, i2 - 1, i3", "1,7,9,37", "37,3,3", "1,5,7,37",
                                "[r0:3,r1:3] (s0[0, i1 + r0, i2 + r1, i3] * x1[i3, r0, r1])")},
      {"value and index",
       "workload 1\nx0: f32[1,21,13,40] input range(-1,1)\n"
       "s0: f32[1,13,40], s0.1: i64[1,13,40] output = argmax[r0:21] (x0[0, r0, i1, i2], r0)\n"},
      {"map",
       "workload 1\nx0: f32[5,300] input range(-1,1)\n"
       "s0: f32[5,300] output = tanh(x0[i0, i1]) * 2.0\n"},
      {"softmax",
       "workload 1\nx0: f32[3,197] input range(-4,4)\ns0: f32[3] = max[r0:197] (x0[i0, r0])\n"
       "s1: f32[3,197] = exp(x0[i0, i1] - s0[i0])\ns2: f32[3] = sum[r0:197] (s1[i0, r0])\n"
       "s3: f32[3,197] output = s1[i0, i1] / s2[i0]\n"},
      {"softmax, rows in two loops",
       "workload 1\nx0: f32[2,9,37] input range(-4,4)\n"
       "s0: f32[2,9] = max[r0:37] (x0[i0, i1, r0])\n"
       "s1: f32[2,9,37] = exp(x0[i0, i1, i2] - s0[i0, i1])\n"
       "s2: f32[2,9] = sum[r0:37] (s1[i0, i1, r0])\n"
       "s3: f32[2,9,37] output = s1[i0, i1, i2] / s2[i0, i1]\n"},
      {"layer norm",
       "workload 1\nx0: f32[24,64] input range(-1,1)\nx1: f32[64] constant\n"
       "s0: f32[24] = sum[r0:64] (x0[i0, r0])\n"
       "s1: f32[24,64] = x0[i0, i1] - s0[i0] * 0.015625\n"
       "s2: f32[24] = sum[r0:64] (s1[i0, r0] * s1[i0, r0])\n"
       "s3: f32[24,64] output = s1[i0, i1] / sqrt(s2[i0] * 0.015625 + 1e-5) * x1[i1]\n"},
      {"sum of exponentials",
       "workload 1\nx0: f32[12,70] input range(-4,4)\ns0: f32[12] = max[r0:70] (x0[i0, r0])\n"
       "s1: f32[12] output = sum[r0:70] (exp(x0[i0, r0] - s0[i0]))\n"},
      {"LSTM",
       "workload 1\nx0: f32[3,2,280] input range(-1,1)\nx1: f32[280,70] constant\n"
       "s0: f32[3,2,280] scan 0 = sum[r0:70] (" +
           before("s2", "r0") +
           " * x1[i2, r0])\ns1: f32[3,2,70] scan 0 = " + gate("sigmoid", "i2 + 140") + " * " +
           before("s1", "i2") + " + " + gate("sigmoid", "i2") + " * " + gate("tanh", "i2 + 210") +
           "\ns2: f32[3,2,70] output scan 0 = " + gate("sigmoid", "i2 + 70") +
           " * tanh(s1[i0, i1, i2])\n"},
      {"GRU",
       "workload 1\nx0: f32[3,2,210] input range(-1,1)\nx1: f32[210,70] constant\n"
       "s0: f32[3,2,140] scan 0 = sum[r0:70] (" +
           before("s3", "r0") + " * x1[i2, r0])\ns1: f32[3,2,70] scan 0 = " +
           gate("sigmoid", "i2") + " * " + before("s3", "i2") +
           "\ns2: f32[3,2,70] scan 0 = sum[r0:70] (s1[i0, i1, r0] * x1[i2 + 140, r0])\n"
           "s3: f32[3,2,70] output scan 0 = tanh(x0[i0, i1, i2 + 140] + s2[i0, i1, i2]) * " +
           gate("sigmoid", "i2 + 70") + "\n"},
  };
}

/// Sketch, table, column, value.
using Value = std::tuple<int, size_t, size_t, int64_t>;

std::vector<Value> ValuesOf(const Space& space, uint64_t id) {
  const Candidate c = space.At(id);
  const auto& tables = space.sketches()[static_cast<size_t>(c.sketch)].tables;
  std::vector<Value> out;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto& row = tables[t].rows[static_cast<size_t>(c.rows[t])];
    for (size_t k = 0; k < row.size(); ++k) out.emplace_back(c.sketch, t, k, row[k]);
  }
  return out;
}

/// Admitted points in random order, those left out that bring no new value of any column.
std::vector<uint64_t> CoveringPoints(const Space& space, Random* random) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.Admits(id)) ids.push_back(id);
  }
  for (size_t k = ids.size(); k > 1; --k) std::swap(ids[k - 1], ids[random->Below(k)]);
  std::set<Value> seen;
  std::erase_if(ids, [&](uint64_t id) {
    bool news = false;
    for (const Value& v : ValuesOf(space, id)) news |= seen.insert(v).second;
    return !news;
  });
  return ids;
}

/// Every value of every column is in some of the points.
void ExpectAllValues(const Space& space, const std::vector<uint64_t>& ids) {
  std::set<Value> seen;
  for (const uint64_t id : ids) {
    for (const Value& v : ValuesOf(space, id)) seen.insert(v);
  }
  for (size_t s = 0; s < space.sketches().size(); ++s) {
    const Sketch& sketch = space.sketches()[s];
    for (size_t t = 0; t < sketch.tables.size(); ++t) {
      for (const auto& row : sketch.tables[t].rows) {
        for (size_t k = 0; k < row.size(); ++k) {
          EXPECT_TRUE(seen.contains({static_cast<int>(s), t, k, row[k]}))
              << sketch.name << ": " << sketch.tables[t].columns[k] << " " << row[k];
        }
      }
    }
  }
}

TEST(SpaceTest, EveryValueOfEveryTableEqualsTheInterpreter) {
  constexpr uint64_t kSeed = 77;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  for (const Case& c : Cases()) {
    const ir::Workload workload = WorkloadOf(c.text);
    std::vector<ir::InterpretedTensor> expected;
    for (const char* target : kTargets) {
      SCOPED_TRACE(std::string(c.name) + " " + target);
      CheckOptions options;
      options.target = target;
      options.slack = 2e-5;  // Winograd may be among them
      options.expected = &expected;
      const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
      const std::vector<uint64_t> ids = CoveringPoints(space, &random);
      ExpectAllValues(space, ids);
      std::cout << "  " << c.name << " " << target << ": " << ids.size() << " of "
                << space.admitted() << "\n";
      for (size_t k = 0; k < ids.size(); ++k) {
        const auto trace = space.TraceOf(ids[k]);
        ASSERT_TRUE(trace.ok()) << trace.status();
        options.compile = k % 8 == 0;
        const CheckResult result = CheckTrace(workload, *trace, options);
        ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
      }
    }
  }
}

// A step of a product that holds more than there are registers stores one to the stack.
TEST(SpaceTest, TilesFitTheRegisters) {
  for (const char* target : kTargets) {
    const Space space(WorkloadOf(Product(512, 512, 512)), TargetOf(target),
                      ir::AccuracyClass::kDefault);
    const int64_t registers = space.target().As<ir::CpuTarget>().registers;
    int64_t most = 0;
    for (const Sketch& s : space.sketches()) {
      for (const auto& row : s.tables[0].rows) {
        if (row[0] == 1 || row[1] == 1) continue;
        EXPECT_LE(row[0] * row[1] + row[1] + 1, registers) << row[0] << " x " << row[1];
        most = std::max(most, row[0] * row[1] + row[1] + 1);
      }
    }
    EXPECT_GE(most, registers - 1) << "no tile that fits is left out";
  }
}

// Rows that lie a multiple of 4096 bytes apart compete for the eight lines of one set.
TEST(SpaceTest, RowsOfATileShareNoSetBeyondItsLines) {
  for (const auto& [depth, most] : {std::pair(1024, 8), std::pair(1040, 16)}) {
    const Space space(WorkloadOf(Product(192, 64, depth)), TargetOf("cpu:avx512,threads=1"),
                      ir::AccuracyClass::kDefault);
    int64_t rows = 0;
    for (uint64_t id = 0; id < space.product(); ++id) {
      if (space.Admits(id) && id != space.DefaultId())
        rows = std::max(rows, space.ValueOf(id, "rows"));
    }
    EXPECT_EQ(rows, most) << depth;
  }
}

/// How far a point is from one of another Space with the same Sketches: as Nearest counts, taken
/// from the tables one by one.
double DistanceOf(const Space& a, uint64_t id, const Space& b, uint64_t other) {
  const Candidate x = a.At(id), y = b.At(other);
  double sum = 0;
  for (size_t t = 0; t < x.rows.size(); ++t) {
    const auto& left = a.sketches()[x.sketch].tables[t].rows[x.rows[t]];
    const auto& right = b.sketches()[y.sketch].tables[t].rows[y.rows[t]];
    for (size_t k = 0; k < left.size(); ++k)
      sum += std::abs(
          std::log2((1.0 + static_cast<double>(left[k])) / (1.0 + static_cast<double>(right[k]))));
  }
  return sum;
}

// Sixteen rows of 1,040 numbers are admitted, of 1,024 they compete for a set of the cache: the row
// that is nearest in each table is no admitted point then.
TEST(SpaceTest, TheNearestPointIsTheNearestOfThoseAdmitted) {
  const Space from(WorkloadOf(Product(192, 64, 1040)), TargetOf("cpu:avx512,threads=1"),
                   ir::AccuracyClass::kDefault);
  const Space to(WorkloadOf(Product(192, 64, 1024)), TargetOf("cpu:avx512,threads=1"),
                 ir::AccuracyClass::kDefault);
  std::vector<uint64_t> admitted;
  for (uint64_t id = 0; id < to.product(); ++id)
    if (to.Admits(id)) admitted.push_back(id);
  int moved = 0;
  for (uint64_t id = 0; id < from.product(); id += 1 + from.product() / 300) {
    if (!from.Admits(id)) continue;
    const std::string& sketch = from.sketches()[from.At(id).sketch].name;
    SCOPED_TRACE(from.ValuesText(id));
    const std::optional<uint64_t> nearest = to.Nearest(from, id);
    ASSERT_TRUE(nearest.has_value());
    EXPECT_TRUE(to.Admits(*nearest));
    EXPECT_EQ(to.sketches()[to.At(*nearest).sketch].name, sketch);
    const double distance = DistanceOf(from, id, to, *nearest);
    for (const uint64_t other : admitted) {
      if (to.sketches()[to.At(other).sketch].name != sketch) continue;
      EXPECT_GE(DistanceOf(from, id, to, other), distance - 1e-9) << to.ValuesText(other);
    }
    moved += from.ValueOf(id, "rows") > 8 ? 1 : 0;
  }
  EXPECT_GT(moved, 0) << "no point was sampled whose rows must change";
}

}  // namespace
}  // namespace hone::schedule

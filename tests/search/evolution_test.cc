#include "search/evolution.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gtest/gtest.h"

#include "schedule/cpu/cpu_rules.h"
#include "search/task_search.h"
#include "tests/costmodel/trained_model.h"
#include "tests/search/fake_measurer.h"

namespace hone::search {
namespace {

/// Columns of LargeSpace.
enum Column : uint8_t { kRows, kVectors, kOrder, kReduceBlock, kTileRows, kPartials, kUnroll };

/// A rule with a table for everything that features tell. All of its Traces are empty.
class ManyTables final : public schedule::CpuRule {
 public:
  std::vector<schedule::Sketch> Sketches(const std::shared_ptr<const schedule::CpuSubject>&,
                                         const schedule::TraceWriter&) const override {
    return {};
  }
  absl::Status Emit(const schedule::Sketch&, const schedule::Values&,
                    schedule::TraceWriter&) const override {
    return absl::OkStatus();
  }
  absl::StatusOr<schedule::Values> Read(const schedule::Sketch&,
                                        const schedule::Trace&) const override {
    return absl::UnimplementedError("they are empty");
  }
  void Describe(const schedule::Sketch& sketch, const schedule::Values& v,
                schedule::CpuFacts* facts) const override {
    facts->padding =
        sketch.name == "peeled" ? schedule::Padding::kPeeled : schedule::Padding::kGuard;
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    facts->columns_outside = v[kOrder] != 0;
    facts->reduce_block = v[kReduceBlock];
    facts->tile_rows = v[kTileRows];
    facts->partial_vectors = v[kPartials];
    facts->unroll = v[kUnroll];
    DescribeTile(schedule::SubjectOf(sketch), facts);
  }
};

/// A Sketch without tables, of the kind of Workload that `task` is.
schedule::Sketch SketchOf(const ir::Workload& workload, const char* name) {
  static const ManyTables rule;
  const auto sketches =
      schedule::CpuSketches().Sketches(workload, TestTarget(), ir::AccuracyClass::kDefault);
  return {name, {}, &rule, sketches.front().form};
}

/// A Space of a hundred million points in two Sketches: every value that a choice can have.
std::shared_ptr<const schedule::Space> LargeSpace() {
  schedule::DecisionTable tile{"tile", {"rows", "vectors"}, {}};
  for (int64_t rows = 1; rows <= 16; ++rows) {
    for (int64_t vectors = 1; vectors <= 6; ++vectors) tile.rows.push_back({rows, vectors});
  }
  const auto table = [](const char* name, int64_t n, int64_t step) {
    schedule::DecisionTable t{name, {name}, {}};
    for (int64_t i = 1; i <= n; ++i) t.rows.push_back({i * step});
    return t;
  };
  const ir::Workload workload = *TwoTasks()[1].workload;
  schedule::Sketch guard = SketchOf(workload, "guard");
  guard.tables = {tile,
                  {"order", {"order"}, {{0}, {1}}},
                  table("reduce_block", 24, 8),
                  table("tile_rows", 24, 1),
                  table("partial_vectors", 20, 1),
                  table("unroll", 24, 1)};
  schedule::Sketch peeled = guard;
  peeled.name = "peeled";
  return std::make_shared<const schedule::Space>(workload, TestTarget(),
                                                 std::vector{guard, peeled});
}

/// Time of a point, 1 at best: inefficiencies that multiply, with couplings between tables; the
/// optimum moves with `seed`.
double LandscapeOf(const schedule::Space::Point& point, uint64_t seed) {
  const auto v = [&](Column column) { return static_cast<double>(point.values[column]); };
  Random random(seed);
  const auto away = [&](double value, double most, double weight) {
    const double best = 1 + (most - 1) * random.Uniform();
    return 1 + weight * std::abs(std::log2(value) - std::log2(best));
  };
  double time = 1;
  time *= away(v(kRows) * v(kVectors), 96, 0.4);
  time *= away(v(kRows) / v(kVectors), 16, 0.2);
  time *= away(v(kReduceBlock) * v(kVectors) / 8, 100, 0.3);
  time *= away(v(kTileRows) * v(kUnroll), 500, 0.3);
  time *= away(v(kUnroll), 24, 0.2);
  time *= away(v(kPartials), 20, 0.3);
  time *= v(kOrder) != 0 ? 1.3 : 1;
  time *= point.sketch.name == "peeled" ? 1.1 : 1;
  return time;
}

std::vector<uint64_t> Stratified(const schedule::Space& space, uint64_t n, Random random) {
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t id =
        std::min(space.product() - 1, space.product() / n * i + random.Below(space.product() / n));
    if (space.Admits(id)) ids.push_back(id);
  }
  return ids;
}

// With a perfect model and as many points scored, what evolution finds is at least a tenth faster
// than the best of a stratified sample in the median of ten landscapes, and never slower.
TEST(EvolutionTest, FindsBetterPointsThanAStratifiedSampleOfEqualSize) {
  const auto space = LargeSpace();
  ASSERT_GT(space->product(), uint64_t{1} << 26);
  std::vector<double> gains;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    size_t scored = 0;
    const auto score = [&](std::span<const uint64_t> ids) {
      scored += ids.size();
      std::vector<float> out;
      for (const uint64_t id : ids)
        out.push_back(static_cast<float>(-LandscapeOf(space->PointOf(id), seed)));
      return out;
    };
    const auto best_of = [&](const std::vector<uint64_t>& ids) {
      const std::vector<float> s = score(ids);
      return -*std::max_element(s.begin(), s.end());
    };
    const std::vector<uint64_t> sample = Stratified(*space, 2048, Random(seed));
    const std::vector<float> scores = score(sample);
    std::vector<ScoredPoint> start;
    for (size_t i = 0; i < sample.size(); ++i) start.push_back({sample[i], scores[i]});
    const std::vector<ScoredPoint> found =
        Evolve(*space, start, score, Random(seed), {.population = 2048});
    ASSERT_FALSE(found.empty());
    const double sampled = best_of(Stratified(*space, scored, Random(seed + 100)));
    gains.push_back(sampled / -found.front().score);
    EXPECT_GE(gains.back(), 1) << "seed " << seed;
  }
  std::sort(gains.begin(), gains.end());
  EXPECT_GE(gains[5], 1.1);
}

TEST(EvolutionTest, ScoresNoPointTwiceAndGivesEachBestFirst) {
  const auto space = LargeSpace();
  std::set<uint64_t> met;
  const std::vector<uint64_t> sample = Stratified(*space, 300, Random(3));
  std::vector<ScoredPoint> start;
  for (const uint64_t id : sample) {
    met.insert(id);
    start.push_back({id, static_cast<float>(-LandscapeOf(space->PointOf(id), 3))});
  }
  const auto found =
      Evolve(*space, start,
             [&](std::span<const uint64_t> ids) {
               std::vector<float> out;
               for (const uint64_t id : ids) {
                 EXPECT_TRUE(met.insert(id).second);
                 EXPECT_TRUE(space->Admits(id));
                 out.push_back(static_cast<float>(-LandscapeOf(space->PointOf(id), 3)));
               }
               return out;
             },
             Random(3), {.population = 200, .elites = 20});
  EXPECT_EQ(found.size() + sample.size(), met.size());
  for (size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i - 1].score, found[i].score);
  EXPECT_LE(found.size(), 6U * (200 + 8 * 16));
}

// The same without a start: it draws its own.
TEST(EvolutionTest, AnEmptyStartIsDrawnAtRandomAndASmallSpaceIsWalkedToItsEnd) {
  const ir::Workload workload = *TwoTasks()[0].workload;
  schedule::Sketch sketch = SketchOf(workload, "four");
  sketch.tables = {{"rows", {"rows"}, {{1}, {2}, {4}, {8}}}};
  const schedule::Space space(workload, TestTarget(), std::vector{sketch});
  const auto found = Evolve(
      space, {}, [](std::span<const uint64_t> ids) { return std::vector<float>(ids.size(), 1); },
      Random(1));
  EXPECT_EQ(found.size(), 4U);
}

/// Best landscape time after so many measured candidates, with trees trained as a session does.
double BestAfter(TaskSearch& search, int trials, uint64_t seed) {
  std::unique_ptr<costmodel::XgboostModel> model;
  double best = 1e30;
  for (int done = 0; done < trials;) {
    const auto batch = search.Propose(8, model.get());
    if (batch.empty()) break;
    for (const auto& p : batch) {
      const double ns = 1e6 * LandscapeOf(search.space().PointOf(p.id), seed);
      search.Report(p.id, measure::Outcome::kOk, ns);
      best = std::min(best, ns);
      ++done;
    }
    if (done % 24 != 0) continue;
    auto next = costmodel::TrainedModel({search.TrainingRows()}, 1);
    if (next.ok()) model = *std::move(next);
    search.ModelChanged();
  }
  return best;
}

// The analytic model knows nothing of this landscape; trees learn it from what was measured.
TEST(EvolutionTest, ASearchOfALargeSpaceBeatsAStratifiedSampleOfItsTrials) {
  const auto space = LargeSpace();
  std::vector<double> gains;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    TaskSearch search(space, seed);
    const double found = BestAfter(search, 144, seed);
    double sampled = 1e30;
    for (const uint64_t id : Stratified(*space, 144, Random(seed + 50)))
      sampled = std::min(sampled, 1e6 * LandscapeOf(space->PointOf(id), seed));
    gains.push_back(sampled / found);
  }
  std::sort(gains.begin(), gains.end());
  EXPECT_GE(gains[1], 1.1);
}

// Without it a search ranks its sample of the space, and nothing beyond it.
TEST(EvolutionTest, ASearchWithoutItFindsSlowerPoints) {
  const auto space = LargeSpace();
  double with = 0, without = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    TaskSearch evolving(space, seed), sampling(space, seed, TaskSearch::kMinStale, false);
    with += std::log(BestAfter(evolving, 144, seed));
    without += std::log(BestAfter(sampling, 144, seed));
  }
  EXPECT_LT(with, without);
}

TEST(EvolutionTest, ASearchOfALargeSpaceProposesNothingTwiceAndReplaysEqually) {
  const auto space = LargeSpace();
  TaskSearch first(space, 7), second(space, 7);
  std::set<uint64_t> met;
  for (int round = 0; round < 8; ++round) {
    const auto a = first.Propose(8, nullptr);
    ASSERT_EQ(a.size(), 8U);
    for (const auto& p : a) {
      EXPECT_TRUE(met.insert(p.id).second);
      const double ns = 1e6 * LandscapeOf(space->PointOf(p.id), 7);
      first.Report(p.id, measure::Outcome::kOk, ns);
      // A replay knows what was proposed and answered, and proposes nothing itself.
      second.MarkProposed(p.id, p.proposer);
      second.Report(p.id, measure::Outcome::kOk, ns);
    }
    if (round == 3) {
      first.ModelChanged();
      second.ModelChanged();
    }
  }
  const auto a = first.Propose(16, nullptr), b = second.Propose(16, nullptr);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].id, b[i].id);
}

}  // namespace
}  // namespace hone::search

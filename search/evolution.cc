#include "search/evolution.h"

#include <algorithm>
#include <unordered_set>

namespace hone::search {

namespace {

class Evolution {
 public:
  Evolution(const schedule::Space& space, const PointScorer& scorer, Random random,
            const EvolutionOptions& options)
      : space_(space), scorer_(scorer), random_(std::move(random)), options_(options) {}

  std::vector<ScoredPoint> Run(std::span<const ScoredPoint> start) {
    population_.assign(start.begin(), start.end());
    for (const ScoredPoint& p : start) met_.insert(p.id);
    Select();
    for (int g = 0; g < options_.generations; ++g) {
      std::vector<uint64_t> children = Children();
      if (children.empty()) break;
      const std::vector<float> scores = scorer_(children);
      population_.resize(std::min(population_.size(), static_cast<size_t>(options_.elites)));
      for (size_t i = 0; i < std::min(children.size(), scores.size()); ++i) {
        population_.push_back({children[i], scores[i]});
        found_.push_back(population_.back());
      }
      Select();
    }
    Sort(&found_);
    return std::move(found_);
  }

 private:
  static void Sort(std::vector<ScoredPoint>* points) {
    std::sort(points->begin(), points->end(), [](const ScoredPoint& a, const ScoredPoint& b) {
      return a.score != b.score ? a.score > b.score : a.id < b.id;
    });
  }
  void Select() {
    Sort(&population_);
    population_.resize(std::min(population_.size(), static_cast<size_t>(options_.population)));
  }

  std::vector<uint64_t> Children() {
    std::vector<uint64_t> out;
    const auto take = [&](uint64_t id) {
      if (met_.count(id) || !space_.Admits(id)) return;
      met_.insert(id);
      out.push_back(id);
    };
    for (size_t i = 0; i < population_.size() && i < static_cast<size_t>(options_.incumbents); ++i)
      for (const uint64_t id : space_.Neighbours(population_[i].id)) take(id);
    const auto most = static_cast<size_t>(options_.population);
    // A small Space runs out of points: give up when most draws were met before.
    for (size_t draws = 0; out.size() < most && draws < 4 * most; ++draws) {
      if (population_.empty() || random_.Chance(options_.fresh)) {
        take(random_.Below(space_.product()));
      } else if (random_.Chance(options_.mutated)) {
        take(Mutated(Parent()));
      } else {
        take(Crossed(Parent(), Parent()));
      }
    }
    return out;
  }

  uint64_t Parent() {
    // The population is sorted, so the smallest place wins.
    uint64_t place = random_.Below(population_.size());
    for (int k = 1; k < options_.tournament; ++k)
      place = std::min(place, random_.Below(population_.size()));
    return population_[static_cast<size_t>(place)].id;
  }

  void Step(schedule::Candidate* c, size_t table) {
    const std::vector<int> steps =
        space_.StepsOf(c->sketch, static_cast<int>(table), c->rows[table]);
    if (!steps.empty()) c->rows[table] = random_.Pick(steps);
  }

  uint64_t Mutated(uint64_t id) {
    schedule::Candidate c = space_.At(id);
    const auto& tables = space_.sketches()[static_cast<size_t>(c.sketch)].tables;
    if (tables.empty()) return id;
    const auto any = [&] { return static_cast<size_t>(random_.Below(tables.size())); };
    const size_t table = any();
    switch (random_.Below(4)) {
      case 0:  // a step
        Step(&c, table);
        break;
      case 1:  // two steps together, of one table or of two
        Step(&c, table);
        Step(&c, any());
        break;
      case 2:  // another row
        c.rows[table] = static_cast<int>(random_.Below(tables[table].rows.size()));
        break;
      default:  // a walk within a table
        for (int k = 0; k < 3; ++k) Step(&c, table);
    }
    return space_.IdOf(c);
  }

  /// The first parent's Sketch; of another Sketch the second gives nothing.
  uint64_t Crossed(uint64_t a, uint64_t b) {
    schedule::Candidate c = space_.At(a);
    const schedule::Candidate other = space_.At(b);
    if (other.sketch != c.sketch) return Mutated(a);
    for (size_t t = 0; t < c.rows.size(); ++t) {
      if (random_.Chance(0.5)) c.rows[t] = other.rows[t];
    }
    return space_.IdOf(c);
  }

  const schedule::Space& space_;
  const PointScorer& scorer_;
  Random random_;
  const EvolutionOptions options_;
  std::vector<ScoredPoint> population_;  ///< best first
  std::vector<ScoredPoint> found_;
  std::unordered_set<uint64_t> met_;
};

}  // namespace

std::vector<ScoredPoint> Evolve(const schedule::Space& space, std::span<const ScoredPoint> start,
                                const PointScorer& scorer, Random random,
                                const EvolutionOptions& options) {
  return Evolution(space, scorer, std::move(random), options).Run(start);
}

}  // namespace hone::search

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/core/random.h"
#include "schedule/space.h"

namespace hone::search {

/// A point of a Space and what a model says of it; higher is better.
struct ScoredPoint {
  uint64_t id = 0;
  float score = 0;
};

struct EvolutionOptions {
  int population = 4096;
  int generations = 6;
  int elites = 256;      ///< that live on
  int tournament = 4;    ///< drawn for each parent; the best of them is it
  int incumbents = 8;    ///< whose one-step neighbours are always scored
  double fresh = 0.05;   ///< share of a generation that is drawn at random
  double mutated = 0.7;  ///< the rest are children of two parents
};

/// Scores of points, in their order.
using PointScorer = std::function<std::vector<float>(std::span<const uint64_t>)>;

/// Looks for high scores where a Space is too large to score whole: from `start` (the best of a
/// sample, incumbents), generations of parents chosen by tournament (free of the scores' scale),
/// whose children differ by one step of a table, two coupled steps, another row of a table, or take
/// each table from either parent (of one Sketch). No point is scored twice. Gives every admitted
/// point that was scored beyond `start`, best first. Deterministic; the time is the scorer's.
std::vector<ScoredPoint> Evolve(const schedule::Space& space, std::span<const ScoredPoint> start,
                                const PointScorer& scorer, Random random,
                                const EvolutionOptions& options = {});

}  // namespace hone::search

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/target.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// A reduction with few results, each of many terms: a thread for each result would leave the card
/// empty. So many partial results are made of each, by a launch of their own.
struct LongSum {
  int stage = -1;
  /// Neighbours along the reduce axis lie side by side in memory; else those of the last spatial
  /// axis are read together.
  bool along = true;
};

/// Those among these Stages, none of which is rows or a product.
std::vector<LongSum> LongSums(const TraceWriter& writer, const std::vector<int>& stages);
/// How many partial results by default.
int64_t NominalPartials(const TraceWriter& writer, const LongSum& sum);
/// Makes the Stage of partial results, at most so many (0: NominalPartials). A map that alone reads
/// the result becomes its epilogue where `stages` has it. Gives the new Stage.
int FactorSum(TraceWriter& writer, const LongSum& sum, int64_t partials,
              const std::vector<int>& stages);

/// Whether a warp sums so many partial results of each result; else a thread does.
bool SummedByLanes(const TraceWriter& writer, int sum, int64_t partials);
/// The warps of a block sum a result each.
void ScheduleOnLanes(TraceWriter& writer, int sum);
inline constexpr int64_t kWarpsOfSums = 8;  ///< of a block

/// Long sums by partial results, the rest as by default; the number is that of partial results.
/// Nothing where there is no long sum.
std::optional<Sketch> SumsSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule

#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/sketches/rules.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// Everything the rules decide for the heaviest cluster of a Workload; the other clusters follow
/// the nominal rules.
struct PlanChoice {
  Padding padding = Padding::kPeeled;
  int winograd = 0;             ///< 0: direct; 2 or 4: F(m×m, 3×3)
  bool one_phase = false;       ///< Winograd: transforms computed at blocks of tile rows
  int64_t tile_rows = 2;        ///< Winograd, one phase: tile rows per block
  TileChoice tile;              ///< contraction, window; of rows the number taken at a time
  int64_t query_rows = 0;       ///< attention in one phase: rows of a block; 0: not that way
  int64_t key_block = 0;        ///< and by so many keys at a time; 0: all of them
  int64_t partial_vectors = 4;  ///< rows: vectors of partial results
  int64_t unroll = 1;           ///< maps, alone or in rows: vectors per iteration
};

/// What can be chosen for a Workload, found once.
struct PlanForm {
  enum class Kind : uint8_t { kTile, kRows, kMap, kScan } kind = Kind::kMap;
  bool prepared = false;   ///< the anchor reads a Stage that prepares its input
  bool costly = false;     ///< and repeating that Stage is dear
  bool own_input = false;  ///< and nothing else reads that Stage
  bool winograd = false;   ///< the anchor is a 3×3 stride-1 convolution in NHWC
  TileForm tile;           ///< kTile; kScan: of its product, anchor -1 when it has none
  TileChoice nominal;
  int64_t reduce_inner = 1;                   ///< kTile: extent of the innermost reduce axis
  int64_t row_length = 1;                     ///< kRows, kMap: elements along the vector axis
  std::vector<int64_t> rows_at_a_time = {1};  ///< kRows: what fits
  int lanes = 16;
};

PlanForm FindPlanForm(const ir::Workload& workload, const ir::Target& target);
/// The choice of the default schedule.
PlanChoice NominalChoice(const PlanForm& form);
/// Writes the Trace of a choice. InvalidArgument when the choice does not fit the Workload.
absl::StatusOr<Trace> PlanTrace(const ir::Workload& workload, const ir::Target& target,
                                const PlanChoice& choice);

}  // namespace hone::schedule

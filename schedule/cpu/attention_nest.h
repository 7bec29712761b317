#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "ir/target.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/cpu/attention.h"
#include "schedule/cpu/rules.h"
#include "schedule/trace_writer.h"

// The parts of attention's loop nest that all of its Sketches share. Everything writes to the
// TraceWriter and reads its Workload; nothing is kept. Thread-safe.
namespace hone::schedule {

/// InvalidArgument: the Workload's attention is not scheduled in one phase, because of this.
absl::Status UnfitAttention(const std::string& why);

/// Loop of a Stage's axis, "s3.i1".
std::string AxisLoop(const TraceWriter& w, int stage, int axis);

/// The Stage that owns the loops and its axes.
struct AttentionOwner {
  int stage = -1;
  int query = -1;           ///< the axis along which rows share keys and values
  int vector = -1;          ///< the axis of the values
  std::vector<int> others;  ///< batches, heads
};
/// The product as the owner. Error: what stands in the way when its rows and columns are taken for
/// the tile's.
absl::StatusOr<AttentionOwner> AxesOfProduct(const TraceWriter& w, const AttentionForm& f);
/// The map that stores the product, by the product's axes in its own order; or the product itself.
absl::StatusOr<AttentionOwner> FindOwner(const TraceWriter& w, const AttentionForm& f);
/// The attention's own Stages; -1 among them where there is no quotient.
std::vector<int> StagesOf(const AttentionForm& f);
/// Maps around the attention, all but those `apart`, are inlined or scheduled as phases of their
/// own. Error: something else than a map stands there.
absl::Status ScheduleOthers(TraceWriter& w, const std::vector<int>& apart,
                            const ir::Target& target);

/// Rows of a reduction along the last axis of memory, in vectors of partial results.
void ScheduleRowSum(TraceWriter& w, int stage, int lanes);
/// A map's last axis in vectors; `extent` elements of it are computed at a time, or one less where
/// blocks are not `equal`.
void VectorizeLast(TraceWriter& w, int stage, int lanes, int64_t extent, bool equal);

/// The register tile of the product with the values, for a block of rows.
TileChoice OutputTile(const TraceWriter& w, TileForm form, int64_t rows, const ir::Target& target);
/// The register tile of the scores: the choice's, as far as there are so many rows and vectors.
TileChoice TileOfScores(const TileForm& form, const AttentionChoice& choice, int64_t rows);
/// The tile of the scores, whose maps between the first and the last of the chain are inlined.
TileForm FormOfScores(TraceWriter& w, const std::vector<int>& chain, const ir::Target& target);
/// The scores' contraction in the registers of the last map of it, or in a tile of its own, at this
/// loop.
void ScheduleScores(TraceWriter& w, const TileForm& form, const TileChoice& tile,
                    const std::string& at, const ir::Target& target);

/// The owner's loops: blocks of rows, shared among threads, then the tile. `time` (or -1) stands
/// inside the block's loop. Gives the loop at which what a block needs is computed, and the tile's.
struct BlockLoops {
  std::string block, tile;
};
BlockLoops OwnerLoops(TraceWriter& w, const AttentionOwner& own, const TileForm& form,
                      const TileChoice& tile, int64_t block, int time, bool reduces,
                      const ir::Target& target);
/// Blocks of two sizes are serial loops: only where the other axes feed the threads.
bool HasUnevenOthers(const TraceWriter& w, const AttentionOwner& own, const ir::Target& target);

/// The Stages of algorithms/online_softmax.h after the scores, in order.
enum OnlineStage : uint8_t {
  kBlockMax,
  kMax,
  kShift,
  kWeights,
  kBlockSum,
  kFade,
  kSum,
  kScale,
  kPartial,
  kOutput
};
/// Rows of a block where so many are wanted: blocks are equal where half as many or more give equal
/// ones, and `must_divide` asks for equal ones whatever their size.
int64_t OnlineRows(int64_t wanted, int64_t rows, bool must_divide);
/// Keys of a block where so many are wanted: whole vectors, in nearly equal blocks.
int64_t OnlineKeys(int64_t wanted, int64_t keys, int64_t lanes);
/// The scores' tile for blocks of so many rows and keys.
TileChoice OnlineTile(const TileForm& form, const AttentionChoice& choice, int64_t rows,
                      int64_t keys);
/// By blocks of keys (PlanAttention).
absl::Status PlanAttentionByKeys(TraceWriter& w, const AttentionChoice& choice,
                                 const AttentionForm& f, const ir::Target& target);

/// The scores' tiles of keys × vectors of rows that attention with rows in the lanes may have; none
/// where its rows fill no vector.
std::vector<TileChoice> LaneTiles(const TraceWriter& w, const AttentionForm& f,
                                  const ir::Target& target);
/// The best of them by the Target's nominal numbers; nothing where threads would have unequal
/// shares.
std::optional<TileChoice> NominalLaneTile(const TraceWriter& w, const AttentionForm& f,
                                          const ir::Target& target);
/// With the rows of queries in the lanes (PlanAttention).
absl::Status PlanAttentionByLanes(TraceWriter& w, const AttentionChoice& choice, AttentionForm f,
                                  const ir::Target& target);

}  // namespace hone::schedule

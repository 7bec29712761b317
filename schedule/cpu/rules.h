#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/target.h"
#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// How the guarded copy that a convolution's or window's padding is becomes code.
enum class Padding : uint8_t {
  kGuard,   ///< inlined; taps are tested where they are read
  kPeeled,  ///< inlined; the row axis's first and last tile are siblings with constants
  kTile,    ///< a padded tile in scratch, per outermost row
  kRoot,    ///< a padded copy of the whole input
};

/// The register tile of a contraction or window and the order of the loops around it.
struct TileChoice {
  int64_t rows = 1;     ///< iterations of the row axis held in registers
  int64_t vectors = 1;  ///< vectors along the vector axis
  int64_t reduce_block =
      0;  ///< contraction: iterations of the innermost reduce axis per pass; 0: all
  /// kColumnsAhead: columns outside, and while a panel is worked on the next one is fetched.
  enum class Order : uint8_t { kRowsOutside, kColumnsOutside, kColumnsAhead };
  Order order = Order::kRowsOutside;
  /// Equal blocks that rows are cut into, outside of all other loops; 0: as threads need them.
  int64_t row_blocks = 0;
  /// In the place of row_blocks: threads share the tiles of rows, of two sizes.
  static constexpr int64_t kTiles = -1;
};

/// What the tile rule found in a cluster with an anchor, before any loop is split.
struct TileForm {
  int owner = -1, anchor = -1;
  int vector_axis = -1;       ///< of owner and anchor alike
  int row_axis = -1;          ///< -1: none
  std::vector<int> outer;     ///< the owner's other axes, in order
  std::vector<int> reduce;    ///< the anchor's reduce axes in loop order, innermost last
  std::vector<int> unrolled;  ///< reduce axes emitted once per iteration (a border decides them, or
                              ///< a window's taps)
  std::vector<int> packed;    ///< tensors to lay out in panels along the vector axis
  bool border = false;        ///< the row axis has guarded ends
  int lanes = 16;
  int64_t registers = 1;  ///< that a vector of results takes: the index of a tuple is wider
  /// Iterations of the innermost reduce axis that one instruction multiplies and adds up; 1: none.
  int64_t dot = 1;
  /// Groups of so many that one product of tiles adds up, in tile registers; 0: vectors do it.
  int64_t tile_groups = 0;
  /// Bytes are multiplied in pairs of 16 bits, to which the panels and, where many panels read it,
  /// this tensor that all lanes share are widened before; -1: it is widened in the loop.
  bool pairs = false;
  int widened = -1;
  int64_t vectors_total = 1;  ///< vectors that cover the vector axis
  /// Elements along the vector axis that share the other factor (a group's channels); 0: all do.
  int64_t shared_block = 0;
  bool FitsBlock(int64_t vectors) const { return shared_block % (vectors * lanes) == 0; }
  int64_t rows_total = 1;
  /// Rows that share what some factor gives (a group's channels); tiles hold whole groups or parts.
  int64_t row_block = 1;
  bool FitsRowBlock(int64_t rows) const {
    return row_block == 1 ||
           (rows_total % rows == 0 && (row_block % rows == 0 || rows % row_block == 0));
  }
};
TileForm FindTileForm(const TraceWriter& writer, const Cluster& cluster, const ir::Target& target);
/// The tile a Target's nominal numbers suggest.
TileChoice NominalTile(const TraceWriter& writer, const TileForm& form, const ir::Target& target);
/// Which share of multiply-adds a tile reaches by these numbers.
double TileEfficiency(const ir::Workload& workload, const TileForm& form, const TileChoice& choice,
                      const ir::Target& target);
/// How good a tile is: that share, less what uneven shares cost many threads.
double TileScore(const ir::Workload& workload, const TileForm& form, const TileChoice& choice,
                 const ir::Target& target);
/// Tiles that are side by side outside of the row axis's loops.
int64_t TilesOutside(const ir::Stage& stage, const TileForm& form, const TileChoice& choice);
/// Equal blocks that rows are cut into first, where the other loops outside leave threads idle or
/// unequal; 1: none. kTiles: where no such blocks would do, among many threads.
int64_t RowBlocks(const ir::Stage& stage, const TileForm& form, const TileChoice& choice,
                  const ir::Target& target);
/// The largest share of a thread over the mean of all.
double ShareImbalance(const ir::Stage& stage, const TileForm& form, const TileChoice& choice,
                      const ir::Target& target);
/// Copies what the anchor reads again and again into panels of so many elements along the vector
/// axis.
void PackPanels(TraceWriter& writer, const TileForm& form, int64_t panel, const ir::Target& target);
/// Whether panels can be fetched ahead: those of constants of at least 128 KB, which rows share.
bool HasPanelsToFetch(const ir::Workload& workload, const TileForm& form);
/// `padding` says whether the row axis's borders are peeled (an inlined guard) or not.
void ScheduleTile(TraceWriter& writer, const TileForm& form, const TileChoice& choice,
                  Padding padding, const ir::Target& target);
/// The choice from which ScheduleTile wrote this Trace, rows outside where the order says nothing;
/// nothing where it wrote none. `writer` is as FindTileForm had it.
std::optional<TileChoice> ReadTile(const TraceWriter& writer, const TileForm& form,
                                   const ir::Target& target, const Trace& trace);
/// The loops of an anchor that is computed in its owner's register tile.
void ScheduleTileLoops(TraceWriter& writer, const TileForm& form);
/// The same where products of tiles are what is done (form.tile_groups).
void ScheduleTileProduct(TraceWriter& writer, const TileForm& form);
/// Splits the rows of a block into 16s, and the terms; makes products of tiles of the innermost
/// loops, which follow the reduce loops after those in `order`. `across` counts the 16 `columns` of
/// a tile.
void OrderTileProduct(TraceWriter& writer, const TileForm& form, int stage, const std::string& rows,
                      const std::string& across, const std::string& columns,
                      std::vector<std::string>* order);
/// Computes the anchor in registers at a loop of its owner's, with those loops; sums of products of
/// tiles in memory.
void ScheduleAnchorInside(TraceWriter& writer, const TileForm& form, const std::string& tile_loop);
/// The tile of an owner that is itself computed at a loop: no loop is parallel, nothing is packed.
/// What counts of `padding` is only whether the row axis's borders are peeled.
void ScheduleTileInside(TraceWriter& writer, const TileForm& form, const TileChoice& choice,
                        Padding padding = Padding::kGuard);
/// Computes the Stage that prepares the input at the outermost row loop of the owner, into scratch,
/// or at root where the owner has none.
void ScheduleInputTile(TraceWriter& writer, int input, int owner, const ir::Target& target);

/// Vectors that a row is worked on by at a time, and rows that are.
struct RowChoice {
  int64_t partial_vectors = 4;  ///< partial results per reduction
  int64_t map_vectors = 4;      ///< of maps; as many: a map and the reduction of it are one loop
  /// That go through each Stage before the next: the end of a row's reduction (across lanes, then a
  /// division, say) is a chain of a hundred cycles, and other rows are worked on meanwhile.
  int64_t rows = 1;
};
/// The numbers of rows of a cluster that can be taken at a time, one first.
std::vector<int64_t> RowsAtATime(const TraceWriter& writer, const Cluster& cluster);
/// The one of them that is mostly the fastest and leaves every thread a block.
int64_t NominalRowsAtATime(const TraceWriter& writer, const Cluster& cluster,
                           const ir::Target& target);
/// Rows with their reductions: softmax, normalisation, row sums. A reduction to few results is cut
/// into parts that run in parallel.
void ScheduleRows(TraceWriter& writer, const Cluster& cluster, const RowChoice& choice,
                  const ir::Target& target);
/// A Stage without reduction; `unroll` vectors per iteration.
void ScheduleMap(TraceWriter& writer, int stage, int64_t unroll, const ir::Target& target);
/// A Stage of a scan, perhaps with the product that only it reads; `choice` is the register tile of
/// the product.
void ScheduleScan(TraceWriter& writer, const Cluster& cluster, const TileChoice& choice,
                  const ir::Target& target);
/// Whether nothing else belongs to the Stage's scan and each of its points carries on from the same
/// point one step before: then whole rows can follow each other, as in a cumulative sum.
bool CarriesPointByPoint(const ir::Workload& workload, const ir::Stage& stage);
/// The tile of a scan's product: batch rows × vectors. `anchor` is -1 when there is none.
TileForm FindScanForm(const TraceWriter& writer, const Cluster& cluster, const ir::Target& target);

/// Lanes of a vector of this dtype on the target; at most 64.
int LanesFor(ir::DType dtype, const ir::Target& target);
/// The largest share of so many equal iterations over the mean of all threads; 1: even.
double ThreadImbalance(int64_t iterations, const ir::Target& target);
/// Whether tiles give way to even shares: what rows and columns leave over is much then. Targets
/// with fewer threads keep the schedules that they always had.
inline bool HasManyThreads(const ir::Target& target) { return target.threads >= 16; }
/// What is even enough for them.
inline constexpr double kMostImbalance = 1.15;
/// Makes the outermost of `loops` (outer to inner, with their extents) parallel, fused with those
/// that follow until the threads' shares are even enough. Call it before anything is computed at
/// these loops. Gives the parallel loop and how many of `loops`, from the first on, it stands for
/// (0: nothing was done).
struct ParallelLoop {
  std::string name;
  size_t consumed = 0;
};
ParallelLoop Parallelise(TraceWriter& writer, int owner, const std::vector<std::string>& loops,
                         const std::vector<int64_t>& extents, const ir::Target& target);
/// Makes all of them one parallel loop; the first may have siblings.
ParallelLoop ParalleliseAll(TraceWriter& writer, int owner, const std::vector<std::string>& loops,
                            const ir::Target& target);

}  // namespace hone::schedule

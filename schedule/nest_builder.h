#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/index/simplify.h"
#include "ir/stmt.h"
#include "ir/target.h"
#include "schedule/instance.h"
#include "schedule/lower.h"
#include "schedule/nest_location.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// Turns one Schedule into loop nests, one root Stage at a time. Used once. Every InvalidArgument
/// it returns is a reason why the schedule is illegal.
class NestBuilder {
 public:
  NestBuilder(const Schedule& schedule, const std::vector<int>& stage_order);

  /// Adds an interface buffer for a tensor (in the order of the kernel's arguments); `given`: the
  /// kernel only reads it.
  void AddArgument(int tensor, const BufferBinding& binding, bool given);
  /// Makes an immediate tensor readable.
  void AddTable(int tensor);
  /// The results of a tuple share one index, so their buffers must be laid out alike. After all
  /// arguments.
  absl::Status CheckTuples() const;
  /// Lowers a live root Stage to a phase (without symbol).
  absl::StatusOr<ir::Phase> BuildPhase(int stage);
  /// The phase that looks at indices taken from inputs (ir/checked_index.h), before all others;
  /// nothing when there are none. After all arguments and tables; `unread`: constants that have no
  /// memory at run time.
  absl::StatusOr<std::optional<ir::Phase>> BuildIndexChecks(const ir::Workload& workload,
                                                            const std::set<int>& unread,
                                                            const ir::Target& target);
  ir::LoopNest& nest() { return nest_; }
  /// True when the tensor must stand in memory as a whole: outputs, root Stages' results, carried
  /// values of scans, and the other result of a tuple with such a one.
  static bool NeedsWholeBuffer(const Schedule& schedule, int tensor);

 private:
  /// A statement and the conditions under which it must run, not yet placed: they are put just
  /// inside the innermost loop whose variable they use.
  struct Emitted {
    ir::Stmt stmt;
    std::vector<ir::Expr> domain;       ///< guards of points that do not exist
    std::vector<ir::Expr> value;        ///< where a reduction's contribution is the identity
    std::vector<ir::Stmt> before = {};  ///< of a loop's body: what comes before the loop
    std::vector<ir::Stmt> after = {};   ///< and after it
  };
  /// What to do with the loops of a Stage from one position on.
  struct Walk {
    bool reduce_loops = true;  ///< false: only the spatial loops (initialisation, copies)
    bool attach = true;        ///< compute the Stages attached to these loops
    bool initialised = true;   ///< the reduction's start was emitted
    std::function<absl::StatusOr<Emitted>(Instance&)> leaf;
  };
  /// A Stage computed inside some loop, the owner of the loop included, and the part of its domain
  /// that is needed there.
  struct Needed {
    Instance region;
    std::vector<Span> axes;
  };

  // nest_builder.cc: loops.
  absl::StatusOr<Emitted> Loops(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<Emitted> EnterSegment(Instance& instance, size_t position, const Segment& segment,
                                       bool only, Walk& walk);
  absl::StatusOr<Emitted> EnterThread(Instance& instance, size_t position, const Segment& segment,
                                      Walk& walk);
  absl::StatusOr<Emitted> LoopBody(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<Emitted> Compute(Instance& instance);
  /// A tile in registers of a GPU's thread, which always begins with the identity.
  bool KeptByThread(int stage) const;
  /// How the loop at this position of the Stage's order runs; the sequential axis of a scan's root
  /// Stage is a step loop.
  ir::LoopKind KindOf(int stage, size_t position) const;
  static ir::Stmt Guard(ir::Stmt stmt, const std::vector<ir::Expr>& conditions);
  /// Moves the conditions that use `var` (all when var < 0) out of `from` and around the statement.
  static void PlaceGuards(Emitted& e, int var);

  // nest_tile.cc: what stands in the innermost loops.
  absl::StatusOr<Emitted> TileBody(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<ir::Stmt> TileCopy(Instance& instance, size_t position, bool load, bool* partial);
  absl::StatusOr<Emitted> StoreLeaf(Instance& instance);
  bool IsFilledUp(int stage) const;
  absl::StatusOr<ir::Stmt> EpilogueStore(int stage, const std::vector<ir::Expr>& axes,
                                         const ir::Expr& element);
  absl::StatusOr<ir::Stmt> SpatialNest(Instance& instance, size_t position,
                                       std::function<absl::StatusOr<Emitted>(Instance&)> leaf);
  /// Elements of a tile that are no element of the result begin with the identity too, or not.
  enum class Identities { kOfResults, kOfTile };
  absl::StatusOr<ir::Stmt> IdentityNest(Instance& instance, size_t position,
                                        Identities which = Identities::kOfResults);
  absl::StatusOr<ir::Stmt> LanesNest(Instance& instance, size_t position);
  absl::Status AddLoopTile(const Instance& instance, size_t position, int result, Storage storage);
  ir::Expr TileIndex(const Instance& instance, const Location& tile);
  // nest_through.cc: tiles that are stored through shared memory.
  struct Box;
  absl::StatusOr<Box> MakeBox(const Instance& instance, size_t position);
  absl::StatusOr<ir::Stmt> StoreThroughShared(Instance& instance, size_t position);
  absl::StatusOr<ir::Stmt> StorePieces(Instance& instance, const Box& box);

  // nest_steps.cc: which iterations of a scan are needed.
  absl::StatusOr<ir::Expr> IsStepNeeded(const Instance& instance, size_t position);

  // nest_pipeline.cc: shared tiles of later iterations, on their way.
  absl::Status AttachAhead(Instance& instance, size_t position, std::vector<ir::Stmt>* before,
                           std::vector<ir::Stmt>* out, std::vector<ir::Stmt>* after);
  absl::Status CheckAhead(const Instance& instance, size_t position) const;
  absl::StatusOr<ir::Stmt> CopiesOf(Instance& instance, size_t position, const ir::Expr& iteration,
                                    Pipeline* pipeline);
  void AwaitTiles(const Pipeline& pipeline, const ir::Expr& now, int64_t groups, int64_t products,
                  std::vector<ir::Stmt>* out) const;

  // nest_boxes.cc: those that come as boxes of tensors.
  absl::Status CheckBoxes(int stage) const;
  absl::StatusOr<ir::Stmt> CopyBox(const Instance& region, ir::Stmt copy);
  ir::Stmt ByFirstThread(std::vector<ir::Stmt> body) const;
  int AddBarriers(int64_t count);

  // nest_mma.cc: what a warp multiplies together.
  absl::Status CheckMma(const Emitted& e, const std::string& loop) const;
  absl::Status CheckTile(const Emitted& e, const std::string& loop) const;

  // nest_wgmma.cc: what four warps multiply together, and what they wait for.
  absl::Status FinishWgmma(const std::string& loop, Emitted* e) const;
  int64_t ProductsInside(const Instance& instance, size_t position) const;
  absl::Status SwizzleTile(const std::string& stage, ir::DType dtype, Location* at);

  // nest_prefetch.cc: what later iterations read.
  absl::Status AddPrefetches(const Instance& instance, size_t position, std::vector<ir::Stmt>* out);
  absl::Status AddShares(const Instance& instance, int loop, const LoopNode::Prefetch& prefetch,
                         std::vector<ir::Stmt>* out);
  absl::Status CheckPrefetchPlace(const Instance& instance, size_t position) const;

  // nest_regions.cc: Stages computed at loops.
  absl::Status Attach(Instance& instance, size_t position, std::vector<ir::Stmt>* out,
                      bool* shared);
  bool IsRepeated(const Instance& instance, size_t position) const;
  bool AttachedAt(int stage, int owner, int loop) const;
  /// The owner and all Stages computed at its loops from `position` on or inside those, consumers
  /// first.
  absl::StatusOr<std::vector<Needed>> RegionsInside(const Instance& instance, size_t position);
  /// A tile that is larger here than seen from further out (vectors stay full) may not read an
  /// output that was made further out for the smaller one. `inside`: consumers found so far.
  absl::Status CheckReadsWhatIsMade(const Instance& region, const Instance& instance,
                                    size_t position, const std::vector<Needed>& inside) const;
  absl::StatusOr<Instance> RegionOf(int stage, const std::vector<Needed>& readers);
  absl::Status AddTile(const Instance& region, int result, Storage storage);
  int AddPrivateBuffer(const ir::Tensor& tensor, int64_t elements, Storage storage);

  // nest_access.cc: expressions and addresses.
  std::vector<ir::Expr> AxisValues(const Instance& instance);
  absl::StatusOr<ir::Expr> LowerExpr(const ir::Expr& e, const std::vector<ir::Expr>& axes);
  ir::Expr FlatIndex(const Location& location, const std::vector<ir::Expr>& indices);
  ir::Expr ResultIndex(const Instance& instance, int result, const std::vector<ir::Expr>& axes);
  /// What is taken for granted of Stages that are computed further inside.
  enum class Inner : uint8_t { kGivesAll, kMayGiveLess };
  /// `outside`, if there: takes the conditions on points that the tensor lacks but the tile has.
  std::vector<ir::Expr> DomainGuards(const Instance& instance, const std::vector<ir::Expr>& axes,
                                     Inner inner, std::vector<ir::Expr>* outside = nullptr);
  /// Whether points that do not exist may be computed all the same, into a private tile.
  bool IsFree(const Instance& instance, const std::vector<ir::Expr>& axes, Inner inner);
  /// Whether every load of the body stays inside what was written, wherever the loop variables
  /// stand.
  bool LoadsAreSafe(const ir::Expr& body, const std::vector<ir::Expr>& axes, Inner inner);
  /// Conditions under which the loads from private tiles stay inside them; a point for which they
  /// do not is not needed. `path`: what excuses this part of the body, because it is in a branch
  /// that is not taken then; null: nothing.
  void TileGuards(const ir::Expr& body, const std::vector<ir::Expr>& axes, const ir::Expr& path,
                  std::vector<ir::Expr>* guards);
  /// Where a tensor is read from: not from the tile that is just being accumulated.
  const Location& ReadingFrom(int tensor) const;

  // nest_legality.cc: schedules that would give another meaning.
  absl::Status CheckAttachPlace(const Instance& instance, size_t position) const;
  absl::Status CheckReadersInside(int stage, int owner, int loop,
                                  const std::vector<Needed>& inside) const;
  absl::Status CheckOrderOfRoot(int stage) const;
  absl::Status CheckBoundLoops(int stage) const;
  absl::Status CheckSharedTile(int stage) const;
  absl::Status CheckOwnTiles(int stage, const std::vector<ir::Expr>& axes);
  absl::Status CheckLanes(int stage) const;
  absl::Status CheckEpilogue(int stage) const;
  absl::Status CheckCarriedInside(const Instance& instance, size_t position);
  /// The Stages of which every element in their box is computed inside this loop.
  std::set<int> MadeWholly(const Instance& instance, size_t position,
                           const std::vector<Needed>& inside) const;
  absl::Status CheckWholeResultsInside(const Instance& instance, size_t position, int var,
                                       int64_t extent, bool only);
  bool CoversAll(const ir::Stage& reader, const ir::Stage& producer) const;

  int NewVar(int64_t extent);
  int NewBuffer(ir::Buffer buffer);

  const Schedule& s_;
  const std::vector<int>& stage_order_;  ///< topological, live Stages only
  ir::LoopNest nest_;
  ir::VarRanges ranges_;
  std::vector<Location> location_;  ///< by tensor
  std::map<int, Instance>
      needed_;  ///< by Stage: what is needed of it inside the loops entered, where that is known
  /// By Stage that is needed as a whole: the part that this iteration of the parallel loop makes.
  std::map<int, Instance> share_;
  std::map<int, Location>
      home_;  ///< by tensor: where it lies while location_ is an accumulation tile
  /// Thread loops in force: variable and number of threads, by kThreadX, kThreadY; var -1: none.
  struct ThreadLoop {
    int var = -1;
    int64_t count = 0;
  };
  ThreadLoop threads_[2];
  /// While an epilogue is lowered: the tensor of which it reads this element.
  struct Finished {
    int tensor = -1;
    ir::Expr element;
  };
  Finished finished_;
  Pipeline* pipeline_ = nullptr;
  bool products_ahead_ = false;  ///< wgmma loops are waited for an iteration later
  int num_arguments_ = 0;
  int64_t scratch_top_ = 0;
  int64_t scratch_high_ = 0;
  int64_t num_leaves_ = 0;  ///< statements emitted so far
};

/// Live Stages in an order where each comes after those it reads and a scan's Stages stand
/// together; inlined and dead ones are left out.
std::vector<int> LiveStages(const Schedule& schedule);

/// A is loaded by B: true when `reader` loads a result of `producer`.
bool Loads(const ir::Stage& reader, const ir::Stage& producer);

/// True for a load, in a Stage of scan `scan`, of an earlier iteration: its first index is not the
/// Stage's own t.
bool IsCarriedLoad(const ir::Workload& workload, int scan, const ir::ExprNode& load);

}  // namespace hone::schedule

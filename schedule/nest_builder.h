#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/stmt.h"
#include "schedule/affine.h"
#include "schedule/instance.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// Where a tensor's elements lie at a point of lowering: element (i…) is at offset + Σ (i_d - low_d)·stride_d of `buffer`.
struct Location {
  int buffer = -1;
  std::vector<ir::Expr> low;      ///< per dimension; null entries mean 0
  std::vector<int64_t> extent;    ///< per dimension: how many indices from low on exist
  std::vector<int64_t> strides;   ///< elements
  int64_t offset = 0;
  /// Not empty: an accumulation tile indexed by the iterations of these loops of its Stage (strides by loop), so that its
  /// indices are constants whatever the loops were fused from.
  std::vector<int> tile_loops;
  bool whole() const { return low.empty() && tile_loops.empty(); }
};

/// Turns one Schedule into loop nests, one root Stage at a time. Used once.
class NestBuilder {
 public:
  NestBuilder(const Schedule& schedule, const std::vector<int>& stage_order);

  /// Adds an interface buffer for a tensor (in the order of the kernel's arguments).
  void AddArgument(int tensor, const BufferBinding& binding);
  /// Makes an immediate tensor readable.
  void AddTable(int tensor);
  /// Lowers a live root Stage to a phase (without symbol).
  absl::StatusOr<ir::Phase> BuildPhase(int stage);
  ir::LoopNest& nest() { return nest_; }
  /// True when the tensor must stand in memory as a whole: outputs, root Stages' results, carried values of scans.
  static bool NeedsWholeBuffer(const Schedule& schedule, int tensor);

 private:
  /// A statement and the conditions under which it must run, not yet placed: they are put just inside the innermost
  /// loop whose variable they use.
  struct Emitted {
    ir::Stmt stmt;
    std::vector<ir::Expr> domain;  ///< guards of points that do not exist
    std::vector<ir::Expr> value;   ///< where a reduction's contribution is the identity
  };
  /// What to do with the loops of a Stage from one position on.
  struct Walk {
    bool reduce_loops = true;      ///< false: only the spatial loops (initialisation, copies)
    bool attach = true;            ///< compute the Stages attached to these loops
    bool initialised = true;       ///< the reduction's start was emitted
    std::function<absl::StatusOr<Emitted>(Instance&)> leaf;
  };

  absl::StatusOr<Emitted> Loops(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<Emitted> EnterSegment(Instance& instance, size_t position, const Segment& segment, bool only,
                                       Walk& walk);
  absl::StatusOr<Emitted> LoopBody(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<Emitted> TileBody(Instance& instance, size_t position, Walk& walk);
  absl::StatusOr<Emitted> Compute(Instance& instance);
  absl::StatusOr<Emitted> StoreLeaf(Instance& instance);
  absl::StatusOr<ir::Stmt> SpatialNest(Instance& instance, size_t position,
                                       std::function<absl::StatusOr<Emitted>(Instance&)> leaf);
  absl::StatusOr<ir::Stmt> IdentityNest(Instance& instance, size_t position);
  absl::Status Attach(Instance& instance, size_t position, std::vector<ir::Stmt>* out);
  absl::StatusOr<Instance> RegionOf(int stage, const std::vector<std::pair<int, std::vector<Span>>>& readers);
  void AddTile(const Instance& region, int result, Storage storage);
  absl::Status AddLoopTile(const Instance& instance, size_t position, int result, Storage storage);
  ir::Expr TileIndex(const Instance& instance, const Location& tile);
  int AddPrivateBuffer(const ir::Tensor& tensor, int64_t elements, Storage storage);

  std::vector<ir::Expr> AxisValues(const Instance& instance);
  absl::StatusOr<ir::Expr> LowerExpr(const ir::Expr& e, const std::vector<ir::Expr>& axes);
  ir::Expr FlatIndex(const Location& location, const std::vector<ir::Expr>& indices);
  ir::Expr ResultIndex(const Instance& instance, int result, const std::vector<ir::Expr>& axes);
  std::vector<ir::Expr> DomainGuards(const Instance& instance, const std::vector<ir::Expr>& axes);
  bool LoadsAreSafe(const ir::Expr& e, const std::vector<ir::Expr>& axes);

  /// How the loop at this position of the Stage's order runs; the sequential axis of a scan's root Stage is a step loop.
  ir::LoopKind KindOf(int stage, size_t position) const;
  int NewVar(int64_t extent);
  int NewBuffer(ir::Buffer buffer);
  static ir::Stmt Guard(ir::Stmt stmt, const std::vector<ir::Expr>& conditions);
  /// Moves the conditions that use `var` (all when var < 0) out of `from` and around the statement.
  void PlaceGuards(Emitted& e, int var);

  const Schedule& s_;
  const std::vector<int>& stage_order_;  ///< topological, live Stages only
  ir::LoopNest nest_;
  VarRanges ranges_;
  std::vector<Location> location_;       ///< by tensor
  int num_arguments_ = 0;
  int64_t scratch_top_ = 0;
  int64_t scratch_high_ = 0;
};

/// Live Stages in an order where each comes after those it reads; inlined and dead ones are left out.
std::vector<int> LiveStages(const Schedule& schedule);

}  // namespace hone::schedule

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "ir/stmt.h"
#include "ir/workload.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// What a split does when the factor does not divide the extent.
enum class Tail : uint8_t {
  kExact,     ///< it must divide
  kMask,      ///< the last part is guarded
  kTwoSizes,  ///< ceil(extent / factor) parts of two adjacent sizes, as sibling loops
};

/// One loop, leaf or not, of a Stage's nest: an axis, a part of a split, or a fusion of two loops.
struct LoopNode {
  enum class Origin : uint8_t { kAxis, kOuter, kInner, kFused };
  std::string name;  ///< "s1.i2.0"
  Origin origin = Origin::kAxis;
  int axis = -1;    ///< kAxis
  int parent = -1;  ///< kOuter, kInner: the loop that was split
  int64_t factor = 0;
  Tail tail = Tail::kExact;
  int fused_outer = -1, fused_inner = -1;  ///< kFused: what was fused
  int split_outer = -1, split_inner = -1;  ///< set when this loop was split
  int fused_into = -1;                     ///< set when this loop was fused
  ir::LoopKind kind = ir::LoopKind::kSerial;
  int threads = 1;            ///< kParallel
  std::vector<int64_t> cuts;  ///< partition: sibling loops begin at these indices
  /// At the beginning of each iteration, what the Stage reads of a tensor so many iterations later;
  /// shared: the points that read the same of it fetch equal shares.
  struct Prefetch {
    int tensor = -1;
    int64_t distance = 0;
    bool shared = false;
  };
  std::vector<Prefetch> prefetches;
  /// So many iterations' shared tiles exist at once, those of later ones on their way; 1: no more.
  int64_t stages = 1;
  bool boxes = false;  ///< they come as boxes of tensors (ir/box_copy.h)

  bool is_leaf() const { return split_outer < 0 && fused_into < 0; }
};

/// kEpilogue: what another Stage's tile is stored through; `at_stage` is that Stage.
enum class Place : uint8_t { kRoot, kAt, kInline, kEpilogue };
enum class Storage : uint8_t { kMemory, kRegister, kShared };

/// The register (or scratch) tile a reduction accumulates in.
struct CacheWrite {
  std::string name;  ///< the handle, e.g. "s7"
  int loop = -1;     ///< the tile lives inside this loop
  Storage storage = Storage::kRegister;
  bool through = false;  ///< stored through shared memory
};

/// How one Stage is scheduled.
struct StageSchedule {
  std::vector<LoopNode>
      loops;               ///< every loop ever made; ids are indices and names are never reused
  std::vector<int> order;  ///< the leaves, outer to inner
  Place place = Place::kRoot;
  int at_stage = -1;
  int at_loop = -1;
  Storage storage = Storage::kMemory;
  std::optional<CacheWrite> cache_write;
  int epilogue = -1;  ///< the map through which the tile is stored; -1: none
  /// What is computed at a loop is whole multiples of these, per dimension; empty: of any size.
  std::vector<int64_t> multiples;
  bool swizzle = false;        ///< its shared tile is laid out for wgmma (ir/wgmma.h)
  std::vector<int64_t> align;  ///< extra elements per dimension of the private buffer; empty: none

  int FindLoop(std::string_view name) const;
  /// The slowest loop that this one was fused from; itself where it is no fusion.
  int SlowestOf(int loop) const;
  /// Whether it is the outer loop of parts of two sizes, or a fusion of which that runs slowest.
  bool HasTwoSizes(int loop) const;
  /// Whether it becomes several loops beside each other: of parts of two sizes, or partitioned.
  bool HasSiblings(int loop) const;
};

/// A Workload with the primitives applied so far. Primitives that make Stages rewrite `workload`
/// (new Stages at the end, names as the Trace gives them); the meaning of the outputs never
/// changes. A value type.
struct Schedule {
  ir::Workload workload;
  std::vector<StageSchedule> stages;  ///< one per Stage of `workload`
  int next_name = 0;                  ///< smallest Stage number never used

  explicit Schedule(ir::Workload w);

  /// One loop an axis, as a Stage has at first.
  static StageSchedule LoopsOf(const ir::Stage& stage);
  /// Adds loops for a Stage that was just appended to `workload`.
  void AddStageSchedule();
  /// A Stage by canonical name; NotFound lists what exists.
  absl::StatusOr<int> Stage(std::string_view name) const;
  /// A leaf loop by name ("s1.i2.0"); errors when it was split, fused or never existed.
  struct LoopRef {
    int stage = -1;
    int loop = -1;
  };
  absl::StatusOr<LoopRef> Loop(std::string_view name) const;
  /// Position of a leaf in its Stage's order.
  int PositionOf(LoopRef ref) const;
  LoopNode& node(LoopRef ref) { return stages[ref.stage].loops[ref.loop]; }
  const LoopNode& node(LoopRef ref) const { return stages[ref.stage].loops[ref.loop]; }
  /// True when the loop iterates reduce axes only; false for spatial; a fusion of both cannot be
  /// made.
  bool IsReduce(LoopRef ref) const;
  /// Extent of a loop of a root Stage; for a Stage computed at a loop the extents of its axes are
  /// those of its whole domain.
  int64_t NominalExtent(LoopRef ref) const;
};

/// Applies one primitive. InvalidArgument gives the reason, without the instruction's text (Replay
/// adds it).
absl::Status Apply(Schedule& schedule, const Instruction& instruction);
/// Applies a whole Trace to a fresh Schedule; the error names the instruction and its number.
absl::StatusOr<Schedule> Replay(const ir::Workload& workload, const Trace& trace);

}  // namespace hone::schedule

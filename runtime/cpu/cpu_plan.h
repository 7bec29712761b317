#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/crew.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/kernel.h"
#include "runtime/node_copies.h"
#include "runtime/phase_order.h"
#include "runtime/region.h"
#include "runtime/sweep.h"

namespace hone::runtime {

/// A plan with its code resolved.
struct CpuModel {
  const ir::Plan* plan = nullptr;
  std::span<const std::byte> constants;
  std::vector<Kernel> kernels;      ///< of the plan's
  int threads = 1;                  ///< that the code was made for
  NodeCopyShelf* copies = nullptr;  ///< of the constants
};

/// What a run of a plan needs on a CPU: arena, scratch and a crew. In a child process after fork it
/// starts threads of its own.
class CpuPlan final : public PreparedPlan {
 public:
  /// `model` must outlive it. kResourceExhausted without memory or threads.
  static Result<std::unique_ptr<PreparedPlan>> Create(const CpuModel& model,
                                                      const RunOptions& options);

  int threads() const override { return crew_->threads(); }
  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) override;
  std::span<const int64_t> step_times_ns() const override { return step_times_ns_; }

 private:
  CpuPlan(const CpuModel& model, const RunOptions& options);
  Status Allocate(const RunOptions& options);
  Status MakeCrew(const RunOptions& options, int threads);
  Status RenewAfterFork();
  void PrepareSteps();
  void PrepareSections();
  void PrepareNodes();
  /// Sets the pointer in each set.
  void SetPointer(size_t pointer, void* memory);
  Status BindBuffers(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs);
  void Poison(std::span<const OutputBuffer> outputs);
  void PrepareMoves();
  void PrepareForks(const RunOptions& options);
  Status RunMoves();
  Status RunMove(size_t move, Crew& crew);

  /// Steps that run one after the other, `repeats` times.
  struct Section {
    size_t first = 0, end = 0;
    int64_t repeats = 1;
    size_t first_moving = 0, end_moving = 0;  // into moving_
    size_t first_move = 0, end_move = 0;      // into moves_
    size_t first_fork = 0, end_fork = 0;      // into forks_
  };
  Status RunOnce(const Section& section);
  Status RunTimed(const Section& section);

  /// Moves that may run beside each other: branch b is those of [ends[b], ends[b + 1]).
  struct Branches {
    Branches(int count, int threads, int64_t spin_ns) : fork(count, threads, spin_ns) {}
    CpuPlan* plan = nullptr;
    std::vector<size_t> ends;
    Fork fork;
  };
  static Status RunBranch(void* branches, int branch, Crew& crew);
  void AddSection(size_t first, size_t end, int64_t repeats);
  void Move(const Section& section, int64_t repeat);

  /// How the parts of an input or output that repeats take lie in memory.
  struct Parts {
    size_t bytes = 0;  // of a part; 0: it is taken whole
    size_t pitch = 0;  // from one part to the next, where the steps find them
  };
  size_t StagedBytes(size_t io, size_t bytes) const;
  size_t PartBytes(size_t io, size_t bytes) const;
  bool CanUse(size_t io, const void* data) const;

  /// An aligned stand-in for a buffer of the caller, made when first needed.
  Result<void*> Stage(size_t io, size_t bytes);

  /// A pointer of a step that depends on the caller's buffers. `io` counts inputs, then outputs.
  struct Patch {
    size_t pointer = 0;
    size_t io = 0;
  };

  /// A pointer of a step that is another in each repeat.
  struct Moving {
    size_t pointer = 0;
    size_t io = 0;               // in the caller's memory, where `arena` is null
    std::byte* arena = nullptr;  // in the first repeat
    size_t advance = 0;
  };

  const CpuModel& model_;
  std::unique_ptr<Crew> crew_;
  Region arena_;
  Scratch scratch_;
  bool poison_ = false;
  bool fixed_shares_ = false;
  const MonotonicClock* clock_ = nullptr;
  uint64_t owner_ = 0;  // ProcessNumber

  std::shared_ptr<const NodeCopies> copies_;  // null: constants are where the package has them
  NodeStride nodes_;                          // of pointers_
  std::vector<void*> pointers_;        // of all steps, one after the other; once for each node
  std::vector<size_t> first_pointer_;  // by step
  std::vector<PhaseGroup> moves_;      // in order
  std::vector<Sweep::Link> links_;     // of all moves, one after the other
  std::vector<size_t> first_link_;     // by move
  std::deque<Sweep> sweeps_;           // by move
  std::vector<Patch> patches_;
  std::vector<Section> sections_;
  std::deque<Branches> forks_;  // in order; none where steps are timed
  std::vector<Moving> moving_;
  std::vector<Parts> parts_;    // by io
  std::vector<Region> stages_;  // by io
  std::vector<void*> io_;       // by io, for this run

  std::vector<int64_t> step_times_ns_;
};

}  // namespace hone::runtime

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "schedule/schedule.h"

// What every primitive shares: its arguments' meaning and the table of primitives.
namespace hone::schedule {

absl::Status Illegal(std::string reason);

/// Typed access to an instruction's arguments; every error says which argument.
class Arguments {
 public:
  Arguments(Schedule& schedule, const Instruction& instruction)
      : schedule_(schedule), instruction_(instruction) {}

  /// The number of positional arguments must lie in [low, high]; unknown named arguments are
  /// refused.
  absl::Status Expect(int low, int high, std::initializer_list<std::string_view> named = {}) const;
  int count() const { return static_cast<int>(instruction_.positional.size()); }
  const std::string& Text(int i) const { return instruction_.positional[i]; }
  absl::StatusOr<Schedule::LoopRef> Loop(int i) const { return schedule_.Loop(Text(i)); }
  absl::StatusOr<int> Stage(int i) const { return schedule_.Stage(Text(i)); }
  /// A tensor of the Workload by name (x0, s1, …).
  absl::StatusOr<int> Tensor(int i) const;
  absl::StatusOr<int64_t> Integer(int i) const;
  /// "[1,2,3]" or a single integer.
  absl::StatusOr<std::vector<int64_t>> Integers(int i) const;
  std::optional<std::string> Named(std::string_view key) const;

 private:
  Schedule& schedule_;
  const Instruction& instruction_;
};

/// Elements of "[a,b,c]" as text.
absl::StatusOr<std::vector<std::string>> ListItems(std::string_view text);
absl::StatusOr<int64_t> ParseInteger(std::string_view text);

/// Checks `instruction.result` is the next free Stage name "s<n>" (n >= next_name) and reserves it.
absl::StatusOr<std::string> TakeStageName(Schedule& schedule, const Instruction& instruction);
/// Appends a Stage named `name` with the given body and a fresh result tensor; gives the tensor id.
int AppendStage(Schedule& schedule, ir::Stage stage, std::string name, ir::DType dtype,
                std::vector<int64_t> shape);
/// Gives a Stage whose axes were rewritten one loop an axis again.
void ResetLoops(Schedule& schedule, int stage);
/// In every body of `stage`, loads of `from` become replace(indices).
void ReplaceLoads(ir::Stage& stage, int from,
                  const std::function<ir::Expr(const std::vector<ir::Expr>&)>& replace);
/// Error unless nothing was done to the Stage's loops yet (primitives that rewrite its axes come
/// first).
absl::Status RequireUnscheduled(const Schedule& schedule, int stage);
/// Error when the loop has an annotation already.
absl::Status RequireSerial(const Schedule& schedule, Schedule::LoopRef ref);
/// Error when a Stage is computed at the loop or a tile stands in it: then it must stay a loop.
absl::Status RequireFree(const Schedule& schedule, Schedule::LoopRef ref);
/// Error when STAGE reads `tensor` as a value of its own scan: a copy would have to be made in
/// every iteration.
absl::Status RequireOutsideScan(const Schedule& schedule, int stage, int tensor);

using Primitive = absl::Status (*)(Schedule&, const Instruction&);
absl::Status ApplySplit(Schedule&, const Instruction&);
absl::Status ApplyFuse(Schedule&, const Instruction&);
absl::Status ApplyReorder(Schedule&, const Instruction&);
absl::Status ApplyPartition(Schedule&, const Instruction&);
absl::Status ApplyInline(Schedule&, const Instruction&);
absl::Status ApplyComputeAt(Schedule&, const Instruction&);
absl::Status ApplyCacheRead(Schedule&, const Instruction&);
absl::Status ApplyCacheWrite(Schedule&, const Instruction&);
absl::Status ApplyPack(Schedule&, const Instruction&);
absl::Status ApplyRfactor(Schedule&, const Instruction&);
absl::Status ApplyAnnotate(Schedule&, const Instruction&);  // vectorize, unroll, parallel, bind
absl::Status ApplyTensorize(Schedule&, const Instruction&);
absl::Status ApplyPrefetch(Schedule&, const Instruction&);
absl::Status ApplyAlign(Schedule&, const Instruction&);
absl::Status ApplySwizzle(Schedule&, const Instruction&);
absl::Status ApplyPipeline(Schedule&, const Instruction&);
absl::Status ApplyAlgorithm(Schedule&, const Instruction&);
absl::Status ApplyFlatten(Schedule&, const Instruction&);
absl::Status ApplyUnflatten(Schedule&, const Instruction&);
absl::Status ApplyRound(Schedule&, const Instruction&);
absl::Status ApplyPermute(Schedule&, const Instruction&);
absl::Status ApplyIm2col(Schedule&, const Instruction&);
absl::Status ApplyEpilogue(Schedule&, const Instruction&);

}  // namespace hone::schedule

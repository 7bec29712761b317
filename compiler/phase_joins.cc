#include "compiler/phase_joins.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/phase_order.h"

namespace hone::compiler {
namespace {

/// Half of a level-2 cache of today; the rest is for what the phases hand on.
constexpr int64_t kMostConstantBytes = 512 << 10;

/// A PhaseAccess in the memory of the plan.
struct Touch {
  ir::PlanBufferKind kind = ir::PlanBufferKind::kArena;
  int64_t number = 0;  ///< of an input or output
  ir::PhaseAccess access;
};

/// Bytes that `touch` reaches in all iterations.
std::pair<int64_t, int64_t> Reach(const ir::PhaseAccess& a, int64_t extent) {
  const int64_t last = a.stride * (extent - 1);
  return {a.begin + std::min<int64_t>(last, 0), a.end + std::max<int64_t>(last, 0)};
}

/// Whether an iteration of one may touch what a different iteration of the other does.
bool Conflict(const Touch& a, const Touch& b, int64_t extent) {
  if (!a.access.writes && !b.access.writes) return false;
  if (a.kind != b.kind || a.number != b.number) return false;
  const auto [a_begin, a_end] = Reach(a.access, extent);
  const auto [b_begin, b_end] = Reach(b.access, extent);
  if (a_end <= b_begin || b_end <= a_begin) return false;
  if (a.access.stride != b.access.stride) return true;
  const int64_t window =
      std::max(a.access.end, b.access.end) - std::min(a.access.begin, b.access.begin);
  return window > std::abs(a.access.stride);
}

/// The phases joined so far, and whether others can follow them.
class JoinFinder {
 public:
  explicit JoinFinder(const ir::Plan& plan) : plan_(plan) {}

  std::vector<ir::PlanJoin> Find() {
    std::vector<ir::PlanJoin> joins;
    for (const runtime::PhaseGroup& next : runtime::PhaseOrder(plan_)) {
      if (CanFollow(next)) {
        joins.push_back(next.phases.front());
      } else {
        touches_.clear();
        constants_.clear();
      }
      group_ = next;
      if (!next.is_parallel()) continue;
      for (const Touch& touch : TouchesOf(next.phases.front())) touches_.push_back(touch);
      for (const int32_t constant : ConstantsOf(next)) constants_.push_back(constant);
    }
    return joins;
  }

 private:
  const ir::PlanStep& StepOf(const ir::PlanJoin& at) const {
    return plan_.steps[static_cast<size_t>(at.step)];
  }
  const ir::Artifact& KernelOf(const ir::PlanJoin& at) const {
    return plan_.kernels[static_cast<size_t>(StepOf(at).kernel)];
  }
  const std::vector<ir::PhaseAccess>& AccessesOf(const ir::PlanJoin& at) const {
    return KernelOf(at).phases[static_cast<size_t>(at.phase)].accesses;
  }

  /// Whether what it touches in the arena is elsewhere in the next repeat of a loop.
  bool Advances(const ir::PlanJoin& at) const {
    return std::ranges::any_of(StepOf(at).buffers, [&](int32_t id) {
      if (id == ir::kNoPlanBuffer) return false;
      const ir::PlanBuffer& buffer = plan_.buffers[static_cast<size_t>(id)];
      return buffer.kind == ir::PlanBufferKind::kArena && buffer.advance_bytes != 0;
    });
  }

  std::vector<Touch> TouchesOf(const ir::PlanJoin& at) const {
    std::vector<Touch> touches;
    for (const ir::PhaseAccess& access : AccessesOf(at)) {
      const int32_t id = StepOf(at).buffers[static_cast<size_t>(access.argument)];
      if (id == ir::kNoPlanBuffer) continue;
      const ir::PlanBuffer& buffer = plan_.buffers[static_cast<size_t>(id)];
      if (buffer.kind == ir::PlanBufferKind::kConstant) continue;
      Touch touch = {.kind = buffer.kind, .access = access};
      if (buffer.kind == ir::PlanBufferKind::kArena) {
        touch.access.begin += buffer.offset;
        touch.access.end += buffer.offset;
      } else {
        touch.number = buffer.offset;
      }
      touches.push_back(touch);
    }
    return touches;
  }

  /// Buffers of constants that the phase reads.
  std::vector<int32_t> ConstantsOf(const runtime::PhaseGroup& group) const {
    std::vector<int32_t> constants;
    const ir::PlanJoin& at = group.phases.front();
    for (const ir::PhaseAccess& access : AccessesOf(at)) {
      const int32_t id = StepOf(at).buffers[static_cast<size_t>(access.argument)];
      if (id == ir::kNoPlanBuffer) continue;
      const bool constant =
          plan_.buffers[static_cast<size_t>(id)].kind == ir::PlanBufferKind::kConstant;
      // What differs between iterations is not read by every part.
      if (constant && access.stride == 0) constants.push_back(id);
    }
    return constants;
  }

  bool CanFollow(const runtime::PhaseGroup& next) const {
    if (!group_.Fits(next)) return false;
    if (next.step != group_.step && ir::IsEdge(plan_, next.step)) return false;
    if (Advances(group_.phases.front()) || Advances(next.phases.front())) return false;
    if (AccessesOf(group_.phases.front()).empty() || AccessesOf(next.phases.front()).empty()) {
      return false;
    }
    std::vector<int32_t> constants = ConstantsOf(next);
    constants.insert(constants.end(), constants_.begin(), constants_.end());
    std::ranges::sort(constants);
    constants.erase(std::ranges::unique(constants).begin(), constants.end());
    int64_t bytes = 0;
    for (const int32_t id : constants) bytes += plan_.buffers[static_cast<size_t>(id)].bytes;
    if (bytes > kMostConstantBytes) return false;
    for (const Touch& touch : TouchesOf(next.phases.front())) {
      const auto conflicts = [&](const Touch& before) {
        return Conflict(before, touch, next.extent);
      };
      if (std::ranges::any_of(touches_, conflicts)) return false;
    }
    return true;
  }

  const ir::Plan& plan_;
  runtime::PhaseGroup group_;   // the last one looked at
  std::vector<Touch> touches_;  // of it and of those that it is joined to
  std::vector<int32_t> constants_;
};

}  // namespace

std::vector<ir::PlanJoin> FindJoins(const ir::Plan& plan) { return JoinFinder(plan).Find(); }

}  // namespace hone::compiler

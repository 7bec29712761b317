#include "runtime/plan_check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/externs.h"
#include "runtime/launch_check.h"
#include "runtime/message.h"
#include "runtime/package.h"
#include "runtime/phase_order.h"

namespace hone::runtime {
namespace {

constexpr size_t kMaxSymbolBytes = 255;

bool IsIdentifier(const std::string& text) {
  if (text.empty() || text.size() > kMaxSymbolBytes) return false;
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && c != '_' && c != '.' && c != '$') return false;
  }
  return text[0] < '0' || text[0] > '9';
}

/// Adds "where: " before the message of an error.
Status At(const std::string& where, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), where + ": " + status.message()};
}

Status CheckValues(const std::vector<ir::PlanValue>& values, const char* what) {
  std::set<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::PlanValue& value = values[i];
    const std::string where = Message(what, " ", i, " '", value.name, "'");
    if (value.name.empty()) return Invalid(where, ": has no name");
    if (!names.insert(value.name).second) return Invalid(where, ": a second one of this name");
    const Result<int64_t> bytes = DenseBytes(value.dtype, value.shape);
    if (!bytes.ok()) return At(where, bytes.status());
  }
  return {};
}

class PlanChecker {
 public:
  PlanChecker(const ir::Plan& plan, int64_t constant_bytes)
      : plan_(plan), constant_bytes_(constant_bytes) {}

  Status Check() {
    if (plan_.arena_bytes < 0 || plan_.arena_bytes > kMaxBufferBytes) {
      return Invalid("arena of ", plan_.arena_bytes, " bytes");
    }
    HONE_RETURN_IF_ERROR(CheckValues(plan_.inputs, "input"));
    HONE_RETURN_IF_ERROR(CheckValues(plan_.outputs, "output"));
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      HONE_RETURN_IF_ERROR(At(Message("buffer ", i), CheckBuffer(plan_.buffers[i])));
    }
    HONE_RETURN_IF_ERROR(CheckAdvances());
    for (size_t i = 0; i < plan_.kernels.size(); ++i) {
      HONE_RETURN_IF_ERROR(At(Message("kernel ", i), CheckKernel(plan_.kernels[i])));
    }
    HONE_RETURN_IF_ERROR(CheckLoops());
    HONE_RETURN_IF_ERROR(CheckForks());
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      repeats_ = ir::RepeatsOf(plan_, i);
      HONE_RETURN_IF_ERROR(At(Message("step ", i), CheckStep(plan_.steps[i])));
    }
    HONE_RETURN_IF_ERROR(CheckNames());
    HONE_RETURN_IF_ERROR(CheckJoins());
    return CheckOutputsWritten();
  }

 private:
  static Status CheckRange(const ir::PlanBuffer& buffer, int64_t total_bytes, const char* what) {
    if (buffer.offset < 0 || buffer.offset > total_bytes ||
        buffer.bytes > total_bytes - buffer.offset) {
      return Invalid("[", buffer.offset, ", +", buffer.bytes, ") lies outside the ", what, " of ",
                     total_bytes, " bytes");
    }
    if (buffer.offset % kBufferAlignment != 0) {
      return Invalid("offset ", buffer.offset, " is no multiple of ", kBufferAlignment);
    }
    return {};
  }

  static Status CheckIo(const ir::PlanBuffer& buffer, const std::vector<ir::PlanValue>& values,
                        const char* what) {
    if (buffer.offset < 0 || static_cast<uint64_t>(buffer.offset) >= values.size()) {
      return Invalid(what, " ", buffer.offset, " of ", values.size());
    }
    const ir::PlanValue& value = values[static_cast<size_t>(buffer.offset)];
    HONE_ASSIGN_OR_RETURN(const int64_t bytes, DenseBytes(value.dtype, value.shape));
    const bool is_part = buffer.bytes > 0 && buffer.advance_bytes == buffer.bytes;
    if (is_part ? bytes % buffer.bytes != 0 : buffer.bytes != bytes || buffer.advance_bytes != 0) {
      return Invalid(buffer.bytes, " bytes, but ", what, " '", value.name, "' has ", bytes);
    }
    return {};
  }

  Status CheckBuffer(const ir::PlanBuffer& buffer) const {
    if (buffer.bytes < 0 || buffer.bytes > kMaxBufferBytes) return Invalid(buffer.bytes, " bytes");
    switch (buffer.kind) {
      case ir::PlanBufferKind::kArena: return CheckRange(buffer, plan_.arena_bytes, "arena");
      case ir::PlanBufferKind::kConstant: return CheckRange(buffer, constant_bytes_, "constants");
      case ir::PlanBufferKind::kInput: return CheckIo(buffer, plan_.inputs, "input");
      case ir::PlanBufferKind::kOutput: return CheckIo(buffer, plan_.outputs, "output");
    }
    return Invalid("unknown kind ", static_cast<int>(buffer.kind));
  }

  /// What one repeat takes of an input or output is all that any step takes of it.
  Status CheckAdvances() const {
    std::map<std::pair<ir::PlanBufferKind, int64_t>, int64_t> advances;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const ir::PlanBuffer& buffer = plan_.buffers[i];
      const int64_t advance = buffer.advance_bytes;
      const bool arena = buffer.kind == ir::PlanBufferKind::kArena;
      const bool constant = buffer.kind == ir::PlanBufferKind::kConstant;
      if (advance < 0 || (constant && advance != 0) || (arena && advance % kBufferAlignment != 0)) {
        return Invalid("buffer ", i, ": advances by ", advance, " bytes");
      }
      if (arena || constant) continue;
      const auto [known, fresh] = advances.try_emplace({buffer.kind, buffer.offset}, advance);
      if (!fresh && known->second != advance) {
        return Invalid("buffer ", i, ": advances by ", advance,
                       " bytes, another of the same memory by ", known->second);
      }
    }
    return {};
  }

  Status CheckLoops() const {
    int64_t end = 0;
    for (size_t i = 0; i < plan_.loops.size(); ++i) {
      const ir::PlanLoop& loop = plan_.loops[i];
      if (loop.first < end || loop.count < 1 || loop.repeats < 1 ||
          loop.repeats > kMaxBufferBytes ||
          int64_t{loop.first} + loop.count > static_cast<int64_t>(plan_.steps.size())) {
        return Invalid("loop ", i, ": steps [", loop.first, ", +", loop.count, ") repeated ",
                       loop.repeats, " times, of ", plan_.steps.size(), " steps");
      }
      end = int64_t{loop.first} + loop.count;
    }
    return {};
  }

  /// What the branches touch is the compiler's to know.
  Status CheckForks() const {
    int64_t end = 0;
    for (size_t i = 0; i < plan_.forks.size(); ++i) {
      const ir::PlanFork& fork = plan_.forks[i];
      int64_t next = fork.first;
      bool fits = fork.first >= end && fork.counts.size() >= 2;
      for (const int32_t count : fork.counts) {
        fits = fits && count >= 1;
        next += std::max(count, 0);
      }
      if (!fits || next > static_cast<int64_t>(plan_.steps.size())) {
        return Invalid("fork ", i, ": ", fork.counts.size(), " branches in steps [", fork.first,
                       ", ", next, ") of ", plan_.steps.size());
      }
      for (const ir::PlanLoop& loop : plan_.loops) {
        const int64_t loop_end = int64_t{loop.first} + loop.count;
        const bool apart = next <= loop.first || fork.first >= loop_end;
        if (apart || (fork.first >= loop.first && next <= loop_end)) continue;
        return Invalid("fork ", i, ": a loop begins or ends within it");
      }
      end = next;
    }
    return {};
  }

  /// A buffer that advances stays in its memory and, of an input or output, meets all of it.
  Status CheckAdvance(const ir::PlanBuffer& buffer) const {
    if (buffer.advance_bytes == 0) return {};
    int64_t most = 0;
    if (buffer.kind == ir::PlanBufferKind::kArena) {
      most = (plan_.arena_bytes - buffer.offset - buffer.bytes) / buffer.advance_bytes + 1;
      if (repeats_ <= most) return {};
    } else {
      const bool input = buffer.kind == ir::PlanBufferKind::kInput;
      const ir::PlanValue& value =
          (input ? plan_.inputs : plan_.outputs)[static_cast<size_t>(buffer.offset)];
      most = *DenseBytes(value.dtype, value.shape) / buffer.advance_bytes;
      if (repeats_ == most) return {};
    }
    return Invalid("advances in ", repeats_, " repeats, its memory has room for ", most);
  }

  static Status CheckKernelBuffers(const std::vector<ir::ArtifactBuffer>& buffers,
                                   const char* what) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const std::string where = Message(what, " ", i);
      const Result<int64_t> dense = DenseBytes(buffers[i].dtype, buffers[i].shape);
      if (!dense.ok()) return At(where, dense.status());
      // A Binding may spread a tensor over more bytes than it has, never over fewer.
      if (buffers[i].bytes < *dense || buffers[i].bytes > kMaxBufferBytes) {
        return Invalid(where, ": ", buffers[i].bytes, " bytes for a tensor of ", *dense);
      }
    }
    return {};
  }

  static Status CheckKernel(const ir::Artifact& kernel) {
    for (size_t i = 0; i < kernel.phases.size(); ++i) {
      const ir::ArtifactPhase& phase = kernel.phases[i];
      const std::string where = Message("phase ", i);
      if (!IsIdentifier(phase.symbol)) return Invalid(where, ": symbol '", phase.symbol, "'");
      if (phase.parallel_extent < 0 || phase.parallel_extent > kMaxBufferBytes) {
        return Invalid(where, ": parallel extent ", phase.parallel_extent);
      }
      if (phase.scratch_bytes < 0 || phase.scratch_bytes > kMaxBufferBytes) {
        return Invalid(where, ": scratch of ", phase.scratch_bytes, " bytes");
      }
      HONE_RETURN_IF_ERROR(At(where, CheckLaunch(kernel, phase.launch)));
      if (phase.threads < 1 || phase.threads > kMaxThreads) {
        return Invalid(where, ": ", phase.threads, " threads; 1 to ", kMaxThreads, " are possible");
      }
    }
    for (size_t i = 0; i < kernel.steps.size(); ++i) {
      const ir::ArtifactStep& step = kernel.steps[i];
      const auto phases = static_cast<int64_t>(kernel.phases.size());
      if (step.first < 0 || step.count < 1 || step.repeats < 0 ||
          int64_t{step.first} + step.count > phases) {
        return Invalid("step ", i, ": phases [", step.first, ", +", step.count, ") repeated ",
                       step.repeats, " times, of ", phases, " phases");
      }
    }
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(kernel.inputs, "input"));
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(kernel.constants, "constant"));
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(kernel.prologue, "prologue result"));
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(kernel.outputs, "output"));
    return CheckKernelBuffers(kernel.workspace, "workspace");
  }

  /// What a step may do with a buffer.
  enum class Use { kRead, kConstant, kWrite };

  Status CheckUse(const ir::ArtifactBuffer& wanted, int32_t id, Use use) {
    // A constant that only the prologue read is not in the package: the code gets a null pointer.
    if (use == Use::kConstant && id == ir::kNoPlanBuffer) return {};
    if (id < 0 || static_cast<size_t>(id) >= plan_.buffers.size()) {
      return Invalid("buffer ", id, " of ", plan_.buffers.size());
    }
    const ir::PlanBuffer& buffer = plan_.buffers[static_cast<size_t>(id)];
    HONE_RETURN_IF_ERROR(At(Message("buffer ", id), CheckAdvance(buffer)));
    const bool constant = buffer.kind == ir::PlanBufferKind::kConstant;
    if (use == Use::kConstant && !constant) return Invalid("buffer ", id, " is no constant");
    if (buffer.bytes < wanted.bytes) {
      return Invalid("buffer ", id, " has ", buffer.bytes, " bytes, ", wanted.bytes, " are needed");
    }
    if (use == Use::kWrite) {
      if (constant || buffer.kind == ir::PlanBufferKind::kInput) {
        return Invalid("would write buffer ", id, ", ",
                       constant ? "a constant" : "an input of the model");
      }
      if (buffer.kind == ir::PlanBufferKind::kOutput) {
        written_outputs_.insert(static_cast<size_t>(buffer.offset));
      }
    }
    return {};
  }

  Status CheckUses(const std::vector<std::pair<const std::vector<ir::ArtifactBuffer>*, Use>>& lists,
                   const std::vector<int32_t>& ids) {
    size_t wanted = 0;
    for (const auto& [list, use] : lists) wanted += list->size();
    if (ids.size() != wanted) return Invalid(ids.size(), " buffers, ", wanted, " are needed");
    size_t next = 0;
    for (const auto& [list, use] : lists) {
      for (const ir::ArtifactBuffer& buffer : *list) {
        const std::string where = Message("argument ", next);
        HONE_RETURN_IF_ERROR(At(where, CheckUse(buffer, ids[next], use)));
        ++next;
      }
    }
    return {};
  }

  Status CheckStep(const ir::PlanStep& step) {
    if (step.threads < 1 || step.threads > kMaxThreads) {
      return Invalid(step.threads, " threads; 1 to ", kMaxThreads, " are possible");
    }
    if (step.kind == ir::PlanStepKind::kExtern) return CheckExtern(step);
    if (step.kernel < 0 || static_cast<size_t>(step.kernel) >= plan_.kernels.size()) {
      return Invalid("kernel ", step.kernel, " of ", plan_.kernels.size());
    }
    if (!step.extern_name.empty() || !step.extern_attributes.empty() ||
        !step.extern_inputs.empty() || !step.extern_outputs.empty()) {
      return Invalid("a kernel's step that states an extern routine");
    }
    const ir::Artifact& kernel = plan_.kernels[static_cast<size_t>(step.kernel)];
    return CheckUses({{&kernel.inputs, Use::kRead},
                      {&kernel.constants, Use::kConstant},
                      {&kernel.prologue, Use::kConstant},
                      {&kernel.outputs, Use::kWrite},
                      {&kernel.workspace, Use::kWrite}},
                     step.buffers);
  }

  Status CheckExtern(const ir::PlanStep& step) {
    if (step.kernel != -1) return Invalid("an extern step that states kernel ", step.kernel);
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(step.extern_inputs, "input"));
    HONE_RETURN_IF_ERROR(CheckKernelBuffers(step.extern_outputs, "output"));
    const ExternRoutine* routine = FindExtern(step.extern_name);
    if (routine == nullptr) {
      return Invalid("unknown extern routine '", step.extern_name, "'; this runtime has ",
                     ExternNames());
    }
    HONE_RETURN_IF_ERROR(At(step.extern_name, routine->check(step)));
    return CheckUses({{&step.extern_inputs, Use::kRead}, {&step.extern_outputs, Use::kWrite}},
                     step.buffers);
  }

  Status CheckOutputsWritten() const {
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const int64_t bytes,
                            DenseBytes(plan_.outputs[i].dtype, plan_.outputs[i].shape));
      if (bytes > 0 && written_outputs_.count(i) == 0) {
        return Invalid("output ", i, " '", plan_.outputs[i].name, "': no step writes it");
      }
    }
    return {};
  }

  Status CheckNames() const {
    const ir::PlanName* last = nullptr;
    for (const ir::PlanName& name : plan_.names) {
      const std::string where = Message("name of step ", name.step, ", input ", name.input);
      const auto step = static_cast<size_t>(name.step);
      if (name.step < 0 || step >= plan_.steps.size()) return Invalid(where, ": no such step");
      if (name.input < -1 || name.input >= static_cast<int64_t>(plan_.steps[step].buffers.size())) {
        return Invalid(where, ": no such input");
      }
      if (name.node.empty() || name.node.size() > kMaxTextBytes ||
          name.value.size() > kMaxTextBytes) {
        return Invalid(where, ": texts of ", name.node.size(), " and ", name.value.size(),
                       " bytes");
      }
      if (last != nullptr &&
          std::pair(last->step, last->input) >= std::pair(name.step, name.input)) {
        return Invalid(where, ": names are not in order");
      }
      last = &name;
    }
    return {};
  }

  /// That each is of a phase which may follow the one before part by part; what they touch is the
  /// compiler's to know.
  Status CheckJoins() const {
    const auto& joins = plan_.joins;
    if (std::adjacent_find(joins.begin(), joins.end(), std::greater_equal<>()) != joins.end()) {
      return Invalid("phases without a barrier before them are not in order");
    }
    std::set<ir::PlanJoin> left(joins.begin(), joins.end());
    for (const PhaseGroup& group : PhaseOrder(plan_)) {
      for (size_t i = 1; i < group.phases.size(); ++i) left.erase(group.phases[i]);
    }
    if (left.empty()) return {};
    return Invalid("phase ", left.begin()->phase, " of step ", left.begin()->step,
                   " does not follow a parallel one of as many iterations");
  }

  const ir::Plan& plan_;
  const int64_t constant_bytes_;
  std::set<size_t> written_outputs_;
  int64_t repeats_ = 1;  // of the step that is checked
};

}  // namespace

Result<int64_t> DenseBytes(ir::DType dtype, const std::vector<int64_t>& shape) {
  if (shape.size() > kMaxRank) return Invalid("rank ", shape.size(), " is above ", kMaxRank);
  // A zero anywhere makes the tensor empty, but the other dimensions must still be sane.
  int64_t bytes = ir::SizeOf(dtype);
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return Invalid("a dimension of ", dim);
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (dim > kMaxBufferBytes / bytes)
      return Invalid("a tensor beyond ", kMaxBufferBytes, " bytes");
    bytes *= dim;
  }
  return empty ? 0 : bytes;
}

Status CheckPlan(const ir::Plan& plan, int64_t constant_bytes) {
  return PlanChecker(plan, constant_bytes).Check();
}

}  // namespace hone::runtime

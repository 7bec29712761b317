#include "compiler/plan_assembly.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "compiler/branches.h"
#include "compiler/constant_pool.h"
#include "compiler/phase_joins.h"
#include "compiler/prologue.h"
#include "compiler/thread_choice.h"
#include "ir/workload_cost.h"
#include "runtime/package.h"

namespace hone::compiler {
namespace {

using graph::ValueId;

// The tensors of the memory problem: the graph's values first, then the steps' workspaces.
struct PlannedMemory {
  MemoryProblem problem;
  std::vector<std::vector<int>> workspace;  // by step: tensors
};

PlannedMemory DescribeMemory(const ModelSteps& model, const BuiltKernels& built) {
  PlannedMemory memory;
  std::vector<char> is_input(model.graph.values.size(), 0);
  for (const ValueId value : model.graph.inputs) is_input[value] = 1;
  for (size_t v = 0; v < model.graph.values.size(); ++v) {
    const graph::Value& value = model.graph.values[v];
    MemoryTensor& tensor = memory.problem.tensors.emplace_back();
    tensor.bytes = value.type.Bytes();
    tensor.alias_of = model.aliases[v].of;
    tensor.alias_offset_bytes = model.aliases[v].offset_bytes;  // 0 for what is not in one piece
    tensor.external = is_input[v] || value.constant != nullptr || model.output_of[v] >= 0;
  }
  for (const ModelStep& step : model.steps) {
    MemoryStep& planned = memory.problem.steps.emplace_back();
    planned.reads = step.inputs;
    planned.writes = step.outputs;
    std::vector<int>& workspace = memory.workspace.emplace_back();
    if (step.kind != ir::PlanStepKind::kKernel) continue;
    for (const ir::ArtifactBuffer& buffer : built.kernels[step.kernel].artifact.workspace) {
      workspace.push_back(static_cast<int>(memory.problem.tensors.size()));
      planned.writes.push_back(workspace.back());
      memory.problem.tensors.push_back({.bytes = buffer.bytes});
    }
  }
  return memory;
}

/// By step, at nominal rates; an extern moves its bytes on one thread.
std::vector<StepTime> TimesOf(const ModelSteps& model, const BuiltKernels& built,
                              const AssemblyOptions& options) {
  std::vector<StepTime> times;
  for (const ModelStep& step : model.steps) {
    StepTime& time = times.emplace_back();
    if (step.kind == ir::PlanStepKind::kExtern) {
      ir::WorkloadCost moved;
      for (const auto* values : {&step.inputs, &step.outputs}) {
        for (const ValueId v : *values)
          moved.bytes += static_cast<double>(model.graph.values[v].type.Bytes());
      }
      time.alone_ns = AloneNs(moved, options.target);
      continue;
    }
    const auto kernel = static_cast<size_t>(step.kernel);
    time.alone_ns = AloneNs(ir::CostOf(model.kernels[kernel].workload), options.target);
    int64_t extent = 1;
    for (const ir::ArtifactPhase& phase : built.kernels[kernel].artifact.phases)
      extent = std::max(extent, std::min<int64_t>(phase.parallel_extent, phase.threads));
    time.threads = static_cast<int>(std::min<int64_t>(extent, options.threads[kernel]));
  }
  return times;
}

class PlanMaker {
 public:
  PlanMaker(const ModelSteps& model, const BuiltKernels& built, const std::vector<int32_t>& threads,
            const PlannedMemory& planned, const MemoryPlan& memory, graph::Evaluator& evaluator,
            ConstantPool pool)
      : model_(model),
        built_(built),
        threads_(threads),
        planned_(planned),
        memory_(memory),
        evaluator_(evaluator),
        pool_(std::move(pool)) {
    for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
      input_of_[model.graph.inputs[i]] = static_cast<int64_t>(i);
    }
  }

  void AddInterface() {
    plan_.arena_bytes = memory_.arena_bytes;
    for (const ValueId v : model_.graph.inputs) plan_.inputs.push_back(Describe(v));
    for (const ValueId v : model_.graph.outputs) plan_.outputs.push_back(Describe(v));
    for (const measure::BuiltKernel& kernel : built_.kernels) {
      ir::Artifact& artifact = plan_.kernels.emplace_back(kernel.artifact);
      artifact.prologue_workload.clear();
      artifact.prologue_inputs.clear();
      artifact.prologue_outputs.clear();
      for (ir::ArtifactBuffer& constant : artifact.constants) {
        if (constant.bytes == 0) constant.shape = {0};  // nothing reads it any more
      }
    }
  }

  absl::Status AddStep(size_t index) {
    const ModelStep& step = model_.steps[index];
    for (const ir::PlanName& name : step.names) AddName(name);
    ir::PlanStep& planned = plan_.steps.emplace_back();
    planned.kind = step.kind;
    for (const ValueId value : step.inputs) {
      HONE_ASSIGN_OR_RETURN(planned.buffers.emplace_back(), ValueBuffer(value));
    }
    if (step.kind == ir::PlanStepKind::kExtern) {
      planned.extern_name = step.extern_name;
      planned.extern_attributes = step.extern_attributes;
      for (const ValueId v : step.inputs) planned.extern_inputs.push_back(DescribeBuffer(v));
      for (const ValueId v : step.outputs) planned.extern_outputs.push_back(DescribeBuffer(v));
    } else {
      planned.kernel = step.kernel;
      for (const ir::ArtifactPhase& phase : built_.kernels[step.kernel].artifact.phases) {
        planned.threads = std::max(planned.threads, phase.threads);
      }
      planned.threads = std::min(planned.threads, threads_[static_cast<size_t>(step.kernel)]);
      HONE_RETURN_IF_ERROR(AddConstants(step, &planned.buffers));
    }
    for (const ValueId value : step.outputs) {
      HONE_ASSIGN_OR_RETURN(planned.buffers.emplace_back(), ValueBuffer(value));
    }
    for (const int tensor : planned_.workspace[index]) {
      planned.buffers.push_back(
          ArenaBuffer(memory_.offset_bytes[tensor], planned_.problem.tensors[tensor].bytes));
    }
    return absl::OkStatus();
  }

  /// All steps are of one image: they run for each, on its parts of inputs and outputs.
  void RepeatFor(int64_t images) {
    if (images == 1) return;
    for (auto* const values : {&plan_.inputs, &plan_.outputs}) {
      for (ir::PlanValue& value : *values) value.shape[0] *= images;
    }
    for (ir::PlanBuffer& buffer : plan_.buffers) {
      const bool part =
          buffer.kind == ir::PlanBufferKind::kInput || buffer.kind == ir::PlanBufferKind::kOutput;
      if (part) buffer.advance_bytes = buffer.bytes;
    }
    const auto steps = static_cast<int32_t>(plan_.steps.size());
    if (steps > 0) plan_.loops.push_back({.count = steps, .repeats = images});
  }

  absl::StatusOr<AssembledPlan> Take() {
    plan_.forks = memory_.forks;
    plan_.joins = FindJoins(plan_);
    for (ir::Artifact& kernel : plan_.kernels) {
      for (ir::ArtifactPhase& phase : kernel.phases) phase.accesses.clear();
    }
    HONE_ASSIGN_OR_RETURN(runtime::Region constants, pool_.Take());
    return AssembledPlan{.plan = std::move(plan_),
                         .constants = std::move(constants),
                         .memory = memory_,
                         .possible_forks = 0};
  }

 private:
  /// The step that comes next has this name.
  void AddName(const ir::PlanName& name) {
    plan_.names.push_back({.step = static_cast<int32_t>(plan_.steps.size()),
                           .input = name.input,
                           .node = name.node.substr(0, runtime::kMaxTextBytes),
                           .value = name.value.substr(0, runtime::kMaxTextBytes)});
  }

  ir::PlanValue Describe(ValueId v) const {
    const graph::Value& value = model_.graph.values[v];
    return {value.name, value.type.dtype, value.type.shape};
  }

  ir::ArtifactBuffer DescribeBuffer(ValueId v) const {
    const graph::TensorType& type = model_.graph.values[v].type;
    return {type.dtype, type.shape, type.Bytes()};
  }

  int32_t Buffer(ir::PlanBufferKind kind, int64_t offset, int64_t bytes) {
    const auto [found, fresh] = buffer_ids_.try_emplace(std::tuple(kind, offset, bytes),
                                                        static_cast<int32_t>(plan_.buffers.size()));
    if (fresh) plan_.buffers.push_back({kind, offset, bytes});
    return found->second;
  }

  int32_t ArenaBuffer(int64_t offset, int64_t bytes) {
    return Buffer(ir::PlanBufferKind::kArena, offset, bytes);
  }

  /// The constants that the kernel reads, then the results of its prologue.
  absl::Status AddConstants(const ModelStep& step, std::vector<int32_t>* buffers) {
    const ir::Artifact& artifact = built_.kernels[step.kernel].artifact;
    for (size_t c = 0; c < step.constants.size(); ++c) {
      buffers->push_back(ir::kNoPlanBuffer);
      if (artifact.constants[c].bytes == 0) continue;
      HONE_ASSIGN_OR_RETURN(buffers->back(), ValueBuffer(step.constants[c]));
    }
    // Steps that run the same kernel on the same constants share the results.
    const auto [known, fresh] = prologue_buffers_.try_emplace({step.kernel, step.constants});
    if (fresh) {
      HONE_ASSIGN_OR_RETURN(const std::vector<graph::ConstantPtr> results,
                            EvaluatePrologue(model_, built_, step, evaluator_));
      for (const graph::ConstantPtr& result : results) {
        HONE_ASSIGN_OR_RETURN(known->second.emplace_back(), ConstantBuffer(result));
      }
    }
    buffers->insert(buffers->end(), known->second.begin(), known->second.end());
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> ConstantBuffer(const graph::ConstantPtr& constant) {
    HONE_ASSIGN_OR_RETURN(const int64_t offset, pool_.Add(constant));
    return Buffer(ir::PlanBufferKind::kConstant, offset,
                  static_cast<int64_t>(constant->bytes.size()));
  }

  absl::StatusOr<int32_t> ValueBuffer(ValueId value) {
    if (model_.graph.values[value].constant != nullptr) {
      return ConstantBuffer(model_.graph.values[value].constant);
    }
    const ValueView view = ViewOf(model_, value);
    const int64_t root_bytes = model_.graph.values[view.root].type.Bytes();
    if (model_.output_of[view.root] >= 0) {
      return Buffer(ir::PlanBufferKind::kOutput, model_.output_of[view.root], root_bytes);
    }
    if (const auto input = input_of_.find(view.root); input != input_of_.end()) {
      return Buffer(ir::PlanBufferKind::kInput, input->second, root_bytes);
    }
    const int64_t bytes = view.IsWholeBuffer() ? model_.graph.values[value].type.Bytes()
                                               : root_bytes - view.begin_bytes;
    return ArenaBuffer(memory_.offset_bytes[view.root] + view.begin_bytes, bytes);
  }

  const ModelSteps& model_;
  const BuiltKernels& built_;
  const std::vector<int32_t>& threads_;
  const PlannedMemory& planned_;
  const MemoryPlan& memory_;
  std::map<ValueId, int64_t> input_of_;
  graph::Evaluator& evaluator_;
  ir::Plan plan_;
  ConstantPool pool_;
  std::map<std::pair<int, std::vector<ValueId>>, std::vector<int32_t>> prologue_buffers_;
  std::map<std::tuple<ir::PlanBufferKind, int64_t, int64_t>, int32_t> buffer_ids_;
};

}  // namespace

absl::StatusOr<AssembledPlan> AssemblePlan(const ModelSteps& model, const BuiltKernels& built,
                                           const AssemblyOptions& options,
                                           graph::Evaluator& evaluator) {
  PlannedMemory planned = DescribeMemory(model, built);
  HONE_ASSIGN_OR_RETURN(const StepGraph steps, MakeStepGraph(planned.problem));
  std::vector<MemoryFork> forks =
      FindBranches(steps, TimesOf(model, built, options), options.target.threads);
  const auto possible = static_cast<int>(forks.size());
  if (options.branches == BranchRun::kBeside) planned.problem.forks = std::move(forks);
  HONE_ASSIGN_OR_RETURN(const MemoryPlan memory, PlanMemory(planned.problem));
  HONE_ASSIGN_OR_RETURN(ConstantPool pool, ConstantPool::Create(options.scratch_folder));
  PlanMaker maker(model, built, options.threads, planned, memory, evaluator, std::move(pool));
  maker.AddInterface();
  for (const int step : memory.order) {
    HONE_RETURN_IF_ERROR(maker.AddStep(static_cast<size_t>(step)));
  }
  maker.RepeatFor(model.images);
  HONE_ASSIGN_OR_RETURN(AssembledPlan assembled, maker.Take());
  assembled.possible_forks = possible;
  return assembled;
}

}  // namespace hone::compiler

#include "compiler/model_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fmt/core.h"

#include "base/status.h"
#include "compiler/extern_step.h"
#include "compiler/index_names.h"
#include "compiler/kernel_name.h"
#include "compiler/memory_plan.h"
#include "graph/group_workload.h"
#include "graph/op.h"
#include "ir/hash.h"
#include "ir/text.h"
#include "ir/workload_builder.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::Group;
using graph::GroupKind;
using graph::GroupWorkload;
using graph::ValueId;

class StepMaker {
 public:
  explicit StepMaker(Graph graph) {
    result_.graph = std::move(graph);
    readers_ = result_.graph.Readers();
    result_.aliases.resize(result_.graph.values.size());
    result_.output_of.resize(result_.graph.values.size(), -1);
  }

  absl::Status AddGroup(const Group& group) {
    switch (group.kind) {
      case GroupKind::kKernel:
      case GroupKind::kConcat: {
        HONE_ASSIGN_OR_RETURN(GroupWorkload workload,
                              graph::BuildWorkload(result_.graph, readers_, group));
        const size_t steps = result_.steps.size();
        std::vector<ir::PlanName> names = IndexNames(result_.graph, group, workload);
        AddKernel(std::move(workload), KernelName(result_.graph, group));
        if (result_.steps.size() == steps) return absl::OkStatus();
        result_.steps.back().names = std::move(names);
        if (group.kind == GroupKind::kConcat) MarkConcat(group);
        return absl::OkStatus();
      }
      case GroupKind::kAlias: return AddAlias(group);
      case GroupKind::kExtern: return AddExtern(group);
    }
    HONE_UNREACHABLE();
    return absl::OkStatus();
  }

  // Gives every output of the model a value of its own that a step writes from its first byte.
  void PlaceOutputs() {
    std::vector<char> has_inner_parts(result_.graph.values.size(), 0);
    for (const ValueAlias& alias : result_.aliases) {
      if (alias.of != graph::kNoValue && alias.offset_bytes != 0) has_inner_parts[alias.of] = 1;
    }
    for (size_t i = 0; i < result_.graph.outputs.size(); ++i) {
      ValueId value = result_.graph.outputs[i];
      ValueId root = RootOf(value);
      // The caller's memory cannot be addressed in the middle: such roots stay in the arena.
      const bool direct = written_[root] && result_.output_of[root] < 0 && !has_inner_parts[root] &&
                          result_.aliases[value].offset_bytes == 0 &&
                          BytesOf(value) == BytesOf(root);
      if (!direct) root = value = AddCopy(value);
      result_.output_of[root] = static_cast<int>(i);
      result_.graph.outputs[i] = value;
    }
  }

  ModelSteps Take() { return std::move(result_); }

 private:
  int64_t BytesOf(ValueId value) const { return result_.graph.values[value].type.Bytes(); }

  // Aliases are resolved when they are made, so one hop is enough.
  ValueId RootOf(ValueId value) const {
    const ValueAlias& alias = result_.aliases[value];
    return alias.of == graph::kNoValue ? value : alias.of;
  }

  void AddKernel(GroupWorkload group, std::string name) {
    const auto empty = [&](ValueId value) { return BytesOf(value) == 0; };
    if (std::all_of(group.outputs.begin(), group.outputs.end(), empty)) return;
    ModelKernel kernel = MakeKernel(std::move(group.workload), std::move(name));
    const auto [found, fresh] =
        kernel_of_text_.try_emplace(kernel.text, static_cast<int>(result_.kernels.size()));
    if (fresh) result_.kernels.push_back(std::move(kernel));
    ++result_.kernels[found->second].count;
    ModelStep step;
    step.kernel = found->second;
    step.inputs = std::move(group.inputs);
    step.constants = std::move(group.constants);
    step.outputs = std::move(group.outputs);
    AddStep(std::move(step));
  }

  void AddStep(ModelStep step) {
    for (const ValueId value : step.outputs) written_[value] = true;
    result_.steps.push_back(std::move(step));
  }

  // The last step is the copy that a lone Concat is.
  void MarkConcat(const Group& group) {
    const graph::NodeId number = group.nodes.front();
    const graph::Node& node = result_.graph.nodes[number];
    if (node.op != "Concat") return;
    const auto rank =
        static_cast<int64_t>(result_.graph.values[node.outputs.front()].type.shape.size());
    const int64_t axis = graph::MakeCall(result_.graph, node).Int("axis", 0);
    result_.steps.back().concat_axis = static_cast<int>(axis < 0 ? axis + rank : axis);
    result_.steps.back().concat_operands = node.inputs;
  }

  absl::Status AddAlias(const Group& group) {
    const graph::Node& node = result_.graph.nodes[group.nodes.front()];
    const ValueId from = node.inputs.front();
    const ValueId to = node.outputs.front();
    const graph::Value& operand = result_.graph.values[from];
    const int64_t begin = group.alias_offset * ir::SizeOf(operand.type.dtype);
    if (operand.constant != nullptr) {  // a part of a known tensor is known
      auto part = std::make_shared<graph::TensorData>();
      part->type = result_.graph.values[to].type;
      part->bytes = operand.constant->bytes.subspan(static_cast<size_t>(begin),
                                                    static_cast<size_t>(BytesOf(to)));
      part->owner = operand.constant;
      result_.graph.values[to].constant = std::move(part);
      return absl::OkStatus();
    }
    const ValueId root = RootOf(from);
    const int64_t offset = result_.aliases[from].offset_bytes + begin;
    const bool ours = written_[root];
    if (offset == 0 || (ours && offset % kArenaAlignmentBytes == 0)) {
      result_.aliases[to] = {root, offset};
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(GroupWorkload workload,
                          graph::BuildNodeWorkload(result_.graph, group.nodes.front()));
    AddKernel(std::move(workload), KernelName(result_.graph, group));
    return absl::OkStatus();
  }

  absl::Status AddExtern(const Group& group) {
    const graph::Node& node = result_.graph.nodes[group.nodes.front()];
    ModelStep step;
    step.kind = ir::PlanStepKind::kExtern;
    step.extern_name = graph::FindOp(node.op)->extern_name;
    HONE_ASSIGN_OR_RETURN(step.extern_attributes, ExternAttributes(result_.graph, node));
    for (const ValueId value : node.inputs) {
      if (value != graph::kNoValue) step.inputs.push_back(value);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      // A routine writes all its results; one that nobody wants still needs a place.
      if (node.outputs[i] == graph::kNoValue) {
        return absl::UnimplementedError(
            fmt::format("{} ({}): result {} is not wanted, but the routine writes it", node.op,
                        node.origin, i));
      }
      step.outputs.push_back(node.outputs[i]);
    }
    if (!node.origin.empty()) step.names.push_back({.node = node.origin});
    AddStep(std::move(step));
    return absl::OkStatus();
  }

  // A step that copies `value` to a new one.
  ValueId AddCopy(ValueId value) {
    GroupWorkload group;
    group.workload = CopyWorkload(result_.graph.values[value]);
    const bool known = result_.graph.values[value].constant != nullptr;
    (known ? group.constants : group.inputs) = {value};
    const ValueId to = AddValueLike(result_, value);
    group.outputs = {to};
    AddKernel(std::move(group), "copy");
    return to;
  }

  ModelSteps result_;
  std::vector<std::vector<graph::NodeId>> readers_;
  std::map<std::string, int> kernel_of_text_;
  std::map<ValueId, bool> written_;
};

}  // namespace

ModelKernel MakeKernel(ir::Workload workload, std::string name) {
  ModelKernel kernel;
  kernel.text = ir::ToText(workload);
  kernel.hash = ir::StructuralHash(workload).ToHex();
  kernel.workload = std::move(workload);
  kernel.name = std::move(name);
  return kernel;
}

ir::Workload CopyWorkload(const graph::Value& value) {
  const graph::TensorType& type = value.type;
  ir::WorkloadBuilder builder;
  const int source = value.constant != nullptr
                         ? builder.AddConstant(type.dtype, type.shape)
                         : builder.AddInput(type.dtype, type.shape, value.range);
  std::vector<ir::Expr> point;
  for (size_t d = 0; d < type.shape.size(); ++d) point.push_back(ir::Var(static_cast<int>(d)));
  builder.MarkOutput(builder.AddMap(type.shape, builder.At(source, point)));
  return builder.Finish().workload;
}

ValueId AddValueLike(ModelSteps& model, ValueId value) {
  graph::Value copy;
  copy.name = model.graph.values[value].name;
  copy.type = model.graph.values[value].type;
  copy.range = model.graph.values[value].range;
  model.aliases.emplace_back();
  model.output_of.push_back(-1);
  return model.graph.AddValue(std::move(copy));
}

absl::StatusOr<ModelSteps> MakeSteps(Graph graph, const std::vector<Group>& groups) {
  StepMaker maker(std::move(graph));
  for (const Group& group : groups) HONE_RETURN_IF_ERROR(maker.AddGroup(group));
  maker.PlaceOutputs();
  return maker.Take();
}

}  // namespace hone::compiler

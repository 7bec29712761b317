#include "graph/one_image.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/image_rows.h"
#include "graph/op.h"
#include "graph/workload_rewrite.h"
#include "ir/text.h"
#include "ir/workload_builder.h"

namespace hone::graph {
namespace {

absl::Status InTheWay(const std::string& what, const std::string& why) {
  return absl::FailedPreconditionError(fmt::format("{} {}", what, why));
}

/// Axes of extent 1 as the 0 that they are, then the one way of writing it.
std::string PlainText(ir::Workload workload) {
  for (ir::Stage& stage : workload.stages) {
    if (stage.scan >= 0) continue;
    std::vector<ir::Expr> values(static_cast<size_t>(stage.num_axes()));
    for (int axis = 0; axis < stage.num_spatial(); ++axis) {
      if (stage.Extent(axis) == 1) values[static_cast<size_t>(axis)] = ir::Int(0);
    }
    for (auto* list : {&stage.body, &stage.store}) {
      for (ir::Expr& e : *list) e = ir::SubstituteVars(e, values);
    }
  }
  Tidy(workload);
  return ir::ToText(ir::Canonicalise(workload).workload);
}

/// Makes the graph of one image, node by node.
class Cutter {
 public:
  explicit Cutter(const Graph& graph)
      : whole_(graph), axes_(graph.values.size(), -1), result_{.graph = graph} {}

  absl::StatusOr<OneImage> Run() {
    HONE_RETURN_IF_ERROR(CutInputs());
    for (size_t n = 0; n < whole_.nodes.size(); ++n) {
      const Node& node = whole_.nodes[n];
      bool reads = false;
      for (const ValueId input : node.inputs) {
        reads |= input != kNoValue && axes_[static_cast<size_t>(input)] >= 0;
      }
      if (reads) HONE_RETURN_IF_ERROR(CutNode(static_cast<NodeId>(n)));
    }
    for (const ValueId output : whole_.outputs) {
      const int axis = axes_[static_cast<size_t>(output)];
      if (axis != 0) {
        return InTheWay(fmt::format("output '{}'", TypeOf(output).first),
                        axis < 0 ? "does not depend on the inputs"
                                 : "does not have the batch as its first extent");
      }
    }
    return std::move(result_);
  }

 private:
  std::pair<std::string, const TensorType*> TypeOf(ValueId id) const {
    const Value& value = whole_.values[static_cast<size_t>(id)];
    return {value.name, &value.type};
  }

  absl::Status CutInputs() {
    for (const ValueId input : whole_.inputs) {
      const auto [name, type] = TypeOf(input);
      const int64_t images = type->shape.empty() ? 0 : type->shape[0];
      if (input == whole_.inputs.front()) result_.images = images;
      if (images < 2 || images != result_.images) {
        return InTheWay(fmt::format("input '{}' of {}", name, ToText(*type)),
                        "does not have the batch, two images or more, as its first extent");
      }
      Divide(input, 0);
    }
    return whole_.inputs.empty() ? InTheWay("the model", "has no inputs") : absl::OkStatus();
  }

  void Divide(ValueId value, int axis) {
    const auto id = static_cast<size_t>(value);
    axes_[id] = axis;
    result_.graph.values[id].type.shape[static_cast<size_t>(axis)] /= result_.images;
  }

  absl::Status CutNode(NodeId number) {
    const Node& node = whole_.nodes[static_cast<size_t>(number)];
    const std::string what = fmt::format("node {} ({})", node.origin, node.op);
    const OpDefinition* const definition = FindOp(node.op);
    if (definition == nullptr || definition->express == nullptr) {
      return InTheWay(what, "is no loop nest");
    }
    HONE_ASSIGN_OR_RETURN(const GroupWorkload all, BuildNodeWorkload(whole_, number));
    std::vector<int> axes(all.workload.tensors.size(), -1);
    const std::vector<int> inputs = all.workload.Inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      axes[static_cast<size_t>(inputs[i])] = axes_[static_cast<size_t>(all.inputs[i])];
    }
    std::optional<FirstImage> first = FirstImageOf(all.workload, std::move(axes), result_.images);
    if (!first) return InTheWay(what, "does not compute each image of the batch by itself");
    // Those that no Stage makes from the inputs are the same for all images, and stay as they are.
    const std::vector<int> made = all.workload.Outputs();
    for (size_t i = 0; i < made.size(); ++i) {
      const int axis = first->axes[static_cast<size_t>(made[i])];
      if (axis < 0) return InTheWay(what, "has a result that does not depend on the images");
      Divide(all.outputs[i], axis);
    }
    const std::string one = PlainText(std::move(first->workload));
    SetShape(number);
    if (IsAlone(number, one)) return absl::OkStatus();
    CutConstants(number);
    return IsAlone(number, one) ? absl::OkStatus()
                                : InTheWay(what, "is another operation on one image");
  }

  void SetShape(NodeId number) {
    Node& node = result_.graph.nodes[static_cast<size_t>(number)];
    for (const char* const name : {"shape", "sizes"}) {  // Reshape, Expand; Slice, Resize
      const auto shape = node.attributes.find(name);
      if (shape == node.attributes.end()) continue;
      shape->second = result_.graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
    }
  }

  /// Constants that name positions for each image: those of the first. What stands in a tensor
  /// rather than in the Stages' text has another shape then, and is not what was cut out.
  void CutConstants(NodeId number) {
    for (size_t i = 0; i < whole_.nodes[static_cast<size_t>(number)].inputs.size(); ++i) {
      const ValueId input = whole_.nodes[static_cast<size_t>(number)].inputs[i];
      if (input == kNoValue) continue;
      const ConstantPtr whole = whole_.values[static_cast<size_t>(input)].constant;
      if (whole == nullptr || whole->type.shape.empty()) continue;
      TensorType type = whole->type;
      if (type.shape[0] % result_.images != 0) continue;
      type.shape[0] /= result_.images;
      const auto bytes = whole->bytes.first(static_cast<size_t>(type.Bytes()));
      const ValueId cut =
          result_.graph.AddConstant(MakeConstant(type, {bytes.begin(), bytes.end()}));
      result_.graph.nodes[static_cast<size_t>(number)].inputs[i] = cut;
    }
  }

  /// The operator applied to one image must be what was cut out.
  bool IsAlone(NodeId number, const std::string& first) const {
    const Node& node = result_.graph.nodes[static_cast<size_t>(number)];
    const auto types = InferTypes(MakeCall(result_.graph, node));
    if (!types.ok()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      if ((*types)[i] != result_.graph.values[static_cast<size_t>(node.outputs[i])].type) {
        return false;
      }
    }
    const auto alone = BuildNodeWorkload(result_.graph, number);
    return alone.ok() && PlainText(alone->workload) == first;
  }

  const Graph& whole_;
  std::vector<int> axes_;  // by value, which of its axes holds the images; -1: none
  OneImage result_;
};

}  // namespace

absl::StatusOr<OneImage> OneImageOf(const Graph& graph) { return Cutter(graph).Run(); }

}  // namespace hone::graph

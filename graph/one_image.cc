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
      : whole_(graph), batched_(graph.values.size(), false), result_{.graph = graph} {}

  absl::StatusOr<OneImage> Run() {
    HONE_RETURN_IF_ERROR(CutInputs());
    for (size_t n = 0; n < whole_.nodes.size(); ++n) {
      const Node& node = whole_.nodes[n];
      bool reads = false;
      for (const ValueId input : node.inputs) {
        reads |= input != kNoValue && batched_[static_cast<size_t>(input)];
      }
      if (reads) HONE_RETURN_IF_ERROR(CutNode(static_cast<NodeId>(n)));
    }
    for (const ValueId output : whole_.outputs) {
      if (!batched_[static_cast<size_t>(output)]) {
        return InTheWay(fmt::format("output '{}'", TypeOf(output).first),
                        "does not depend on the inputs");
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
      Divide(input);
    }
    return whole_.inputs.empty() ? InTheWay("the model", "has no inputs") : absl::OkStatus();
  }

  void Divide(ValueId value) {
    const auto id = static_cast<size_t>(value);
    batched_[id] = true;
    result_.graph.values[id].type.shape[0] /= result_.images;
  }

  absl::Status CutNode(NodeId number) {
    const Node& node = whole_.nodes[static_cast<size_t>(number)];
    const std::string what = fmt::format("node {} ({})", node.origin, node.op);
    const OpDefinition* const definition = FindOp(node.op);
    if (definition == nullptr || definition->express == nullptr) {
      return InTheWay(what, "is no loop nest");
    }
    HONE_ASSIGN_OR_RETURN(const GroupWorkload all, BuildNodeWorkload(whole_, number));
    std::vector<bool> batched(all.workload.tensors.size(), false);
    const std::vector<int> inputs = all.workload.Inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      batched[static_cast<size_t>(inputs[i])] = batched_[static_cast<size_t>(all.inputs[i])];
    }
    std::optional<ir::Workload> first = FirstImageOf(all.workload, batched, result_.images);
    if (!first) return InTheWay(what, "does not compute each image of the batch by itself");
    // Those that no Stage makes from the inputs are the same for all images, and stay as they are.
    const std::vector<int> made = all.workload.Outputs();
    for (size_t i = 0; i < made.size(); ++i) {
      const auto t = static_cast<size_t>(made[i]);
      if (first->tensors[t].shape == all.workload.tensors[t].shape) {
        return InTheWay(what, "has a result that does not depend on the images");
      }
      Divide(all.outputs[i]);
    }
    return CheckNode(number, *std::move(first), what);
  }

  /// The operator applied to one image must be what was cut out.
  absl::Status CheckNode(NodeId number, ir::Workload first, const std::string& what) {
    Node& node = result_.graph.nodes[static_cast<size_t>(number)];
    for (const char* const name : {"shape", "sizes"}) {  // Reshape, Expand; Slice, Resize
      const auto shape = node.attributes.find(name);
      if (shape == node.attributes.end()) continue;
      shape->second = result_.graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
    }
    const auto types = InferTypes(MakeCall(result_.graph, node));
    bool fits = types.ok();
    for (size_t i = 0; fits && i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      fits = (*types)[i] == result_.graph.values[static_cast<size_t>(node.outputs[i])].type;
    }
    if (fits) {
      const auto alone = BuildNodeWorkload(result_.graph, number);
      fits = alone.ok() && PlainText(alone->workload) == PlainText(std::move(first));
    }
    return fits ? absl::OkStatus() : InTheWay(what, "is another operation on one image");
  }

  const Graph& whole_;
  std::vector<bool> batched_;  // by value
  OneImage result_;
};

}  // namespace

absl::StatusOr<OneImage> OneImageOf(const Graph& graph) { return Cutter(graph).Run(); }

}  // namespace hone::graph

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Perm = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

/// Which axis of the plain (channel second) form stands at axis i of the channels-last form: 0, 2,
/// 3, …, 1.
Perm ToLast(size_t rank) {
  Perm perm = {0};
  for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return perm;
}

/// And back: 0, rank - 1, 1, 2, …; also where axis i of the plain form went.
Perm ToPlain(size_t rank) {
  Perm perm = {0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i) - 1);
  return perm;
}

Shape Permuted(const Shape& values, const Perm& perm) {
  Shape permuted;
  for (int64_t axis : perm) permuted.push_back(values[axis]);
  return permuted;
}

// A transpose under which all axes longer than 1 keep their order moves nothing.
bool MovesNothing(const Shape& shape, const Perm& perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// Walks the graph once. Every old value has up to two new forms, plain and channels last; the one
/// a node makes is known, the other is made by a transpose when somebody asks for it.
class LayoutChooser {
 public:
  explicit LayoutChooser(Graph& graph)
      : rewriter_(graph),
        graph_(graph),
        forms_(graph.values.size()),
        readers_(graph.values.size()) {
    for (size_t n = 0; n < rewriter_.old_nodes().size(); ++n) {
      for (ValueId input : rewriter_.old_nodes()[n].inputs) {
        if (input != kNoValue) readers_[input].push_back(static_cast<NodeId>(n));
      }
    }
    for (size_t v = 0; v < forms_.size(); ++v) {
      const Value& value = graph.values[v];
      if (value.producer < 0) forms_[v].plain = static_cast<ValueId>(v);
    }
  }

  absl::StatusOr<int> Run() {
    for (const Node& node : rewriter_.old_nodes()) {
      HONE_ASSIGN_OR_RETURN(const bool done, Convert(node));
      if (!done) HONE_RETURN_IF_ERROR(KeepPlain(node));
    }
    for (ValueId output : graph_.outputs) HONE_RETURN_IF_ERROR(Plain(output).status());
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes_;
  }

 private:
  struct Forms {
    ValueId plain = kNoValue;
    ValueId last = kNoValue;
  };

  const Shape& ShapeOf(ValueId old) const { return graph_.values[old].type.shape; }
  size_t RankOf(ValueId old) const { return ShapeOf(old).size(); }
  bool OnlyLast(ValueId old) const {
    return old != kNoValue && forms_[old].plain == kNoValue && forms_[old].last != kNoValue;
  }

  absl::StatusOr<ValueId> Transposed(ValueId value, const Perm& perm, const std::string& origin) {
    const Shape shape = graph_.values[value].type.shape;
    if (MovesNothing(shape, perm)) {
      return rewriter_.Add("Reshape", origin, {value}, {{"shape", Permuted(shape, perm)}});
    }
    return rewriter_.Add("Transpose", origin, {value}, {{"perm", perm}});
  }

  absl::StatusOr<ValueId> Plain(ValueId old) {
    Forms& forms = forms_[old];
    if (forms.plain == kNoValue) {
      HONE_ASSIGN_OR_RETURN(forms.plain,
                            Transposed(forms.last, ToPlain(RankOf(old)), graph_.values[old].name));
      rewriter_.Replace(old, forms.plain);
    }
    return forms.plain;
  }

  absl::StatusOr<ValueId> Last(ValueId old) {
    Forms& forms = forms_[old];
    if (forms.last == kNoValue) {
      HONE_ASSIGN_OR_RETURN(forms.last,
                            Transposed(forms.plain, ToLast(RankOf(old)), graph_.values[old].name));
    }
    return forms.last;
  }

  // An operand that broadcasts into a result of `rank` dimensions, for a result that is channels
  // last.
  absl::StatusOr<ValueId> LastOperand(ValueId old, size_t rank) {
    if (RankOf(old) == rank) return Last(old);
    if (graph_.values[old].type.NumElements() == 1) return Plain(old);
    HONE_ASSIGN_OR_RETURN(ValueId value, Plain(old));
    Shape shape = ShapeOf(old);
    shape.insert(shape.begin(), rank - shape.size(), 1);
    HONE_ASSIGN_OR_RETURN(
        value, rewriter_.Add("Reshape", graph_.values[old].name, {value}, {{"shape", shape}}));
    return Transposed(value, ToLast(rank), graph_.values[old].name);
  }

  absl::Status KeepPlain(const Node& node) {
    for (ValueId input : node.inputs) {
      if (input != kNoValue) HONE_RETURN_IF_ERROR(Plain(input).status());
    }
    rewriter_.Keep(node);
    for (ValueId output : node.outputs) {
      if (output != kNoValue) forms_[output].plain = output;
    }
    return absl::OkStatus();
  }

  // Appends the node; its result is the channels-last form of `old_output`.
  absl::StatusOr<bool> MakeLast(const Node& node, std::vector<ValueId> inputs,
                                Attributes attributes) {
    HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add(node.op, node.origin, std::move(inputs),
                                                        std::move(attributes)));
    const ValueId old = node.outputs[0];
    HONE_CHECK(graph_.values[result].type.shape == Permuted(ShapeOf(old), ToLast(RankOf(old))))
        << node.op << " got the wrong shape";
    forms_[old].last = result;
    ++changes_;
    return true;
  }

  absl::StatusOr<bool> Convert(const Node& node) {
    if (node.outputs.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue) return false;
    const std::string& op = node.op;
    if (shuffled_.contains(node.outputs[0])) return true;
    if (op == "Conv" || op == "ConvInteger" || op == "ConvTranspose" || op == "Pool")
      return ConvertWindow(node);
    bool any = false;
    for (ValueId input : node.inputs) any = any || OnlyLast(input);
    if (!any) return ConvertTranspose(node);
    if (op == "Unary" || op == "Binary" || op == "Select" || op == "Cast" || op == "Activation")
      return ConvertElementwise(node);
    if (op == "Lookup") return ConvertLookup(node);
    if (op == "Reduce") return ConvertReduce(node);
    if (op == "Softmax" || op == "ArgReduce" || op == "CumSum") return ConvertAxis(node);
    if (op == "Concat") return ConvertConcat(node);
    if (op == "Slice") return ConvertLists(node, {"starts", "steps", "sizes"});
    if (op == "Pad") return ConvertLists(node, {"begin", "end"});
    if (op == "Tile") return ConvertLists(node, {"repeats"});
    if (op == "Expand" && RankOf(node.inputs[0]) == RankOf(node.outputs[0]))
      return ConvertLists(node, {"shape"});
    if (op == "BatchNorm" || op == "GroupNorm") return ConvertWindow(node);
    if (op == "Resize") return ConvertResize(node);
    if (op == "Normalise") return ConvertNormalise(node);
    if (op == "Transpose") return ConvertTranspose(node);
    if (op == "Reshape") {
      HONE_ASSIGN_OR_RETURN(const bool shuffled, ConvertShuffle(node));
      if (shuffled) return true;
      return ConvertReshape(node);
    }
    return false;
  }

  // With the channels last vectors run along them, and a few fill none: an image made of many
  // channels (the last layer of what draws pictures) is made row by row instead, when that is worth
  // the transpose of its input.
  bool HasFewChannels(const Node& node) const {
    constexpr int64_t kFewChannels = 4;
    constexpr int64_t kManyChannels = 16;
    constexpr int64_t kLeastWidth = 32;
    constexpr int64_t kLeastSteps = 9;  // multiply-adds for an element of the input, by channel
    const bool transposed = node.op == "ConvTranspose";
    if (node.op != "Conv" && !transposed) return false;
    const OpCall call = MakeCall(graph_, node);
    const Shape& x = ShapeOf(node.inputs[0]);
    const Shape& y = ShapeOf(node.outputs[0]);
    const Shape& w = ShapeOf(node.inputs[1]);
    int64_t steps = 1;
    for (size_t i = 2; i < w.size(); ++i) steps *= w[i];
    for (const int64_t stride : call.Ints("strides", Shape(x.size() - 2, 1))) {
      if (!transposed) steps /= stride;
    }
    const int64_t width = transposed ? x.back() : y.back();  // each phase of a stride is a row
    return call.Int("group", 1) == 1 && y[1] <= kFewChannels && x[1] >= kManyChannels &&
           width >= kLeastWidth && steps >= kLeastSteps;
  }

  // Vectors along the channels would hold parts of several groups, each with inputs of its own,
  // unless groups fill halves of them or repeat within them.
  bool HasUnevenGroups(const Node& node) const {
    if (node.op != "Conv" && node.op != "ConvInteger") return false;
    const int64_t groups = MakeCall(graph_, node).Int("group", 1);
    const int64_t of_group = ShapeOf(node.inputs[1])[0] / groups;
    return groups > 1 && of_group % 8 != 0 && 8 % of_group != 0;
  }

  absl::StatusOr<bool> ConvertWindow(const Node& node) {
    if (MakeCall(graph_, node).String("layout", "nchw") != "nchw" || RankOf(node.inputs[0]) < 3)
      return false;
    if (HasFewChannels(node) || HasUnevenGroups(node)) return false;
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    std::vector<ValueId> inputs = {x};
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      ValueId operand = kNoValue;
      if (node.inputs[k] != kNoValue) {
        HONE_ASSIGN_OR_RETURN(operand, Plain(node.inputs[k]));
      }
      inputs.push_back(operand);
    }
    Attributes attributes = node.attributes;
    attributes["layout"] = std::string("nhwc");
    return MakeLast(node, std::move(inputs), std::move(attributes));
  }

  absl::StatusOr<bool> ConvertElementwise(const Node& node) {
    const size_t rank = RankOf(node.outputs[0]);
    for (ValueId input : node.inputs) {
      if (OnlyLast(input) && RankOf(input) != rank) return false;
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      HONE_ASSIGN_OR_RETURN(ValueId operand, LastOperand(input, rank));
      inputs.push_back(operand);
    }
    return MakeLast(node, std::move(inputs), node.attributes);
  }

  absl::StatusOr<bool> ConvertLookup(const Node& node) {
    HONE_ASSIGN_OR_RETURN(const ValueId x, Last(node.inputs[0]));
    HONE_ASSIGN_OR_RETURN(const ValueId table, Plain(node.inputs[1]));
    return MakeLast(node, {x, table}, node.attributes);
  }

  absl::StatusOr<bool> ConvertReduce(const Node& node) {
    const OpCall call = MakeCall(graph_, node);
    const size_t rank = RankOf(node.inputs[0]);
    const Perm where = ToPlain(rank);
    std::vector<bool> gone(rank);
    Shape axes;
    for (int64_t axis : call.Ints("axes")) {
      if (axis < 0) axis += static_cast<int64_t>(rank);
      gone[axis] = true;
      axes.push_back(where[axis]);
    }
    std::sort(axes.begin(), axes.end());
    Attributes attributes = node.attributes;
    attributes["axes"] = axes;
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    if (call.Int("keepdims", 1) != 0) return MakeLast(node, {x}, std::move(attributes));
    const bool spatial_stays = std::find(gone.begin() + 2, gone.end(), false) != gone.end();
    if (spatial_stays && !gone[0] && !gone[1]) return MakeLast(node, {x}, std::move(attributes));
    // What is left stands in the same order in both forms, unless channels pass spatial axes
    // without the batch before them.
    if (spatial_stays && !gone[1]) return false;
    return MakePlain(node, {x}, std::move(attributes));
  }

  absl::StatusOr<bool> MakePlain(const Node& node, std::vector<ValueId> inputs,
                                 Attributes attributes) {
    HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add(node.op, node.origin, std::move(inputs),
                                                        std::move(attributes)));
    forms_[node.outputs[0]].plain = result;
    rewriter_.Replace(node.outputs[0], result);
    ++changes_;
    return true;
  }

  absl::StatusOr<bool> ConvertAxis(const Node& node) {
    const OpCall call = MakeCall(graph_, node);
    const int64_t rank = static_cast<int64_t>(RankOf(node.inputs[0]));
    if (node.op == "ArgReduce" && call.Int("keepdims", 1) == 0) return false;
    int64_t axis = call.Int("axis", node.op == "Softmax" ? -1 : 0);
    if (axis < 0) axis += rank;
    Attributes attributes = node.attributes;
    attributes["axis"] = ToPlain(static_cast<size_t>(rank))[axis];
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    return MakeLast(node, {x}, std::move(attributes));
  }

  absl::StatusOr<bool> ConvertConcat(const Node& node) {
    int64_t last_elements = 0;
    int64_t elements = 0;
    for (ValueId input : node.inputs) {
      const int64_t count =
          graph_.values[input].constant == nullptr ? graph_.values[input].type.NumElements() : 0;
      elements += count;
      if (OnlyLast(input)) last_elements += count;
    }
    if (2 * last_elements < elements) return false;
    const int64_t rank = static_cast<int64_t>(RankOf(node.outputs[0]));
    int64_t axis = MakeCall(graph_, node).Int("axis", 0);
    if (axis < 0) axis += rank;
    Attributes attributes = node.attributes;
    attributes["axis"] = ToPlain(static_cast<size_t>(rank))[axis];
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      HONE_ASSIGN_OR_RETURN(ValueId operand, Last(input));
      inputs.push_back(operand);
    }
    return MakeLast(node, std::move(inputs), std::move(attributes));
  }

  // Attributes that hold one number per axis.
  absl::StatusOr<bool> ConvertLists(const Node& node, const std::vector<std::string>& names) {
    if (!OnlyLast(node.inputs[0])) return false;
    const Perm perm = ToLast(RankOf(node.inputs[0]));
    Attributes attributes = node.attributes;
    for (const std::string& name : names) {
      attributes[name] = Permuted(MakeCall(graph_, node).Ints(name), perm);
    }
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    std::vector<ValueId> inputs = {x};
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      ValueId operand = kNoValue;
      if (node.inputs[k] != kNoValue) {
        HONE_ASSIGN_OR_RETURN(operand, Plain(node.inputs[k]));
      }
      inputs.push_back(operand);
    }
    return MakeLast(node, std::move(inputs), std::move(attributes));
  }

  absl::StatusOr<bool> ConvertResize(const Node& node) {
    if (!OnlyLast(node.inputs[0])) return false;
    const OpCall call = MakeCall(graph_, node);
    const Perm perm = ToLast(RankOf(node.inputs[0]));
    const std::vector<double> scales = call.Floats("scales");
    const std::vector<double> roi = call.Floats("roi");
    std::vector<double> new_scales;
    std::vector<double> new_roi;  // starts of all axes, then ends
    for (int64_t axis : perm) new_scales.push_back(scales[axis]);
    for (size_t half = 0; half < roi.size(); half += perm.size()) {
      for (int64_t axis : perm) new_roi.push_back(roi[half + static_cast<size_t>(axis)]);
    }
    Attributes attributes = node.attributes;
    attributes["sizes"] = Permuted(call.Ints("sizes"), perm);
    attributes["scales"] = new_scales;
    if (!roi.empty()) attributes["roi"] = new_roi;
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    return MakeLast(node, {x}, std::move(attributes));
  }

  absl::StatusOr<bool> ConvertNormalise(const Node& node) {
    if (!OnlyLast(node.inputs[0])) return false;
    const size_t rank = RankOf(node.inputs[0]);
    Shape axes;
    for (int64_t axis : MakeCall(graph_, node).Ints("axes")) {
      axes.push_back(ToPlain(rank)[axis < 0 ? axis + static_cast<int64_t>(rank) : axis]);
    }
    std::sort(axes.begin(), axes.end());
    Attributes attributes = node.attributes;
    attributes["axes"] = axes;
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      ValueId operand = kNoValue;
      if (input != kNoValue) {
        HONE_ASSIGN_OR_RETURN(operand, LastOperand(input, rank));
      }
      inputs.push_back(operand);
    }
    return MakeLast(node, std::move(inputs), std::move(attributes));
  }

  // A transpose of a channels-last value is another transpose, or none; one that puts the channels
  // last or second only says which form its operand is.
  absl::StatusOr<bool> ConvertTranspose(const Node& node) {
    if (node.op != "Transpose" || RankOf(node.inputs[0]) < 3) return false;
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    const Perm perm = MakeCall(graph_, node).Ints("perm");
    if (OnlyLast(x)) {
      const Perm where = ToPlain(perm.size());
      Perm composed;
      for (int64_t axis : perm) composed.push_back(where[axis]);
      ValueId result = forms_[x].last;
      if (!std::is_sorted(composed.begin(), composed.end())) {
        HONE_ASSIGN_OR_RETURN(result, Transposed(result, composed, node.origin));
      }
      forms_[y].plain = result;
      rewriter_.Replace(y, result);
      return true;
    }
    if (perm != ToPlain(perm.size())) return false;
    forms_[y].last = forms_[x].plain;
    return true;
  }

  // A reshape of the spatial axes alone is one in either form.
  absl::StatusOr<bool> ConvertReshape(const Node& node) {
    const Shape from = ShapeOf(node.inputs[0]);
    const Shape to = ShapeOf(node.outputs[0]);
    if (to.size() < 3 || from[0] != to[0] || from[1] != to[1]) return false;
    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    return MakeLast(node, {x}, {{"shape", Permuted(to, ToLast(to.size()))}});
  }

  // The node that alone reads the value, if it is a `op`.
  const Node* OnlyReader(ValueId old, std::string_view op) const {
    if (readers_[old].size() != 1 || std::ranges::count(graph_.outputs, old) != 0) return nullptr;
    const Node& reader = rewriter_.old_nodes()[static_cast<size_t>(readers_[old][0])];
    return reader.op == op ? &reader : nullptr;
  }

  // Channels shuffled between groups: [n, g·c, …] as [n, g, c, …], transposed to [n, c, g, …] and
  // back in one. With the channels last the same three steps are on the last axis.
  absl::StatusOr<bool> ConvertShuffle(const Node& node) {
    const Shape from = ShapeOf(node.inputs[0]);
    const Shape split = ShapeOf(node.outputs[0]);
    if (!OnlyLast(node.inputs[0]) || split.size() != from.size() + 1 || split[0] != from[0] ||
        split[1] * split[2] != from[1] || !std::equal(from.begin() + 2, from.end(), &split[3]))
      return false;
    Perm swapped(split.size());
    std::iota(swapped.begin(), swapped.end(), 0);
    std::swap(swapped[1], swapped[2]);
    const Node* transpose = OnlyReader(node.outputs[0], "Transpose");
    if (transpose == nullptr || MakeCall(graph_, *transpose).Ints("perm") != swapped) return false;
    const Node* merge = OnlyReader(transpose->outputs[0], "Reshape");
    if (merge == nullptr || ShapeOf(merge->outputs[0]) != from) return false;

    HONE_ASSIGN_OR_RETURN(ValueId x, Last(node.inputs[0]));
    Shape last = graph_.values[x].type.shape;
    const Shape merged = last;
    last.back() = split[1];
    last.push_back(split[2]);
    Perm perm(last.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    HONE_ASSIGN_OR_RETURN(x, rewriter_.Add("Reshape", node.origin, {x}, {{"shape", last}}));
    HONE_ASSIGN_OR_RETURN(x, rewriter_.Add("Transpose", transpose->origin, {x}, {{"perm", perm}}));
    shuffled_.insert({transpose->outputs[0], merge->outputs[0]});
    return MakeLast(*merge, {x}, {{"shape", merged}});
  }

  Rewriter rewriter_;
  Graph& graph_;
  std::vector<Forms> forms_;
  std::vector<std::vector<NodeId>> readers_;  ///< by old value: old nodes
  std::set<ValueId> shuffled_;  ///< results of nodes that ConvertShuffle put elsewhere
  int changes_ = 0;
};

}  // namespace

absl::StatusOr<int> ChooseLayout(Graph& graph, const PassContext&) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.op != "Conv" && node.op != "ConvInteger" && node.op != "ConvTranspose" &&
        node.op != "Pool")
      return false;
    return MakeCall(graph, node).String("layout", "nchw") == "nchw" && node.outputs.size() == 1;
  });
  if (!any) return 0;
  return LayoutChooser(graph).Run();
}

}  // namespace hone::graph

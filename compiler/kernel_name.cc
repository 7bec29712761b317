#include "compiler/kernel_name.h"

#include <algorithm>
#include <cctype>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::Node;

constexpr size_t kMostOperators = 6;

template <typename T>
T AttributeOr(const Node& node, std::string_view name, T otherwise) {
  const auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return otherwise;
  const T* value = std::get_if<T>(&it->second);
  return value != nullptr ? *value : otherwise;
}

const graph::Value* InputOf(const Graph& graph, const Node& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] == graph::kNoValue) return nullptr;
  return &graph.values[static_cast<size_t>(node.inputs[i])];
}

std::string ConvName(const Graph& graph, const Node& node) {
  const graph::Value* weights = InputOf(graph, node, 1);
  if (weights == nullptr || weights->type.shape.size() < 3) return "conv";
  const std::vector<int64_t>& shape = weights->type.shape;
  const auto group = AttributeOr<int64_t>(node, "group", 1);
  const std::vector<int64_t> taps(shape.begin() + 2, shape.end());
  std::string name = fmt::format("{}conv {}",
                                 group == 1      ? ""
                                 : shape[1] == 1 ? "depthwise "
                                                 : fmt::format("{}-group ", group),
                                 fmt::join(taps, "x"));
  const auto strides = AttributeOr<std::vector<int64_t>>(node, "strides", {});
  if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; })) {
    const bool equal = std::equal(strides.begin() + 1, strides.end(), strides.begin());
    name += equal ? fmt::format("/{}", strides[0]) : fmt::format("/{}", fmt::join(strides, "x"));
  }
  return name;
}

/// Whether an operand is a constant all of whose elements are 0.
bool IsZero(const graph::Value* value) {
  if (value == nullptr || value->constant == nullptr || value->type.NumElements() != 1)
    return false;
  return value->constant->DoubleAt(0) == 0;
}

std::string OperatorName(const Graph& graph, const Node& node) {
  const auto function = AttributeOr<std::string>(node, "fn", "");
  if (node.op == "Conv") return ConvName(graph, node);
  if (node.op == "Binary") {
    const bool zero = IsZero(InputOf(graph, node, 0)) || IsZero(InputOf(graph, node, 1));
    return function == "max" && zero ? "relu" : function;
  }
  if (node.op == "Unary" || node.op == "Activation") return function;
  std::string name = node.op;
  // "MatMul" reads best in small letters beside "relu", "LayerNorm" too.
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto kind = AttributeOr<std::string>(node, "kind", "");
  if (!kind.empty()) return fmt::format("{} {}", kind, name);
  return function.empty() ? name : fmt::format("{} {}", name, function);
}

}  // namespace

std::string KernelName(const Graph& graph, const graph::Group& group) {
  std::vector<std::string> names;
  for (const graph::NodeId id : group.nodes) {
    names.push_back(OperatorName(graph, graph.nodes[static_cast<size_t>(id)]));
  }
  std::string text;
  if (names.size() > kMostOperators) {
    // The anchor must be seen.
    const auto anchor = std::find(group.nodes.begin(), group.nodes.end(), group.anchor);
    const std::string what = anchor == group.nodes.end()
                                 ? names.front()
                                 : names[static_cast<size_t>(anchor - group.nodes.begin())];
    text = fmt::format("{} with {} more", what, names.size() - 1);
  } else {
    text = fmt::format("{}", fmt::join(names, " + "));
  }
  if (group.nodes.empty()) return text;
  const Node& last = graph.nodes[static_cast<size_t>(group.nodes.back())];
  if (last.outputs.empty() || last.outputs[0] == graph::kNoValue) return text;
  const std::vector<int64_t>& shape = graph.values[static_cast<size_t>(last.outputs[0])].type.shape;
  return shape.empty() ? text : fmt::format("{} {}", text, fmt::join(shape, "x"));
}

}  // namespace hone::compiler

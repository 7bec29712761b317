#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

// Larger constants are the same only when they are the same bytes in memory: weights are not read
// for this.
constexpr int64_t kComparedBytes = 64 << 10;

std::string ContentKey(const TensorData& data) {
  std::string key = ToText(data.type);
  if (data.type.Bytes() > kComparedBytes)
    return key + fmt::format("@{}", static_cast<const void*>(data.bytes.data()));
  key += '=';
  key.append(reinterpret_cast<const char*>(data.bytes.data()), data.bytes.size());
  return key;
}

struct AttributeKey {
  std::string operator()(const ConstantPtr& value) const { return ContentKey(*value); }
  std::string operator()(const std::string& value) const {
    return fmt::format("{}:{}", value.size(), value);
  }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string key;
    for (const std::string& value : values) key += (*this)(value);
    return key;
  }
  std::string operator()(int64_t value) const { return fmt::format("i{}", value); }
  std::string operator()(double value) const { return fmt::format("d{:a}", value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("i[{}]", fmt::join(values, ","));
  }
  std::string operator()(const std::vector<double>& values) const {
    std::string key = "d[";
    for (double value : values) key += fmt::format("{:a},", value);
    return key;
  }
};

std::string NodeKey(const Node& node) {
  std::string key = node.op;
  key += fmt::format("({})", fmt::join(node.inputs, ","));
  for (ValueId output : node.outputs) key += output == kNoValue ? '_' : 'o';
  for (const auto& [name, attribute] : node.attributes) {
    key += fmt::format(";{}=", name);
    key += std::visit(AttributeKey{}, attribute);
  }
  return key;
}

}  // namespace

absl::StatusOr<int> MergeCommon(Graph& graph, const PassContext&) {
  int merged = 0;
  Rewriter rewriter(graph);
  // Equal constants make nodes equal, but they stay apart: a bias of zeros in two places is two
  // tensors of a Workload, as it will be when the model is trained further.
  std::vector<ValueId> same_constant(graph.values.size());
  std::iota(same_constant.begin(), same_constant.end(), 0);
  std::map<std::string, ValueId> constants;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ConstantPtr& data = graph.values[v].constant;
    if (data == nullptr) continue;
    const ValueId first =
        constants.emplace(ContentKey(*data), static_cast<ValueId>(v)).first->second;
    same_constant[v] = first;
  }
  std::map<std::string, std::vector<ValueId>> known;
  for (const Node& old : rewriter.old_nodes()) {
    Node key = rewriter.Mapped(old);
    for (ValueId& input : key.inputs) input = input == kNoValue ? input : same_constant[input];
    const auto [first, added] = known.emplace(NodeKey(key), old.outputs);
    if (added) {
      rewriter.Keep(old);
      continue;
    }
    bool may = true;
    for (size_t k = 0; k < old.outputs.size(); ++k) {
      may = may &&
            (old.outputs[k] == kNoValue || rewriter.MayReplace(old.outputs[k], first->second[k]));
    }
    if (!may) {
      rewriter.Keep(old);
      continue;
    }
    for (size_t k = 0; k < old.outputs.size(); ++k) {
      if (old.outputs[k] != kNoValue) rewriter.Replace(old.outputs[k], first->second[k]);
    }
    ++merged;
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return merged;
}

}  // namespace hone::graph

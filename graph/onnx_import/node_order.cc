#include "graph/onnx_import/node_order.h"

#include <map>
#include <queue>
#include <set>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::graph::onnx_import {
namespace {

void CollectCaptured(const onnx::NodeProto& node, std::set<std::string>& names);

/// Names from around it that a body reads or gives out: not those it has or makes itself.
void CollectCaptured(const onnx::GraphProto& body, std::set<std::string>& names) {
  std::set<std::string> read;
  for (const onnx::ValueInfoProto& output : body.output()) read.insert(output.name());
  for (const onnx::NodeProto& node : body.node()) {
    read.insert(node.input().begin(), node.input().end());
    CollectCaptured(node, read);
  }
  for (const onnx::ValueInfoProto& input : body.input()) read.erase(input.name());
  for (const onnx::TensorProto& tensor : body.initializer()) read.erase(tensor.name());
  for (const onnx::SparseTensorProto& tensor : body.sparse_initializer())
    read.erase(tensor.values().name());
  for (const onnx::NodeProto& node : body.node()) {
    for (const std::string& output : node.output()) read.erase(output);
  }
  names.merge(read);
}

void CollectCaptured(const onnx::NodeProto& node, std::set<std::string>& names) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) CollectCaptured(attribute.g(), names);
    for (const onnx::GraphProto& inner : attribute.graphs()) CollectCaptured(inner, names);
  }
}

struct Edges {
  std::vector<std::vector<int>> readers;
  std::vector<int> waits_for;
};

absl::StatusOr<std::map<std::string, int>> Makers(const NodeProtos& nodes,
                                                  const KnownNames& known) {
  std::map<std::string, int> makers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (output.empty()) continue;
      if (known.is_own(output) || !makers.emplace(output, i).second) {
        return absl::InvalidArgumentError(
            fmt::format("{} makes '{}', which exists already", NodeText(nodes[i]), output));
      }
    }
  }
  return makers;
}

absl::StatusOr<Edges> EdgesOf(const NodeProtos& nodes, const KnownNames& known) {
  HONE_ASSIGN_OR_RETURN(const auto makers, Makers(nodes, known));
  Edges edges{std::vector<std::vector<int>>(static_cast<size_t>(nodes.size())),
              std::vector<int>(static_cast<size_t>(nodes.size()))};
  for (int i = 0; i < nodes.size(); ++i) {
    std::set<int> sources;
    for (const std::string& input : nodes[i].input()) {
      const auto maker = makers.find(input);
      if (maker != makers.end()) {
        sources.insert(maker->second);
      } else if (!input.empty() && !known.is_visible(input)) {
        return absl::InvalidArgumentError(fmt::format(
            "{} reads '{}', but that is no graph input, no initialiser and no node makes it",
            NodeText(nodes[i]), input));
      }
    }
    std::set<std::string> captured;
    CollectCaptured(nodes[i], captured);
    for (const std::string& name : captured) {
      const auto maker = makers.find(name);
      if (maker != makers.end() && maker->second != i) sources.insert(maker->second);
    }
    for (int source : sources) edges.readers[static_cast<size_t>(source)].push_back(i);
    edges.waits_for[static_cast<size_t>(i)] = static_cast<int>(sources.size());
  }
  return edges;
}

}  // namespace

std::string NodeName(const onnx::NodeProto& node) {
  std::string name = node.name();
  for (int i = 0; name.empty() && i < node.output_size(); ++i) name = node.output(i);
  return name.empty() ? "without name" : name;
}

std::string NodeText(const onnx::NodeProto& node) {
  const std::string op = node.domain().empty() || node.domain() == "ai.onnx"
                             ? node.op_type()
                             : node.domain() + "::" + node.op_type();
  return fmt::format("node {} ({})", NodeName(node), op);
}

absl::StatusOr<std::vector<int>> TopologicalOrder(const NodeProtos& nodes,
                                                  const KnownNames& known) {
  HONE_ASSIGN_OR_RETURN(Edges edges, EdgesOf(nodes, known));
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (edges.waits_for[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int reader : edges.readers[static_cast<size_t>(next)]) {
      if (--edges.waits_for[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  for (int i = 0; i < nodes.size(); ++i) {
    if (edges.waits_for[static_cast<size_t>(i)] > 0) {
      return absl::InvalidArgumentError(
          fmt::format("the graph has a cycle through {}", NodeText(nodes[i])));
    }
  }
  return order;
}

std::set<std::string> NamesRead(const onnx::NodeProto& node) {
  std::set<std::string> names(node.input().begin(), node.input().end());
  names.erase("");
  CollectCaptured(node, names);
  return names;
}

std::set<std::string> NamesNeeded(const NodeProtos& nodes,
                                  const std::vector<std::string>& outputs) {
  std::map<std::string, const onnx::NodeProto*> makers;
  for (const onnx::NodeProto& node : nodes) {
    for (const std::string& output : node.output()) makers.emplace(output, &node);
  }
  std::set<std::string> needed;
  std::set<const onnx::NodeProto*> seen;
  std::vector<std::string> open = outputs;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!needed.insert(name).second) continue;
    const auto maker = makers.find(name);
    if (maker == makers.end() || !seen.insert(maker->second).second) continue;
    const std::set<std::string> read = NamesRead(*maker->second);
    open.insert(open.end(), read.begin(), read.end());
  }
  return needed;
}

}  // namespace hone::graph::onnx_import

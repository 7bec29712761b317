#include "graph/onnx_import/model_cut.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace hone::graph::onnx_import {
namespace {

constexpr int kMostValues = 16;

/// Flow from values that took work to the wanted ones, one unit through a value that can be cut.
/// Vertex 2v is where value v comes in, 2v + 1 where it goes out; the last two are source and sink.
class Flow {
 public:
  explicit Flow(size_t num_values) : edges_(2 * num_values + 2) {}

  size_t source() const { return edges_.size() - 2; }
  size_t sink() const { return edges_.size() - 1; }
  void Add(size_t from, size_t to, int capacity) {
    edges_[from].push_back({to, edges_[to].size(), capacity});
    edges_[to].push_back({from, edges_[from].size() - 1, 0});
  }

  /// One more unit from the source to the sink, or false.
  bool Augment() {
    std::vector<Edge*> taken(edges_.size(), nullptr);
    std::vector<size_t> open = {source()};
    for (size_t next = 0; next < open.size() && taken[sink()] == nullptr; ++next) {
      for (Edge& edge : edges_[open[next]]) {
        if (edge.capacity == 0 || edge.to == source() || taken[edge.to] != nullptr) continue;
        taken[edge.to] = &edge;
        open.push_back(edge.to);
      }
    }
    if (taken[sink()] == nullptr) return false;
    for (size_t at = sink(); at != source();) {
      Edge& edge = *taken[at];
      Edge& back = edges_[edge.to][edge.reverse];
      --edge.capacity;
      ++back.capacity;
      at = back.to;
    }
    return true;
  }

  /// From which vertices more could still reach the sink.
  std::vector<bool> ReachesSink() const {
    std::vector<bool> reaches(edges_.size(), false);
    std::vector<size_t> open = {sink()};
    reaches[sink()] = true;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const Edge& edge : edges_[at]) {
        if (reaches[edge.to] || edges_[edge.to][edge.reverse].capacity == 0) continue;
        reaches[edge.to] = true;
        open.push_back(edge.to);
      }
    }
    return reaches;
  }

 private:
  struct Edge {
    size_t to = 0;
    size_t reverse = 0;  ///< its place among the edges of `to`
    int capacity = 0;
  };
  std::vector<std::vector<Edge>> edges_;
};

bool TakesWork(const Node& node) {
  static const std::set<std::string_view> kOps = {
      "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU",
      "LSTM", "MatMul",      "MatMulInteger", "RNN",        "Einsum"};
  return kOps.contains(node.op);
}

}  // namespace

std::vector<std::string> CutBefore(const Graph& graph, const std::vector<ValueId>& wanted,
                                   const std::map<std::string, ValueId>& names) {
  constexpr int kUnbounded = 2 * kMostValues;
  std::vector<const std::string*> name_of(graph.values.size(), nullptr);
  for (const auto& [name, value] : names) {
    if (value >= 0 && name.find(',') == std::string::npos)
      name_of[static_cast<size_t>(value)] = &name;
  }
  Flow flow(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer < 0) continue;  // neither inputs nor constants are cut
    flow.Add(2 * v, 2 * v + 1, name_of[v] != nullptr ? 1 : kUnbounded);
    const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
    if (TakesWork(node)) flow.Add(flow.source(), 2 * v, kUnbounded);
    for (ValueId input : node.inputs) {
      if (input != kNoValue) flow.Add(2 * static_cast<size_t>(input) + 1, 2 * v, kUnbounded);
    }
  }
  for (ValueId value : wanted)
    flow.Add(2 * static_cast<size_t>(value) + 1, flow.sink(), kUnbounded);
  int values = 0;
  while (flow.Augment()) {
    if (++values > kMostValues) return {};
  }
  std::vector<std::string> cut;
  const std::vector<bool> reaches = flow.ReachesSink();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (reaches[2 * v + 1] && !reaches[2 * v] && name_of[v] != nullptr &&
        graph.values[v].producer >= 0 && values > 0)
      cut.push_back(*name_of[v]);
  }
  return cut;
}

}  // namespace hone::graph::onnx_import

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

/// The highest rank of the whole and its parts: both get one more axis; tensors have at most six.
constexpr size_t kMaxRank = 5;

/// The parts of one value: slice, reshape and transpose nodes of each, in the order of the parts.
struct Parts {
  std::vector<NodeId> slices;
  std::vector<NodeId> reshapes;
  std::vector<NodeId> transposes;
  Shape shape;  ///< of every reshape
  Shape perm;   ///< of every transpose
};

class SliceHoister {
 public:
  explicit SliceHoister(Graph& graph)
      : readers_(graph.Readers()),
        is_output_(graph.values.size()),
        rewriter_(graph),
        graph_(graph) {
    for (ValueId output : graph.outputs) is_output_[output] = true;
  }

  absl::StatusOr<int> Run() {
    int changes = 0;
    std::vector<bool> dropped(rewriter_.old_nodes().size());
    for (size_t n = 0; n < rewriter_.old_nodes().size(); ++n) {
      const Node& node = rewriter_.old_nodes()[n];
      if (!dropped[n]) rewriter_.Keep(node);
      if (dropped[n] || node.outputs.size() != 1) continue;
      const std::optional<Parts> parts = PartsOf(node.outputs[0]);
      if (!parts) continue;
      HONE_RETURN_IF_ERROR(Hoist(node.outputs[0], *parts));
      for (const std::vector<NodeId>& list : {parts->slices, parts->reshapes, parts->transposes}) {
        for (NodeId id : list) dropped[id] = true;
      }
      ++changes;
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const Node& OldNode(NodeId id) const { return rewriter_.old_nodes()[id]; }

  // The one reader of a value that is no output, when it is an `op`.
  NodeId OnlyReader(ValueId id, std::string_view op) const {
    if (is_output_[id] || readers_[id].size() != 1) return -1;
    const NodeId reader = readers_[id][0];
    return OldNode(reader).op == op ? reader : -1;
  }

  std::optional<Parts> PartsOf(ValueId whole) const {
    const Shape& shape = graph_.values[whole].type.shape;
    const std::vector<NodeId>& readers = readers_[whole];
    if (is_output_[whole] || readers.size() < 2 || shape.empty() || shape.size() > kMaxRank ||
        shape.back() % static_cast<int64_t>(readers.size()) != 0) {
      return std::nullopt;
    }
    Shape part = shape;
    part.back() /= static_cast<int64_t>(readers.size());
    std::map<int64_t, NodeId> by_start;
    for (NodeId reader : readers) {
      if (OldNode(reader).op != "Slice" ||
          graph_.values[OldNode(reader).outputs[0]].type.shape != part)
        return std::nullopt;
      const OpCall call = MakeCall(graph_, OldNode(reader));
      const Shape steps = call.Ints("steps");
      const int64_t start = call.Ints("starts").back();
      if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; }) ||
          start % part.back() != 0)
        return std::nullopt;
      by_start[start] = reader;
    }
    if (by_start.size() != readers.size()) return std::nullopt;
    Parts parts;
    for (const auto& [start, slice] : by_start) {
      if (!AddPart(slice, parts)) return std::nullopt;
    }
    if (parts.shape.size() > kMaxRank) return std::nullopt;
    return parts;
  }

  // Whether the slice goes on like the parts before it.
  bool AddPart(NodeId slice, Parts& parts) const {
    const NodeId reshape = OnlyReader(OldNode(slice).outputs[0], "Reshape");
    if (reshape < 0) return false;
    const NodeId transpose = OnlyReader(OldNode(reshape).outputs[0], "Transpose");
    if (transpose < 0) return false;
    const Shape& shape = graph_.values[OldNode(reshape).outputs[0]].type.shape;
    const Shape perm = MakeCall(graph_, OldNode(transpose)).Ints("perm");
    if (!parts.slices.empty() && (shape != parts.shape || perm != parts.perm)) return false;
    parts.shape = shape;
    parts.perm = perm;
    parts.slices.push_back(slice);
    parts.reshapes.push_back(reshape);
    parts.transposes.push_back(transpose);
    return true;
  }

  absl::Status Hoist(ValueId whole, const Parts& parts) {
    const int64_t count = static_cast<int64_t>(parts.slices.size());
    const std::string origin = OldNode(parts.slices[0]).origin;
    // [..., count · n] becomes [..., count, n], then [count, ..., n], then [count] + the parts'
    // shape.
    Shape split = graph_.values[whole].type.shape;
    const int64_t rank = static_cast<int64_t>(split.size());
    split.back() /= count;
    split.insert(split.end() - 1, count);
    Shape to_front = {rank - 1};
    for (int64_t axis = 0; axis <= rank; ++axis) {
      if (axis != rank - 1) to_front.push_back(axis);
    }
    Shape shape = parts.shape;
    shape.insert(shape.begin(), count);
    Shape perm = {0};
    for (int64_t axis : parts.perm) perm.push_back(axis + 1);
    HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add("Reshape", origin, {rewriter_.Mapped(whole)},
                                                       {{"shape", split}}));
    HONE_ASSIGN_OR_RETURN(value, rewriter_.Add("Transpose", origin, {value}, {{"perm", to_front}}));
    HONE_ASSIGN_OR_RETURN(value, rewriter_.Add("Reshape", origin, {value}, {{"shape", shape}}));
    HONE_ASSIGN_OR_RETURN(value, rewriter_.Add("Transpose", origin, {value}, {{"perm", perm}}));
    Shape sizes = rewriter_.TypeOf(value).shape;
    sizes[0] = 1;
    for (int64_t k = 0; k < count; ++k) {
      const Node& last = OldNode(parts.transposes[k]);
      Shape starts(sizes.size(), 0);
      starts[0] = k;
      HONE_ASSIGN_OR_RETURN(
          ValueId part,
          rewriter_.Add("Slice", last.origin, {value},
                        {{"starts", starts}, {"steps", Shape(sizes.size(), 1)}, {"sizes", sizes}}));
      HONE_ASSIGN_OR_RETURN(part,
                            rewriter_.Add("Reshape", last.origin, {part},
                                          {{"shape", rewriter_.TypeOf(last.outputs[0]).shape}}));
      rewriter_.Replace(last.outputs[0], part);
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> HoistSlices(Graph& graph, const PassContext&) {
  return SliceHoister(graph).Run();
}

}  // namespace hone::graph

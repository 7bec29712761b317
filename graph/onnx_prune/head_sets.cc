#include "graph/onnx_prune/head_sets.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/node_order.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/tensor_reader.h"
#include "graph/onnx_prune/known_tensors.h"
#include "graph/passes/channel_trace.h"

namespace hone::graph::onnx_prune {
namespace {

using onnx_quantise::Layer;
using onnx_quantise::SourceModel;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

int64_t IntOf(const onnx::NodeProto& node, const char* name, int64_t otherwise) {
  for (const onnx::AttributeProto& each : node.attribute())
    if (each.name() == name) return each.i();
  return otherwise;
}

/// The channels of a place, up to one of its elements.
std::vector<int> IdsBefore(const ChannelPlace& place, int64_t end) {
  return {place.ids.begin(), place.ids.begin() + end / place.inner};
}

/// One attention: what of the file holds the number of its heads.
class HeadSetMaker {
 public:
  HeadSetMaker(const SourceModel& source, const Graph& graph, onnx_import::TensorReader& reader,
               const std::map<NodeId, size_t>& layers)
      : source_(source),
        graph_(graph),
        file_(source.proto->graph()),
        known_(KnownTensors(file_)),
        reader_(reader),
        layers_(layers) {
    for (int n = 0; n < file_.node_size(); ++n)
      nodes_.emplace(onnx_import::NodeName(file_.node(n)), n);
    for (size_t v = 0; v < graph.values.size(); ++v)
      if (!graph.values[v].name.empty())
        values_.emplace(graph.values[v].name, static_cast<ValueId>(v));
  }

  absl::StatusOr<ChannelSet> Make(const ChannelTrace& trace) {
    trace_ = &trace;
    set_ = {.channels = trace.channels, .makers = {}, .readers = {}, .slots = {}};
    if (!trace.ends.empty()) return Invalid(TextOf(trace.ends.begin()->second));
    HONE_RETURN_IF_ERROR(AddLayers());
    for (const ChannelConstant& constant : trace.constants)
      HONE_RETURN_IF_ERROR(AddConstant(constant));
    for (const NodeId id : trace.counting) HONE_RETURN_IF_ERROR(CheckCounting(graph_.nodes[id]));
    for (int n = 0; n < file_.node_size(); ++n) HONE_RETURN_IF_ERROR(AddCounts(n));
    return std::move(set_);
  }

 private:
  std::string TextOf(const ChannelEnd& end) const {
    const Value& value = graph_.values[end.value];
    if (end.node >= 0) {
      const Node& node = graph_.nodes[end.node];
      return fmt::format("{} {} does not keep its heads apart", node.op, node.origin);
    }
    return fmt::format("its heads are those of {}, an {} of the model", value.name,
                       value.producer < 0 ? "input" : "output");
  }

  absl::Status AddLayers() {
    for (const ChannelConstant& maker : trace_->makers) {
      const auto it = layers_.find(maker.node);
      if (it == layers_.end()) return NoLayer(maker);
      const Layer& layer = source_.layers[it->second];
      set_.makers.push_back(it->second);
      AddSlot(layer.node, 1, layer.by_rows ? 0 : 1, maker.place);
    }
    for (const ChannelConstant& reader : trace_->readers) {
      const auto it = layers_.find(reader.node);
      if (it == layers_.end()) return NoLayer(reader);
      const Layer& layer = source_.layers[it->second];
      if (!std::ranges::is_sorted(reader.place.ids, std::ranges::less_equal()) ||
          static_cast<int>(reader.place.ids.size()) != trace_->channels)
        return Invalid(fmt::format("{} {} reads some heads twice", layer.op, layer.name));
      set_.readers.push_back(it->second);
      AddSlot(layer.node, 1, layer.by_rows ? 1 : 0, reader.place);
    }
    return absl::OkStatus();
  }
  absl::Status NoLayer(const ChannelConstant& constant) const {
    const Node& node = graph_.nodes[constant.node];
    return Invalid(
        fmt::format("{} {} has other weights than those of a layer in f32", node.op, node.origin));
  }

  void AddSlot(int node, int input, size_t axis, const ChannelPlace& place) {
    set_.slots.push_back(
        {.node = node, .input = input, .axis = axis, .repeat = place.inner, .ids = place.ids});
  }

  /// The input of the node in the file that is the constant.
  absl::Status AddConstant(const ChannelConstant& constant) {
    const Node& node = graph_.nodes[constant.node];
    const std::string& name = graph_.values[node.inputs[constant.input]].name;
    const auto tensor = known_.find(name);
    const auto [first, last] = nodes_.equal_range(node.origin);
    for (auto it = first; it != last && tensor != known_.end(); ++it) {
      const onnx::NodeProto& own = file_.node(it->second);
      for (int k = 0; k < own.input_size(); ++k) {
        const auto same = known_.find(own.input(k));
        if (same == known_.end() || same->second != tensor->second) continue;
        AddSlot(it->second, k, constant.place.axis, constant.place);
        return absl::OkStatus();
      }
    }
    return Invalid(
        fmt::format("{} {} reads a computed constant for each head", node.op, node.origin));
  }

  /// A node of the file may be several of the graph, of which this one counts heads.
  absl::Status CheckCounting(const Node& node) const {
    constexpr std::array<std::string_view, 6> kCounted = {"Reshape", "Split",     "Slice",
                                                          "Squeeze", "Unsqueeze", "Flatten"};
    const auto [first, last] = nodes_.equal_range(node.origin);
    const bool known =
        first != last && std::all_of(first, last, [&](const auto& each) {
          return std::ranges::find(kCounted, file_.node(each.second).op_type()) != kCounted.end();
        });
    if (known) return absl::OkStatus();
    return Invalid(fmt::format("{} {} counts its heads itself", node.op, node.origin));
  }

  // ---- numbers of heads ----

  /// Where heads stand in a value of the file, through nodes that the graph does without.
  const ChannelPlace* PlaceOf(const std::string& name) const {
    const auto value = values_.find(name);
    if (value == values_.end()) return nullptr;
    const auto it = trace_->values.find(value->second);
    return it == trace_->values.end() ? nullptr : &it->second;
  }
  const std::vector<int64_t>& ShapeOf(const std::string& name) const {
    return graph_.values[values_.at(name)].type.shape;
  }

  std::optional<std::vector<int64_t>> KnownInts(const onnx::NodeProto& node, int input) const {
    if (input >= node.input_size() || !known_.contains(node.input(input))) return std::nullopt;
    const onnx::TensorProto& tensor = *known_.at(node.input(input));
    if (tensor.data_type() != onnx::TensorProto::INT64 || tensor.dims_size() != 1)
      return std::nullopt;
    const auto data = reader_.Read(tensor);
    return data.ok() ? std::optional((*data)->AsInt64s()) : std::nullopt;
  }

  static std::vector<int64_t> Ints(const onnx::NodeProto& node, const char* name) {
    for (const onnx::AttributeProto& each : node.attribute())
      if (each.name() == name) return {each.ints().begin(), each.ints().end()};
    return {};
  }

  absl::Status AddCounts(int n) {
    const onnx::NodeProto& node = file_.node(n);
    const bool ours = node.domain().empty() || node.domain() == "ai.onnx";
    if (!ours || node.input_size() == 0) return absl::OkStatus();
    // A Reshape to the shape that it has already, which the graph does without.
    if (node.op_type() == "Reshape" && !values_.contains(node.output(0)))
      if (const auto it = values_.find(node.input(0)); it != values_.end())
        values_.emplace(node.output(0), it->second);
    if (node.op_type() == "Identity" && values_.contains(node.input(0)))
      values_.emplace(node.output(0), values_.at(node.input(0)));
    if (node.op_type() == "Reshape") return AddReshape(n);
    if (node.op_type() == "Split") return AddSplit(n);
    return node.op_type() == "Slice" ? AddSlice(n) : absl::OkStatus();
  }

  /// An element of a shape: of which node's which input. Shapes may be joined of parts that are
  /// known and parts that are not.
  struct Element {
    int node = 0, input = 0;
    size_t at = 0;
    int64_t number = 0;
  };
  std::optional<Element> ShapeElement(int n, const ChannelPlace& place) const {
    const std::string& shape = file_.node(n).input(1);
    if (const auto known = KnownInts(file_.node(n), 1))
      return Element{n, 1, place.axis, (*known)[place.axis]};
    const auto concat = std::ranges::find_if(file_.node(), [&](const onnx::NodeProto& node) {
      return node.op_type() == "Concat" && node.output(0) == shape;
    });
    if (concat == file_.node().end() || !OnlyShapes(shape, place)) return std::nullopt;
    size_t at = place.axis;
    for (int k = 0; k < concat->input_size(); ++k) {
      const auto known = KnownInts(*concat, k);
      if (!known && !values_.contains(concat->input(k))) return std::nullopt;
      const auto count =
          known ? known->size() : static_cast<size_t>(ShapeOf(concat->input(k)).at(0));
      if (at >= count) {
        at -= count;
        continue;
      }
      if (!known) return std::nullopt;
      return Element{static_cast<int>(concat - file_.node().begin()), k, at, (*known)[at]};
    }
    return std::nullopt;
  }
  /// Whether all who read it reshape to heads of this attention that stand in the same place.
  bool OnlyShapes(const std::string& shape, const ChannelPlace& place) const {
    return std::ranges::all_of(file_.node(), [&](const onnx::NodeProto& node) {
      if (std::ranges::find(node.input(), shape) == node.input().end()) return true;
      const ChannelPlace* own = node.op_type() == "Reshape" ? PlaceOf(node.output(0)) : nullptr;
      return own != nullptr && own->axis == place.axis && own->inner == place.inner &&
             own->ids.size() == place.ids.size();
    });
  }

  /// 0 and -1 follow from the rest.
  absl::Status AddReshape(int n) {
    const onnx::NodeProto& node = file_.node(n);
    const ChannelPlace* place = PlaceOf(node.output(0));
    if (place == nullptr) return absl::OkStatus();
    const auto element = ShapeElement(n, *place);
    if (!element) return Invalid(fmt::format("the shape of Reshape {} is computed", NameOf(node)));
    if (element->number == -1 || (element->number == 0 && IntOf(node, "allowzero", 0) == 0))
      return absl::OkStatus();
    set_.counts.push_back({.node = element->node,
                           .input = element->input,
                           .element = element->at,
                           .repeat = place->inner,
                           .ids = place->ids});
    return absl::OkStatus();
  }

  absl::Status AddSplit(int n) {
    const onnx::NodeProto& node = file_.node(n);
    const ChannelPlace* place = PlaceOf(node.input(0));
    if (place == nullptr) return absl::OkStatus();
    const auto rank = static_cast<int64_t>(ShapeOf(node.input(0)).size());
    if ((IntOf(node, "axis", 0) + rank) % rank != static_cast<int64_t>(place->axis))
      return absl::OkStatus();
    const bool as_input = node.input_size() > 1;
    std::vector<int64_t> sizes = Ints(node, "split");
    if (as_input) sizes = KnownInts(node, 1).value_or(std::vector<int64_t>());
    if (as_input && sizes.empty())
      return Invalid(fmt::format("the sizes of Split {} are computed", NameOf(node)));
    const bool equal = sizes.empty();
    if (equal) {
      sizes.assign(static_cast<size_t>(node.output_size()),
                   ShapeOf(node.input(0))[place->axis] / node.output_size());
    }
    int64_t first = 0;
    std::vector<int> before;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const std::vector<int> all = IdsBefore(*place, first + sizes[k]);
      std::vector<int> ids(all.begin() + first / place->inner, all.end());
      first += sizes[k];
      if (equal) {
        std::ranges::sort(ids);
        if (k > 0 && ids != before)
          return Invalid(fmt::format("the parts of Split {} have different heads", NameOf(node)));
        before = std::move(ids);
        continue;
      }
      set_.counts.push_back({.node = n,
                             .input = 1,
                             .attribute = as_input ? "" : "split",
                             .element = k,
                             .repeat = place->inner,
                             .ids = std::move(ids)});
    }
    return absl::OkStatus();
  }

  absl::Status AddSlice(int n) {
    const onnx::NodeProto& node = file_.node(n);
    const ChannelPlace* place = PlaceOf(node.input(0));
    if (place == nullptr) return absl::OkStatus();
    const bool as_inputs = node.input_size() > 1;
    std::vector<int64_t> starts = Ints(node, "starts"), ends = Ints(node, "ends"),
                         axes = Ints(node, "axes");
    if (as_inputs) {
      starts = KnownInts(node, 1).value_or(std::vector<int64_t>());
      ends = KnownInts(node, 2).value_or(std::vector<int64_t>());
      axes = KnownInts(node, 3).value_or(std::vector<int64_t>());
    }
    const bool computed_axes =
        as_inputs && node.input_size() > 3 && !node.input(3).empty() && axes.empty();
    if (starts.empty() || starts.size() != ends.size() || computed_axes)
      return Invalid(fmt::format("the ends of Slice {} are computed", NameOf(node)));
    const std::vector<int64_t>& shape = ShapeOf(node.input(0));
    const auto rank = static_cast<int64_t>(shape.size());
    for (size_t k = 0; k < starts.size(); ++k) {
      const int64_t axis = axes.empty() ? static_cast<int64_t>(k) : (axes[k] + rank) % rank;
      const int64_t extent = shape[static_cast<size_t>(axis)];
      if (axis != static_cast<int64_t>(place->axis)) continue;
      const auto add = [&](int input, const char* attribute, int64_t at) {
        at = std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
        if (at == 0) return;
        set_.counts.push_back({.node = n,
                               .input = input,
                               .attribute = as_inputs ? "" : attribute,
                               .element = k,
                               .repeat = place->inner,
                               .ids = IdsBefore(*place, at)});
      };
      add(1, "starts", starts[k]);
      add(2, "ends", ends[k]);
    }
    return absl::OkStatus();
  }

  static std::string NameOf(const onnx::NodeProto& node) { return onnx_import::NodeName(node); }

  const SourceModel& source_;
  const Graph& graph_;
  const onnx::GraphProto& file_;
  const std::map<std::string, const onnx::TensorProto*> known_;
  onnx_import::TensorReader& reader_;
  const std::map<NodeId, size_t>& layers_;
  std::multimap<std::string, int> nodes_;  ///< of the file, by the origin of the graph's
  std::map<std::string, ValueId> values_;
  const ChannelTrace* trace_ = nullptr;
  ChannelSet set_;
};

/// The graph's products by layers; none for layers that share a name.
std::map<NodeId, size_t> ProductsOf(const SourceModel& source, const Graph& graph) {
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t i = 0; i < source.layers.size(); ++i)
    by_name[onnx_import::NodeName(source.proto->graph().node(source.layers[i].node))].push_back(i);
  std::map<NodeId, size_t> products;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.op != "MatMul" && node.op != "Conv") continue;
    const auto it = by_name.find(node.origin);
    if (it != by_name.end() && it->second.size() == 1)
      products[static_cast<NodeId>(id)] = it->second[0];
  }
  return products;
}

bool HasSoftmax(const Graph& graph, const ChannelTrace& trace) {
  return std::ranges::any_of(trace.values, [&](const auto& each) {
    return graph.nodes[graph.values[each.first].producer].op == "Softmax";
  });
}

}  // namespace

ChannelSets FindHeadSets(const SourceModel& source, const Graph& graph) {
  const std::map<NodeId, size_t> layers = ProductsOf(source, graph);
  onnx_import::TensorReader reader(source.proto, source.folder, source.linked_folder);
  HeadSetMaker maker(source, graph, reader, layers);
  const ChannelTracer tracer(graph);
  ChannelSets found;
  std::set<size_t> seen;
  for (const auto& [node, layer] : layers) {
    if (seen.contains(layer)) continue;
    const auto single = tracer.TraceFrom(node, 1);
    if (!single || single->together <= 1) continue;
    const auto heads = tracer.TraceFrom(node, single->together);
    if (!heads || heads->channels <= 1 || !HasSoftmax(graph, *heads)) continue;
    auto set = maker.Make(*heads);
    if (set.ok()) {
      seen.insert(set->readers.begin(), set->readers.end());
      found.sets.push_back(*std::move(set));
    } else {
      found.why_not[layer] = std::string(set.status().message());
    }
  }
  return found;
}

}  // namespace hone::graph::onnx_prune

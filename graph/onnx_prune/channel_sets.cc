#include "graph/onnx_prune/channel_sets.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_prune/known_tensors.h"

namespace hone::graph::onnx_prune {
namespace {

using onnx_quantise::Layer;
using onnx_quantise::SourceModel;

/// How channels stand in a value.
struct Carried {
  size_t set = 0;
  bool image = false;  ///< they are the second dimension, else the last
  bool flat = false;   ///< the last, with places of an image beside each other
  size_t rank = 0;     ///< 0: not known
};

// They have one input, or all others are known and the same for all channels.
constexpr std::array<std::string_view, 24> kUnary = {
    "Relu",  "LeakyRelu", "Sigmoid",  "Tanh",      "Elu",  "Selu", "Celu", "Softplus",
    "Erf",   "Softsign",  "Identity", "HardSwish", "Gelu", "Mish", "Exp",  "HardSigmoid",
    "Floor", "Sqrt",      "Neg",      "Abs",       "Sign", "Ceil", "Clip", "ThresholdedRelu"};
constexpr std::array<std::string_view, 4> kPools = {"MaxPool", "AveragePool", "GlobalAveragePool",
                                                    "GlobalMaxPool"};
constexpr std::array<std::string_view, 8> kBinary = {"Add", "Sub", "Mul", "Div",
                                                     "Max", "Min", "Pow", "PRelu"};

bool Has(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

int64_t IntOf(const onnx::NodeProto& node, const char* name, int64_t otherwise) {
  for (const onnx::AttributeProto& each : node.attribute())
    if (each.name() == name) return each.i();
  return otherwise;
}

class SetFinder {
 public:
  explicit SetFinder(const SourceModel& source)
      : source_(source), graph_(source.proto->graph()), known_(KnownTensors(graph_)) {
    for (size_t i = 0; i < source.layers.size(); ++i) layers_[source.layers[i].node] = i;
  }

  std::vector<ChannelSet> Run() {
    for (int n = 0; n < graph_.node_size(); ++n) Visit(n);
    for (const onnx::ValueInfoProto& output : graph_.output()) Break(output.name());
    std::vector<ChannelSet> found;
    for (size_t s = 0; s < sets_.size(); ++s) {
      if (parent_[s] != s || broken_[s] || sets_[s].readers.empty() || sets_[s].makers.empty())
        continue;
      found.push_back(std::move(sets_[s]));
    }
    return found;
  }

 private:
  // ---- sets ----

  size_t Root(size_t set) const {
    while (parent_[set] != set) set = parent_[set];
    return set;
  }
  size_t NewSet(int64_t channels) {
    parent_.push_back(sets_.size());
    broken_.push_back(false);
    sets_.push_back({.channels = channels, .makers = {}, .readers = {}, .slots = {}});
    return sets_.size() - 1;
  }
  ChannelSet& SetOf(const Carried& carried) { return sets_[Root(carried.set)]; }

  void Join(size_t a, size_t b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    const auto move = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    move(sets_[a].makers, sets_[b].makers);
    move(sets_[a].readers, sets_[b].readers);
    move(sets_[a].slots, sets_[b].slots);
    move(sets_[a].depthwise, sets_[b].depthwise);
    broken_[a] = broken_[a] || broken_[b];
    parent_[b] = a;
  }

  const Carried* Find(const std::string& value) const {
    const auto it = carried_.find(value);
    return it == carried_.end() ? nullptr : &it->second;
  }
  void Break(const std::string& value) {
    if (const Carried* carried = Find(value)) broken_[Root(carried->set)] = true;
  }
  void BreakAll(const onnx::NodeProto& node) {
    for (const std::string& input : node.input()) Break(input);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      for (const onnx::NodeProto& inner : attribute.g().node()) BreakAll(inner);
      for (const onnx::ValueInfoProto& output : attribute.g().output()) Break(output.name());
    }
  }

  const onnx::TensorProto* Known(const onnx::NodeProto& node, int input) const {
    if (input >= node.input_size()) return nullptr;
    const auto it = known_.find(node.input(input));
    return it == known_.end() ? nullptr : it->second;
  }
  static bool IsAbsent(const onnx::NodeProto& node, int input) {
    return input >= node.input_size() || node.input(input).empty();
  }

  // ---- nodes ----

  void Visit(int n) {
    const onnx::NodeProto& node = graph_.node(n);
    const std::string& op = node.op_type();
    const bool ours = node.domain().empty() || node.domain() == "ai.onnx";
    bool known = false;
    if (!ours) {
      known = false;
    } else if (const auto layer = layers_.find(n); layer != layers_.end()) {
      known = VisitLayer(n, layer->second);
    } else if (Has(kBinary, op)) {
      known = VisitBinary(n);
    } else if (op == "BatchNormalization") {
      known = VisitNorm(n);
    } else {
      known = VisitOne(node);
    }
    if (!known) BreakAll(node);
  }

  /// A node that gives on what its first input carries, in which the others have no say.
  bool VisitOne(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    if (node.output_size() != 1 || node.input_size() == 0) return false;
    const Carried* carried = Find(node.input(0));
    if (carried == nullptr) return false;
    Carried own = *carried;
    for (int k = 1; k < node.input_size(); ++k)
      if (!IsAbsent(node, k) && Known(node, k) == nullptr) return false;
    if (Has(kPools, op)) {
      if (!own.image) return false;
    } else if (op == "Flatten" || op == "Reshape") {
      const bool flattens = op == "Flatten" ? IntOf(node, "axis", 1) == 1 : IsFlattening(node);
      if (!flattens || (!own.image && own.rank != 2) || own.flat) return false;
      own = {.set = own.set, .image = false, .flat = own.image, .rank = 2};
    } else if (!Has(kUnary, op)) {
      return false;
    }
    carried_[node.output(0)] = own;
    return true;
  }

  /// Whether a Reshape keeps the first dimension and joins all others.
  bool IsFlattening(const onnx::NodeProto& node) const {
    const onnx::TensorProto* shape = Known(node, 1);
    if (shape == nullptr || shape->dims_size() != 1 || shape->dims(0) != 2 ||
        IntOf(node, "allowzero", 0) != 0)
      return false;
    std::array<int64_t, 2> extents = {1, 1};
    if (shape->int64_data_size() == 2) {
      std::ranges::copy(shape->int64_data(), extents.begin());
    } else if (shape->raw_data().size() == sizeof extents) {
      std::copy_n(shape->raw_data().data(), sizeof extents,
                  reinterpret_cast<char*>(extents.data()));
    }
    return extents[0] == 0 && extents[1] == -1;
  }

  /// Adds where a known operand has numbers for each channel; false where it has others.
  bool AddVector(int n, int input, const Carried& carried) {
    const onnx::TensorProto* tensor = Known(graph_.node(n), input);
    if (tensor == nullptr) return false;
    const size_t rank = static_cast<size_t>(tensor->dims_size());
    if (carried.image && rank > carried.rank) return false;
    const size_t behind = carried.image ? carried.rank - 2 : 0;
    if (rank <= behind) return true;
    const size_t axis = rank - 1 - behind;
    const int64_t extent = tensor->dims(static_cast<int>(axis));
    if (extent == 1) return true;
    if (carried.flat || extent != SetOf(carried).channels ||
        tensor->data_type() != onnx::TensorProto::FLOAT)
      return false;
    SetOf(carried).slots.push_back({.node = n, .input = input, .axis = axis});
    return true;
  }

  bool VisitBinary(int n) {
    const onnx::NodeProto& node = graph_.node(n);
    if (node.input_size() != 2) return false;
    const Carried *a = Find(node.input(0)), *b = Find(node.input(1));
    if (a == nullptr && b == nullptr) return false;
    Carried own = a != nullptr ? *a : *b;
    if (a != nullptr && b != nullptr) {
      const bool alike = a->image == b->image && !a->flat && !b->flat &&
                         (!a->image || a->rank == b->rank) &&
                         SetOf(*a).channels == SetOf(*b).channels;
      if (!alike) return false;
      Join(a->set, b->set);
      if (a->rank != b->rank) own.rank = 0;
    } else if (!AddVector(n, a != nullptr ? 1 : 0, own)) {
      return false;
    } else if (!own.image) {
      // The constant may have more dimensions.
      const onnx::TensorProto* other = Known(node, a != nullptr ? 1 : 0);
      if (static_cast<size_t>(other->dims_size()) > own.rank) own.rank = 0;
    }
    carried_[node.output(0)] = own;
    return true;
  }

  bool VisitNorm(int n) {
    const onnx::NodeProto& node = graph_.node(n);
    const Carried* carried = Find(node.input(0));
    if (carried == nullptr || node.output_size() != 1 || carried->flat ||
        (!carried->image && carried->rank != 2))
      return false;
    const Carried own = *carried;
    for (int k = 1; k < node.input_size(); ++k) {
      const onnx::TensorProto* tensor = Known(node, k);
      if (tensor == nullptr || tensor->dims_size() != 1 ||
          tensor->data_type() != onnx::TensorProto::FLOAT || tensor->dims(0) != SetOf(own).channels)
        return false;
      SetOf(own).slots.push_back({.node = n, .input = k, .axis = 0});
    }
    carried_[node.output(0)] = own;
    return true;
  }

  // ---- layers ----

  bool VisitLayer(int n, size_t i) {
    const onnx::NodeProto& node = graph_.node(n);
    const Layer& layer = source_.layers[i];
    const int64_t groups = layer.op == "Conv" ? IntOf(node, "group", 1) : 1;
    if (groups > 1) return VisitDepthwise(n, layer, groups);
    const bool reads = Read(n, i);
    Make(n, i);
    return reads;
  }

  bool Read(int n, size_t i) {
    const Layer& layer = source_.layers[i];
    const Carried* carried = Find(graph_.node(n).input(0));
    if (carried == nullptr) return false;
    ChannelSet& set = SetOf(*carried);
    const bool convolves = layer.op == "Conv";
    const bool fits = convolves ? carried->image && layer.channels == set.channels &&
                                      carried->rank == layer.weights_data->type.shape.size()
                                : !carried->image && layer.terms % set.channels == 0 &&
                                      (carried->flat || layer.terms == set.channels);
    if (!fits) return false;
    set.readers.push_back(i);
    set.slots.push_back({.node = n,
                         .input = 1,
                         .axis = convolves || layer.by_rows ? size_t{1} : size_t{0},
                         .repeat = convolves ? 1 : layer.terms / set.channels});
    return true;
  }

  void Make(int n, size_t i) {
    const onnx::NodeProto& node = graph_.node(n);
    const Layer& layer = source_.layers[i];
    const bool convolves = layer.op == "Conv";
    const size_t set = NewSet(layer.columns);
    sets_[set].makers.push_back(i);
    sets_[set].slots.push_back(
        {.node = n, .input = 1, .axis = layer.by_rows ? size_t{0} : size_t{1}});
    const Carried own = {.set = set,
                         .image = convolves,
                         .flat = false,
                         .rank = convolves            ? layer.weights_data->type.shape.size()
                                 : layer.op == "Gemm" ? size_t{2}
                                                      : size_t{0}};
    // A bias of either stands along the last dimension of its own.
    const Carried as_vector = {.set = set, .image = false, .flat = false, .rank = 2};
    if (!IsAbsent(node, 2) && !AddVector(n, 2, as_vector)) {
      broken_[set] = true;
      Break(node.input(2));
    }
    carried_[node.output(0)] = own;
  }

  bool VisitDepthwise(int n, const Layer& layer, int64_t groups) {
    const onnx::NodeProto& node = graph_.node(n);
    const Carried* carried = Find(node.input(0));
    if (carried == nullptr) return false;
    const Carried own = *carried;
    ChannelSet& set = SetOf(own);
    if (!own.image || own.rank != layer.weights_data->type.shape.size() || groups != set.channels ||
        layer.columns != groups || layer.terms != layer.window)
      return false;
    const Carried as_vector = {.set = own.set, .image = false, .flat = false, .rank = 2};
    if (!IsAbsent(node, 2) && !AddVector(n, 2, as_vector)) return false;
    set.slots.push_back({.node = n, .input = 1, .axis = 0});
    set.depthwise.push_back(n);
    carried_[node.output(0)] = own;
    return true;
  }

  const SourceModel& source_;
  const onnx::GraphProto& graph_;
  const std::map<std::string, const onnx::TensorProto*> known_;
  std::map<int, size_t> layers_;
  std::map<std::string, Carried> carried_;
  std::vector<ChannelSet> sets_;
  std::vector<size_t> parent_;
  std::vector<bool> broken_;
};

}  // namespace

std::vector<ChannelSet> FindChannelSets(const SourceModel& source) {
  return SetFinder(source).Run();
}

}  // namespace hone::graph::onnx_prune

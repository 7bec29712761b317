#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace hone::graph {

using ValueId = int;
using NodeId = int;
inline constexpr ValueId kNoValue = -1;  ///< an absent optional input or output

/// A dtype and a static shape (rank 0 to 6).
struct TensorType {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  int64_t NumElements() const;
  int64_t Bytes() const { return NumElements() * ir::SizeOf(dtype); }
  bool operator==(const TensorType&) const = default;
};

/// An immutable dense tensor, row-major, little-endian, elements of SizeOf(dtype) bytes. `bytes`
/// may point into a mapped file that `owner` keeps alive. Thread-safe to read.
struct TensorData {
  TensorType type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  /// The values widened; integers beyond 2^53 lose bits in AsDoubles, AsInt64s is exact for every
  /// integer type.
  std::vector<double> AsDoubles() const;
  std::vector<int64_t> AsInt64s() const;
  double DoubleAt(int64_t i) const;
};
using ConstantPtr = std::shared_ptr<const TensorData>;
ConstantPtr MakeConstant(TensorType type, std::vector<std::byte> bytes);
ConstantPtr MakeConstant(ir::DType dtype, std::vector<int64_t> shape,
                         const std::vector<double>& values);
ConstantPtr MakeInt64s(std::vector<int64_t> shape, const std::vector<int64_t>& values);

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, ConstantPtr>;
/// Ordered, so that printing and hashing are deterministic.
using Attributes = std::map<std::string, Attribute, std::less<>>;

/// An SSA value: a graph input (no producer, no constant), a constant, or a node's output.
struct Value {
  std::string name;
  TensorType type;
  ConstantPtr constant;
  NodeId producer = -1;
  ir::ValueRange range;  ///< graph inputs; kept through index-only operators where it matters
};

/// One operator of Hone's canonical set (graph/ops/); `origin` names the ONNX node for messages.
struct Node {
  std::string op;
  std::string origin;
  Attributes attributes;
  std::vector<ValueId> inputs;   ///< kNoValue where an optional input is absent
  std::vector<ValueId> outputs;  ///< kNoValue where an optional output is not wanted
};

/// A model. `nodes` are in topological order. Passes build a new node list; ids of values are
/// stable.
struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// The type in which products of f32 are multiplied, as the user chose: f32 or bf16. Tensors that
  /// the model stores in narrower types stay narrow.
  ir::DType precision = ir::DType::kF32;

  ValueId AddValue(Value value);
  ValueId AddConstant(ConstantPtr data, std::string name = "");
  /// Appends a node whose outputs' types come from the operator's definition (ops/op.h InferNode).
  /// Nodes that read each value, in order.
  std::vector<std::vector<NodeId>> Readers() const;
};

/// Text form for golden tests, `hone inspect` and messages: one node a line, `%3:f32[1,64,56,56] =
/// Conv(%1, %2) {strides=[1,1]}`.
std::string ToText(const Graph& graph);
/// One line of the above, without a line break.
std::string ToText(const Graph& graph, const Node& node);
/// `f32[1,3,224,224]`.
std::string ToText(const TensorType& type);

}  // namespace hone::graph

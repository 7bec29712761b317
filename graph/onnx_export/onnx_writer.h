#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "graph/graph.h"

namespace hone::graph {

using Ints = std::vector<int64_t>;

/// Collects an ONNX model node by node and writes it (IR version 8, opset 17). Values are known by
/// their names. Weights are drawn when they are written, each from the seed and its own name, so a
/// model larger than memory costs one tensor at a time and the bits do not depend on the order. Not
/// thread-safe.
class OnnxWriter {
 public:
  OnnxWriter(std::string graph_name, uint64_t seed)
      : graph_name_(std::move(graph_name)), seed_(seed) {}

  /// A graph input. For integers `range` says which values are allowed; it is written into the
  /// value's description as `low=,high=` (half-open), where Hone's importer reads it.
  std::string Input(const std::string& name, ir::DType dtype, Ints shape);
  std::string Input(const std::string& name, ir::DType dtype, Ints shape, ir::ValueRange range);

  /// A float32 initialiser, uniform in [low, high).
  std::string Weight(const std::string& name, Ints shape, double low, double high);
  /// Uniform with standard deviation gain / sqrt(fan_in): keeps the scale of what it multiplies.
  std::string Weight(const std::string& name, Ints shape, int64_t fan_in, double gain = 1.0);

  /// Initialisers with given values.
  std::string Floats(const std::string& name, Ints shape, std::vector<float> values);
  std::string Integers(const std::string& name, Ints shape, Ints values);

  /// Appends a node and gives the name of its output (`name`, or the names of all of them). Inputs
  /// must exist; "" stands for an absent optional one.
  std::string Node(const std::string& op, const std::string& name, std::vector<std::string> inputs,
                   Attributes attributes = {});
  std::vector<std::string> Nodes(const std::string& op, std::vector<std::string> outputs,
                                 std::vector<std::string> inputs, Attributes attributes = {});

  void Output(const std::string& name, ir::DType dtype, Ints shape);

  /// Number of values in float32 initialisers.
  int64_t NumParameters() const;

  /// Writes the model; when its tensors need more than 100 MB they go to `path`.data beside it.
  absl::Status Save(const std::string& path) const;

 private:
  struct Value {
    std::string name;
    TensorType type;
    std::string description;
  };
  struct Initialiser {
    std::string name;
    TensorType type;
    std::vector<std::byte> bytes;  ///< empty: drawn
    float low = 0, high = 0;
  };
  struct NodeSpec {
    std::string op;
    std::vector<std::string> inputs, outputs;
    Attributes attributes;
  };

  std::vector<std::byte> Bytes(const Initialiser& initialiser) const;
  absl::Status SaveTensors(const std::string& data_path, std::vector<int64_t>* offsets) const;

  std::string graph_name_;
  uint64_t seed_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Initialiser> initialisers_;
  std::vector<NodeSpec> nodes_;
};

}  // namespace hone::graph

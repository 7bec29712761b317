#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_quantise {

/// Rewrites the main graph of a model: takes its nodes one by one and puts others before them. Not
/// thread-safe.
class GraphEditor {
 public:
  /// `source` must outlive it.
  explicit GraphEditor(const onnx::ModelProto& source);

  /// A name that nothing has: `wanted`, or with a number behind it.
  std::string FreshName(const std::string& wanted);
  /// An initialiser of these bytes; gives its name.
  std::string AddTensor(const std::string& name, int32_t data_type,
                        const std::vector<int64_t>& shape, std::string bytes);
  template <typename T>
  std::string AddTensor(const std::string& name, int32_t data_type,
                        const std::vector<int64_t>& shape, std::span<const T> values) {
    return AddTensor(
        name, data_type, shape,
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  }
  std::string AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                        std::span<const float> values) {
    return AddTensor<float>(name, onnx::TensorProto::FLOAT, shape, values);
  }

  /// Other numbers for one reader of the source's tensor `name`, at most once for each of them;
  /// gives the name to read. Where nobody else reads the tensor the name stays.
  std::string ReplaceFloats(const std::string& name, const std::vector<int64_t>& shape,
                            std::span<const float> values);
  /// The same for a vector of whole numbers, written as INT64.
  std::string ReplaceInts(const std::string& name, std::span<const int64_t> values);

  void AddInput(const std::string& name, int32_t data_type, const std::vector<int64_t>& shape);
  void AddOutput(const std::string& name);

  /// Appends a node of one output, whose name is made of `output`; the reference lives until the
  /// next one.
  onnx::NodeProto& AddNode(const std::string& op, const std::vector<std::string>& inputs,
                           const std::string& output);
  /// Appends a node as it is.
  onnx::NodeProto& Keep(const onnx::NodeProto& node);

  /// The model with those of the source's tensors that are still read. Once.
  onnx::ModelProto Finish();
  onnx::ModelProto& model() { return model_; }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string Replace(const std::string& name, const std::string& added);
  std::map<std::string, int> NumRead() const;
  /// Nodes of this operator whose first output nobody reads, or that is replaced.
  void DropUnread(const std::string& op, const std::map<std::string, int>& read);

  const onnx::ModelProto& source_;
  onnx::ModelProto model_;
  std::set<std::string> names_;
  std::map<std::string, int> reads_;  ///< of the source, bodies and outputs included
  std::set<std::string> tensors_;     ///< of the source
  std::set<std::string> replaced_;    ///< of these
};

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value);

}  // namespace hone::graph::onnx_quantise

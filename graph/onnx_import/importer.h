#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/onnx_import/failed_nodes.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_import/input_shapes.h"
#include "graph/onnx_import/node_import.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/tensor_reader.h"
#include "graph/onnx_import/unasked_attributes.h"

namespace hone::graph::onnx_import {

bool HasUnknown(const std::vector<ValueId>& values);

/// Whether a node of the default domain holds graphs: If, Loop, Scan.
bool IsControlFlow(const onnx::NodeProto& proto);

/// Which values the names of one graph (or function body) mean. A branch sees its parent's names.
class Scope {
 public:
  explicit Scope(const Scope* parent = nullptr) : parent_(parent) {}

  /// What a name means: a value, kUnknown, kNoValue for what is absent, or nothing.
  const ValueId* Find(const std::string& name) const;
  bool Owns(const std::string& name) const { return names_.contains(name); }
  /// False when the name is taken in this very scope.
  bool Define(const std::string& name, ValueId value) { return names_.emplace(name, value).second; }
  const std::map<std::string, ValueId>& names() const { return names_; }

 private:
  const Scope* parent_;
  std::map<std::string, ValueId> names_;
};

/// Turns one ModelProto into a Graph. Used once.
class Importer {
 public:
  Importer(std::shared_ptr<const onnx::ModelProto> model, const ImportOptions& options);
  absl::StatusOr<Graph> Run();

  // Once it has run.
  const InputShapes& input_shapes() const { return inputs_; }
  /// Whether it is nodes that do not fit, in a model small enough to be imported some dozen times.
  bool FailedAtNodes() const;

 private:
  using AttributeMap = std::map<std::string, const onnx::AttributeProto*>;

  /// What differs between the main graph and the bodies of local functions.
  struct Body {
    std::map<std::string, int64_t> opsets;    ///< by domain
    const AttributeMap* arguments = nullptr;  ///< a function call's attributes
    int depth = 0;
  };

  absl::StatusOr<std::map<std::string, int64_t>> Opsets(
      const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);
  absl::Status AddInitializers(const onnx::GraphProto& graph, Scope& scope);
  /// Whether the user says something of this input of the model, which may have an initialiser.
  bool IsOverridden(const std::string& name) const;
  /// The graph's inputs without those that only have the value of their initialiser.
  std::vector<FreeInput> FreeInputs(const onnx::GraphProto& graph) const;
  absl::Status AddInputs(const std::vector<FreeInput>& inputs, Scope& scope);
  /// Whether a node of the main graph is needed for what is asked for.
  bool IsNeeded(const onnx::NodeProto& node) const;
  absl::Status CheckOutputs(const onnx::GraphProto& graph) const;
  /// The model's outputs, or what is asked for in their place.
  struct OutputName {
    std::string name;
    const onnx::ValueInfoProto* declared = nullptr;  ///< null for a value inside the model
  };
  std::vector<OutputName> Outputs() const;
  absl::StatusOr<TensorType> InputType(const onnx::ValueInfoProto& input);
  absl::Status AddNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                        const Body& body, Scope& scope);
  absl::Status AddNode(const onnx::NodeProto& proto, const Body& body, Scope& scope);
  /// Numbers of four bits are held as bytes, which only some operators may read.
  absl::Status CheckFourBits(const onnx::NodeProto& proto,
                             const std::vector<ValueId>& inputs) const;
  /// The error of a value of four bits where none may be.
  absl::Status NoFourBits(ValueId value) const;
  /// What a node makes; a value of its own where a Cast to bytes hands on those of four bits.
  ValueId AsBytes(const onnx::NodeProto& proto, ValueId made, const std::string& name);
  /// Remembers outputs that are such numbers too.
  void NoteFourBits(const onnx::NodeProto& proto, const std::vector<ValueId>& inputs,
                    const std::vector<ValueId>& outputs);
  absl::Status CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& proto,
                            const AttributeMap& attributes, const Body& body, Scope& scope);
  /// One more node; an error once there are too many.
  absl::Status CountNode(const std::string& what);
  /// If, Loop and Scan, written out (control_flow.cc). Errors of the node itself are left in
  /// `node`; the values are kUnknown where a node of the body cannot be imported.
  absl::Status AddControlFlow(NodeImport& node, const onnx::NodeProto& proto, const Body& body,
                              Scope& scope);
  absl::StatusOr<std::vector<ValueId>> AddBranch(NodeImport& node, const Body& body,
                                                 const Scope& scope);
  absl::StatusOr<std::vector<ValueId>> AddLoop(NodeImport& node, const Body& body,
                                               const Scope& scope);
  struct LoopState;
  absl::Status AddIteration(NodeImport& node, const onnx::GraphProto& graph, int64_t number,
                            const Body& body, const Scope& scope, LoopState& state);
  /// Tells options.on_iteration of a loop inside no other.
  void TellIteration(const NodeImport& node, int64_t done, int64_t total) const;
  absl::StatusOr<std::vector<ValueId>> AddScan(NodeImport& node, const Body& body,
                                               const Scope& scope);
  /// The nodes of a body, its inputs being these values; the values of its outputs.
  absl::StatusOr<std::vector<ValueId>> AddBody(const onnx::GraphProto& graph,
                                               const std::vector<ValueId>& inputs, const Body& body,
                                               const Scope& scope);
  /// The same value as one of its own, called `name`.
  ValueId OutputCopy(ValueId value, const std::string& name);
  absl::Status SetOutputs(const Scope& scope);
  /// Reports what is wrong with a node whatever the unknown ones of its inputs are.
  void CheckBehind(const Handler& handler, const NodeBehind& node, const Scope& scope);
  void DefineUnknown(const onnx::NodeProto& proto, Scope& scope) const;
  /// Remembers a node that cannot be imported; the import goes on, so that all are reported.
  void Report(const onnx::NodeProto& proto, const Scope& scope, const absl::Status& status,
              const std::vector<ValueId>& deciders = {});
  /// What could not be imported, with what can be done about it. `scope`: of the main graph.
  absl::Status Verdict(const Scope& scope) const;

  std::shared_ptr<const onnx::ModelProto> model_;
  const ImportOptions& options_;
  TensorReader tensors_;
  Graph graph_;
  int loops_ = 0;              ///< so many are being written out, one in the other
  size_t imported_nodes_ = 0;  ///< those of a function or body once for each time
  std::map<const google::protobuf::RepeatedPtrField<onnx::NodeProto>*, std::vector<int>> orders_;
  InputShapes inputs_;
  std::vector<ValueId> unstated_;  ///< inputs whose value range the model does not state
  std::set<std::string> needed_;   ///< names, where only some outputs are asked for
  std::set<ValueId> four_bits_;    ///< constants and inputs of INT4 and UINT4
  FailedNodes failed_;
};

}  // namespace hone::graph::onnx_import

#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/tensor_reader.h"
#include "ir/expr.h"

namespace hone::graph::onnx_import {

/// One ONNX node while it is turned into canonical nodes.
///
/// Errors stick: after the first one every call gives a harmless value (kNoValue, zero, an empty
/// list) and status() tells; so compositions read as formulas. A family that looks into shapes of
/// values it has made itself must check status() before.
class NodeImport {
 public:
  /// `inputs`: values by position, kNoValue where absent. `attributes` are resolved (no references
  /// to a function's attributes). All references must outlive the object.
  NodeImport(Graph& graph, TensorReader& tensors, const onnx::NodeProto& proto,
             std::map<std::string, const onnx::AttributeProto*> attributes,
             std::vector<ValueId> inputs, int64_t opset);

  const std::string& op() const { return proto_.op_type(); }
  int64_t opset() const { return opset_; }
  const std::string& origin() const { return origin_; }

  // Inputs and outputs.
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return static_cast<size_t>(proto_.output_size()); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  /// Whether output `i` has a name, so that it may be read.
  bool Wants(size_t i) const;
  /// Input `i`; an error when absent.
  ValueId Input(size_t i);
  /// Input `i` or kNoValue.
  ValueId OptionalInput(size_t i) const { return Has(i) ? inputs_[i] : kNoValue; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  void SetOutput(size_t i, ValueId value);
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Types, by value, because making nodes moves them. kNoValue gives a f32 scalar.
  TensorType TypeOf(ValueId value) const;
  std::vector<int64_t> ShapeOf(ValueId value) const { return TypeOf(value).shape; }
  ir::DType DTypeOf(ValueId value) const { return TypeOf(value).dtype; }
  size_t RankOf(ValueId value) const { return TypeOf(value).shape.size(); }
  /// Fails unless the rank is within [low, high].
  bool CheckRank(ValueId value, size_t low, size_t high, std::string_view what);

  // Attributes. Every one that is asked for counts as known; a wrong kind is an error.
  bool HasAttribute(std::string_view name);
  int64_t Int(std::string_view name, int64_t otherwise);
  double Float(std::string_view name, double otherwise);
  std::string String(std::string_view name, std::string_view otherwise);
  /// A string that must be one of `allowed`; `otherwise` after an error, and where it is absent.
  std::string Choice(std::string_view name, std::string_view otherwise,
                     std::initializer_list<std::string_view> allowed);
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> otherwise = {});
  std::vector<double> Floats(std::string_view name, std::vector<double> otherwise = {});
  std::vector<std::string> Strings(std::string_view name);
  ConstantPtr Tensor(std::string_view name);
  /// The attribute as stored, or null: graphs, types.
  const onnx::AttributeProto* RawAttribute(std::string_view name);
  /// The dtype that an attribute names by its ONNX number.
  ir::DType ElementType(std::string_view name, ir::DType otherwise);
  /// An axis (negative: from the end) of a value of this rank, within [0, rank).
  int64_t Axis(int64_t axis, size_t rank);
  std::vector<int64_t> Axes(std::vector<int64_t> axes, size_t rank);
  /// Attributes that the handler did not ask for; an error of the model.
  std::vector<std::string> UnknownAttributes() const;

  // Values known while importing.
  ConstantPtr Known(ValueId value) const;
  /// An integer tensor whose values decide shapes; an error saying how to bind it when they are not
  /// known.
  std::vector<int64_t> KnownInts(size_t input, std::string_view what);
  std::vector<double> KnownFloats(size_t input, std::string_view what);
  /// One element of any type.
  double KnownScalar(size_t input, std::string_view what);
  /// One integer.
  int64_t KnownInt(size_t input, std::string_view what);
  /// Fails unless a table of `rows` times `columns`, computed while importing, is of moderate size.
  bool CheckTable(int64_t rows, int64_t columns, std::string_view what,
                  int64_t most = int64_t{1} << 22);

  /// Fails, saying which graph inputs decide a value that had to be known; deciders() are they.
  void FailUnknown(ValueId value, std::string_view what);

  // Making nodes. Constants of moderate size are computed at once.
  ValueId Constant(ConstantPtr data);
  ValueId SparseConstant(const onnx::SparseTensorProto& tensor);
  ValueId Scalar(ir::DType dtype, double value);
  ValueId Int64s(const std::vector<int64_t>& values);
  ValueId Emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> EmitMany(std::string_view op, std::vector<ValueId> inputs,
                                Attributes attributes, int num_outputs);
  ValueId Unary(ir::UnaryOp fn, ValueId x);
  ValueId Binary(ir::BinaryOp fn, ValueId a, ValueId b);
  /// With a scalar of the other operand's dtype.
  ValueId Binary(ir::BinaryOp fn, ValueId a, double b);
  ValueId Binary(ir::BinaryOp fn, double a, ValueId b);
  ValueId Add(ValueId a, ValueId b) { return Binary(ir::BinaryOp::kAdd, a, b); }
  ValueId Sub(ValueId a, ValueId b) { return Binary(ir::BinaryOp::kSub, a, b); }
  ValueId Mul(ValueId a, ValueId b) { return Binary(ir::BinaryOp::kMul, a, b); }
  ValueId Div(ValueId a, ValueId b) { return Binary(ir::BinaryOp::kDiv, a, b); }
  ValueId Select(ValueId condition, ValueId a, ValueId b);
  ValueId Cast(ValueId x, ir::DType dtype);
  ValueId Reshape(ValueId x, std::vector<int64_t> shape);
  ValueId Transpose(ValueId x, std::vector<int64_t> perm);
  ValueId Expand(ValueId x, std::vector<int64_t> shape);

  // Errors.
  void Fail(absl::Status status);
  void Invalid(std::string message) { Fail(absl::InvalidArgumentError(std::move(message))); }
  void Unsupported(std::string message) { Fail(absl::UnimplementedError(std::move(message))); }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  const std::vector<ValueId>& deciders() const { return deciders_; }

  Graph& graph() { return graph_; }

 private:
  const onnx::AttributeProto* Find(std::string_view name, onnx::AttributeProto::AttributeType type);

  Graph& graph_;
  TensorReader& tensors_;
  const onnx::NodeProto& proto_;
  std::map<std::string, const onnx::AttributeProto*> attributes_;
  std::set<std::string, std::less<>> asked_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  int64_t opset_;
  std::string origin_;
  absl::Status status_;
  std::vector<ValueId> deciders_;
};

}  // namespace hone::graph::onnx_import

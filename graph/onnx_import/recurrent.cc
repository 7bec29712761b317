#include "fmt/format.h"

#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/microsoft_layers.h"
#include "graph/onnx_import/quantise.h"

// LSTM, GRU, RNN, CumSum, ReverseSequence: what runs along a sequence.
namespace hone::graph::onnx_import {
namespace {

using Shape = std::vector<int64_t>;

Attributes CellAttributes(NodeImport& n, std::string_view op) {
  Attributes attributes{
      {"direction", n.Choice("direction", "forward", {"forward", "reverse", "bidirectional"})}};
  if (n.HasAttribute("hidden_size")) attributes["hidden_size"] = n.Int("hidden_size", 0);
  if (n.HasAttribute("activations")) attributes["activations"] = n.Strings("activations");
  if (n.HasAttribute("activation_alpha"))
    attributes["activation_alpha"] = n.Floats("activation_alpha");
  if (n.HasAttribute("activation_beta"))
    attributes["activation_beta"] = n.Floats("activation_beta");
  if (n.HasAttribute("clip")) attributes["clip"] = n.Float("clip", 0);
  if (op == "LSTM" && n.HasAttribute("input_forget"))
    attributes["input_forget"] = n.Int("input_forget", 0);
  if (op == "GRU" && n.HasAttribute("linear_before_reset")) {
    attributes["linear_before_reset"] = n.Int("linear_before_reset", 0);
  }
  return attributes;
}

/// Batch-first sequences and states are transposed around the operator, which is time-first.
void Cell(NodeImport& n) {
  std::vector<ValueId> inputs = n.inputs();
  const bool batch_first = n.opset() >= 14 && n.Int("layout", 0) != 0;
  if (n.opset() < 14) n.Int("output_sequence", 0);
  if (!n.CheckRank(n.Input(0), 3, 3, "X")) return;
  if (batch_first) {
    for (size_t i : {0U, 5U, 6U}) {
      if (!n.Has(i) || !n.CheckRank(inputs[i], 3, 3, "sequences and states")) continue;
      inputs[i] = n.Transpose(inputs[i], {1, 0, 2});
    }
  }
  const int count = n.op() == "LSTM" ? 3 : 2;
  const std::vector<ValueId> made = n.EmitMany(n.op(), inputs, CellAttributes(n, n.op()), count);
  for (size_t i = 0; i < made.size() && i < n.num_outputs(); ++i) {
    if (!n.Wants(i)) continue;
    const Shape perm = i == 0 ? Shape{2, 0, 1, 3} : Shape{1, 0, 2};
    n.SetOutput(i, batch_first ? n.Transpose(made[i], perm) : made[i]);
  }
}

void Cumulate(NodeImport& n, std::string_view fn) {
  const ValueId x = n.Input(0);
  const Shape axis = n.KnownInts(1, "the axis");
  if (!n.ok()) return;
  if (axis.size() != 1)
    return n.Invalid(fmt::format("axis must be one number, not {} of them", axis.size()));
  n.SetOutput(0, n.Emit("CumSum", {x},
                        {{"axis", n.Axis(axis[0], n.RankOf(x))},
                         {"fn", std::string(fn)},
                         {"exclusive", int64_t{n.Int("exclusive", 0) != 0}},
                         {"reverse", int64_t{n.Int("reverse", 0) != 0}}}));
}

void CumSum(NodeImport& n) { Cumulate(n, "add"); }
void CumProd(NodeImport& n) { Cumulate(n, "mul"); }

void ReverseSequence(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t batch_axis = n.Int("batch_axis", 1);
  const int64_t time_axis = n.Int("time_axis", 0);
  n.SetOutput(0, n.Emit("ReverseSequence", {x, n.Input(1)},
                        {{"batch_axis", batch_axis}, {"time_axis", time_axis}}));
}

/// Weights [directions, terms, columns] of bytes, with a scale and a zero point for each direction
/// or each of its columns, as those of an LSTM: f32 [directions, columns, terms].
ValueId DequantisedWeights(NodeImport& n, size_t weights, size_t scale) {
  const ValueId w = n.Input(weights);
  if (!n.CheckRank(w, 3, 3, "W and R")) return kNoValue;
  const Shape shape = n.ShapeOf(w);
  const auto spread = [&](ValueId v) {
    if (v == kNoValue) return v;
    const int64_t each = n.TypeOf(v).NumElements() == shape[0] ? 1 : shape[2];
    return n.Reshape(v, {shape[0], 1, each});
  };
  const ValueId real =
      Dequantised(n, w, spread(n.Input(scale)), spread(n.OptionalInput(scale + 1)));
  return n.Transpose(real, {0, 2, 1});
}

}  // namespace

void DynamicQuantizeLstm(NodeImport& n) {
  std::vector<ValueId> inputs = n.inputs();
  inputs.resize(8, kNoValue);
  inputs[1] = DequantisedWeights(n, 1, 8);
  inputs[2] = DequantisedWeights(n, 2, 10);
  const std::vector<ValueId> made = n.EmitMany("LSTM", inputs, CellAttributes(n, "LSTM"), 3);
  for (size_t i = 0; i < made.size() && i < n.num_outputs(); ++i)
    if (n.Wants(i)) n.SetOutput(i, made[i]);
}

namespace {

constexpr Handler kHandlers[] = {
    {"LSTM", 7, 3, 8, 3, Cell},        {"GRU", 7, 3, 6, 2, Cell},
    {"RNN", 7, 3, 6, 2, Cell},         {"CumSum", 11, 2, 2, 1, CumSum},
    {"CumProd", 26, 2, 2, 1, CumProd}, {"ReverseSequence", 10, 2, 2, 1, ReverseSequence},
};

}  // namespace

std::span<const Handler> RecurrentHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import

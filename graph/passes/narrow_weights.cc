#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"
#include "graph/passes/quantised.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using ir::DType;

/// Rows from which dequantising the weights once in each run is quicker than in each tile.
constexpr int64_t kMostRows = 32;
/// Weights of so many elements or fewer become f32 when the model is compiled.
constexpr int64_t kFewElements = 16 << 10;
constexpr int64_t kSmallestBlock = 8;

/// A known matrix by rows of a product's columns: [columns, terms].
struct Matrix {
  int64_t columns = 0, terms = 0;
  std::vector<double> values;
  double At(int64_t n, int64_t k) const { return values[static_cast<size_t>(n * terms + k)]; }
};

/// Weights with scales and zero points of their own shape.
struct Weights {
  DType dtype = DType::kI8;
  Matrix bytes, scales, zeros;
};

class WeightFinder {
 public:
  explicit WeightFinder(const Graph& graph)
      : graph_(graph), matcher_(graph), quantised_(graph, matcher_) {}

  std::optional<Weights> Of(const Node& node) const {
    if (node.op != "MatMul") return std::nullopt;
    const OpCall call = MakeCall(graph_, node);
    if (call.inputs[0].constant != nullptr || call.Int("transpose_a", 0) != 0 ||
        call.inputs[0].type.dtype != DType::kF32 || call.inputs[1].type.shape.size() != 2)
      return std::nullopt;
    const TensorType& result = graph_.values[node.outputs[0]].type;
    const std::vector<int64_t>& shape = call.inputs[1].type.shape;
    const int64_t elements = shape[0] * shape[1];
    if (elements <= kFewElements || result.NumElements() / result.shape.back() > kMostRows)
      return std::nullopt;
    return WeightsAt(node.inputs[1], shape, call.Int("transpose_b", 0) != 0);
  }

 private:
  std::optional<Weights> WeightsAt(ValueId value, const std::vector<int64_t>& shape,
                                   bool by_columns) const {
    const Node* product = matcher_.ProducerOf(value, "Binary", "mul");
    const Node* real =
        product == nullptr ? nullptr : matcher_.ProducerOf(product->inputs[0], "Cast");
    if (real == nullptr) return std::nullopt;
    ValueId wide = real->inputs[0];
    ConstantPtr zero;
    if (const Node* shifted = matcher_.ProducerOf(wide, "Binary", "sub")) {
      zero = Spread(shifted->inputs[1]);
      if (zero == nullptr) return std::nullopt;
      wide = shifted->inputs[0];
    }
    const ConstantPtr bytes = quantised_.Known(wide);
    const ConstantPtr scale = Spread(product->inputs[1]);
    if (bytes == nullptr || scale == nullptr || ir::SizeOf(bytes->type.dtype) != 1 ||
        bytes->type.shape != shape)
      return std::nullopt;
    Weights w;
    w.dtype = bytes->type.dtype;
    w.bytes = Turned(*bytes, shape, by_columns);
    w.scales = Turned(*scale, shape, by_columns);
    if (zero != nullptr)
      w.zeros = Turned(*zero, shape, by_columns);
    else
      w.zeros = {w.bytes.columns, w.bytes.terms, std::vector<double>(w.bytes.values.size())};
    return w;
  }

  /// A known tensor, or rows of one that known indices repeat, as blocks are imported.
  ConstantPtr Spread(ValueId value) const {
    if (ConstantPtr known = quantised_.Known(value)) return known;
    const Node* cast = matcher_.ProducerOf(value, "Cast");
    const Node* gather = matcher_.ProducerOf(cast == nullptr ? value : cast->inputs[0], "Gather");
    if (gather == nullptr) return nullptr;
    const ConstantPtr rows = quantised_.Known(gather->inputs[0]);
    const ConstantPtr indices = quantised_.Known(gather->inputs[1]);
    if (rows == nullptr || indices == nullptr || rows->type.shape.size() != 2 ||
        indices->type.shape.size() != 1)
      return nullptr;
    const int64_t axis = MakeCall(graph_, *gather).Int("axis", 0);
    const std::vector<int64_t> at = indices->AsInt64s();
    const std::vector<double> from = rows->AsDoubles();
    const std::vector<int64_t> shape = graph_.values[value].type.shape;
    std::vector<double> values;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        const int64_t row = axis == 0 ? at[static_cast<size_t>(i)] : i;
        const int64_t column = axis == 0 ? j : at[static_cast<size_t>(j)];
        values.push_back(from[static_cast<size_t>(row * rows->type.shape[1] + column)]);
      }
    }
    return MakeConstant(rows->type.dtype, shape, values);
  }

  /// The tensor, broadcast to the shape, by columns of the product.
  static Matrix Turned(const TensorData& data, const std::vector<int64_t>& shape, bool by_columns) {
    const std::vector<double> values = data.AsDoubles();
    const std::vector<int64_t>& own = data.type.shape;
    const int64_t rows = own.size() < 2 ? 1 : own[own.size() - 2];
    const int64_t columns = own.empty() ? 1 : own.back();
    Matrix m{by_columns ? shape[0] : shape[1], by_columns ? shape[1] : shape[0], {}};
    for (int64_t n = 0; n < m.columns; ++n) {
      for (int64_t k = 0; k < m.terms; ++k) {
        const int64_t i = rows == 1 ? 0 : by_columns ? n : k;
        const int64_t j = columns == 1 ? 0 : by_columns ? k : n;
        m.values.push_back(values[static_cast<size_t>(i * columns + j)]);
      }
    }
    return m;
  }

  const Graph& graph_;
  const Matcher matcher_;
  const QuantisedMatcher quantised_;
};

/// Terms in a row that have one scale and one zero point in each column.
int64_t BlockOf(const Weights& w) {
  int64_t block = w.bytes.terms;
  for (int64_t n = 0; n < w.bytes.columns; ++n) {
    for (int64_t k = 1; k < w.bytes.terms; ++k) {
      if (w.scales.At(n, k) != w.scales.At(n, k - 1) || w.zeros.At(n, k) != w.zeros.At(n, k - 1))
        block = std::gcd(block, k);
    }
  }
  return block;
}

/// The inputs after the first, and the attributes, of MatMulNarrow; nothing where blocks are too
/// short to be worth it.
struct NarrowForm {
  std::vector<ConstantPtr> inputs;
  Attributes attributes;
};

std::optional<NarrowForm> FormOf(const Weights& w) {
  const int64_t block = BlockOf(w);
  if (block < kSmallestBlock || block % 2 != 0) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(w.bytes.values);
  // Signed numbers of four bits are moved to 0 to 15.
  const double move = low < 0 ? 8 : 0;
  const int64_t bits = low + move >= 0 && high + move <= 15 ? 4 : 8;
  const double zero_move = bits == 4 ? move : 0;
  const int64_t groups = w.bytes.terms / block;
  std::vector<double> bytes, scales, offsets;
  const double zero = w.zeros.values[0] + zero_move;
  bool one_zero = true;
  for (int64_t n = 0; n < w.bytes.columns; ++n) {
    for (int64_t k = 0; k < w.bytes.terms; ++k) {
      const double q = w.bytes.At(n, k) + zero_move;
      if (bits == 4 && k % 2 == 1)
        bytes.back() += 16 * q;
      else
        bytes.push_back(q);
      if (k % block != 0) continue;
      const double own = w.zeros.At(n, k) + zero_move;
      one_zero = one_zero && own == zero;
      scales.push_back(w.scales.At(n, k));
      offsets.push_back(-own * scales.back());
    }
  }
  const int64_t columns = w.bytes.columns;
  NarrowForm form;
  form.inputs = {
      MakeConstant(bits == 4 ? DType::kU8 : w.dtype, {columns, groups, block * bits / 8}, bytes),
      MakeConstant(DType::kF32, {columns, groups}, scales)};
  if (!one_zero) form.inputs.push_back(MakeConstant(DType::kF32, {columns, groups}, offsets));
  form.attributes = {{"bits", bits}, {"zero", one_zero ? static_cast<int64_t>(zero) : 0}};
  return form;
}

}  // namespace

absl::StatusOr<int> NarrowWeights(Graph& graph, const PassContext&) {
  const Graph before = graph;
  const WeightFinder finder(before);
  Rewriter rewriter(graph);
  int changes = 0;
  for (const Node& node : before.nodes) {
    const auto weights = finder.Of(node);
    const auto form = weights ? FormOf(*weights) : std::nullopt;
    if (!form) {
      rewriter.Keep(node);
      continue;
    }
    std::vector<ValueId> inputs = {rewriter.Mapped(node.inputs[0])};
    for (const ConstantPtr& input : form->inputs) inputs.push_back(rewriter.AddConstant(input));
    HONE_ASSIGN_OR_RETURN(const ValueId y,
                          rewriter.Add("MatMulNarrow", node.origin, inputs, form->attributes));
    rewriter.Replace(node.outputs[0], y);
    ++changes;
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return changes;
}

}  // namespace hone::graph

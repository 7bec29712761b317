#include "graph/passes/matcher.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "graph/op.h"

namespace hone::graph {
namespace {

constexpr int kDeepest = 12;
constexpr int kHighestDegree = 4;

std::string FunctionOf(const Node& node) {
  const auto found = node.attributes.find("fn");
  const auto* fn =
      found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return fn == nullptr ? "" : *fn;
}

Polynomial Sum(const Polynomial& a, const Polynomial& b, double factor) {
  Polynomial sum = a;
  for (const auto& [powers, coefficient] : b) sum[powers] += factor * coefficient;
  std::erase_if(sum, [](const auto& term) { return term.second == 0; });
  return sum;
}

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [left, c] : a) {
    for (const auto& [right, d] : b) {
      const std::pair<int, int> powers = {left.first + right.first, left.second + right.second};
      if (powers.first + powers.second > kHighestDegree) return std::nullopt;
      product[powers] += c * d;
    }
  }
  return Sum(product, {}, 1);
}

std::optional<double> ConstantOf(const Polynomial& polynomial) {
  if (polynomial.empty()) return 0;
  const auto& [powers, value] = *polynomial.begin();
  if (polynomial.size() != 1 || powers != std::pair(0, 0)) return std::nullopt;
  return value;
}

double ToleranceOf(ir::DType dtype) {
  if (dtype == ir::DType::kF16) return 2e-3;
  if (dtype == ir::DType::kBF16) return 1e-2;
  return 1e-5;
}

bool IsArithmetic(const Node& node) {
  const std::string fn = FunctionOf(node);
  if (node.op == "Unary") return fn == "neg";
  return node.op == "Binary" &&
         (fn == "add" || fn == "sub" || fn == "mul" || fn == "div" || fn == "pow");
}

}  // namespace

bool IsNearly(double value, double wanted, ir::DType dtype) {
  return std::abs(value - wanted) <= ToleranceOf(dtype) * std::abs(wanted);
}

bool IsNearly(const Polynomial& polynomial, const Polynomial& wanted, ir::DType dtype) {
  return std::equal(polynomial.begin(), polynomial.end(), wanted.begin(), wanted.end(),
                    [&](const auto& a, const auto& b) {
                      return a.first == b.first && IsNearly(a.second, b.second, dtype);
                    });
}

Matcher::Matcher(const Graph& graph)
    : graph_(graph), readers_(graph.Readers()), is_output_(graph.values.size()) {
  for (ValueId output : graph.outputs) is_output_[output] = true;
}

const Node* Matcher::ProducerOf(ValueId id, std::string_view op, std::string_view fn) const {
  if (id == kNoValue || graph_.values[id].producer < 0) return nullptr;
  const Node& node = graph_.nodes[graph_.values[id].producer];
  return node.op == op && (fn.empty() || FunctionOf(node) == fn) ? &node : nullptr;
}

std::optional<double> Matcher::Uniform(ValueId id) const {
  constexpr int64_t kLongest = 4096;
  const ConstantPtr& data = id == kNoValue ? nullptr : graph_.values[id].constant;
  if (data == nullptr) return std::nullopt;
  const int64_t count = data->type.NumElements();
  if (count < 1 || count > kLongest) return std::nullopt;
  const double first = data->DoubleAt(0);
  for (int64_t i = 1; i < count; ++i) {
    if (data->DoubleAt(i) != first) return std::nullopt;
  }
  return first;
}

const Node* Matcher::OnlyReader(ValueId id) const {
  if (is_output_[id] || readers_[id].size() != 1) return nullptr;
  const Node& reader = graph_.nodes[readers_[id][0]];
  return std::ranges::count(reader.inputs, id) == 1 ? &reader : nullptr;
}

std::optional<Polynomial> Matcher::ReadAs(ValueId value, ValueId x, ValueId f) const {
  return ReadAs(value, x, f, 0);
}

std::optional<Polynomial> Matcher::ReadAs(ValueId value, ValueId x, ValueId f, int depth) const {
  if (value == kNoValue || depth > kDeepest) return std::nullopt;
  if (value == x) return Polynomial{{{1, 0}, 1.0}};
  if (value == f) return Polynomial{{{0, 1}, 1.0}};
  if (const std::optional<double> constant = Uniform(value))
    return Sum({}, {{{0, 0}, *constant}}, 1);
  if (const Node* negated = ProducerOf(value, "Unary", "neg")) {
    const auto inner = ReadAs(negated->inputs[0], x, f, depth + 1);
    return inner ? std::optional(Sum({}, *inner, -1)) : std::nullopt;
  }
  const Node* node = ProducerOf(value, "Binary");
  return node != nullptr && IsArithmetic(*node) ? ReadBinary(*node, x, f, depth) : std::nullopt;
}

std::optional<Polynomial> Matcher::ReadBinary(const Node& node, ValueId x, ValueId f,
                                              int depth) const {
  const std::string fn = FunctionOf(node);
  const auto left = ReadAs(node.inputs[0], x, f, depth + 1);
  if (!left) return std::nullopt;
  const auto right = ReadAs(node.inputs[1], x, f, depth + 1);
  if (!right) return std::nullopt;
  if (fn == "add") return Sum(*left, *right, 1);
  if (fn == "sub") return Sum(*left, *right, -1);
  if (fn == "mul") return Product(*left, *right);
  const std::optional<double> constant = ConstantOf(*right);
  if (!constant) return std::nullopt;
  if (fn == "div") return *constant == 0 ? std::nullopt : Product(*left, {{{0, 0}, 1 / *constant}});
  if (*constant < 1 || *constant > kHighestDegree || std::floor(*constant) != *constant)
    return std::nullopt;
  std::optional<Polynomial> power = left;
  for (int k = 1; k < static_cast<int>(*constant) && power; ++k) power = Product(*power, *left);
  return power;
}

std::vector<ValueId> Matcher::Bases(ValueId value) const {
  constexpr size_t kMost = 16;
  std::vector<ValueId> bases = {value};
  for (size_t next = 0; next < bases.size() && bases.size() < kMost; ++next) {
    const NodeId producer = graph_.values[bases[next]].producer;
    if (producer < 0 || !IsArithmetic(graph_.nodes[producer])) continue;
    for (ValueId input : graph_.nodes[producer].inputs) {
      if (graph_.values[input].constant == nullptr && std::ranges::count(bases, input) == 0)
        bases.push_back(input);
    }
  }
  return bases;
}

}  // namespace hone::graph

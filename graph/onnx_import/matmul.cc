#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// MatMul, Gemm, Einsum.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using Shape = std::vector<int64_t>;

void MatMul(NodeImport& n) {
  ValueId a = n.Input(0);
  ValueId b = n.Input(1);
  if (!n.CheckRank(a, 1, 6, "the first operand") || !n.CheckRank(b, 1, 6, "the second operand"))
    return;
  const Shape left = n.ShapeOf(a);
  const Shape right = n.ShapeOf(b);
  if (left.size() == 1) a = n.Reshape(a, {1, left[0]});
  if (right.size() == 1) b = n.Reshape(b, {right[0], 1});
  const ValueId y =
      n.Emit("MatMul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}});
  if (!n.ok()) return;
  Shape shape = n.ShapeOf(y);
  if (right.size() == 1) shape.pop_back();
  if (left.size() == 1) shape.erase(shape.end() - (right.size() == 1 ? 1 : 2));
  n.SetOutput(0, n.Reshape(y, std::move(shape)));
}

void Gemm(NodeImport& n) {
  const ValueId a = n.Input(0);
  const ValueId b = n.Input(1);
  const double alpha = n.Float("alpha", 1);
  const double beta = n.Float("beta", 1);
  if (n.opset() < 7) n.Int("broadcast", 0);
  Attributes attributes{{"transpose_a", int64_t{n.Int("transA", 0) != 0}},
                        {"transpose_b", int64_t{n.Int("transB", 0) != 0}}};
  if (!n.CheckRank(a, 2, 2, "A") || !n.CheckRank(b, 2, 2, "B")) return;
  ValueId y = n.Emit("MatMul", {a, b}, std::move(attributes));
  const auto scaled = [&](ValueId x, double factor) {
    if (factor == 1) return x;
    if (ir::IsFloat(n.DTypeOf(x))) return n.Binary(BinaryOp::kMul, x, factor);
    // The factors are floats whatever the operands are.
    return n.Cast(n.Binary(BinaryOp::kMul, n.Cast(x, ir::DType::kF64), factor), n.DTypeOf(x));
  };
  y = scaled(y, alpha);
  if (n.Has(2) && beta != 0) {
    const ValueId c = n.Input(2);
    const Shape shape = n.ShapeOf(y);
    y = n.Add(y, scaled(c, beta));
    if (n.ok() && n.ShapeOf(y) != shape) {
      return n.Invalid(fmt::format("C of {} does not broadcast to [{}]", ToText(n.TypeOf(c)),
                                   fmt::join(shape, ",")));
    }
  }
  n.SetOutput(0, y);
}

/// The axes an operand's letters name, with "..." replaced by capital-free stand-ins.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

constexpr std::string_view kEllipsisLetters = "0123456";

/// Replaces "..." by the last `count` stand-ins, so that ellipses align at their ends.
std::string WithoutEllipsis(const std::string& term, size_t count) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const std::string_view letters = kEllipsisLetters.substr(kEllipsisLetters.size() - count);
  return term.substr(0, at) + std::string(letters) + term.substr(at + 3);
}

bool IsTerm(const std::string& term) {
  std::string rest = term;
  if (const size_t at = rest.find("..."); at != std::string::npos) rest.erase(at, 3);
  for (char c : rest) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
  }
  return true;
}

void Einsum(NodeImport& n) {
  std::string text = n.String("equation", "");
  std::erase(text, ' ');
  const std::string whole = text;
  const size_t arrow = text.find("->");
  std::string result = arrow == std::string::npos ? "" : text.substr(arrow + 2);
  text = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  size_t ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const ValueId x = n.Input(i);
    if (!n.ok()) return;
    const size_t named =
        terms[i].find("...") == std::string::npos ? terms[i].size() : terms[i].size() - 3;
    if (!IsTerm(terms[i]) || named > n.RankOf(x)) {
      return n.Invalid(
          fmt::format("equation '{}' does not fit input {} of {}", whole, i, ToText(n.TypeOf(x))));
    }
    const size_t own = terms[i].size() == named ? 0 : n.RankOf(x) - named;
    ellipsis = std::max(ellipsis, own);
    terms[i] = WithoutEllipsis(terms[i], own);
  }
  if (arrow == std::string::npos) {  // the letters that occur once, sorted, after the ellipsis
    std::string letters;
    for (const std::string& term : terms) letters += term;
    if (ellipsis > 0) result = "...";
    for (char c = 'A'; c <= 'z'; ++c) {
      if (std::count(letters.begin(), letters.end(), c) == 1) result += c;
    }
  }
  if (!IsTerm(result) || terms.size() != n.num_inputs())
    return n.Invalid(fmt::format("equation '{}' does not fit {} inputs", whole, n.num_inputs()));
  result = WithoutEllipsis(result, ellipsis);
  n.SetOutput(0, n.Emit("Einsum", n.inputs(), {{"operands", terms}, {"result", result}}));
}

constexpr Handler kHandlers[] = {
    {"MatMul", 1, 2, 2, 1, MatMul},
    {"Gemm", 1, 2, 3, 1, Gemm},
    {"Einsum", 12, 1, kAnyNumber, 1, Einsum},
};

}  // namespace

std::span<const Handler> MatMulHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import

#include "graph/onnx_import/dim_formula.h"

#include <cctype>
#include <charconv>
#include <utility>

namespace hone::graph::onnx_import {

/// Recursive descent; every function is false once the text is no formula.
class DimFormula::Parser {
 public:
  Parser(std::string_view text, DimFormula& formula) : text_(text), formula_(formula) {}

  bool All() { return Sum() && (Skip(), at_ == text_.size()); }

 private:
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  /// The next character that is no space, taken if it is one of these; 0 otherwise.
  char Take(std::string_view wanted) {
    Skip();
    if (at_ == text_.size() || wanted.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }
  bool Sum() { return Chain("+-", &Parser::Product); }
  bool Product() { return Chain("*/", &Parser::Operand); }
  bool Chain(std::string_view operators, bool (Parser::*operand)()) {
    if (!(this->*operand)()) return false;
    while (const char op = Take(operators)) {
      if (op == '/' && at_ < text_.size() && text_[at_] == '/') ++at_;
      if (!(this->*operand)()) return false;
      formula_.items_.push_back({.kind = op, .name = {}});
    }
    return true;
  }
  bool Operand() {
    constexpr int kMaxDepth = 64;
    if (Take("(") != 0) return ++depth_ <= kMaxDepth && Sum() && Take(")") != 0;
    const size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    Item item{.kind = 'n', .name = std::string(text_.substr(first, at_ - first))};
    if (item.name.empty()) return false;
    const char* const end = item.name.data() + item.name.size();
    if (std::isdigit(static_cast<unsigned char>(item.name[0])) != 0) {
      const auto [stop, error] = std::from_chars(item.name.data(), end, item.number);
      if (error != std::errc() || stop != end) return false;
      item.kind = '#';
    } else {
      formula_.names_.insert(item.name);
    }
    formula_.items_.push_back(std::move(item));
    return true;
  }

  std::string_view text_;
  DimFormula& formula_;
  size_t at_ = 0;
  int depth_ = 0;
};

std::optional<DimFormula> DimFormula::Parse(std::string_view text) {
  DimFormula formula;
  if (!Parser(text, formula).All() || formula.items_.size() < 2 || formula.names_.empty())
    return std::nullopt;
  return formula;
}

std::optional<int64_t> DimFormula::Value(const std::map<std::string, int64_t>& values) const {
  std::vector<int64_t> stack;
  for (const Item& item : items_) {
    if (item.kind == '#') {
      stack.push_back(item.number);
      continue;
    }
    if (item.kind == 'n') {
      const auto found = values.find(item.name);
      if (found == values.end()) return std::nullopt;
      stack.push_back(found->second);
      continue;
    }
    const int64_t right = stack.back();
    stack.pop_back();
    int64_t& left = stack.back();
    bool fits = true;
    switch (item.kind) {
      case '+': fits = !__builtin_add_overflow(left, right, &left); break;
      case '-': fits = !__builtin_sub_overflow(left, right, &left); break;
      case '*': fits = !__builtin_mul_overflow(left, right, &left); break;
      default:
        fits = right > 0;
        if (fits) left = left / right - (left % right < 0 ? 1 : 0);
    }
    if (!fits) return std::nullopt;
  }
  return stack.back();
}

}  // namespace hone::graph::onnx_import

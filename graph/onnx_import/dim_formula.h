#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone::graph::onnx_import {

/// A dimension's name that says how long it is: "past_length + 1". Exporters join names and whole
/// numbers by + - * / (also //) and parentheses; a quotient is rounded down.
class DimFormula {
 public:
  /// Nothing for a plain name or number, and for what is no formula.
  static std::optional<DimFormula> Parse(std::string_view text);

  /// The names that it reads.
  const std::set<std::string>& names() const { return names_; }
  /// Its value; nothing when a name has none, by a division by zero or an overflow.
  std::optional<int64_t> Value(const std::map<std::string, int64_t>& values) const;

 private:
  class Parser;
  /// In postfix order: a name, or a number, or an operator.
  struct Item {
    char kind = '#';  ///< '#' a number, 'n' a name, else the operator
    int64_t number = 0;
    std::string name;
  };

  std::vector<Item> items_;
  std::set<std::string> names_;
};

}  // namespace hone::graph::onnx_import

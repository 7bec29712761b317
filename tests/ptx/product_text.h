#pragma once

#include <cstdint>
#include <string>

#include "fmt/format.h"

namespace hone::ptx {

/// What the texts of products have in common: shapes of the factors, the one way round or the
/// other, with a batch or without, and how their elements are indexed.
struct ProductText {
  ProductText(int64_t rows, int64_t columns, int64_t terms, int64_t images, bool transposed_first,
              bool transposed_second)
      : batch(images > 0 ? fmt::format("{},", images) : ""),
        lead(images > 0 ? "i0, " : ""),
        row(images > 0 ? "i1" : "i0"),
        column(images > 0 ? "i2" : "i1"),
        first(batch + (transposed_first ? fmt::format("{},{}", terms, rows)
                                        : fmt::format("{},{}", rows, terms))),
        second(batch + (transposed_second ? fmt::format("{},{}", columns, terms)
                                          : fmt::format("{},{}", terms, columns))),
        result(fmt::format("{}{},{}", batch, rows, columns)),
        first_at(lead + (transposed_first ? "r0, " + row : row + ", r0")),
        second_at(lead + (transposed_second ? column + ", r0" : "r0, " + column)),
        depth(terms) {}

  /// s0: x0 times x1 in numbers of type `wide`.
  std::string Sum(const std::string& wide, bool output) const {
    return fmt::format("s0: {0}[{1}]{2} = sum[r0:{3}] ({0}(x0[{4}]) * {0}(x1[{5}]))\n", wide,
                       result, output ? " output" : "", depth, first_at, second_at);
  }

  std::string batch, lead, row, column;
  std::string first, second, result;  ///< shapes
  std::string first_at, second_at;    ///< indices of the factors
  int64_t depth;
};

}  // namespace hone::ptx

#pragma once

#include <cstdint>
#include <string>

#include "fmt/format.h"

#include "tests/ptx/product_text.h"

namespace hone::ptx {

/// A product of these sizes: factors the one way round or the other, with a batch or without;
/// `follows`: a bias, a residual and a rectifier, stored narrow.
struct NarrowProduct {
  std::string type = "bf16";
  int64_t rows = 1, columns = 1, depth = 1, batch = 0;
  bool transposed_first = false, transposed_second = false, follows = false;

  std::string Text() const {
    const ProductText p(rows, columns, depth, batch, transposed_first, transposed_second);
    std::string text =
        fmt::format("workload 1\nx0: {0}[{1}] input range(-1,1)\nx1: {0}[{2}] input range(-1,1)\n",
                    type, p.first, p.second);
    if (follows)
      text += fmt::format("x2: f32[{}] input range(-1,1)\nx3: f32[{}] input range(-1,1)\n", columns,
                          p.result);
    text += p.Sum("f32", !follows);
    if (follows) {
      text += fmt::format(
          "s1: {0}[{1}] output = {0}(max(s0[{2}{3}, {4}] + x2[{4}] + x3[{2}{3}, {4}], 0.0))\n",
          type, p.result, p.lead, p.row, p.column);
    }
    return text;
  }
};

}  // namespace hone::ptx

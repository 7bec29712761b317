#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "fmt/format.h"

namespace hone::ptx {

/// A product of these sizes: factors the one way round or the other, with a batch or without;
/// `follows`: a bias, a residual and a rectifier, stored narrow.
struct NarrowProduct {
  std::string type = "bf16";
  int64_t rows = 1, columns = 1, depth = 1, batch = 0;
  bool transposed_first = false, transposed_second = false, follows = false;

  std::string Text() const {
    const std::string b = batch > 0 ? fmt::format("{},", batch) : "";
    const std::string lead = batch > 0 ? "i0, " : "", row = batch > 0 ? "i1" : "i0",
                      column = batch > 0 ? "i2" : "i1";
    const auto [m, n, k] = std::tuple(rows, columns, depth);
    std::string text = fmt::format(
        "workload 1\nx0: {0}[{1}{2}] input range(-1,1)\nx1: {0}[{1}{3}] input range(-1,1)\n", type,
        b, transposed_first ? fmt::format("{},{}", k, m) : fmt::format("{},{}", m, k),
        transposed_second ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n));
    if (follows)
      text += fmt::format("x2: f32[{}] input range(-1,1)\nx3: f32[{}{},{}] input range(-1,1)\n", n,
                          b, m, n);
    text += fmt::format("s0: f32[{}{},{}]{} = sum[r0:{}] (f32(x0[{}{}]) * f32(x1[{}{}]))\n", b, m,
                        n, follows ? "" : " output", k, lead,
                        transposed_first ? "r0, " + row : row + ", r0", lead,
                        transposed_second ? column + ", r0" : "r0, " + column);
    if (follows) {
      text += fmt::format(
          "s1: {0}[{1}{2},{3}] output = {0}(max(s0[{4}{5}, {6}] + x2[{6}] + "
          "x3[{4}{5}, {6}], 0.0))\n",
          type, b, m, n, lead, row, column);
    }
    return text;
  }
};

}  // namespace hone::ptx

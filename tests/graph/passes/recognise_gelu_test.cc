#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/recognised_formula.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectFormula;
using testing::ExpectNoFormula;
using testing::ExpectRewrite;
using testing::TestGraph;

const double kRoot = std::sqrt(2.0 / std::numbers::pi);

// As PyTorch's exporter writes it.
ValueId ErfForm(TestGraph& t, ValueId x) {
  const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135381698608)));
  return t.Binary("mul", t.Binary("mul", x, t.Binary("add", erf, t.Scalar(1))), t.Scalar(0.5));
}

TEST(RecogniseGeluTest, FindsTheErfForm) {
  TestGraph t;
  t.Output(ErfForm(t, t.Input({2, 6})), "y");
  ExpectRewrite(t.graph, RecogniseGelu, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[] = constant {1.4142135}
%2:f32[2,6] = Binary(%0, %1) {fn=div}
%3:f32[2,6] = Unary(%2) {fn=erf}
%4:f32[] = constant {1}
%5:f32[2,6] = Binary(%3, %4) {fn=add}
%6:f32[2,6] = Binary(%0, %5) {fn=mul}
%7:f32[] = constant {0.5}
%8:f32[2,6] = Binary(%6, %7) {fn=mul}
output %8 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[] = constant {1.4142135}
%2:f32[2,6] = Binary(%0, %1) {fn=div}
%3:f32[2,6] = Unary(%2) {fn=erf}
%4:f32[] = constant {1}
%5:f32[2,6] = Binary(%3, %4) {fn=add}
%6:f32[2,6] = Binary(%0, %5) {fn=mul}
%7:f32[2,6] = Activation(%0) {fn=gelu}
output %7 y
)");
}

TEST(RecogniseGeluTest, FindsEverySpelling) {
  const std::vector<std::function<ValueId(TestGraph&, ValueId)>> erf_forms = {
      // 0.5 x · (1 + erf(0.7071 x))
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("mul", t.Scalar(0.70710677), x));
        return t.Binary("mul", t.Binary("mul", t.Scalar(0.5), x),
                        t.Binary("add", t.Scalar(1), erf));
      },
      // x · (0.5 + 0.5 erf(x / √2))
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.41421)));
        const ValueId half = t.Binary("mul", erf, t.Scalar(0.5));
        return t.Binary("mul", x, t.Binary("add", half, t.Scalar(0.5)));
      },
      // x · (1 - erf(-x / √2)) / 2, the complement
      [](TestGraph& t, ValueId x) {
        const ValueId erf =
            t.Unary("erf", t.Binary("mul", t.Unary("neg", x), t.Scalar(0.70710678)));
        const ValueId complement = t.Binary("sub", t.Scalar(1), erf);
        return t.Binary("mul", x, t.Binary("div", complement, t.Scalar(2)));
      },
      // x / 2 + x / 2 · erf(x / √2)
      [](TestGraph& t, ValueId x) {
        const ValueId half = t.Binary("div", x, t.Scalar(2));
        const ValueId erf = t.Unary("erf", t.Binary("mul", x, t.Scalar(0.70710678)));
        return t.Binary("add", half, t.Binary("mul", half, erf));
      }};
  for (size_t k = 0; k < erf_forms.size(); ++k) {
    SCOPED_TRACE("erf form " + std::to_string(k));
    ExpectFormula(RecogniseGelu, "gelu", erf_forms[k]);
  }
}

// √(2/π) (x + 0.044715 x³)
ValueId CubicArgument(TestGraph& t, ValueId x, double scale) {
  const ValueId cube = t.Binary("pow", x, t.Scalar(3));
  const ValueId sum = t.Binary("add", x, t.Binary("mul", t.Scalar(0.044715), cube));
  return t.Binary("mul", sum, t.Scalar(scale));
}

TEST(RecogniseGeluTest, FindsTheTanhForms) {
  const std::vector<std::function<ValueId(TestGraph&, ValueId)>> forms = {
      [](TestGraph& t, ValueId x) {
        const ValueId tanh = t.Unary("tanh", CubicArgument(t, x, kRoot));
        return t.Binary("mul", t.Binary("mul", x, t.Scalar(0.5)),
                        t.Binary("add", t.Scalar(1), tanh));
      },
      // 0.7978845608 x (1 + 0.044715 x x)
      [](TestGraph& t, ValueId x) {
        const ValueId square = t.Binary("mul", t.Binary("mul", x, t.Scalar(0.044715)), x);
        const ValueId inner = t.Binary("mul", t.Binary("mul", x, t.Scalar(0.7978845608)),
                                       t.Binary("add", square, t.Scalar(1)));
        const ValueId sum = t.Binary("add", t.Unary("tanh", inner), t.Scalar(1));
        return t.Binary("mul", t.Scalar(0.5), t.Binary("mul", x, sum));
      },
      // x · sigmoid(2 …)
      [](TestGraph& t, ValueId x) {
        return t.Binary("mul", x, t.Unary("sigmoid", CubicArgument(t, x, 2 * kRoot)));
      }};
  for (size_t k = 0; k < forms.size(); ++k) {
    SCOPED_TRACE("form " + std::to_string(k));
    ExpectFormula(RecogniseGelu, "gelu_tanh", forms[k]);
  }
}

TEST(RecogniseGeluTest, LeavesOtherFormulasAlone) {
  const std::vector<std::function<ValueId(TestGraph&, ValueId)>> others = {
      // another constant
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.5)));
        return t.Binary("mul", t.Binary("mul", x, t.Binary("add", erf, t.Scalar(1))),
                        t.Scalar(0.5));
      },
      // no half
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135)));
        return t.Binary("mul", x, t.Binary("add", erf, t.Scalar(1)));
      },
      // the error function is wanted by another reader too
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135)));
        t.Output(t.Unary("abs", erf), "also");
        return t.Binary("mul", t.Binary("mul", x, t.Binary("add", erf, t.Scalar(1))),
                        t.Scalar(0.5));
      },
      // two different values
      [](TestGraph& t, ValueId x) {
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135)));
        const ValueId other = t.Unary("abs", x);
        return t.Binary("mul", t.Binary("mul", other, t.Binary("add", erf, t.Scalar(1))),
                        t.Scalar(0.5));
      },
      // broadcast to a larger shape by a constant
      [](TestGraph& t, ValueId x) {
        const ValueId ones = t.graph.AddConstant(MakeConstant(ir::DType::kF32, {2, 1, 1}, {1, 1}));
        const ValueId erf = t.Unary("erf", t.Binary("div", x, t.Scalar(1.4142135)));
        return t.Binary("mul", t.Binary("mul", x, t.Binary("add", erf, ones)), t.Scalar(0.5));
      }};
  for (size_t k = 0; k < others.size(); ++k) {
    SCOPED_TRACE("formula " + std::to_string(k));
    ExpectNoFormula(RecogniseGelu, others[k]);
  }
}

}  // namespace
}  // namespace hone::graph

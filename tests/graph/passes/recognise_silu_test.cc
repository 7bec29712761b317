#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/recognised_formula.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectFormula;
using testing::ExpectNoFormula;
using testing::ExpectRewrite;
using testing::Formula;
using testing::TestGraph;

TEST(RecogniseSiluTest, FindsTheProduct) {
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  t.Output(t.Binary("mul", t.Unary("sigmoid", x), x), "y");
  ExpectRewrite(t.graph, RecogniseSilu, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Unary(%0) {fn=sigmoid}
%2:f32[2,6] = Binary(%1, %0) {fn=mul}
output %2 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Unary(%0) {fn=sigmoid}
%2:f32[2,6] = Activation(%0) {alpha=1 fn=silu}
output %2 y
)");
}

TEST(RecogniseSiluTest, FindsEverySpelling) {
  const std::vector<Formula> forms = {
      // quick GELU
      [](TestGraph& t, ValueId x) {
        return t.Binary("mul", x, t.Unary("sigmoid", t.Binary("mul", t.Scalar(1.702), x)));
      },
      // x / (1 + exp(-x))
      [](TestGraph& t, ValueId x) {
        const ValueId power = t.Unary("exp", t.Unary("neg", x));
        return t.Binary("div", x, t.Binary("add", t.Scalar(1), power));
      },
      // x / 2 · (1 + tanh(x / 2))
      [](TestGraph& t, ValueId x) {
        const ValueId half = t.Binary("mul", x, t.Scalar(0.5));
        return t.Binary("mul", half, t.Binary("add", t.Unary("tanh", half), t.Scalar(1)));
      }};
  for (size_t k = 0; k < forms.size(); ++k) {
    SCOPED_TRACE("form " + std::to_string(k));
    ExpectFormula(RecogniseSilu, "silu", forms[k]);
  }
}

TEST(RecogniseSiluTest, LeavesOtherFormulasAlone) {
  const std::vector<Formula> others = {
      // of another value
      [](TestGraph& t, ValueId x) {
        return t.Binary("mul", t.Unary("abs", x), t.Unary("sigmoid", x));
      },
      // a shifted sigmoid
      [](TestGraph& t, ValueId x) {
        return t.Binary("mul", x, t.Unary("sigmoid", t.Binary("add", x, t.Scalar(1))));
      },
      // the gate is wanted by another reader too
      [](TestGraph& t, ValueId x) {
        const ValueId gate = t.Unary("sigmoid", x);
        t.Output(gate, "gate");
        return t.Binary("mul", x, gate);
      },
      // 2 + exp(-x)
      [](TestGraph& t, ValueId x) {
        const ValueId power = t.Unary("exp", t.Unary("neg", x));
        return t.Binary("div", x, t.Binary("add", t.Scalar(2), power));
      }};
  for (size_t k = 0; k < others.size(); ++k) {
    SCOPED_TRACE("formula " + std::to_string(k));
    ExpectNoFormula(RecogniseSilu, others[k]);
  }
}

}  // namespace
}  // namespace hone::graph

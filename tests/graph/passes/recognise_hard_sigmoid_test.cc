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

ValueId Clip(TestGraph& t, ValueId x, double low, double high) {
  return t.Binary("min", t.Binary("max", x, t.Scalar(low)), t.Scalar(high));
}

TEST(RecogniseHardSigmoidTest, FindsHardSwish) {
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  const ValueId clipped = Clip(t, t.Binary("add", x, t.Scalar(3)), 0, 6);
  t.Output(t.Binary("div", t.Binary("mul", x, clipped), t.Scalar(6)), "y");
  ExpectRewrite(t.graph, RecogniseHardSigmoid, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[] = constant {3}
%2:f32[2,6] = Binary(%0, %1) {fn=add}
%3:f32[] = constant {0}
%4:f32[2,6] = Binary(%2, %3) {fn=max}
%5:f32[] = constant {6}
%6:f32[2,6] = Binary(%4, %5) {fn=min}
%7:f32[2,6] = Binary(%0, %6) {fn=mul}
%8:f32[] = constant {6}
%9:f32[2,6] = Binary(%7, %8) {fn=div}
output %9 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[] = constant {3}
%2:f32[2,6] = Binary(%0, %1) {fn=add}
%3:f32[] = constant {0}
%4:f32[2,6] = Binary(%2, %3) {fn=max}
%5:f32[] = constant {6}
%6:f32[2,6] = Binary(%4, %5) {fn=min}
%7:f32[2,6] = Binary(%0, %6) {fn=mul}
%8:f32[2,6] = Activation(%0) {fn=hard_swish}
output %8 y
)");
}

TEST(RecogniseHardSigmoidTest, FindsEverySpelling) {
  // x · (clip(x + 3, 0, 6) / 6), the bounds in the other order
  ExpectFormula(RecogniseHardSigmoid, "hard_swish", [](TestGraph& t, ValueId x) {
    const ValueId low = t.Binary("min", t.Scalar(6), t.Binary("add", t.Scalar(3), x));
    const ValueId gate = t.Binary("mul", t.Binary("max", low, t.Scalar(0)), t.Scalar(1.0 / 6));
    return t.Binary("mul", gate, x);
  });
  // x · clip(x / 6 + 0.5, 0, 1)
  ExpectFormula(RecogniseHardSigmoid, "hard_swish", [](TestGraph& t, ValueId x) {
    const ValueId line = t.Binary("add", t.Binary("div", x, t.Scalar(6)), t.Scalar(0.5));
    return t.Binary("mul", x, Clip(t, line, 0, 1));
  });
  ExpectFormula(RecogniseHardSigmoid, "hard_sigmoid", [](TestGraph& t, ValueId x) {
    return t.Binary("div", Clip(t, t.Binary("add", x, t.Scalar(3)), 0, 6), t.Scalar(6));
  });
  ExpectFormula(RecogniseHardSigmoid, "hard_sigmoid", [](TestGraph& t, ValueId x) {
    const ValueId line = t.Binary("add", t.Binary("mul", x, t.Scalar(0.2)), t.Scalar(0.5));
    return Clip(t, line, 0, 1);
  });
}

TEST(RecogniseHardSigmoidTest, LeavesOtherFormulasAlone) {
  const std::vector<Formula> others = {
      // relu6
      [](TestGraph& t, ValueId x) { return Clip(t, x, 0, 6); },
      // other bounds
      [](TestGraph& t, ValueId x) {
        return t.Binary("div", Clip(t, t.Binary("add", x, t.Scalar(3)), 1, 6), t.Scalar(6));
      },
      // another divisor
      [](TestGraph& t, ValueId x) {
        return t.Binary("div", Clip(t, t.Binary("add", x, t.Scalar(3)), 0, 6), t.Scalar(5));
      },
      // the unbounded side is read elsewhere
      [](TestGraph& t, ValueId x) {
        const ValueId low = t.Binary("max", t.Binary("add", x, t.Scalar(3)), t.Scalar(0));
        t.Output(low, "low");
        return t.Binary("div", t.Binary("min", low, t.Scalar(6)), t.Scalar(6));
      }};
  for (size_t k = 0; k < others.size(); ++k) {
    SCOPED_TRACE("formula " + std::to_string(k));
    ExpectNoFormula(RecogniseHardSigmoid, others[k]);
  }
}

}  // namespace
}  // namespace hone::graph

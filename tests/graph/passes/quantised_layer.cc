#include "tests/graph/passes/quantised_layer.h"

#include <string>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"

namespace hone::graph::testing {

using ir::DType;

ValueId Known(TestGraph& t, DType dtype, const std::vector<int64_t>& shape, int64_t first,
              int64_t step) {
  std::vector<double> values;
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  for (int64_t k = 0; k < count; ++k) values.push_back(static_cast<double>(first + k * step % 101));
  return t.graph.AddConstant(MakeConstant(dtype, shape, values));
}

ValueId Cast(TestGraph& t, ValueId x, const char* to) {
  return t.Op("Cast", {x}, {{"to", std::string(to)}});
}

ValueId Dequantise(TestGraph& t, ValueId bytes, ValueId zero, ValueId scale) {
  ValueId wide = Cast(t, bytes, "i32");
  if (zero != kNoValue) wide = t.Binary("sub", wide, Cast(t, zero, "i32"));
  return t.Binary("mul", Cast(t, wide, "f32"), scale);
}

ValueId FromBytes(TestGraph& t, ValueId bytes, double scale, int64_t zero) {
  return Dequantise(t, bytes, Known(t, DType::kU8, {}, zero, 0), t.Scalar(scale));
}

ValueId Quantise(TestGraph& t, ValueId x, double scale, int64_t zero) {
  const ValueId rounded = t.Unary("round", t.Binary("div", x, t.Scalar(scale)));
  return Cast(t, t.Binary("add", rounded, Cast(t, Known(t, DType::kU8, {}, zero, 0), "f32")), "u8");
}

int ChangesKeepingResults(TestGraph& t, PassFunction pass) {
  const Tensors inputs = RandomInputs(t.graph, 7);
  const std::vector<ConstantPtr> before = RunNodes(t.graph, inputs);
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const PassContext context{evaluator, target};
  const auto changes = pass(t.graph, context);
  EXPECT_TRUE(changes.ok()) << changes.status();
  EXPECT_TRUE(RemoveDeadCode(t.graph, context).ok());
  ExpectSame(before, RunNodes(t.graph, inputs));
  EXPECT_EQ(pass(t.graph, context).value_or(-1), 0);
  return changes.value_or(-1);
}

}  // namespace hone::graph::testing

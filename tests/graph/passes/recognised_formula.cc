#include "tests/graph/passes/recognised_formula.h"

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"

namespace hone::graph::testing {

TestGraph GraphOf(const Formula& formula) {
  TestGraph t;
  const ValueId x = t.Binary("div", t.Input({5, 7}), t.Constant({7}));
  t.Output(formula(t, x), "y");
  return t;
}

void ExpectFormula(PassFunction pass, const std::string& fn, const Formula& formula) {
  const TestGraph t = GraphOf(formula);
  Graph after = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const auto changes = pass(after, {evaluator, target});
  ASSERT_TRUE(changes.ok()) << StatusMessage(changes.status());
  EXPECT_EQ(*changes, 1) << ToText(t.graph);
  ASSERT_TRUE(RemoveDeadCode(after, {evaluator, target}).ok());
  ASSERT_EQ(after.nodes.size(), 2U) << ToText(after);
  EXPECT_EQ(after.nodes[1].op, "Activation");
  EXPECT_EQ(std::get<std::string>(after.nodes[1].attributes.at("fn")), fn);
  const Tensors inputs = RandomInputs(t.graph, 3);
  ExpectSame(RunNodes(t.graph, inputs), RunNodes(after, inputs));
}

void ExpectNoFormula(PassFunction pass, const Formula& formula) {
  const TestGraph t = GraphOf(formula);
  Graph after = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const auto changes = pass(after, {evaluator, target});
  ASSERT_TRUE(changes.ok()) << StatusMessage(changes.status());
  EXPECT_EQ(*changes, 0) << ToText(after);
  EXPECT_EQ(ToText(after), ToText(t.graph));
}

}  // namespace hone::graph::testing

#include "graph/pipeline.h"

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::TestGraph;
using testing::TestTarget;

class BrokenEvaluator final : public Evaluator {
 public:
  absl::StatusOr<std::vector<ConstantPtr>> Evaluate(const ir::Workload&,
                                                    const std::vector<ConstantPtr>&) override {
    return absl::InternalError("no values today");
  }
};

TestGraph SumOfConstants() {
  TestGraph t;
  const ValueId sum = t.Binary("add", t.Scalar(1), t.Scalar(2));
  t.Output(t.Binary("mul", t.Input({4}), sum), "y");
  return t;
}

TEST(PipelineTest, ReportsWhatEachPassDid) {
  TestGraph t = SumOfConstants();
  InterpreterEvaluator evaluator;
  const auto reports = RunPipeline(t.graph, evaluator, TestTarget());
  ASSERT_TRUE(reports.ok()) << StatusMessage(reports.status());
  int folded = 0;
  int nodes = 2;
  for (const PassReport& report : *reports) {
    EXPECT_EQ(report.nodes_before, nodes) << report.pass << " starts where the last one ended";
    nodes = report.nodes_after;
    if (report.pass == "fold_constants") folded += report.changes;
  }
  EXPECT_EQ(folded, 1);
  EXPECT_EQ(nodes, 1);
  EXPECT_NE(ToText(*reports).find("fold_constants               1 changes      2 -> 1 nodes\n"),
            std::string::npos)
      << ToText(*reports);
}

TEST(PipelineTest, ErrorsNameThePass) {
  TestGraph t = SumOfConstants();
  BrokenEvaluator evaluator;
  const auto reports = RunPipeline(t.graph, evaluator, TestTarget());
  EXPECT_EQ(StatusMessage(reports.status()), "pass fold_constants: no values today");
}

TEST(PipelineTest, GivesTheSameGraphEveryTime) {
  InterpreterEvaluator evaluator;
  Graph first = testing::RandomGraph(5, 30);
  Graph second = first;
  ASSERT_TRUE(RunPipeline(first, evaluator, TestTarget()).ok());
  ASSERT_TRUE(RunPipeline(second, evaluator, TestTarget()).ok());
  EXPECT_EQ(ToText(first), ToText(second));
}

}  // namespace
}  // namespace hone::graph

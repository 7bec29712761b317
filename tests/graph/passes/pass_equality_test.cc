#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "graph/pipeline.h"
#include "tests/graph/passes/test_graph.h"

// Random graphs compute the same before and after each pass, and when cut into groups.
namespace hone::graph {
namespace {

using testing::ExpectSame;
using testing::PassFunction;
using testing::RandomGraph;
using testing::RandomInputs;
using testing::RunGroups;
using testing::RunNodes;
using testing::TestTarget;

constexpr uint64_t kSeeds = 60;
constexpr int kNodes = 18;

void ExpectPassKeepsResults(PassFunction pass) {
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  int changes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph before = RandomGraph(seed, kNodes);
    Graph after = before;
    const auto changed = pass(after, {evaluator, target});
    ASSERT_TRUE(changed.ok()) << StatusMessage(changed.status());
    changes += *changed;
    const auto inputs = RandomInputs(before, seed);
    ExpectSame(RunNodes(before, inputs), RunNodes(after, inputs));
    for (size_t k = 0; k < before.outputs.size(); ++k) {
      ASSERT_EQ(before.values[before.outputs[k]].name, after.values[after.outputs[k]].name);
    }
    if (::testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << ToText(before) << "\nbecame\n" << ToText(after);
      return;
    }
  }
  EXPECT_GT(changes, 0) << "the random graphs never gave this pass anything to do";
}

TEST(PassEqualityTest, CanonicaliseKeepsResults) { ExpectPassKeepsResults(Canonicalise); }
TEST(PassEqualityTest, ChooseLayoutKeepsResults) { ExpectPassKeepsResults(ChooseLayout); }
TEST(PassEqualityTest, FoldBatchNormKeepsResults) { ExpectPassKeepsResults(FoldBatchNorm); }

TEST(PassEqualityTest, MergeCommonKeepsResults) { ExpectPassKeepsResults(MergeCommon); }
TEST(PassEqualityTest, MergeSiblingsKeepsResults) { ExpectPassKeepsResults(MergeSiblings); }
TEST(PassEqualityTest, SplitViewsKeepsResults) { ExpectPassKeepsResults(SplitViews); }

TEST(PassEqualityTest, PipelineKeepsResults) {
  ExpectPassKeepsResults([](Graph& graph, const PassContext& context) -> absl::StatusOr<int> {
    HONE_ASSIGN_OR_RETURN(const auto reports,
                          RunPipeline(graph, context.evaluator, context.target));
    int changes = 0;
    for (const PassReport& report : reports) changes += report.changes;
    return changes;
  });
}

void ExpectGroupsKeepResults(bool run_pipeline) {
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph = RandomGraph(seed, kNodes);
    if (run_pipeline) {
      ASSERT_TRUE(RunPipeline(graph, evaluator, target).ok());
    }
    const auto groups = GroupNodes(graph, target);
    ASSERT_TRUE(groups.ok()) << StatusMessage(groups.status());
    std::vector<int> times(graph.nodes.size());
    for (const Group& group : *groups) {
      for (NodeId node : group.nodes) ++times[node];
    }
    for (int count : times) ASSERT_EQ(count, 1) << "every node is in one group";
    const auto inputs = RandomInputs(graph, seed);
    ExpectSame(RunNodes(graph, inputs), RunGroups(graph, *groups, inputs));
    if (::testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << ToText(graph) << "\n" << ToText(graph, *groups);
      return;
    }
  }
}

TEST(PassEqualityTest, GroupsOfUnchangedGraphsKeepResults) { ExpectGroupsKeepResults(false); }
TEST(PassEqualityTest, GroupsAfterThePipelineKeepResults) { ExpectGroupsKeepResults(true); }

}  // namespace
}  // namespace hone::graph

// If, Loop and Scan are written out while importing; what cannot be is refused with the reason.
// That what is written out computes the same: tests/conformance/networks/control.py.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

onnx::GraphProto& AddBody(onnx::NodeProto& node, const std::string& attribute,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  onnx::AttributeProto& added = *node.add_attribute();
  added.set_name(attribute);
  added.set_type(onnx::AttributeProto::GRAPH);
  for (const std::string& name : inputs) added.mutable_g()->add_input()->set_name(name);
  for (const std::string& name : outputs) added.mutable_g()->add_output()->set_name(name);
  return *added.mutable_g();
}

void AddNode(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
             const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
}

void AddBool(OnnxModel& model, const std::string& name, bool value) {
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::BOOL);
  tensor.add_int32_data(value ? 1 : 0);
}

/// y = x, `op`ed as often as the initialiser "n" says, and as long as "more" is true.
OnnxModel Repeated(const std::string& op, int64_t times) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y").Ints("n", {times});
  AddBool(model, "more", true);
  onnx::GraphProto& body = AddBody(model.Node("Loop", {"n", "more", "x"}, {"y"}), "body",
                                   {"i", "on", "before"}, {"on", "after"});
  AddNode(body, op, {"before"}, "after");
  return model;
}

size_t CountNodes(const OnnxModel& model) {
  const auto graph = model.Import();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? graph->nodes.size() : 0;
}

TEST(ControlFlowTest, ALoopIsWrittenOutAsOftenAsItRuns) {
  EXPECT_EQ(CountNodes(Repeated("Sin", 7)), 7U);
  EXPECT_THAT(Repeated("Sin", 4097).Error(), HasSubstr("(Loop)"));
  EXPECT_THAT(Repeated("Sin", 4097).Error(),
              HasSubstr("it runs more than 4096 iterations, which is the limit"));
}

TEST(ControlFlowTest, IterationsAreToldBeforeEachIsWrittenOut) {
  std::vector<std::string> told;
  ImportOptions options;
  options.on_iteration = [&](const std::string& node, int64_t done, int64_t total) {
    told.push_back(node + " " + std::to_string(done) + "/" + std::to_string(total));
  };
  ASSERT_TRUE(Repeated("Sin", 3).Import(options).ok());
  EXPECT_THAT(told, ::testing::ElementsAre("y 0/3", "y 1/3", "y 2/3"));
}

TEST(ControlFlowTest, ALimitThatIsNotKnownCanBeBound) {
  OnnxModel model = Repeated("Sin", 7);
  model.graph().mutable_node(0)->set_input(0, "times");
  model.Input("times", {}, TensorProto::INT64);
  EXPECT_THAT(model.Error(),
              HasSubstr("its number of iterations must be known while importing, but "
                        "comes from the graph input 'times'"));
  EXPECT_THAT(model.Error(), HasSubstr("--bind"));
}

TEST(ControlFlowTest, WhatCannotBeImportedIsReportedOnceAndByItsOwnName) {
  const std::string error = Repeated("Nonsense", 5).Error();
  EXPECT_THAT(error, HasSubstr("(Nonsense)"));
  EXPECT_THAT(error, HasSubstr("no such operator in Hone"));
  EXPECT_EQ(error.find("Nonsense"), error.rfind("Nonsense")) << error;
}

TEST(ControlFlowTest, LoopsInLoopsEnd) {
  // 4096 times 4096 bodies without a node.
  OnnxModel model;
  model.Input("x", {"2"}).Output("y").Ints("n", {4096});
  AddBool(model, "more", true);
  onnx::GraphProto& outer = AddBody(model.Node("Loop", {"n", "more", "x"}, {"y"}), "body",
                                    {"i", "on", "before"}, {"on", "after"});
  onnx::NodeProto& node = *outer.add_node();
  node.set_op_type("Loop");
  for (const char* input : {"n", "more", "before"}) node.add_input(input);
  node.add_output("after");
  AddBody(node, "body", {"j", "onwards", "kept"}, {"onwards", "kept"});
  EXPECT_THAT(model.Error(), HasSubstr("once its functions and loops are written out"));
}

TEST(ControlFlowTest, ALoopThatEndsByDataKeepsShapesAndStacksNothing) {
  const auto loop = [](const std::string& op, bool stacks) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Input("go", {}, TensorProto::BOOL).Output("y").Ints("n", {5});
    onnx::NodeProto& node = model.Node("Loop", {"n", "go", "x"}, {"y"});
    onnx::GraphProto& body = AddBody(node, "body", {"i", "on", "before"}, {"on", "after"});
    AddNode(body, op, {"before"}, "after");
    if (!stacks) return model;
    node.add_output("stack");
    body.add_output()->set_name("after");
    return model;
  };
  EXPECT_TRUE(loop("Sin", false).Import().ok()) << loop("Sin", false).Error();
  for (const OnnxModel& model : {loop("Transpose", false), loop("Sin", true)}) {
    EXPECT_THAT(model.Error(), HasSubstr("whether it goes on must be known while importing, but "
                                         "comes from the graph input 'go'"));
  }
}

TEST(ControlFlowTest, BranchesOfOneTypeNeedNoKnownCondition) {
  const auto branches = [](const std::string& otherwise) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Input("go", {}, TensorProto::BOOL).Output("y");
    onnx::NodeProto& node = model.Node("If", {"go"}, {"y"});
    AddNode(AddBody(node, "then_branch", {}, {"a"}), "Sin", {"x"}, "a");
    AddNode(AddBody(node, "else_branch", {}, {"b"}), otherwise, {"x"}, "b");
    return model;
  };
  EXPECT_EQ(CountNodes(branches("Cos")), 3U);
  for (const char* otherwise : {"Transpose", "Nonsense"}) {
    EXPECT_THAT(branches(otherwise).Error(),
                HasSubstr("its condition must be known while importing, but comes from the graph "
                          "input 'go'"));
  }
}

/// x looked up where `index` says, unless `go` is false.
OnnxModel Guarded(const std::string& index) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("go", {}, TensorProto::BOOL).Output("y");
  model.Input("i", {"2"}, TensorProto::INT64).Ints("known", {1, 0});
  onnx::NodeProto& node = model.Node("If", {"go"}, {"y"});
  AddNode(AddBody(node, "then_branch", {}, {"a"}), "Gather", {"x", index}, "a");
  AddNode(AddBody(node, "else_branch", {}, {"b"}), "Neg", {"x"}, "b");
  return model;
}

// What a guard keeps from being looked up would end the run.
TEST(ControlFlowTest, BranchesThatMayFaultAreNotComputedForTheirSake) {
  EXPECT_TRUE(Guarded("known").Import().ok()) << Guarded("known").Error();
  EXPECT_THAT(Guarded("i").Error(), HasSubstr("its condition must be known while importing"));
}

// Iteration 2 of at most 5 would look up what is not there; whether it runs is not known.
TEST(ControlFlowTest, AnIterationThatMayNeverRunIsNotBlamed) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("go", {}, TensorProto::BOOL).Output("y").Ints("n", {5});
  onnx::GraphProto& body = AddBody(model.Node("Loop", {"n", "go", "x"}, {"y"}), "body",
                                   {"i", "on", "before"}, {"on", "after"});
  AddNode(body, "Gather", {"x", "i"}, "row");
  AddNode(body, "Add", {"before", "row"}, "after");
  EXPECT_THAT(model.Error(), HasSubstr("(Loop)"));
  EXPECT_THAT(model.Error(), HasSubstr("whether it goes on must be known while importing"));
}

// The order of a body is found once: 90,000 iterations stand around a branch of 20,000 nodes that
// is never taken.
TEST(ControlFlowTest, BodiesInsideAreLookedIntoOnce) {
  OnnxModel model;
  model.Input("x", {"2"}).Output("y").Ints("n", {300});
  AddBool(model, "more", true);
  AddBool(model, "never", false);
  const auto loop = [](onnx::GraphProto& graph, const std::string& in,
                       const std::string& out) -> onnx::NodeProto& {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Loop");
    for (const std::string& input : {std::string("n"), std::string("more"), in})
      node.add_input(input);
    node.add_output(out);
    return node;
  };
  onnx::GraphProto& outer =
      AddBody(loop(model.graph(), "x", "y"), "body", {"i", "on", "a"}, {"on", "b"});
  onnx::GraphProto& inner =
      AddBody(loop(outer, "a", "b"), "body", {"j", "onwards", "c"}, {"onwards", "d"});
  onnx::NodeProto& choice = *inner.add_node();
  choice.set_op_type("If");
  choice.add_input("never");
  choice.add_output("d");
  onnx::GraphProto& large = AddBody(choice, "then_branch", {}, {"e20000"});
  for (int i = 0; i < 20000; ++i)
    AddNode(large, "Neg", {i == 0 ? "c" : "e" + std::to_string(i)}, "e" + std::to_string(i + 1));
  AddNode(AddBody(choice, "else_branch", {}, {"f"}), "Identity", {"c"}, "f");
  const auto graph = model.Import();
  EXPECT_TRUE(graph.ok()) << graph.status();
}

TEST(ControlFlowTest, BodiesMustFit) {
  OnnxModel model = Repeated("Sin", 2);
  model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->add_output()->set_name("on");
  EXPECT_THAT(model.Error(),
              HasSubstr("attribute 'body' is a graph of 3 inputs and 3 outputs, not 3 and 2"));
  OnnxModel without = Repeated("Sin", 2);
  without.graph().mutable_node(0)->clear_attribute();
  EXPECT_THAT(without.Error(), HasSubstr("attribute 'body' is missing"));
  OnnxModel twice = Repeated("Sin", 2);
  twice.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_input(1)->set_name("i");
  EXPECT_THAT(twice.Error(), HasSubstr("two inputs of its body are called 'i'"));
  OnnxModel unknown = Repeated("Sin", 2);
  SetInt(*unknown.graph().mutable_node(0), "unroll", 1);
  EXPECT_THAT(unknown.Error(), HasSubstr("unknown attribute 'unroll'"));
}

/// y = the sum over the rows of x, by a Scan with these attributes.
std::string ScanError(const std::vector<std::pair<std::string, std::vector<int64_t>>>& attributes,
                      int64_t scanned) {
  OnnxModel model;
  model.Input("x", {"4", "3"}).Input("z", {"5", "3"}).Output("y").Zeros("zero", {3});
  onnx::NodeProto& node = model.Node("Scan", {"zero", "x", "z"}, {"y"});
  SetInt(node, "num_scan_inputs", scanned);
  for (const auto& [name, values] : attributes) SetInts(node, name, values);
  onnx::GraphProto& body = AddBody(node, "body", {"sum", "row", "other"}, {"next"});
  AddNode(body, "Sum", {"sum", "row", "other"}, "next");
  return model.Error();
}

TEST(ControlFlowTest, ScansSayWhatDoesNotFit) {
  EXPECT_THAT(ScanError({}, 2),
              HasSubstr("one scanned input has 4 slices and another 5; they must be equal"));
  EXPECT_THAT(ScanError({}, 4), HasSubstr("num_scan_inputs is 4, but it has 3 inputs"));
  EXPECT_THAT(ScanError({{"scan_input_axes", {0}}}, 2),
              HasSubstr("attribute 'scan_input_axes' must have 2 values, not 1"));
  EXPECT_THAT(ScanError({{"scan_input_axes", {0, 2}}}, 2), HasSubstr("axis 2"));
  EXPECT_EQ(ScanError({{"scan_input_axes", {1, 1}}}, 2).find("slices"), std::string::npos);
}

}  // namespace
}  // namespace hone::graph

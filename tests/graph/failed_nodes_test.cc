// What is said of nodes that cannot be imported: equal ones once, advice once and only where it
// works, and where to cut the model so that the rest compiles.
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/onnx_import/foreign_operators.h"
#include "graph/onnx_import/handler.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Detectors end like this: scores and boxes from convolutions, then what depends on data, for each
/// class.
OnnxModel Detector(int classes) {
  OnnxModel model;
  model.Input("image", {"1", "3", "8", "8"}).Input("most", {"1"}, onnx::TensorProto::INT64);
  model.Zeros("w", {4, 3, 3, 3}).Zeros("v", {4, 3, 3, 3}).Ints("flat", {1, 4, 36});
  model.Node("Conv", {"image", "w"}, {"a"});
  model.Node("Reshape", {"a", "flat"}, {"logits"});
  model.Node("Softmax", {"logits"}, {"scores"});
  model.Node("Conv", {"image", "v"}, {"b"});
  model.Node("Reshape", {"b", "flat"}, {"corners"});
  model.Node("Transpose", {"corners"}, {"boxes"});
  SetInts(model.graph().mutable_node()->at(5), "perm", {0, 2, 1});
  for (int i = 0; i < classes; ++i) {
    const std::string n = std::to_string(i);
    model.Ints("i" + n, {i % 4});
    SetInt(model.Node("Gather", {"scores", "i" + n}, {"of" + n}), "axis", 1);
    model.Node("NonZero", {"of" + n}, {"places" + n});
    model.Node("NonMaxSuppression", {"boxes", "of" + n, "most"}, {"kept" + n});
    model.Output("kept" + n, onnx::TensorProto::INT64);
  }
  return model;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FailedNodesTest, EqualReasonsAreGivenOnceWithTheNodesTheyHoldFor) {
  const std::string error = Detector(90).Error();
  EXPECT_THAT(error, HasSubstr("180 nodes cannot be imported:"));
  EXPECT_THAT(error, HasSubstr("node places0 (NonZero) of f32[1,1,36]: its input"));
  EXPECT_THAT(error, HasSubstr("; 89 more likewise: places1, places2, places3, places4, …\n"));
  EXPECT_EQ(Count(error, "\n"), 3) << error;
}

// Bound to one image, a detector would be a constant.
TEST(FailedNodesTest, InputsThatHoldDataAreNotToBeBound) {
  EXPECT_THAT(Detector(2).Error(), HasSubstr("comes from the graph input 'image'"));
  EXPECT_THAT(Detector(2).Error(), Not(HasSubstr("--bind")));
  OnnxModel alone;
  alone.Input("x", {"2"}).Output("y").Node("NonZero", {"x"}, {"y"});
  EXPECT_THAT(alone.Error(), Not(HasSubstr("--bind")));
  OnnxModel sizes;
  sizes.Input("x", {"6"}).Input("a b", {"2"}, onnx::TensorProto::INT64).Output("y").Output("z");
  sizes.Node("Reshape", {"x", "a b"}, {"y"});
  sizes.Node("Expand", {"x", "a b"}, {"z"});
  EXPECT_THAT(
      sizes.Error(),
      ::testing::EndsWith("\ninputs that never change can be made constants: --bind 'a b'=F.npy"));
  EXPECT_EQ(Count(sizes.Error(), "--bind"), 1);
}

TEST(FailedNodesTest, TheCutLeavesWhatTookWorkAndImports) {
  OnnxModel model = Detector(20);
  EXPECT_THAT(model.Error(),
              ::testing::EndsWith("\nwhat comes before them can be compiled alone: --cut "
                                  "scores,boxes"));
  const auto graph = model.Import({.outputs = {"scores", "boxes"}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs.size(), 1U) << "the other input is for what was left out";
  std::vector<std::string> outputs;
  for (ValueId id : graph->outputs) outputs.push_back(graph->values[static_cast<size_t>(id)].name);
  EXPECT_THAT(outputs, ElementsAre("scores", "boxes"));
}

TEST(FailedNodesTest, OutputsThatNeedNothingMissingStayInTheCut) {
  OnnxModel model = Detector(1);
  model.Output("logits");
  EXPECT_THAT(model.Error(), HasSubstr("--cut logits,boxes"));
  // One value to cut through is fewer than two, and the one nearest to what failed is taken.
  OnnxModel one;
  one.Input("x", {"2", "3"}).Zeros("w", {3, 3}).Output("y").Output("z");
  one.Node("MatMul", {"x", "w"}, {"a"});
  one.Node("Relu", {"a"}, {"b"});
  one.Node("Exp", {"b"}, {"c"});
  one.Node("Abs", {"b"}, {"d"});
  one.Node("Unique", {"c"}, {"y"});
  one.Node("Unique", {"d"}, {"z"});
  EXPECT_THAT(one.Error(), ::testing::EndsWith("--cut b"));
}

TEST(FailedNodesTest, NoCutIsOfferedBeforeAnyWorkOrForAModelThatIsWrong) {
  OnnxModel early;
  early.Input("x", {"2", "3"}).Output("y");
  early.Node("Relu", {"x"}, {"a"});
  early.Node("Unique", {"a"}, {"y"});
  EXPECT_THAT(early.Error(), Not(HasSubstr("--cut")));
  OnnxModel wrong;
  wrong.Input("x", {"2", "3"}).Zeros("w", {3, 3}).Zeros("v", {2, 2}).Output("y");
  wrong.Node("MatMul", {"x", "w"}, {"a"});
  wrong.Node("MatMul", {"a", "v"}, {"y"});
  EXPECT_THAT(wrong.Error(), HasSubstr("inner extents"));
  EXPECT_THAT(wrong.Error(), Not(HasSubstr("--cut")));
}

TEST(FailedNodesTest, ACutNamesValuesOfTheModel) {
  const OnnxModel model = Detector(1);
  EXPECT_EQ(model.Error({.outputs = {"scores", "score"}}),
            "--cut score: the model has no value of that name; its outputs are: kept0");
  EXPECT_EQ(model.Error({.outputs = {"image"}}), "ok");
  EXPECT_EQ(model.Error({.outputs = {"w"}}), "ok");
  // What is left out may even be open.
  OnnxModel open;
  open.Input("x", {"2"}).Input("z", {"n"}).Output("y");
  open.Node("Relu", {"x"}, {"a"});
  open.Node("Concat", {"a", "z"}, {"y"});
  EXPECT_THAT(open.Error(), HasSubstr("--dim n=N"));
  EXPECT_EQ(open.Error({.outputs = {"a"}}), "ok");
}

std::string ForeignError(const std::string& domain, const std::string& op) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y").Node(op, {"x"}, {"y"}).set_domain(domain);
  return model.Error();
}

TEST(FailedNodesTest, ForeignOperatorsNameOnnxsOwnOrSayThatThereAreNone) {
  EXPECT_EQ(ForeignError("com.microsoft", "SkipLayerNormalization"),
            "node y (com.microsoft::SkipLayerNormalization) of f32[2,3]: no such operator in Hone; "
            "ONNX's own Add, LayerNormalization do the same; ONNX Runtime's optimiser writes "
            "it: compile the original model, or optimise at level ORT_ENABLE_BASIC only");
  EXPECT_THAT(ForeignError("com.microsoft", "QLinearWhere"),
              HasSubstr("quant_format=QuantFormat.QDQ"));
  EXPECT_THAT(ForeignError("com.microsoft", "BeamSearch"),
              HasSubstr("no operator of ONNX does the same as this one of com.microsoft; it is the "
                        "generation loop"));
  EXPECT_THAT(ForeignError("com.microsoft", "Nchwc99"), HasSubstr("it is ONNX Runtime's own"));
  EXPECT_THAT(ForeignError("ai.onnx.ml", "Scaler"), HasSubstr("ONNX's own Sub, Mul do the same"));
  EXPECT_THAT(ForeignError("ai.onnx.ml", "TreeEnsembleRegressor"), HasSubstr("hummingbird-ml"));
  EXPECT_THAT(ForeignError("ai.onnx.ml", "LabelEncoder"), HasSubstr("no operator of ONNX does"));
  EXPECT_THAT(ForeignError("com.example", "Add"),
              ::testing::EndsWith("no such operator in Hone; docs/reference/operators.md lists the "
                                  "operators that Hone has: export the model with those"));
  for (const std::string& op : onnx_import::OperatorsNamedForForeignOnes())
    EXPECT_GT(onnx_import::FirstOpset(op), 0) << op << " is named, but Hone has no such operator";
}

}  // namespace
}  // namespace hone::graph

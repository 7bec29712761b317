// The inputs and outputs of a model as the importer sees them (interface.cc).

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

OnnxModel Symbolic() {
  OnnxModel model;
  model.Input("x", {"batch", "seq", "4"}).Input("m", {"batch", "seq"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  return model;
}

TEST(InterfaceTest, UnboundDimensionsAreNamedWithTheirOption) {
  EXPECT_EQ(Symbolic().Error({.dims = {{"batch", 2}}}),
            "dimension 'seq' of input 'x' ([batch,seq,4]) is not bound: give it with --dim seq=N; "
            "dimension 'seq' of "
            "input 'm' ([batch,seq]) is not bound: give it with --dim seq=N");
}

TEST(InterfaceTest, DimensionsBindByNameAndByShape) {
  for (const ImportOptions& options : {ImportOptions{.dims = {{"batch", 2}, {"seq", 5}}},
                                       ImportOptions{.shapes = {{"x", {2, 5, 4}}}}}) {
    const auto graph = Symbolic().Import(options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->values[static_cast<size_t>(graph->inputs[1])].type.shape,
              (std::vector<int64_t>{2, 5}));
  }
}

TEST(InterfaceTest, AnExtentOfMinusOneIsOpen) {
  OnnxModel model;
  model.Input("x", {"-1", "3"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(model.Error(), "input 'x' is [?,3]: give its shape with --shape x=…");
  EXPECT_EQ(model.Error({.shapes = {{"x", {2, 3}}}}), "ok");
}

TEST(InterfaceTest, AnOutputThatIsListedTwiceIsGivenOnce) {
  OnnxModel model;
  model.Input("x", {"2"}).Output("y").Output("y");
  model.Node("Relu", {"x"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->outputs.size(), 1U);
}

TEST(InterfaceTest, OptionsThatFitNothingAreRefused) {
  EXPECT_EQ(Symbolic().Error({.dims = {{"bach", 2}}}),
            "--dim bach=2: the model has no such dimension; it has: batch, seq");
  EXPECT_EQ(Symbolic().Error({.shapes = {{"z", {1}}}}),
            "--shape z: the model has no such input; it has: m, x");
  EXPECT_THAT(Symbolic().Error({.shapes = {{"x", {2, 5}}}}),
              HasSubstr("--shape of input 'x' is [2,5], the model says [batch,seq,4]"));
  EXPECT_THAT(Symbolic().Error({.dims = {{"seq", 7}}, .shapes = {{"x", {2, 5, 4}}}}),
              HasSubstr("makes dimension 'seq' 5, but it is 7 already"));
}

// Silently taken, it would be another model: only the flattened size tells, somewhere else.
TEST(InterfaceTest, ExtentsThatTheModelFixesAreNotChanged) {
  OnnxModel model;
  model.Input("x", {"batch", "3", "224"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(model.Error({.shapes = {{"x", {2, 3, 299}}}}),
            "--shape of input 'x' makes dimension 2 299, but the model fixes it to 224: give 224, "
            "or export the model anew with that dimension named");
  const auto bound = MakeConstant(ir::DType::kF32, {1, 1, 224}, std::vector<double>(224));
  EXPECT_EQ(model.Error({.binds = {{"x", bound}}}),
            "--bind of input 'x' makes dimension 1 1, but the model fixes it to 3: give 3, or "
            "export the model anew with that dimension named");
  EXPECT_EQ(model.Error({.shapes = {{"x", {2, 3, 224}}}}), "ok");
}

TEST(InterfaceTest, ValuesThatDecideShapesAreAskedForByInput) {
  OnnxModel model;
  model.Input("x", {"6"}).Input("shape", {"2"}, onnx::TensorProto::INT64).Output("y");
  model.Node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(model.Error(), HasSubstr("comes from the graph input 'shape'; values that do not "
                                       "change can be given with --bind"));
  const auto graph = model.Import({.binds = {{"shape", MakeInt64s({2}, {2, 3})}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 1U);
}

}  // namespace
}  // namespace hone::graph

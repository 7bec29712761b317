// The inputs and outputs of a model as the importer sees them (interface.cc).

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/onnx_import/dim_formula.h"
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
            "dimension 'seq' of input 'x' ([batch,seq,4]) is not bound: give it with --dim seq=N");
  EXPECT_EQ(Symbolic().Error(),
            "dimensions 'batch', 'seq' of input 'x' ([batch,seq,4]) are not bound: give them with "
            "--dim batch=N --dim seq=N or --shape x=?x?x4");
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
  EXPECT_EQ(model.Error(),
            "input 'x' is [?,3]: give its shape, a number for each ?: --shape x=?x3");
  EXPECT_EQ(model.Error({.shapes = {{"x", {2, 3}}}}), "ok");
}

// Paddle's exporter calls each dimension that it does not know "?".
TEST(InterfaceTest, DimensionsWithoutANameAreNotOneAndTheSame) {
  OnnxModel model;
  model.Input("x", {"?", "3", "?", "width"}).Input("m", {"width"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(model.Error(),
            "input 'x' is [?,3,?,width]: give its shape, a number for each ?: --shape x=?x3x?x?");
  EXPECT_EQ(model.Error({.shapes = {{"x", {1, 3, 48, 192}}}}), "ok");
  EXPECT_THAT(model.Error({.dims = {{"?", 1}}}),
              HasSubstr("no such dimension; it has: width; --shape gives the ones without a name"));
  for (const std::string name : {"", " ", "-1", "None", "?"}) {
    for (int i : {0, 2})
      model.graph()
          .mutable_input(0)
          ->mutable_type()
          ->mutable_tensor_type()
          ->mutable_shape()
          ->mutable_dim(i)
          ->set_dim_param(name);
    EXPECT_THAT(model.Error(), HasSubstr("--shape x=?x3x?x?")) << name;
    EXPECT_EQ(model.Error({.shapes = {{"x", {1, 3, 48, 192}}}}), "ok") << name;
  }
}

// As exporters of decoders with a cache write them.
TEST(InterfaceTest, ADimensionThatIsAFormulaFollows) {
  OnnxModel model;
  model.Input("past", {"1", "past_length", "4"}).Input("mask", {"1", "past_length + 1"});
  model.Output("y").Node("Relu", {"mask"}, {"y"});
  EXPECT_EQ(model.Error(),
            "dimension 'past_length' of input 'past' ([1,past_length,4]) is not bound: give it "
            "with --dim past_length=N");
  const auto graph = model.Import({.dims = {{"past_length", 16}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->inputs[1])].type.shape,
            (std::vector<int64_t>{1, 17}));
  EXPECT_EQ(
      model.Error({.dims = {{"past_length", 16}}, .shapes = {{"mask", {1, 20}}}}),
      "dimension 'past_length + 1' is given as 20, but must be 17 with 'past_length' = 16: give "
      "one of them another size");
  EXPECT_EQ(model.Error({.dims = {{"past_length", 16}, {"past_length + 1", 17}}}), "ok");
}

TEST(InterfaceTest, FormulasAreThoseOfTheModelsOwnNames) {
  using onnx_import::DimFormula;
  const std::map<std::string, int64_t> sizes = {{"a", 7}, {"b.c", 2}, {"big", INT64_MAX}};
  const auto value = [&](const std::string& text) -> std::optional<int64_t> {
    const auto formula = DimFormula::Parse(text);
    return formula ? formula->Value(sizes) : std::nullopt;
  };
  EXPECT_EQ(value("a + 1"), 8);
  EXPECT_EQ(value("2*(a-b.c) - 3"), 7);
  EXPECT_EQ(value("a//2 * 2"), 6);
  EXPECT_EQ(value("(1 - a)/4"), -2);
  for (const std::string none : {"a", "12", "1 + 1", "a b", "a +", "(a", "a)", "", "a/0", "big + 1",
                                 "a - unknown", "a % 2", "1a + a"})
    EXPECT_EQ(value(none), std::nullopt) << none;
  std::string deep(100, '(');
  deep.append("a + 1").append(100, ')');
  EXPECT_EQ(value(deep), std::nullopt);
  // A name with a dash is a name where its parts are none.
  OnnxModel model;
  model.Input("x", {"seq-len"}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(model.Error({.dims = {{"seq-len", 3}}}), "ok");
  OnnxModel quotient;
  quotient.Input("x", {"n"}).Input("half", {"n - 8"}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(quotient.Error({.dims = {{"n", 3}}}),
            "dimension 'n - 8' has no valid size with 'n' = 3: give other sizes");
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
              HasSubstr("--shape of input 'x' is [2,5], but the model declares [batch,seq,4]"));
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

// A decoder with a cache: its mask is as long as what was before and what is new.
TEST(InterfaceTest, SizesThatContradictAreNamedWithOnesThatFit) {
  OnnxModel model;
  model.Input("past", {"batch", "past", "4"}).Input("new", {"batch", "seq", "4"});
  model.Input("mask", {"batch", "total", "1"}).Output("y");
  SetInt(model.Node("Concat", {"past", "new"}, {"all"}), "axis", 1);
  model.Node("Mul", {"all", "mask"}, {"y"});
  const std::string expected =
      "node y (Mul) of f32[2,17,4], f32[2,20,1]: shapes [2,17,4] and [2,20,1] do not broadcast\n"
      "the model does not fit 'batch' = 2, 'past' = 16, 'seq' = 1, 'total' = 20; it does with "
      "--dim past=19, or with --dim seq=4, or with --dim total=17";
  EXPECT_EQ(model.Error({.dims = {{"batch", 2}, {"past", 16}, {"seq", 1}, {"total", 20}}}),
            expected);
  EXPECT_EQ(model.Error({.dims = {{"seq", 1}, {"total", 20}}, .shapes = {{"past", {2, 16, 4}}}}),
            expected);
  EXPECT_EQ(model.Error({.dims = {{"batch", 2}, {"past", 16}, {"seq", 1}, {"total", 17}}}), "ok");
}

TEST(InterfaceTest, ABatchThatTheModelHasWithinIsNamed) {
  OnnxModel model;
  model.Input("x", {"batch", "6"}).Ints("shape", {1, 3, 2}).Output("y");
  model.Node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(model.Error({.dims = {{"batch", 4}}}),
              HasSubstr("\nthe model does not fit 'batch' = 4; it does with --dim batch=1"));
}

TEST(InterfaceTest, ValuesThatDecideShapesAreAskedForByInput) {
  OnnxModel model;
  model.Input("x", {"6"}).Input("shape", {"2"}, onnx::TensorProto::INT64).Output("y");
  model.Node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(model.Error(), HasSubstr("comes from the graph input 'shape'; inputs that never "
                                       "change can be made constants: --bind"));
  const auto graph = model.Import({.binds = {{"shape", MakeInt64s({2}, {2, 3})}}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 1U);
}

}  // namespace
}  // namespace hone::graph

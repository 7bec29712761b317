#include "client/model_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "client/exit_code.h"
#include "client/model_inputs.h"
#include "client/npz.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

Arguments RunArguments() { return Arguments(*FindCommand("run")); }

graph::TensorData Floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return *graph::MakeConstant(ir::DType::kF32, std::move(shape), values);
}

TEST(ModelOptionsTest, ReadsDimensionsShapesAndBindings) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder.Path("s.npy"), *graph::MakeInt64s({2}, {3, 4})).ok());
  Arguments arguments = RunArguments();
  arguments.Set("dim", {"batch=2", "a=b=3"});
  arguments.Set("shape", {"x=1x3x224x224", "y=7"});
  arguments.Set("bind", {"sizes=" + folder.Path("s.npy")});
  const auto options = ReadImportOptions(arguments);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->dims.at("batch"), 2);
  EXPECT_EQ(options->dims.at("a=b"), 3);
  EXPECT_THAT(options->shapes.at("x"), ElementsAre(1, 3, 224, 224));
  EXPECT_THAT(options->shapes.at("y"), ElementsAre(7));
  EXPECT_THAT(options->binds.at("sizes")->AsInt64s(), ElementsAre(3, 4));
}

TEST(ModelOptionsTest, MalformedOnesAreUsageErrors) {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"dim", "batch"},
                                                        {"dim", "=2"},
                                                        {"dim", "batch="},
                                                        {"dim", "batch=two"},
                                                        {"dim", "batch=-1"},
                                                        {"shape", "x=1x"},
                                                        {"shape", "x=x1"},
                                                        {"shape", "x=1,2"}}) {
    Arguments arguments = RunArguments();
    arguments.Set(option, {value});
    const auto options = ReadImportOptions(arguments);
    EXPECT_EQ(ExitCodeOf(options.status()), ExitCode::kUsage) << option << " " << value;
    EXPECT_THAT(StatusMessage(options.status()), HasSubstr("--" + option));
  }
  Arguments twice = RunArguments();
  twice.Set("dim", {"n=1", "n=2"});
  EXPECT_THAT(StatusMessage(ReadImportOptions(twice).status()), HasSubstr("given twice"));
}

TEST(ModelOptionsTest, ResolvesTheTarget) {
  Arguments arguments = RunArguments();
  arguments.Set("threads", {"3"});
  arguments.Set("target", {"cpu:avx2"});
  EXPECT_EQ(*ReadTarget(arguments), "cpu:avx2,threads=3");
  arguments.Set("target", {"cpu:avx2,threads=2"});
  EXPECT_EQ(ExitCodeOf(ReadTarget(arguments).status()), ExitCode::kUsage);
  arguments.Set("target", {"gpu:9"});
  const auto bad = ReadTarget(arguments);
  EXPECT_EQ(ExitCodeOf(bad.status()), ExitCode::kUsage);
  EXPECT_THAT(StatusMessage(bad.status()), HasSubstr("cpu:avx2|avx512"));
}

TEST(ModelOptionsTest, WhatTheLineSaysOfThreadsWinsOverTheConfigFile) {
  constexpr auto kConfig = Arguments::Source::kConfig;
  Arguments target = RunArguments();
  target.Set("threads", {"2"}, kConfig);
  target.Set("target", {"cpu:avx2,threads=4"});
  EXPECT_EQ(*ReadTarget(target), "cpu:avx2,threads=4");
  Arguments threads = RunArguments();
  threads.Set("threads", {"2"});
  threads.Set("target", {"cpu:avx512+vnni,threads=4"}, kConfig);
  EXPECT_EQ(*ReadTarget(threads), "cpu:avx512+vnni,threads=2");
  Arguments neither = RunArguments();
  neither.Set("threads", {"2"}, kConfig);
  neither.Set("target", {"cpu:avx2,threads=4"}, kConfig);
  EXPECT_EQ(*ReadTarget(neither), "cpu:avx2,threads=4");
}

TEST(ModelInputsTest, DrawsInsideTheRange) {
  const InputSpec ids = {"ids", {ir::DType::kI64, {2000}}, {.low = 3, .high = 6}};
  const auto tensor = DrawInput(ids, 0, 1);
  std::vector<int64_t> counts(10, 0);
  for (const int64_t value : tensor.AsInt64s()) {
    ASSERT_GE(value, 3);
    ASSERT_LT(value, 6);
    ++counts[static_cast<size_t>(value)];
  }
  EXPECT_GT(std::min({counts[3], counts[4], counts[5]}), 500);
  const InputSpec x = {"x", {ir::DType::kF32, {2000}}, {.low = 2, .high = 3}};
  for (const double value : DrawInput(x, 0, 1).AsDoubles()) {
    ASSERT_GE(value, 2);
    ASSERT_LE(value, 3);
  }
  EXPECT_EQ(DrawInput(x, 0, 1).AsDoubles(), DrawInput(x, 0, 1).AsDoubles());
  EXPECT_NE(DrawInput(x, 0, 1).AsDoubles(), DrawInput(x, 1, 1).AsDoubles());
  EXPECT_NE(DrawInput(x, 0, 1).AsDoubles(), DrawInput(x, 0, 2).AsDoubles());
}

class ReadInputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteNpz(folder_.Path("xy.npz"), {{"y", Floats({1}, {5})}, {"x", Floats({2}, {1, 2})}})
            .ok());
    ASSERT_TRUE(WriteNpy(folder_.Path("x.npy"), Floats({2}, {3, 4})).ok());
  }
  const TemporaryFolder folder_;
  const std::vector<InputSpec> specs_ = {{"x", {ir::DType::kF32, {2}}, {}},
                                         {"y", {ir::DType::kF32, {1}}, {}}};
  std::ostringstream err_;
};

TEST_F(ReadInputsTest, OrdersThemAsTheModelDoesAndASingleOneWins) {
  Arguments arguments = RunArguments();
  arguments.Set("inputs", {folder_.Path("xy.npz")});
  arguments.Set("input", {"x=" + folder_.Path("x.npy")});
  const auto inputs = ReadInputs(arguments, specs_, err_);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].first, "x");
  EXPECT_THAT((*inputs)[0].second.AsDoubles(), ElementsAre(3, 4));
  EXPECT_THAT((*inputs)[1].second.AsDoubles(), ElementsAre(5));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ReadInputsTest, SaysWhatIsMissingAndWhatIsNotUsed) {
  Arguments arguments = RunArguments();
  arguments.Set("input", {"x=" + folder_.Path("x.npy")});
  EXPECT_THAT(StatusMessage(ReadInputs(arguments, specs_, err_).status()),
              HasSubstr("no value: y: f32[1]"));
  arguments.Set("inputs", {folder_.Path("xy.npz")});
  const std::vector<InputSpec> only_x = {specs_[0]};
  EXPECT_TRUE(ReadInputs(arguments, only_x, err_).ok());
  EXPECT_THAT(err_.str(),
              HasSubstr("array y is not used: the model has no input \"y\"; it has x: f32[2]"));
  arguments.Set("input", {"z=" + folder_.Path("x.npy")});
  EXPECT_THAT(StatusMessage(ReadInputs(arguments, specs_, err_).status()),
              HasSubstr("the model has no input \"z\""));
}

TEST_F(ReadInputsTest, RefusesAnotherTypeOrShape) {
  Arguments arguments = RunArguments();
  arguments.Set("inputs", {folder_.Path("xy.npz")});
  std::vector<InputSpec> other = specs_;
  other[0].type.shape = {2, 1};
  EXPECT_THAT(StatusMessage(ReadInputs(arguments, other, err_).status()),
              HasSubstr("input x: the model wants f32[2,1], this is f32[2]"));
}

TEST_F(ReadInputsTest, ArraysBesideTheModelThatDoNotFitAreDrawn) {
  Arguments arguments(*FindCommand("bench"));
  ASSERT_TRUE(WriteNpz(folder_.Path("m.inputs.npz"),
                       {{"x", Floats({3}, {7, 8, 9})}, {"y", Floats({1}, {5})}})
                  .ok());
  const auto inputs = ReadOrDrawInputs(arguments, folder_.Path("m.onnx"), specs_, err_);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].second.AsDoubles(), DrawInput(specs_[0], 0, 0).AsDoubles());
  EXPECT_THAT((*inputs)[1].second.AsDoubles(), ElementsAre(5));
  EXPECT_THAT(err_.str(), HasSubstr("array x is not used, its input is drawn: input x: the model "
                                    "wants f32[2], this is f32[3]"));
  arguments.Set("inputs", {folder_.Path("m.inputs.npz")});
  EXPECT_FALSE(ReadOrDrawInputs(arguments, folder_.Path("m.onnx"), specs_, err_).ok());
}

TEST_F(ReadInputsTest, BenchTakesTheFileBesideTheModel) {
  Arguments arguments(*FindCommand("bench"));
  ASSERT_TRUE(WriteNpz(folder_.Path("m.inputs.npz"), {{"x", Floats({2}, {8, 9})}}).ok());
  const auto inputs = ReadOrDrawInputs(arguments, folder_.Path("m.onnx"), specs_, err_);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[0].second.AsDoubles(), ElementsAre(8, 9));
  EXPECT_EQ((*inputs)[1].second.AsDoubles(), DrawInput(specs_[1], 1, 0).AsDoubles());
}

}  // namespace
}  // namespace hone::client

// What is wrong with a model ends `hone compile` with exit code 3 and a message that says what,
// where and what to do.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "client/npz.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

namespace hone::conformance {
namespace {

using client::testing::ProgramRun;
using client::testing::RunHone;
using client::testing::TemporaryFolder;
using graph::OnnxModel;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// F0 to F30, each calling the next one twice and making no node of the graph: 2^31 imports if
/// nobody counts.
void CallFunctionsThatDouble(OnnxModel& m) {
  constexpr int kFunctions = 31;
  const auto call = [](onnx::NodeProto& node, int callee, const char* in, const char* out) {
    node.set_op_type(callee < kFunctions ? "F" + std::to_string(callee) : "Identity");
    if (callee < kFunctions) node.set_domain("local");
    node.add_input(in);
    node.add_output(out);
  };
  for (int i = 0; i < kFunctions; ++i) {
    onnx::FunctionProto& function = *m.model.add_functions();
    function.set_name("F" + std::to_string(i));
    function.set_domain("local");
    function.add_opset_import()->set_version(18);
    function.add_input("a");
    function.add_output("c");
    call(*function.add_node(), i + 1, "a", "b");
    call(*function.add_node(), i + 1, "b", "c");
  }
  call(*m.graph().add_node(), 0, "x", "y");
}

struct BadModel {
  std::string name;
  std::function<void(OnnxModel&)> change;  ///< of a model with input x: f32[2,3] and output y
  std::string message;
};

std::vector<BadModel> BadModels() {
  return {
      {"UnknownOperators",
       [](OnnxModel& m) {
         m.Node("Frobnicate", {"x"}, {"a"});
         m.Node("NonMaxSuppression", {"x", "x"}, {"b"});
         m.Node("Twist", {"x"}, {"y"}).set_domain("com.example");
       },
       "3 nodes cannot be imported:"},
      {"UnknownAttribute",
       [](OnnxModel& m) { graph::SetInt(m.Node("Relu", {"x"}, {"y"}), "slope", 1); },
       "unknown attribute 'slope'"},
      {"Cycle",
       [](OnnxModel& m) {
         m.Node("Add", {"x", "b"}, {"a"});
         m.Node("Relu", {"a"}, {"b"});
         m.Node("Relu", {"b"}, {"y"});
       },
       "cycle through node a (Add)"},
      {"MissingInitialiser",
       [](OnnxModel& m) {
         m.Node("Add", {"x", "w"}, {"y"});
       },
       "reads 'w', but that is no graph input, no initialiser and no node makes it"},
      {"WrongRank", [](OnnxModel& m) { m.Node("GlobalAveragePool", {"x"}, {"y"}); },
       "must have rank 3 to 6, not 2"},
      {"ShapesThatDoNotFit",
       [](OnnxModel& m) {
         m.Zeros("w", {4, 5});
         m.Node("MatMul", {"x", "w"}, {"y"}).set_name("fc");
       },
       "node fc (MatMul) of f32[2,3], f32[4,5]: inner extents 3 and 4 differ"},
      {"SizesThatOverflow",
       [](OnnxModel& m) {
         m.Ints("n", {int64_t{1} << 40, int64_t{1} << 40});
         m.Node("Tile", {"x", "n"}, {"y"});
       },
       "overflow"},
      {"NothingButPadding",
       [](OnnxModel& m) {
         m.Ints("s", {1, 1, 2, 3});
         m.Node("Reshape", {"x", "s"}, {"image"});
         onnx::NodeProto& pool = m.Node("MaxPool", {"image"}, {"y"});
         graph::SetInts(pool, "kernel_shape", {int64_t{1} << 30, 1});
         graph::SetInts(pool, "pads", {(int64_t{1} << 30) - 1, 0, (int64_t{1} << 30) - 1, 0});
       },
       "pads 1073741823 and 1073741823 around extent 2 are too large; at most 1048576 are "
       "supported"},
      {"AnOutputNobodyMakes", [](OnnxModel& m) { m.Node("Relu", {"x"}, {"z"}); },
       "no node makes the output 'y'"},
      {"AnIndexOutOfRange",
       [](OnnxModel& m) {
         m.Ints("i", {0, 2});
         m.Node("Gather", {"x", "i"}, {"y"});
       },
       "index 2 (element 1 of the indices) is outside of [-2, 1]"},
      {"FunctionsThatDouble", CallFunctionsThatDouble,
       "more than 1048576 nodes once its functions and loops are written out"},
      {"ANegativeExtent",
       [](OnnxModel& m) {
         m.Ints("s", {-2, -3});
         m.Node("ConstantOfShape", {"s"}, {"y"});
       },
       "node y (ConstantOfShape) of i64[2]: shape [-2,-3] has a negative extent"},
      {"ABlockWhoseSquareWraps",
       [](OnnxModel& m) {
         m.Ints("s", {1, 6, 1, 1});
         m.Node("Reshape", {"x", "s"}, {"image"});
         graph::SetInt(m.Node("DepthToSpace", {"image"}, {"y"}), "blocksize", int64_t{1} << 32);
       },
       "6 channels cannot be divided by blocksize 4294967296 squared"},
      {"AnUnknownValueOfAnAttribute",
       [](OnnxModel& m) {
         m.Ints("s", {4, 6});
         graph::SetString(m.Node("Resize", {"x", "", "", "s"}, {"y"}), "nearest_mode", "up");
       },
       "attribute 'nearest_mode' is 'up'; it must be one of round_prefer_floor, round_prefer_ceil, "
       "floor, ceil"},
      {"DataDependentShape", [](OnnxModel& m) { m.Node("Unique", {"x"}, {"y"}); },
       "depends on data"},
  };
}

ProgramRun Compile(const TemporaryFolder& folder, const std::string& file,
                   const std::string& bytes) {
  EXPECT_TRUE(WriteFileAtomically(folder.Path(file), bytes).ok());
  return RunHone({"compile", folder.Path(file), "-o", folder.Path("out.hone")});
}

class BadModelTest : public ::testing::TestWithParam<BadModel> {};

TEST_P(BadModelTest, EndsWith3AndSaysWhy) {
  const TemporaryFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y");
  GetParam().change(model);
  const ProgramRun run = Compile(folder, "bad.onnx", model.Bytes());
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("bad.onnx"), HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(All, BadModelTest, ::testing::ValuesIn(BadModels()),
                         [](const auto& each) { return each.param.name; });

TEST(BadFileTest, ACutModelIsNamed) {
  const TemporaryFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Zeros("w", {2, 3}).Output("y");
  model.Node("Add", {"x", "w"}, {"y"});
  const std::string bytes = model.Bytes();
  for (size_t size = 0; size < bytes.size(); size += 7) {
    const ProgramRun run = Compile(folder, "cut.onnx", bytes.substr(0, size));
    EXPECT_EQ(run.exit_code, 3) << size << " bytes: " << run.err;
    EXPECT_THAT(run.err, HasSubstr("cut.onnx"));
  }
}

TEST(BadFileTest, OtherFormatsAreAnsweredWithTheWayToOnnx) {
  struct Foreign {
    const char* file;
    std::string bytes;
    const char* way;
  };
  const Foreign files[] = {
      {"m.pt", std::string("PK\x03\x04", 4) + "archive", "torch.onnx.export"},
      {"m.pb", "a graph of TensorFlow", "tf2onnx.convert --graphdef"},
      {"m.tflite", std::string("\x1c\0\0\0TFL3", 8) + "model", "tf2onnx.convert --tflite"},
      {"m.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10), "safetensors"}};
  const TemporaryFolder folder;
  for (const Foreign& foreign : files) {
    const ProgramRun run = Compile(folder, foreign.file, foreign.bytes);
    EXPECT_EQ(run.exit_code, 3) << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr(foreign.file), HasSubstr(foreign.way)));
  }
}

TEST(DeclaredShapeTest, OneThatDoesNotFollowFromTheNodesIsAWarning) {
  const TemporaryFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y").Output("z");
  model.Node("Relu", {"x"}, {"y"});
  model.Node("Neg", {"x"}, {"z"});
  const auto declare = [&](int output, const std::vector<int64_t>& shape) {
    auto& type = *model.graph().mutable_output(output)->mutable_type()->mutable_tensor_type();
    for (int64_t extent : shape) type.mutable_shape()->add_dim()->set_dim_value(extent);
  };
  declare(0, {2, 4});
  declare(1, {2, 3});
  const ProgramRun run = Compile(folder, "declared.onnx", model.Bytes());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("output 'y' is declared as [2,4], but its node makes f32[2,3]"));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("'z'")));
}

TEST(UnreadOutputTest, TopKMakesIndicesThatNobodyReads) {
  const TemporaryFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Ints("k", {2}).Output("y");
  model.Node("TopK", {"x", "k"}, {"values", "indices"});
  model.Node("Relu", {"values"}, {"y"});
  ASSERT_EQ(Compile(folder, "topk.onnx", model.Bytes()).exit_code, 0);
  const auto x = graph::MakeConstant(ir::DType::kF32, {2, 3}, {0, 5, 3, -1, -2, -3});
  const auto y = graph::MakeConstant(ir::DType::kF32, {2, 2}, {5, 3, 0, 0});
  ASSERT_TRUE(client::WriteNpz(folder.Path("x.npz"), {{"x", *x}}).ok());
  ASSERT_TRUE(client::WriteNpz(folder.Path("y.npz"), {{"y", *y}}).ok());
  const ProgramRun run = RunHone({"run", folder.Path("out.hone"), "--inputs", folder.Path("x.npz"),
                                  "--expect", folder.Path("y.npz")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// The values of an input that decide shapes are given with --bind.
TEST(BindTest, AnInputThatDecidesShapesBecomesAConstant) {
  const TemporaryFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("s", {"2"}, onnx::TensorProto::INT64).Output("y");
  model.Node("Reshape", {"x", "s"}, {"r"});
  model.Node("Neg", {"r"}, {"y"});
  const ProgramRun open = Compile(folder, "m.onnx", model.Bytes());
  EXPECT_EQ(open.exit_code, 3);
  EXPECT_THAT(open.err, AllOf(HasSubstr("'s'"), HasSubstr("--bind")));

  const auto shape = graph::MakeInt64s({2}, {3, 2});
  ASSERT_TRUE(client::WriteNpy(folder.Path("s.npy"), *shape).ok());
  const auto x = graph::MakeConstant(ir::DType::kF32, {2, 3}, {0, 1, 2, 3, 4, 5});
  const auto y = graph::MakeConstant(ir::DType::kF32, {3, 2}, {0, -1, -2, -3, -4, -5});
  ASSERT_TRUE(client::WriteNpz(folder.Path("x.npz"), {{"x", *x}}).ok());
  ASSERT_TRUE(client::WriteNpz(folder.Path("y.npz"), {{"y", *y}}).ok());
  const std::string bind = "s=" + folder.Path("s.npy");
  const ProgramRun run = RunHone({"run", folder.Path("m.onnx"), "--bind", bind, "--inputs",
                                  folder.Path("x.npz"), "--expect", folder.Path("y.npz")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("f32[3,2]"));
}

}  // namespace
}  // namespace hone::conformance

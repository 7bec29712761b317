#include "client/dependency_file.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "client/npz.h"
#include "graph/graph.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using testing::RunHone;
using testing::TemporaryFolder;

TEST(DependencyFileTest, PathsAreEscapedAsMakeReadsThem) {
  EXPECT_EQ(DependencyText("a b.hone", {"m$1.onnx", "x#.npy"}),
            "a\\ b.hone: \\\n  m$$1.onnx \\\n  x\\#.npy\n");
}

TEST(DependencyFileTest, CompileNamesEveryFileThatThePackageIsMadeFrom) {
  const TemporaryFolder folder;
  graph::OnnxModel model;
  model.Input("x", {"2"}).Input("b", {"2"}).Output("y").Zeros("w", {2});
  onnx::TensorProto& weights = *model.graph().mutable_initializer(0);
  weights.clear_float_data();
  weights.set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& location = *weights.add_external_data();
  location.set_key("location");
  location.set_value("w.bin");
  model.Node("Add", {"x", "w"}, {"s"});
  model.Node("Mul", {"s", "b"}, {"y"});
  const std::string path = folder.Path("m.onnx"), package = folder.Path("m.hone");
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  ASSERT_TRUE(WriteFileAtomically(folder.Path("w.bin"), std::string(8, '\0')).ok());
  ASSERT_TRUE(
      WriteNpy(folder.Path("b.npy"), *graph::MakeConstant(ir::DType::kF32, {2}, {1, 2})).ok());
  std::filesystem::create_directory(folder.Path("hand"));
  ASSERT_TRUE(WriteFileAtomically(folder.Path("hand/0.trace"), "").ok());
  const std::vector<std::string> words = {
      "compile", path, "--bind", "b=" + folder.Path("b.npy"), "--traces", folder.Path("hand")};
  const auto with = [&](const std::string& depfile) {
    std::vector<std::string> line = words;
    line.insert(line.end(), {"--depfile", depfile});
    return RunHone(line);
  };
  const testing::ProgramRun run = with(folder.Path("m.d"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(*ReadFile(folder.Path("m.d")),
            DependencyText(package, {path, folder.Path("w.bin"), folder.Path("b.npy"),
                                     folder.Path("hand"), folder.Path("hand/0.trace")}));
  // It takes the place of nothing else.
  EXPECT_EQ(with(path).exit_code, 2);
  const testing::ProgramRun over = with(package);
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.err, HasSubstr("is where the package goes"));
}

}  // namespace
}  // namespace hone::client

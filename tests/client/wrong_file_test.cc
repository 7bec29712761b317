#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

// What `hone` says of files that are not what it was asked for, and of models that contradict
// themselves.
namespace hone::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ProgramRun;
using testing::RunHone;
using ::testing::StartsWith;
using testing::TemporaryFolder;

class WrongFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph::OnnxModel model;
    model.Input("x", {"2"}).Output("y").Node("Relu", {"x"}, {"y"});
    onnx::TypeProto& declared = *model.graph().mutable_output(0)->mutable_type();
    declared.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(3);
    ASSERT_TRUE(WriteFileAtomically(model_, model.Bytes()).ok());
  }
  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("m.onnx"), package_ = folder_.Path("m.hone");
};

TEST_F(WrongFileTest, AWarningOfTheImporterHasNoDateAndQuietLeavesItOut) {
  const ProgramRun run = RunHone({"compile", model_, "--no-log"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, StartsWith("warning: output 'y' is declared as [3], but its node makes "
                                  "f32[2]: the declaration is ignored\n"));
  EXPECT_EQ(RunHone({"compile", model_, "--no-log", "--quiet"}).err, "");
}

TEST_F(WrongFileTest, APackageGivenToCompileIsNamedAsSuch) {
  ASSERT_EQ(RunHone({"compile", model_, "--no-log"}).exit_code, 0);
  const ProgramRun run = RunHone({"compile", package_});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("'" + package_ +
                                 "' is a package, compiled already; name the model that it was "
                                 "made of (an .onnx file)"));
}

TEST_F(WrongFileTest, AMissingFileOfValuesSaysToCheckThePath) {
  const std::string why = ": No such file or directory; check the path\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", model_, "--inputs", "/nosuch/x.npz"},
        {"run", model_, "--input", "x=/nosuch/x.npz"},
        {"compile", model_, "--bind", "x=/nosuch/x.npz"}}) {
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 3) << words[2];
    EXPECT_THAT(run.err, HasSubstr("cannot read '/nosuch/x.npz'")) << words[2];
    EXPECT_THAT(run.err, EndsWith(why)) << words[2];
  }
}

}  // namespace
}  // namespace hone::client

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

// A model whose exporter wrote 0 for the batch.
namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

TEST(EmptyInputTest, AnInputThatTheModelDeclaresEmptyIsToldWithTheShapeToGive) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("m.onnx"), package = folder.Path("m.hone");
  graph::OnnxModel model;
  model.Input("x", {"0", "3"}).Output("y").Node("Relu", {"x"}, {"y"});
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  const std::string note = "note: the model declares input 'x' with no elements (f32[0,3])";
  ProgramRun run = RunHone({"compile", path, "-o", package});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(note));
  EXPECT_THAT(run.err, HasSubstr("--shape x=1x3\n"));
  EXPECT_THAT(RunHone({"run", path}).err, HasSubstr(note));
  run = RunHone({"compile", path, "-o", package, "--shape", "x=1x3"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("no elements")));
  // Asked for: such an input is meant.
  EXPECT_THAT(RunHone({"compile", path, "-o", package, "--shape", "x=0x3"}).err,
              Not(HasSubstr("no elements")));
}

}  // namespace
}  // namespace hone::client

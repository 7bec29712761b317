#include "client/kernel_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/model_inputs.h"
#include "graph/onnx_export/zoo.h"
#include "graph/onnx_import/import.h"
#include "tests/client/run_hone.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

absl::StatusOr<KernelCheckReport> CheckMlp(const std::string& builder_program) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("mlp.onnx");
  EXPECT_TRUE(graph::WriteZooModel("mlp", 3, path).ok());
  auto graph = graph::ImportOnnxFile(path);
  EXPECT_TRUE(graph.ok()) << graph.status();
  NamedTensors inputs;
  for (const InputSpec& spec : InputsOf(*graph))
    inputs.emplace_back(spec.name, DrawInput(spec, 0, 1));
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = builder_program;
  options.address_space_bytes.reset();
  measure::BuilderClient builder(options, clock);
  compiler::DefaultTraceSource traces;
  return CheckKernels(*std::move(graph), inputs, {.target = "cpu:avx2,threads=1", .points = 16},
                      builder, traces, clock);
}

TEST(KernelCheckTest, FindsNothingInRightCode) {
  const auto report = CheckMlp("");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->wrong.has_value());
  EXPECT_GE(report->steps.size(), 3U);
  for (const CheckedStep& step : report->steps) {
    EXPECT_GE(step.points, 10);
    EXPECT_LT(step.worst_share, 1);
  }
}

TEST(KernelCheckTest, NamesTheFirstWrongKernelWithItsTrace) {
  const auto report = CheckMlp(HONE_LYING_BUILDER);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->wrong.has_value());
  const WrongElement& wrong = *report->wrong;
  // ReLU is the only maximum of the network, and min(x, 0) is where max(x, 0) is not, up to zeros.
  EXPECT_EQ(wrong.step.step, 0);
  EXPECT_THAT(wrong.workload, HasSubstr("max("));
  EXPECT_FALSE(wrong.trace.empty());
  EXPECT_FALSE(wrong.value.empty());
  EXPECT_THAT(wrong.index, HasSubstr("[0, "));
  EXPECT_GE(wrong.oracle, 0);
  EXPECT_LE(wrong.code, 0);
  EXPECT_NE(wrong.code, wrong.oracle);
}

}  // namespace
}  // namespace hone::client

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "compiler/compile_model.h"
#include "runtime/executable.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/kinds/abacus_device.h"
#include "tests/kinds/abacus_memory.h"
#include "tests/test_paths.h"

// A model is compiled for a device that is no CPU, packaged, loaded and run.
namespace hone {
namespace {

using compiler::GraphMaker;
using graph::ValueId;

/// Two layers, one of them a window.
graph::Graph Network() {
  GraphMaker maker(3);
  const ValueId x = maker.Input("x", {4, 24});
  ValueId h = maker.Node("MatMul", {}, {x, maker.Weights({24, 40})});
  h = maker.Node("Binary", {{"fn", "max"}}, {h, maker.Scalar(0)});
  const ValueId y = maker.Node("MatMul", {}, {h, maker.Weights({40, 10})});
  return maker.Finish({maker.Node("Binary", {{"fn", "add"}}, {y, maker.Weights({10})})});
}

std::string PackageFor(const std::string& target, const graph::Graph& graph) {
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = testing::BuildDir() + "/tests/abacus/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  compiler::DefaultTraceSource traces;
  auto model = compiler::CompileModel(graph, {.target = target}, builder, traces);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return "";
  EXPECT_FALSE(
      model->code.starts_with("\x7f"
                              "ELF"));
  Result<std::string> bytes = runtime::SerializePackage(model->package);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

class AbacusPackageTest : public ::testing::Test {
 protected:
  AbacusPackageTest() { abacus::RegisterDevice(); }
  ~AbacusPackageTest() override { abacus::LoseDevice(false); }
};

TEST_F(AbacusPackageTest, RunsOnItsOwnMemoryAndComputesTheSame) {
  const graph::Graph graph = Network();
  const std::string package = PackageFor("abacus:rods=8", graph);
  ASSERT_FALSE(package.empty());
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto inputs = compiler::RandomInputs(graph, seed);
    const auto expected = compiler::RunNodeByNode(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = compiler::RunPackage(package, inputs);
    ASSERT_TRUE(actual.ok()) << actual.status();
    const std::vector<double> want = (*expected)[0]->AsDoubles(), got = (*actual)[0]->AsDoubles();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << "seed " << seed;
  }
}

TEST_F(AbacusPackageTest, RunsNothingOnADescriptorOfMoreThanThereIs) {
  static int runs = 0;
  const ir::PhaseFunction count = [](const ir::HoneCall*) -> int32_t { return ++runs, 0; };
  abacus::Memory memory;
  const abacus::Memory::Handle eight = memory.Allocate(8);
  const auto launched = [&](abacus::Memory::Handle at, int64_t bytes) {
    ir::ArtifactPhase phase{.parallel_extent = 5};
    phase.launch.grid_x = phase.launch.grid_z = 2;
    phase.launch.grid_y = 3;
    phase.launch.descriptors = {{.dtype = ir::DType::kU8, .shape = {bytes}, .box = {1}}};
    return abacus::LaunchGrid(count, phase, memory, {&at, 1}, {});
  };
  EXPECT_EQ(launched(eight, 9), abacus::kBadDescriptor);
  EXPECT_EQ(launched(eight + 1, 8), abacus::kBadDescriptor);
  EXPECT_EQ(launched(2 * eight, 1), abacus::kBadDescriptor);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(launched(eight, 8), 0);
  EXPECT_EQ(runs, 5);
}

// How a phase is launched is what its kind's code says, and the package has it.
TEST_F(AbacusPackageTest, LaunchesHaveThreeDimensionsAndDescriptors) {
  const std::string bytes = PackageFor("abacus:rods=8", Network());
  const auto package = runtime::ParsePackage(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(package.ok()) << package.status().message();
  for (const ir::Artifact& kernel : package->plan.kernels) {
    const ir::Launch& launch = kernel.phases.back().launch;
    EXPECT_EQ(launch.grid_x, 2) << "four rows of the result";
    EXPECT_EQ(launch.grid_x, launch.grid_z);
    // What it reads and the result.
    EXPECT_GE(launch.descriptors.size(), 2U);
  }
}

TEST_F(AbacusPackageTest, ALostDeviceFailsEveryRunUntilItIsFound) {
  const graph::Graph graph = Network();
  const std::string package = PackageFor("abacus:rods=8", graph);
  ASSERT_FALSE(package.empty());
  const auto inputs = compiler::RandomInputs(graph, 1);
  abacus::LoseDevice(true);
  for (int run = 0; run < 2; ++run) {
    const auto lost = compiler::RunPackage(package, inputs);
    EXPECT_EQ(lost.status().code(), absl::StatusCode::kUnavailable) << lost.status();
  }
  abacus::LoseDevice(false);
  EXPECT_TRUE(compiler::RunPackage(package, inputs).ok());
}

TEST_F(AbacusPackageTest, AHostWithTooFewRodsRefusesIt) {
  const std::string package = PackageFor("abacus:rods=20", Network());
  const auto refused = runtime::Executable::OpenMemory(std::as_bytes(std::span(package)), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.status().message().find("needs more rods than the 13"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace hone

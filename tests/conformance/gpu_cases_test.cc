// The operator cases of ONNX for a GPU: every kernel that a case's model becomes, with the schedule
// that a GPU has for it, as PTX that tests/ptx executes, against the interpreter in double.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "compiler/extract_kernels.h"
#include "compiler/kernel_evaluator.h"
#include "ir/text.h"
#include "schedule/space.h"
#include "tests/conformance/operator_case.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"
#include "tests/test_paths.h"

namespace hone::conformance {
namespace {

using schedule::Agreement;

/// Kernels with more operations take the executor seconds.
constexpr int64_t kMostOperations = 20'000;
/// One case in so many; HONE_GPU_CASES=all takes each.
constexpr size_t kEvery = 4;

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> cases;
  const std::string packaged = "/usr/share/libonnx-testdata/data";
  for (const std::string& root : {packaged, hone::testing::BuildDir() + "/node_cases"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(root, none)) {
      if (std::filesystem::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  const char* which = std::getenv("HONE_GPU_CASES");
  if (which != nullptr && std::string_view(which) == "all") return cases;
  std::vector<std::filesystem::path> sample;
  for (size_t k = 0; k < cases.size(); k += kEvery) sample.push_back(cases[k]);
  return sample;
}

struct Tally {
  int models = 0, kernels = 0, large = 0, not_imported = 0;
  std::set<std::string> seen;  ///< texts of Workloads
};

void CheckKernel(const ir::Workload& workload, Tally* tally) {
  if (!tally->seen.insert(ir::ToText(workload)).second) return;
  if (compiler::CountOperations(workload) > kMostOperations) {
    ++tally->large;
    return;
  }
  const auto trace = schedule::DefaultTrace(workload, ptx::CudaTarget("sm_80"));
  ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << ir::ToText(workload);
  schedule::CheckOptions options;
  // The vector mathematics' own error.
  options.slack = 1e-6;
  options.also_run = [](const ir::LoopNest& nest, std::vector<std::vector<uint8_t>>* buffers) {
    return ptx::RunPtx(nest, "sm_80", 1, buffers);
  };
  const schedule::CheckResult result = schedule::CheckTrace(workload, *trace, options);
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n"
                                                 << ir::ToText(workload) << "\n"
                                                 << ToText(*trace);
  ++tally->kernels;
}

TEST(GpuCases, EveryKernelEqualsTheInterpreter) {
  const std::vector<std::filesystem::path> cases = Cases();
  if (cases.empty()) GTEST_SKIP() << "no libonnx-testdata and no cases of scripts/cases.sh";
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  Tally tally;
  for (const auto& folder : cases) {
    SCOPED_TRACE(folder.string());
    bool bound = false;
    auto graph = ImportCase(folder, &bound);
    if (!graph.ok()) {
      ++tally.not_imported;
      continue;
    }
    // What folds to constants has no kernels.
    const auto kernels = compiler::ExtractKernels(*std::move(graph), "cuda:sm_80", builder);
    if (!kernels.ok()) {
      ++tally.not_imported;
      continue;
    }
    ++tally.models;
    for (const compiler::ModelKernel& kernel : *kernels) CheckKernel(kernel.workload, &tally);
    if (HasFailure()) break;
  }
  std::cout << tally.models << " models, " << tally.kernels << " kernels executed, " << tally.large
            << " too large for the executor, " << tally.not_imported << " cases not imported\n";
  EXPECT_GE(3 * tally.kernels, tally.models);
}

}  // namespace
}  // namespace hone::conformance

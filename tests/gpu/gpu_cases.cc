// ONNX's operator cases on this machine's device, for scripts/gpu_check.sh:
//     gpu-cases TARGET SECONDS DONE [--stride N] SUITE=FOLDER...
// Runs what DONE does not name yet and appends a line each: "begin SUITE/NAME" before, then
// "passed|folded|refused|failed SUITE/NAME [reason]". A case that DONE begins and does not end has
// taken the process with it. Ends with 0 when none is left, 3 when time was over, 4 when the device
// is lost to this process (the same command goes on), 1 when it cannot start.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/helper_program.h"
#include "base/status.h"
#include "measure/builder_client.h"
#include "runtime/cuda/driver.h"
#include "tests/conformance/operator_case.h"

namespace hone::conformance {
namespace {

struct Case {
  std::string name;
  std::filesystem::path folder;
  Tolerance tolerance;
};

struct Plan {
  std::string target, done;
  int64_t seconds = 0;
  std::vector<Case> cases;
};

/// As operator_cases_test.cc has them, and room for the vector mathematics' own error, which there
/// is compared with the same code.
Tolerance ToleranceOf(std::string_view suite) {
  if (suite == "random") return {.absolute = 1e-6, .share = 1e-5};
  if (suite == "network") return {.absolute = 1e-6, .share = 1e-5, .half_share = 0x1p-9};
  return {};
}

Plan ReadPlan(const std::vector<std::string>& words) {
  Plan plan{.target = words[0], .done = words[2], .seconds = std::atoll(words[1].c_str())};
  size_t stride = 1;
  for (size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "--stride" && i + 1 < words.size()) {
      stride = static_cast<size_t>(std::max(1, std::atoi(words[++i].c_str())));
      continue;
    }
    const size_t equals = words[i].find('=');
    const std::string suite = words[i].substr(0, equals);
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(words[i].substr(equals + 1), none)) {
      if (!std::filesystem::exists(entry.path() / "model.onnx")) continue;
      plan.cases.push_back(
          {suite + "/" + entry.path().filename().string(), entry.path(), ToleranceOf(suite)});
    }
  }
  std::ranges::sort(plan.cases, {}, &Case::name);
  size_t kept = 0;
  for (size_t i = 0; i < plan.cases.size(); i += stride) plan.cases[kept++] = plan.cases[i];
  plan.cases.resize(kept);
  return plan;
}

std::set<std::string> BegunIn(const std::string& done) {
  std::set<std::string> begun;
  std::ifstream file(done);
  for (std::string word, name; file >> word >> name; std::getline(file, word)) begun.insert(name);
  return begun;
}

std::string_view WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed: return "passed";
    case Verdict::kFolded: return "folded";
    case Verdict::kUnsupported: return "refused";
    case Verdict::kFailed: return "failed";
  }
  return "failed";
}

/// One context for all cases: making one takes longer than a case.
absl::Status KeepContext(const std::string& target) {
  if (!target.starts_with("cuda:")) return absl::OkStatus();
  const auto driver = runtime::CudaDriver::Find();
  if (!driver.ok()) return ToAbsl(driver.status());
  runtime::CuHandle context = nullptr;
  int device = 0;
  HONE_RETURN_IF_ERROR(ToAbsl((*driver)->Check((*driver)->cuDeviceGet(&device, 0), "the GPU")));
  return ToAbsl(
      (*driver)->Check((*driver)->cuDevicePrimaryCtxRetain(&context, device), "the GPU's context"));
}

int Run(const std::vector<std::string>& words) {
  const Plan plan = ReadPlan(words);
  const SystemMonotonicClock clock;
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(ir::ResolveNative(plan.target, 1), &target, &why) ||
      !ir::HostCanRun(target, &why)) {
    std::cerr << "gpu-cases: " << why << "\n";
    return 1;
  }
  const auto program = FindHelperProgram("hone-builder");
  const absl::Status device = program.ok() ? KeepContext(target.text) : program.status();
  if (!device.ok()) {
    std::cerr << "gpu-cases: " << StatusMessage(device) << "\n";
    return 1;
  }
  measure::BuilderOptions options;
  options.program = *program;
  measure::BuilderClient builder(options, clock);
  const std::set<std::string> begun = BegunIn(plan.done);
  std::ofstream done(plan.done, std::ios::app);
  const int64_t end_ns = clock.NowNs() + plan.seconds * 1'000'000'000;
  for (const Case& each : plan.cases) {
    if (begun.contains(each.name)) continue;
    if (clock.NowNs() > end_ns) return 3;
    done << "begin " << each.name << std::endl;
    CaseOutcome outcome = RunOperatorCase(each.folder, target.text, each.tolerance, builder);
    std::ranges::replace(outcome.reason, '\n', ' ');
    // What has no elements stays with the host.
    if (outcome.reason.find("is a routine of the host") != std::string::npos)
      outcome.verdict = Verdict::kUnsupported;
    done << WordOf(outcome.verdict) << " " << each.name << " " << outcome.reason << std::endl;
    if (outcome.reason.find("cannot use the device any more") != std::string::npos) return 4;
  }
  return 0;
}

}  // namespace
}  // namespace hone::conformance

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: gpu-cases TARGET SECONDS DONE [--stride N] SUITE=FOLDER...\n";
    return 1;
  }
  return hone::conformance::Run({argv + 1, argv + argc});
}

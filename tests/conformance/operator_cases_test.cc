// The operator cases of ONNX through everything a user's model goes through: import, passes, code,
// package, runtime. open_cases.txt lists those that do not pass, each with its reason.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "graph/onnx_import/onnx.pb.h"
#include "ir/target.h"
#include "tests/conformance/operator_case.h"
#include "tests/test_paths.h"

namespace hone::conformance {
namespace {

constexpr char kPackagedRoot[] = "/usr/share/libonnx-testdata/data";

/// A folder of cases: `label/NAME` is what the table and messages call one.
struct Suite {
  std::string label;
  std::filesystem::path root;
  Tolerance tolerance;
};

struct NamedCase {
  std::string name;
  std::filesystem::path folder;
};

/// Every case of a suite, by name; HONE_CONFORMANCE_ONLY=TEXT keeps those whose name contains it.
std::vector<NamedCase> CasesOf(const Suite& suite) {
  const char* only = std::getenv("HONE_CONFORMANCE_ONLY");
  std::vector<NamedCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(suite.root)) {
    const std::string name = suite.label + "/" + entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "model.onnx")) continue;
    if (only != nullptr && name.find(only) == std::string::npos) continue;
    cases.push_back({name, entry.path()});
  }
  std::sort(cases.begin(), cases.end(),
            [](const NamedCase& a, const NamedCase& b) { return a.name < b.name; });
  return cases;
}

/// Runs all, as many beside each other as there are cores. Neighbours take different instruction
/// sets, where the host has both, and numbers of threads.
std::vector<CaseOutcome> RunAll(const std::vector<NamedCase>& cases, const Tolerance& tolerance) {
  const SystemMonotonicClock clock;
  const int workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  options.processes = workers;
  measure::BuilderClient builder(options, clock);
  const std::string targets[] = {ir::ResolveNative("cpu:native", 1), "cpu:avx2,threads=1",
                                 ir::ResolveNative("cpu:native", 2)};
  std::vector<CaseOutcome> outcomes(cases.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&] {
      for (size_t c = next++; c < cases.size(); c = next++)
        outcomes[c] =
            RunOperatorCase(cases[c].folder, targets[c % std::size(targets)], tolerance, builder);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// A line of open_cases.txt: `SUITE/NAME REASON # EXPLANATION`, the explanation where one is
/// needed.
struct OpenCase {
  std::string reason;  ///< `OPERATOR, OPERATOR: WHY` or `WHY`

  /// Whether the case may end otherwise than with a refusal: its outputs differ, or its files do
  /// not fit its model.
  bool MayFail() const {
    return reason.starts_with("wrong output") || reason.find(", the file has ") != reason.npos;
  }
  /// Whether a message gives this reason: every operator, and why. (Between them the message has
  /// the operands' types.)
  bool OccursIn(const std::string& message) const {
    for (size_t begin = 0; begin < reason.size();) {
      const size_t end =
          std::min({reason.find(": ", begin), reason.find(", ", begin), reason.size()});
      if (message.find(reason.substr(begin, end - begin)) == std::string::npos) return false;
      begin = end + 2;
    }
    return true;
  }
};

std::map<std::string, OpenCase> ReadTable() {
  std::map<std::string, OpenCase> table;
  std::ifstream file(hone::testing::SourceDir() + "/tests/conformance/open_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    line = line.substr(0, line.find(" # "));
    const size_t space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << "no reason: " << line;
    EXPECT_TRUE(table.emplace(line.substr(0, space), OpenCase{line.substr(space + 1)}).second)
        << "twice: " << line;
  }
  return table;
}

/// A case that does not pass must be listed, with what is said today.
void CheckOpenCase(const std::string& name, const CaseOutcome& outcome, const OpenCase* listed) {
  if (listed == nullptr) {
    ADD_FAILURE() << name << " " << outcome.reason;
    return;
  }
  EXPECT_TRUE(listed->OccursIn(outcome.reason))
      << name << " is listed with \"" << listed->reason << "\", but says: " << outcome.reason;
  EXPECT_TRUE(outcome.verdict == Verdict::kUnsupported || listed->MayFail())
      << name << " fails, where the table says that Hone refuses it: " << outcome.reason;
}

/// What a case's model has that the issue of the newer operator sets names: its operators, and
/// "reduce by input" for reductions that read their axes.
std::set<std::string> FeaturesOf(const std::filesystem::path& folder) {
  std::ifstream file(folder / "model.onnx", std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&file)) << folder;
  std::set<std::string> features;
  for (const onnx::NodeProto& node : model.graph().node()) {
    features.insert(node.op_type());
    if (node.op_type().starts_with("Reduce") && node.input_size() > 1 && !node.input(1).empty())
      features.insert("reduce by input");
  }
  return features;
}

/// How many passed, and how.
struct Tally {
  int cases = 0, passed = 0, bound = 0, externs = 0, folded = 0, unsupported = 0, failed = 0;
  std::map<std::string, int> features;  ///< of those that passed
};

/// Runs a suite and compares with the table of open cases, both ways.
Tally CheckSuite(const Suite& suite) {
  const std::map<std::string, OpenCase> table = ReadTable();
  const std::vector<NamedCase> cases = CasesOf(suite);
  const std::vector<CaseOutcome> outcomes = RunAll(cases, suite.tolerance);
  Tally tally;
  for (size_t c = 0; c < cases.size(); ++c) {
    const CaseOutcome& outcome = outcomes[c];
    ++tally.cases;
    tally.passed += outcome.verdict == Verdict::kPassed ? 1 : 0;
    tally.folded += outcome.verdict == Verdict::kFolded ? 1 : 0;
    tally.unsupported += outcome.verdict == Verdict::kUnsupported ? 1 : 0;
    tally.failed += outcome.verdict == Verdict::kFailed ? 1 : 0;
    if (outcome.verdict == Verdict::kPassed) {
      tally.bound += outcome.bound_inputs ? 1 : 0;
      tally.externs += outcome.has_extern ? 1 : 0;
      for (const std::string& feature : FeaturesOf(cases[c].folder)) ++tally.features[feature];
    }
    const bool open =
        outcome.verdict == Verdict::kUnsupported || outcome.verdict == Verdict::kFailed;
    const auto listed = table.find(cases[c].name);
    if (open) {
      CheckOpenCase(cases[c].name, outcome, listed == table.end() ? nullptr : &listed->second);
    } else {
      EXPECT_TRUE(listed == table.end())
          << cases[c].name << " passes now: take it off open_cases.txt";
    }
  }
  fmt::print(
      "{}: {} cases, {} pass (of them {} with bound inputs, {} through an extern), {} fold to "
      "constants and do not count, {} unsupported, {} fail\n",
      suite.label, tally.cases, tally.passed, tally.bound, tally.externs, tally.folded,
      tally.unsupported, tally.failed);
  return tally;
}

/// Where the cases of a suite lie; it may not exist.
std::filesystem::path RootOf(const std::string& suite) {
  if (suite == "newer") return hone::testing::BuildDir() + "/node_cases";
  if (suite == "network") return hone::testing::BuildDir() + "/network_cases";
  if (suite != "random") return std::filesystem::path(kPackagedRoot) / suite;
  // Other cases of make_random_cases.py, with another seed.
  const char* other = std::getenv("HONE_CONFORMANCE_CASES");
  return other != nullptr ? other : hone::testing::BuildDir() + "/random_cases";
}

TEST(OperatorCasesTest, PackagedCasesPassOrAreListed) {
  if (!std::filesystem::exists(kPackagedRoot)) {
    GTEST_SKIP() << "package libonnx-testdata is not installed";
  }
  Tally all;
  for (const std::string label : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    const Tally tally = CheckSuite({label, RootOf(label), {}});
    all.cases += tally.cases;
    all.passed += tally.passed;
    all.bound += tally.bound;
    all.externs += tally.externs;
    all.folded += tally.folded;
    if (label == "node" && std::getenv("HONE_CONFORMANCE_ONLY") == nullptr) {
      EXPECT_GE(tally.passed, 380);
    }
  }
  fmt::print("all: {} of {} pass ({} with bound inputs, {} through an extern), {} fold\n",
             all.passed, all.cases, all.bound, all.externs, all.folded);
  if (std::getenv("HONE_CONFORMANCE_ONLY") == nullptr) {
    EXPECT_GE(all.passed, 450);
  }
}

TEST(OperatorCasesTest, NewerCasesPassOrAreListed) {
  const std::filesystem::path root = RootOf("newer");
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << root << " is missing: scripts/cases.sh writes it";
  }
  const Tally tally = CheckSuite({"newer", root, {}});
  if (std::getenv("HONE_CONFORMANCE_ONLY") == nullptr) {
    EXPECT_GE(tally.passed, 300);
  }
}

TEST(OperatorCasesTest, RandomCasesPassOrAreListed) {
  const std::filesystem::path root = RootOf("random");
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << root << " is missing: scripts/cases.sh writes it";
  }
  const Tally tally = CheckSuite({"random", root, {.absolute = 1e-6, .share = 1e-5}});
  EXPECT_GT(tally.passed, 0);
  if (std::getenv("HONE_CONFORMANCE_ONLY") != nullptr) return;
  for (const char* feature : {"Resize", "Split", "Gelu", "GroupNormalization", "reduce by input"}) {
    const auto found = tally.features.find(feature);
    EXPECT_GE(found == tally.features.end() ? 0 : found->second, 5) << feature;
  }
}

// Whole networks as exporters write them: none may fail.
TEST(OperatorCasesTest, NetworksPass) {
  const std::filesystem::path root = RootOf("network");
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << root << " is missing: scripts/cases.sh writes it";
  }
  const Tally tally =
      CheckSuite({"network", root, {.absolute = 1e-6, .share = 1e-5, .half_share = 0x1p-9}});
  EXPECT_EQ(tally.passed, tally.cases);
  if (std::getenv("HONE_CONFORMANCE_ONLY") == nullptr) {
    EXPECT_GE(tally.cases, 70);
  }
}

TEST(OperatorCasesTest, TheTableNamesCasesThatExist) {
  for (const auto& [name, open] : ReadTable()) {
    EXPECT_FALSE(open.reason.empty()) << name;
    const size_t slash = name.find('/');
    const std::filesystem::path root = RootOf(name.substr(0, slash));
    if (!std::filesystem::exists(root)) continue;
    EXPECT_TRUE(std::filesystem::exists(root / name.substr(slash + 1))) << name;
  }
}

}  // namespace
}  // namespace hone::conformance

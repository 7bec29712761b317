#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_import/tensor_file.h"
#include "tests/graph/reference_run.h"
#include "tests/test_paths.h"

// The operator cases of the ONNX package through import and the interpreter: each operator's one
// definition against values from elsewhere, before any code is made from it.
namespace hone::graph {
namespace {

/// Numbered tensors of a case: input_0.pb, input_1.pb, …
absl::StatusOr<std::vector<NamedTensor>> ReadNumbered(const std::filesystem::path& folder,
                                                      const std::string& prefix) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const std::filesystem::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!std::filesystem::exists(path)) return tensors;
    HONE_ASSIGN_OR_RETURN(NamedTensor tensor, ReadTensorFile(path));
    tensors.push_back(std::move(tensor));
  }
}

bool Close(const ReferenceTensor& got, const TensorData& want, std::string* why) {
  if (got.type != want.type) {
    *why = fmt::format("type {} instead of {}", ToText(got.type), ToText(want.type));
    return false;
  }
  const std::vector<double> expected = want.AsDoubles();
  const bool exact = !ir::IsFloat(want.type.dtype);
  const double relative =
      want.type.dtype == ir::DType::kF16 || want.type.dtype == ir::DType::kBF16 ? 2e-2 : 1e-3;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = got.values[i];
    const double b = expected[i];
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (exact || !(std::abs(a - b) <= 1e-6 + got.bounds[i] + relative * std::abs(b))) {
      *why = fmt::format("element {} is {} instead of {}", i, a, b);
      return false;
    }
  }
  return true;
}

/// Binds inputs that must be known (the import says so by their names) and tries again.
absl::StatusOr<Graph> ImportBinding(const std::filesystem::path& model,
                                    const std::vector<NamedTensor>& inputs, bool* bound) {
  ImportOptions options;
  while (true) {
    auto graph = ImportOnnxFile(model, options);
    if (graph.ok()) return graph;
    const std::string message = StatusMessage(graph.status());
    const bool open = message.find("--bind") != std::string::npos;
    const size_t before = options.binds.size();
    for (const NamedTensor& input : inputs) {
      const bool named = message.find("'" + input.name + "'") != std::string::npos;
      if (open && named && !options.binds.contains(input.name))
        options.binds[input.name] = input.data;
    }
    if (options.binds.size() == before) return graph;
    *bound = true;
  }
}

enum class Verdict { kPassed, kPassedBound, kFolded, kUnsupported, kFailed };

struct Outcome {
  Verdict verdict;
  std::string reason;
};

Outcome RunCase(const std::filesystem::path& folder) {
  const auto failure = [](const absl::Status& status) {
    return Outcome{absl::IsUnimplemented(status) ? Verdict::kUnsupported : Verdict::kFailed,
                   StatusMessage(status)};
  };
  const std::filesystem::path data = folder / "test_data_set_0";
  const auto inputs = ReadNumbered(data, "input");
  if (!inputs.ok()) return {Verdict::kUnsupported, StatusMessage(inputs.status())};
  bool bound = false;
  const auto graph = ImportBinding(folder / "model.onnx", *inputs, &bound);
  if (!graph.ok()) return failure(graph.status());
  const auto expected = ReadNumbered(data, "output");
  if (!expected.ok()) return {Verdict::kUnsupported, StatusMessage(expected.status())};
  std::map<std::string, ConstantPtr> by_name;
  for (const NamedTensor& input : *inputs) by_name[input.name] = input.data;
  const auto outputs = RunByInterpreter(*graph, by_name);
  if (!outputs.ok()) return failure(outputs.status());
  if (outputs->size() != expected->size()) return {Verdict::kFailed, "another number of outputs"};
  for (size_t i = 0; i < outputs->size(); ++i) {
    std::string why;
    if (!Close((*outputs)[i], *(*expected)[i].data, &why))
      return {Verdict::kFailed, fmt::format("output {}: {}", i, why)};
  }
  if (graph->nodes.empty()) return {Verdict::kFolded, ""};
  return {bound ? Verdict::kPassedBound : Verdict::kPassed, ""};
}

/// Cases known not to pass, with the reason: `name reason`.
std::map<std::string, std::string> ReadTable(const std::string& name) {
  std::map<std::string, std::string> table;
  std::ifstream file(testing::SourceDir() + "/tests/graph/" + name);
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    if (line.empty() || line[0] == '#') continue;
    table[line.substr(0, space)] = line.substr(std::min(space + 1, line.size()));
  }
  return table;
}

/// Runs every case of a folder and compares with the table of those that are open, both ways.
void CheckCases(const std::filesystem::path& root, const std::string& table_name) {
  const std::map<std::string, std::string> table = ReadTable(table_name);
  std::map<Verdict, int> counts;
  std::set<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) folders.insert(entry.path());
  for (const std::filesystem::path& folder : folders) {
    const std::string name = folder.filename().string();
    const Outcome outcome = RunCase(folder);
    ++counts[outcome.verdict];
    const bool passed =
        outcome.verdict != Verdict::kUnsupported && outcome.verdict != Verdict::kFailed;
    if (passed) {
      EXPECT_FALSE(table.contains(name)) << name << " passes now: take it off " << table_name;
    } else if (!table.contains(name)) {
      ADD_FAILURE() << name << ": " << outcome.reason;
    }
  }
  fmt::print(
      "{} cases: {} pass, {} with bound inputs, {} fold to constants, {} unsupported, {} wrong\n",
      folders.size(), counts[Verdict::kPassed], counts[Verdict::kPassedBound],
      counts[Verdict::kFolded], counts[Verdict::kUnsupported], counts[Verdict::kFailed]);
}

TEST(NodeCasesTest, PackagedCasesAgreeOrAreListed) {
  const std::filesystem::path root = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "package libonnx-testdata is not installed";
  }
  CheckCases(root, "node_cases_open.txt");
}

TEST(NodeCasesTest, NewerCasesAgreeOrAreListed) {
  const std::filesystem::path root = testing::BuildDir() + "/node_cases";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << root << " is missing: tests/graph/make_node_cases.py writes it";
  }
  CheckCases(root, "newer_node_cases_open.txt");
}

}  // namespace
}  // namespace hone::graph

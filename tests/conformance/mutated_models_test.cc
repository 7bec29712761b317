// Damaged models that still import go on through passes, groups, default schedules and lowering:
// each step ends in a result or an error, never in a crash. HONE_FUZZ_SEED repeats a run.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/file.h"
#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/grouping.h"
#include "graph/interpreter_evaluator.h"
#include "graph/onnx_import/import.h"
#include "graph/pipeline.h"
#include "ir/target.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "schedule/lower.h"
#include "schedule/space.h"

namespace hone::conformance {
namespace {

constexpr char kRoot[] = "/usr/share/libonnx-testdata/data/node";
constexpr int kMutantsPerModel = 60;
/// Larger values would only take time.
constexpr int64_t kMostElements = 1 << 14;

uint64_t Seed() {
  const char* text = std::getenv("HONE_FUZZ_SEED");
  return text == nullptr ? 20240602 : std::strtoull(text, nullptr, 10);
}

/// Small edits: most change a number or a letter and leave the message readable.
std::string Mutated(std::string bytes, Random& random) {
  const uint64_t edits = 1 + random.Below(3);
  for (uint64_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = random.Below(bytes.size());
    switch (random.Below(3)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8))); break;
      case 1: bytes[at] = static_cast<char>(random.Below(8)); break;
      default: bytes[at] = bytes[random.Below(bytes.size())]; break;
    }
  }
  return bytes;
}

bool IsSmall(const graph::Graph& graph) {
  return std::all_of(graph.values.begin(), graph.values.end(), [](const graph::Value& value) {
    return value.type.NumElements() <= kMostElements;
  });
}

/// As compiler::CompileModel goes, up to the loop nests.
absl::Status LowerAll(graph::Graph graph, const ir::Target& target) {
  graph::InterpreterEvaluator evaluator;
  HONE_RETURN_IF_ERROR(graph::RunPipeline(graph, evaluator, target).status());
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Group> groups, graph::GroupNodes(graph, target));
  for (const graph::Group& group : groups) {
    HONE_ASSIGN_OR_RETURN(const graph::GroupWorkload made, graph::BuildWorkload(graph, group));
    HONE_RETURN_IF_ERROR(ir::Verify(made.workload));
    HONE_ASSIGN_OR_RETURN(const schedule::Trace trace,
                          schedule::DefaultTrace(made.workload, target));
    HONE_RETURN_IF_ERROR(schedule::LowerTrace(made.workload, trace, target, {}, "k").status());
  }
  return absl::OkStatus();
}

TEST(MutatedModelsTest, NeverCrashTheCompiler) {
  if (!std::filesystem::exists(kRoot)) GTEST_SKIP() << "libonnx-testdata is not installed";
  Random random(Seed());
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &target, &why)) << why;
  std::set<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot))
    models.insert(entry.path() / "model.onnx");
  int imported = 0, lowered = 0, mutants = 0;
  for (const std::filesystem::path& model : models) {
    const auto bytes = ReadFile(model.string());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    for (int k = 0; k < kMutantsPerModel; ++k, ++mutants) {
      const std::string mutant = Mutated(*bytes, random);
      auto graph = graph::ImportOnnx(std::as_bytes(std::span(mutant)));
      if (!graph.ok() || !IsSmall(*graph)) continue;
      ++imported;
      const absl::Status status = LowerAll(*std::move(graph), target);
      lowered += status.ok() ? 1 : 0;
      // What the importer accepts is ours to compile.
      EXPECT_TRUE(status.ok() || absl::IsUnimplemented(status)) << model << ": " << status;
    }
  }
  fmt::print("seed {}: of {} damaged models {} were imported, {} lowered\n", Seed(), mutants,
             imported, lowered);
  EXPECT_GT(lowered, mutants / 10);
}

}  // namespace
}  // namespace hone::conformance

#include "bench/search/model_tasks.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/core/cpu.h"
#include "base/core/random_id.h"
#include "base/status.h"
#include "compiler/extract_kernels.h"
#include "graph/onnx_export/zoo.h"
#include "graph/onnx_import/import.h"
#include "ir/workload_cost.h"
#include "measure/builder_client.h"

namespace hone::bench {

absl::StatusOr<std::vector<ModelTask>> TasksOfModel(const std::string& path,
                                                    const ir::Target& target,
                                                    const MonotonicClock& clock) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, graph::ImportOnnxFile(path));
  measure::BuilderOptions options;
  options.processes = UsableCores();
  measure::BuilderClient builder(options, clock);
  HONE_ASSIGN_OR_RETURN(auto kernels,
                        compiler::ExtractKernels(std::move(graph), target.text, builder));
  const std::string model = std::filesystem::path(path).stem().string();
  std::vector<ModelTask> tasks;
  for (compiler::ModelKernel& k : kernels) {
    if (k.count <= 0) continue;
    tasks.push_back({fmt::format("{}/{}: {}", model, tasks.size(), k.name), k.name,
                     ir::CostOf(k.workload).flop(),
                     std::make_shared<const ir::Workload>(std::move(k.workload))});
  }
  return tasks;
}

absl::StatusOr<std::vector<ModelTask>> TasksOfResNet18(const ir::Target& target,
                                                       const MonotonicClock& clock) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("bench-search-" + RandomId().ToHex());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = (folder / "resnet18.onnx").string();
  const absl::Status written = graph::WriteZooModel("resnet18", 0, path).status();
  absl::StatusOr<std::vector<ModelTask>> tasks = std::vector<ModelTask>();
  if (written.ok()) tasks = TasksOfModel(path, target, clock);
  std::filesystem::remove_all(folder, error);
  HONE_RETURN_IF_ERROR(written);
  return tasks;
}

}  // namespace hone::bench

#include <filesystem>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/model_inputs.h"
#include "client/npz.h"
#include "client/output_path.h"
#include "client/text_table.h"
#include "graph/onnx_export/zoo.h"
#include "graph/onnx_import/import.h"

namespace hone::client {
namespace {

/// NAME.inputs.npz beside the model: what bench and check take when nothing else is given.
absl::StatusOr<std::string> WriteInputs(const std::string& model, uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, graph::ImportOnnxFile(model, {}));
  NamedTensors inputs;
  for (const InputSpec& spec : InputsOf(graph)) {
    inputs.emplace_back(spec.name, DrawInput(spec, inputs.size(), seed));
  }
  const std::string path = std::filesystem::path(model).replace_extension(".inputs.npz").string();
  HONE_RETURN_IF_ERROR(WriteNpz(path, inputs));
  return path;
}

void ListNetworks(CommandContext& context) {
  auto list = nlohmann::ordered_json::array();
  TextTable table({"NAME", "WHAT IT IS"});
  for (const auto& [name, summary] : graph::ZooNetworks()) {
    list.push_back({{"name", name}, {"summary", summary}});
    table.Add({std::string(name), std::string(summary)});
  }
  if (!context.json()) context.out << table.Text();
  context.json_result = JsonText(nlohmann::ordered_json({{"networks", std::move(list)}}));
}

}  // namespace

absl::Status RunZoo(CommandContext& context) {
  const std::string name = context.arguments.Text("NAME");
  if (name == "list") {
    ListNetworks(context);
    return absl::OkStatus();
  }
  const std::string path = context.arguments.TextOr("output", name + ".onnx");
  HONE_RETURN_IF_ERROR(CheckOutput(path, {}));
  const auto seed = static_cast<uint64_t>(context.arguments.Integer("seed"));
  HONE_ASSIGN_OR_RETURN(const graph::ZooModel model, graph::WriteZooModel(name, seed, path));
  HONE_ASSIGN_OR_RETURN(const std::string inputs, WriteInputs(path, seed));
  if (context.json()) {
    const nlohmann::ordered_json object = {{"name", name},
                                           {"model", path},
                                           {"inputs", inputs},
                                           {"parameters", model.parameters},
                                           {"seed", seed}};
    context.json_result = JsonText(object);
    return absl::OkStatus();
  }
  context.out << fmt::format("wrote {} ({:.1f} M parameters) and {}\n", path,
                             static_cast<double>(model.parameters) * 1e-6, inputs);
  return absl::OkStatus();
}

}  // namespace hone::client

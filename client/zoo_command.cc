#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "graph/onnx_export/zoo.h"

namespace hone::client {

absl::Status RunZoo(CommandContext& context) {
  const std::string name = context.arguments.Text("NAME");
  const std::string path = context.arguments.TextOr("output", name + ".onnx");
  const auto seed = static_cast<uint64_t>(context.arguments.Integer("seed"));
  HONE_ASSIGN_OR_RETURN(const graph::ZooModel model, graph::WriteZooModel(name, seed, path));
  if (context.json()) {
    const nlohmann::ordered_json object = {
        {"name", name}, {"model", path}, {"parameters", model.parameters}, {"seed", seed}};
    context.json_result = object.dump();
    return absl::OkStatus();
  }
  context.out << fmt::format("wrote {} ({:.1f} M parameters)\n", path,
                             static_cast<double>(model.parameters) * 1e-6);
  return absl::OkStatus();
}

}  // namespace hone::client

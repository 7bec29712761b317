#include "graph/onnx_export/zoo.h"

#include <array>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"
#include "graph/onnx_export/zoo_builders.h"

namespace hone::graph {
namespace {

struct ZooEntry {
  std::string_view name;
  void (*build)(OnnxWriter& writer);
};
constexpr std::array kZoo = {
    ZooEntry{"resnet18", BuildResnet18},
    ZooEntry{"resnet50", BuildResnet50},
    ZooEntry{"mobilenet_v2", BuildMobilenetV2},
    ZooEntry{"squeezenet", BuildSqueezenet},
    ZooEntry{"bert_small", BuildBertSmall},
    ZooEntry{"bert_base", BuildBertBase},
    ZooEntry{"gpt2_small", BuildGpt2Small},
    ZooEntry{"vit_small", BuildVitSmall},
    ZooEntry{"lstm", BuildLstm},
    ZooEntry{"mlp", BuildMlp},
    ZooEntry{"unet", BuildUnet},
};

}  // namespace

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : kZoo) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<ZooModel> WriteZooModel(std::string_view name, uint64_t seed,
                                       const std::string& path) {
  for (const ZooEntry& entry : kZoo) {
    if (entry.name != name) continue;
    OnnxWriter writer(std::string(name), seed);
    entry.build(writer);
    HONE_RETURN_IF_ERROR(writer.Save(path));
    return ZooModel{.parameters = writer.NumParameters()};
  }
  return absl::NotFoundError(
      fmt::format("the zoo has no \"{}\"; it has {}", name, fmt::join(ZooNames(), ", ")));
}

}  // namespace hone::graph

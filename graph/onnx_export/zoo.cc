#include "graph/onnx_export/zoo.h"

#include <array>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"
#include "graph/onnx_export/zoo_builders.h"

namespace hone::graph {
namespace {

struct ZooEntry {
  ZooNetwork network;
  void (*build)(OnnxWriter& writer);
};
constexpr std::array kZoo = {
    ZooEntry{{"resnet18", "image classifier, 1x3x224x224, 11.7 M parameters"}, BuildResnet18},
    ZooEntry{{"resnet50", "image classifier, 1x3x224x224, 25.6 M parameters"}, BuildResnet50},
    ZooEntry{{"mobilenet_v2", "image classifier for phones, 1x3x224x224, 3.5 M parameters"},
             BuildMobilenetV2},
    ZooEntry{{"squeezenet", "small image classifier, 1x3x224x224, 1.2 M parameters"},
             BuildSqueezenet},
    ZooEntry{{"bert_small", "text encoder, 128 tokens, 11.1 M parameters"}, BuildBertSmall},
    ZooEntry{{"bert_base", "text encoder, 128 tokens, 109.2 M parameters"}, BuildBertBase},
    ZooEntry{{"gpt2_small", "text decoder, 128 tokens, 123.8 M parameters"}, BuildGpt2Small},
    ZooEntry{{"vit_small", "vision transformer, 1x3x224x224, 22.1 M parameters"}, BuildVitSmall},
    ZooEntry{{"lstm", "recurrent language model, 64 tokens, 9.3 M parameters"}, BuildLstm},
    ZooEntry{{"mlp", "three dense layers, 1x784, 0.2 M parameters"}, BuildMlp},
    ZooEntry{{"unet", "image segmentation, 1x3x256x256, 7.8 M parameters"}, BuildUnet},
};

}  // namespace

std::vector<ZooNetwork> ZooNetworks() {
  std::vector<ZooNetwork> networks;
  for (const ZooEntry& entry : kZoo) networks.push_back(entry.network);
  return networks;
}

absl::StatusOr<ZooModel> WriteZooModel(std::string_view name, uint64_t seed,
                                       const std::string& path) {
  for (const ZooEntry& entry : kZoo) {
    if (entry.network.name != name) continue;
    OnnxWriter writer(std::string(name), seed);
    entry.build(writer);
    HONE_RETURN_IF_ERROR(writer.Save(path));
    return ZooModel{.parameters = writer.NumParameters()};
  }
  std::vector<std::string_view> names;
  for (const ZooEntry& entry : kZoo) names.push_back(entry.network.name);
  return absl::NotFoundError(
      fmt::format("the zoo has no \"{}\"; it has {}", name, fmt::join(names, ", ")));
}

}  // namespace hone::graph

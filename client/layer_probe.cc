#include "client/layer_probe.h"

#include <utility>

#include "base/status.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/trace_choice.h"
#include "compiler/compile_model.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_quantise/probe_model.h"
#include "runtime/executable.h"

namespace hone::client {

using graph::onnx_quantise::GroupChoice;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::LayerChoice;
using graph::onnx_quantise::Scheme;
using graph::onnx_quantise::SourceModel;

absl::StatusOr<std::unique_ptr<LayerProbe>> LayerProbe::Create(CommandContext& context,
                                                               const SourceModel& source,
                                                               Scheme scheme) {
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions options, ReadImportOptions(context.arguments));
  options.folder = source.folder;
  options.linked_folder = source.linked_folder;
  std::string bytes = graph::onnx_quantise::ProbeModel(source, scheme);
  HONE_ASSIGN_OR_RETURN(graph::Graph graph,
                        graph::ImportOnnx(std::as_bytes(std::span(bytes)), options));
  {
    HONE_ASSIGN_OR_RETURN(
        compiler::CompiledModel model,
        CompileGraph(context.arguments, TraceChoice{}, std::move(graph), context.environment));
    const auto package = runtime::SerializePackage(model.package);
    if (!package.ok()) return ToAbsl(package.status());
    bytes = *package;
  }
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(bytes)), {});
  if (!executable.ok()) return ToAbsl(executable.status());
  HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(*std::move(executable), {}));
  std::unique_ptr<LayerProbe> probe(new LayerProbe(source, scheme, std::move(session)));
  for (size_t i = 0; i < source.layers.size(); ++i) probe->Keep(i);
  for (size_t g = 0; g < source.groups.size(); ++g) probe->SetGroup(g, {});
  return probe;
}

LayerProbe::LayerProbe(const SourceModel& source, Scheme scheme, ModelSession session)
    : source_(source), scheme_(scheme), session_(std::move(session)) {
  const ir::Plan& plan = session_.plan();
  for (size_t i = 0; i < plan.inputs.size(); ++i) inputs_[plan.inputs[i].name] = i;
  for (size_t i = 0; i < plan.outputs.size(); ++i) outputs_[plan.outputs[i].name] = i;
}

void LayerProbe::Set(const std::string& input, std::span<const std::byte> bytes) {
  session_.SetInput(inputs_.at(input), bytes);
}

void LayerProbe::Keep(size_t layer) {
  const Layer& own = source_.layers[layer];
  Set(graph::onnx_quantise::WeightsInput(layer), own.weights_data->bytes);
  if (graph::onnx_quantise::HasBias(own))
    Set(graph::onnx_quantise::BiasInput(layer), own.bias_data->bytes);
  const bool rounded = false;
  if (RoundsData(scheme_))
    Set(graph::onnx_quantise::RoundedInput(layer), std::as_bytes(std::span(&rounded, 1)));
}

void LayerProbe::Narrow(size_t layer, const LayerChoice& choice) {
  Set(graph::onnx_quantise::WeightsInput(layer), std::as_bytes(std::span(choice.narrow.restored)));
  if (!choice.bias.empty())
    Set(graph::onnx_quantise::BiasInput(layer), std::as_bytes(std::span(choice.bias)));
  const bool rounded = true;
  if (RoundsData(scheme_))
    Set(graph::onnx_quantise::RoundedInput(layer), std::as_bytes(std::span(&rounded, 1)));
}

void LayerProbe::SetGroup(size_t group, const GroupChoice& choice) {
  std::vector<float> factors(static_cast<size_t>(source_.groups[group].channels), 1.0F);
  for (size_t c = 0; c < choice.smooth.size(); ++c) factors[c] = 1 / choice.smooth[c];
  Set(graph::onnx_quantise::SmoothInput(group), std::as_bytes(std::span(factors)));
  if (scheme_ != Scheme::kInt8) return;
  Set(graph::onnx_quantise::ScaleInput(group), std::as_bytes(std::span(&choice.grid.scale, 1)));
  Set(graph::onnx_quantise::ZeroInput(group), std::as_bytes(std::span(&choice.grid.zero, 1)));
}

absl::Status LayerProbe::Run(const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs) Set(name, tensor.bytes);
  return session_.Run();
}

NamedTensors LayerProbe::Outputs() const {
  NamedTensors outputs = session_.Outputs();
  outputs.resize(outputs.size() - source_.groups.size());
  return outputs;
}

size_t LayerProbe::OutputOf(size_t group) const {
  return outputs_.at(graph::onnx_quantise::DataOutput(group));
}

std::span<const float> LayerProbe::Data(size_t group) const {
  const std::span<const std::byte> bytes = session_.OutputBytes(OutputOf(group));
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

const std::vector<int64_t>& LayerProbe::DataShape(size_t group) const {
  return session_.plan().outputs[OutputOf(group)].shape;
}

size_t LayerProbe::InnerElements(size_t group) const {
  const std::vector<int64_t>& shape = DataShape(group);
  size_t inner = 1;
  for (size_t k = 1; k < source_.groups[group].spread.size(); ++k)
    inner *= static_cast<size_t>(shape[shape.size() - k]);
  return inner;
}

}  // namespace hone::client

#include "client/precision_error.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_session.h"
#include "runtime/executable.h"

namespace hone::client {
namespace {

constexpr double kBillion = 1e9;

struct OutputError {
  double noise = 0, worst = 0;
};

std::optional<OutputError> ErrorOf(const graph::TensorData& output,
                                   const graph::TensorData& reference) {
  const std::vector<double> y = output.AsDoubles(), r = reference.AsDoubles();
  double noise = 0, signal = 0, worst = 0, largest = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    const double difference = y[i] - r[i];
    noise += difference * difference;
    signal += r[i] * r[i];
    worst = std::max(worst, std::fabs(difference));
    largest = std::max(largest, std::fabs(r[i]));
  }
  if (!std::isfinite(noise) || !std::isfinite(signal)) return std::nullopt;
  if (noise == 0) return OutputError{};
  if (signal == 0) return std::nullopt;
  return OutputError{std::sqrt(noise / signal), worst / largest};
}

int64_t PartsOfBillion(double share) {
  constexpr double kMost = 1e9;  // of times as much: it says enough
  return static_cast<int64_t>(std::ceil(std::min(share, kMost) * kBillion));
}

double Share(int64_t ppb) { return static_cast<double>(ppb) / kBillion; }

/// The outputs of a compiled model on these inputs, in memory of their own.
absl::StatusOr<NamedTensors> RunOnce(const compiler::CompiledModel& model,
                                     const NamedTensors& inputs) {
  const auto bytes = runtime::SerializePackage(model.package);
  if (!bytes.ok()) return ToAbsl(bytes.status());
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(*bytes)), {});
  if (!executable.ok()) return ToAbsl(executable.status());
  HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(*std::move(executable), {}));
  session.SetInputs(inputs);
  HONE_RETURN_IF_ERROR(session.Run());
  NamedTensors outputs;
  for (const auto& [name, tensor] : session.Outputs()) {
    outputs.emplace_back(
        name, *graph::MakeConstant(tensor.type, {tensor.bytes.begin(), tensor.bytes.end()}));
  }
  return outputs;
}

}  // namespace

std::optional<runtime::PackageError> ErrorOf(const NamedTensors& outputs,
                                             const NamedTensors& reference) {
  OutputError most;
  bool any = false;
  for (size_t i = 0; i < reference.size(); ++i) {
    const graph::TensorData& r = reference[i].second;
    if (!ir::IsFloat(r.type.dtype) || r.type.NumElements() == 0) continue;
    const std::optional<OutputError> error = ErrorOf(outputs[i].second, r);
    if (!error) return std::nullopt;
    any = true;
    most.noise = std::max(most.noise, error->noise);
    most.worst = std::max(most.worst, error->worst);
  }
  if (!any) return std::nullopt;
  return runtime::PackageError{PartsOfBillion(most.noise), PartsOfBillion(most.worst)};
}

std::string PrecisionText(const runtime::PackageInfo& info) {
  std::string text = fmt::format("precision {}, accuracy class {}", info.precision, info.accuracy);
  if (info.error) {
    text += fmt::format("; against f32: noise {:.2g} of the signal ({:.1f} dB), {:.2g} at worst",
                        Share(info.error->noise_ppb), DecibelsOf(*info.error),
                        Share(info.error->worst_ppb));
  } else if (info.precision != "f32") {
    text += "; error against f32 not measured";
  }
  return text;
}

nlohmann::ordered_json PrecisionJson(const runtime::PackageInfo& info) {
  nlohmann::ordered_json error = nullptr;
  if (info.error) {
    error = {{"noise", Share(info.error->noise_ppb)},
             {"sqnr_db", DecibelsOf(*info.error)},
             {"worst", Share(info.error->worst_ppb)}};
  }
  return {{"precision", info.precision}, {"accuracy", info.accuracy}, {"error", std::move(error)}};
}

double DecibelsOf(const runtime::PackageError& error) {
  const auto noise = static_cast<double>(std::max<int64_t>(error.noise_ppb, 1));
  return -20 * std::log10(noise / kBillion);
}

absl::StatusOr<std::optional<runtime::PackageError>> MeasurePrecisionError(
    CommandContext& context, const compiler::CompiledModel& model, const std::string& target) {
  ir::Target parsed;
  std::string why;
  if (!ir::ParseTarget(target, &parsed, &why)) return absl::InvalidArgumentError(why);
  if (!ir::HostCanRun(parsed, &why)) return std::nullopt;
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, arguments.Text("MODEL")));
  graph.precision = ir::DType::kF32;
  NamedTensors inputs;
  for (const InputSpec& spec : InputsOf(graph))
    inputs.emplace_back(spec.name, DrawInput(spec, inputs.size(), 0));
  HONE_ASSIGN_OR_RETURN(
      const compiler::CompiledModel reference,
      CompileGraph(arguments, TraceChoice{}, std::move(graph), context.environment, "", target));
  HONE_ASSIGN_OR_RETURN(const NamedTensors outputs, RunOnce(model, inputs));
  HONE_ASSIGN_OR_RETURN(const NamedTensors expected, RunOnce(reference, inputs));
  return ErrorOf(outputs, expected);
}

}  // namespace hone::client

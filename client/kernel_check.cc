#include "client/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>

#include "fmt/format.h"

#include "base/core/hash128.h"
#include "base/status.h"
#include "client/compare.h"
#include "client/sample_points.h"
#include "compiler/cascades.h"
#include "compiler/concat_placement.h"
#include "compiler/kernel_build.h"
#include "compiler/kernel_evaluator.h"
#include "compiler/model_steps.h"
#include "compiler/prologue.h"
#include "graph/grouping.h"
#include "graph/pipeline.h"
#include "ir/interpreter.h"
#include "ir/target.h"
#include "measure/oracle_memo.h"
#include "measure/validation.h"
#include "runtime/externs.h"
#include "runtime/kernel.h"
#include "runtime/shared_object.h"

namespace hone::client {
namespace {

using graph::ValueId;

/// The oracle's bound is to first order; the code may err by as much itself.
constexpr double kBoundFactor = 2;
/// Where the bound says nothing (a recurrence of many steps lets it grow beyond the values
/// themselves) the tolerance of the accuracy class decides, as in measuring.
constexpr int kBatch = 8;  ///< points between two looks at the clock

/// Memory for the values of a graph while its steps run one by one.
class Activations {
 public:
  explicit Activations(const compiler::ModelSteps& model) : model_(model) {}

  absl::Status SetInputs(const NamedTensors& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::span<const std::byte> bytes = inputs[i].second.bytes;
      HONE_ASSIGN_OR_RETURN(std::byte * memory, Memory(model_.graph.inputs[i]));
      if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }

  /// What a kernel is given for a value: its place inside the memory of its root, up to what the
  /// kernel's Binding says. Constants and roots are made when first asked for.
  absl::StatusOr<std::byte*> Memory(ValueId value) {
    const compiler::ValueView view = compiler::ViewOf(model_, value);
    auto it = regions_.find(view.root);
    if (it == regions_.end()) {
      const graph::Value& described = model_.graph.values[static_cast<size_t>(view.root)];
      auto region = runtime::Region::Allocate(static_cast<size_t>(described.type.Bytes()),
                                              "value " + described.name);
      if (!region.ok()) return ToAbsl(region.status());
      const graph::ConstantPtr& constant = described.constant;
      if (constant != nullptr && !constant->bytes.empty()) {
        std::memcpy(region->data(), constant->bytes.data(), constant->bytes.size());
      }
      it = regions_.emplace(view.root, *std::move(region)).first;
    }
    return it->second.data() + view.begin_bytes;
  }

  /// Calls visit(address of an element, its row-major number) for every element.
  template <typename Visit>
  absl::Status ForEachElement(ValueId value, const Visit& visit) {
    const graph::TensorType& type = model_.graph.values[static_cast<size_t>(value)].type;
    const compiler::ValueView view = compiler::ViewOf(model_, value);
    HONE_ASSIGN_OR_RETURN(std::byte * memory, Memory(value));
    const int64_t size = ir::SizeOf(type.dtype), elements = type.NumElements();
    for (int64_t i = 0; i < elements; ++i) visit(memory + PlaceOf(view, type, i) * size, i);
    return absl::OkStatus();
  }

  absl::StatusOr<ir::TensorBuffer> Copy(ValueId value) {
    const graph::TensorType& type = model_.graph.values[static_cast<size_t>(value)].type;
    ir::TensorBuffer buffer = {type.dtype, type.shape, {}};
    buffer.bytes.resize(static_cast<size_t>(type.Bytes()));
    const auto size = static_cast<size_t>(ir::SizeOf(type.dtype));
    HONE_RETURN_IF_ERROR(ForEachElement(value, [&](const std::byte* element, int64_t i) {
      std::memcpy(buffer.bytes.data() + static_cast<size_t>(i) * size, element, size);
    }));
    return buffer;
  }

  /// Makes every element of a value 0xff…: a NaN, if the code forgets to write it.
  absl::Status Poison(ValueId value) {
    const int64_t size = ir::SizeOf(model_.graph.values[static_cast<size_t>(value)].type.dtype);
    return ForEachElement(value, [size](std::byte* element, int64_t) {
      std::fill_n(element, size, std::byte{0xff});
    });
  }

 private:
  /// Elements from what Memory gives to element number `flat`.
  static int64_t PlaceOf(const compiler::ValueView& view, const graph::TensorType& type,
                         int64_t flat) {
    if (view.strides.empty()) return view.offset + flat;
    int64_t place = view.offset;
    for (size_t d = type.shape.size(); d-- > 0;) {
      place += flat % type.shape[d] * view.strides[d];
      flat /= type.shape[d];
    }
    return place;
  }

  const compiler::ModelSteps& model_;
  std::map<ValueId, runtime::Region> regions_;
};

/// Everything that stays the same while the steps run.
struct CheckState {
  const KernelCheckOptions& options;
  const MonotonicClock& clock;
  const compiler::ModelSteps& model;
  const compiler::BuiltKernels& built;
  const std::vector<compiler::FoundTrace>& traces;
  runtime::SharedObject code;
  std::unique_ptr<runtime::Crew> crew;
};

absl::Status RunKernelStep(const CheckState& state, const compiler::ModelStep& step,
                           const std::vector<graph::ConstantPtr>& prologue, Activations& memory) {
  const ir::Artifact& artifact = state.built.kernels[static_cast<size_t>(step.kernel)].artifact;
  auto kernel = runtime::Kernel::Resolve(artifact, state.code);
  if (!kernel.ok()) return ToAbsl(kernel.status());
  std::vector<void*> buffers;
  std::vector<runtime::Region> own;
  const auto add_own = [&](size_t bytes) -> absl::Status {
    auto region = runtime::Region::Allocate(bytes, "kernel buffer");
    if (!region.ok()) return ToAbsl(region.status());
    own.push_back(*std::move(region));
    buffers.push_back(own.back().data());
    return absl::OkStatus();
  };
  for (const std::vector<ValueId>* values : {&step.inputs, &step.constants}) {
    for (const ValueId value : *values) {
      HONE_ASSIGN_OR_RETURN(buffers.emplace_back(), memory.Memory(value));
    }
  }
  for (const graph::ConstantPtr& result : prologue) {
    HONE_RETURN_IF_ERROR(add_own(result->bytes.size()));
    if (result->bytes.empty()) continue;
    std::memcpy(own.back().data(), result->bytes.data(), result->bytes.size());
  }
  for (const ValueId value : step.outputs) {
    HONE_ASSIGN_OR_RETURN(buffers.emplace_back(), memory.Memory(value));
    HONE_RETURN_IF_ERROR(memory.Poison(value));
  }
  for (const ir::ArtifactBuffer& buffer : artifact.workspace) {
    HONE_RETURN_IF_ERROR(add_own(static_cast<size_t>(buffer.bytes)));
  }
  auto scratch = runtime::Scratch::Allocate(state.crew->threads(), kernel->scratch_bytes());
  if (!scratch.ok()) return ToAbsl(scratch.status());
  const runtime::KernelFailure failure = kernel->Run(
      {.buffers = buffers.data(), .scratch = &*scratch, .max_threads = state.crew->threads()},
      *state.crew);
  if (failure.ok()) return absl::OkStatus();
  return absl::OutOfRangeError(
      fmt::format("{}: an index in operand {} is out of range",
                  state.model.kernels[static_cast<size_t>(step.kernel)].name, failure.input()));
}

absl::Status RunExternStep(const CheckState& state, const compiler::ModelStep& step,
                           Activations& memory) {
  const runtime::ExternRoutine* routine = runtime::FindExtern(step.extern_name);
  if (routine == nullptr) {
    return absl::InternalError(fmt::format("the runtime has no routine {}", step.extern_name));
  }
  ir::PlanStep planned;
  planned.kind = ir::PlanStepKind::kExtern;
  planned.extern_name = step.extern_name;
  planned.extern_attributes = step.extern_attributes;
  std::vector<void*> buffers;
  const auto add = [&](ValueId value, std::vector<ir::ArtifactBuffer>& list) -> absl::Status {
    const graph::TensorType& type = state.model.graph.values[static_cast<size_t>(value)].type;
    list.push_back({type.dtype, type.shape, type.Bytes()});
    HONE_ASSIGN_OR_RETURN(buffers.emplace_back(), memory.Memory(value));
    return absl::OkStatus();
  };
  for (const ValueId value : step.inputs) HONE_RETURN_IF_ERROR(add(value, planned.extern_inputs));
  for (const ValueId value : step.outputs) HONE_RETURN_IF_ERROR(add(value, planned.extern_outputs));
  return ToAbsl(routine->run(planned, buffers.data()));
}

double MaxAbs(const ir::TensorBuffer& tensor) {
  double most = 0;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const double value = std::abs(tensor.DoubleAt(i));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

/// How far an element may be from the oracle's.
double AllowedBy(const ir::PointValue& oracle, double max_abs,
                 const measure::Tolerance& tolerance) {
  const double allowed = kBoundFactor * oracle.bound;
  if (allowed <= max_abs) return allowed;  // false for NaN
  return tolerance.absolute * max_abs + tolerance.relative * std::abs(oracle.value);
}

/// What the oracle's values depend on: the Workload and all that it reads.
std::string OracleKey(const compiler::ModelKernel& kernel,
                      std::span<const ir::TensorBuffer> arguments, int output) {
  std::string key = fmt::format("output {}\n{}", output, kernel.text);
  for (const ir::TensorBuffer& argument : arguments) {
    const auto* bytes = reinterpret_cast<const char*>(argument.bytes.data());
    key += '\n' + HashBytes({bytes, argument.bytes.size()}).ToHex();
  }
  return key;
}

/// What the oracle says of one output; the first wrong element, if any, in `*wrong`.
absl::Status CheckOutput(const CheckState& state, const compiler::ModelStep& step, int output,
                         std::span<const ir::TensorBuffer> arguments, Activations& memory,
                         CheckedStep& checked, std::optional<WrongElement>* wrong) {
  const compiler::ModelKernel& kernel = state.model.kernels[static_cast<size_t>(step.kernel)];
  const ValueId value = step.outputs[static_cast<size_t>(output)];
  const graph::Value& described = state.model.graph.values[static_cast<size_t>(value)];
  HONE_ASSIGN_OR_RETURN(const ir::TensorBuffer result, memory.Copy(value));
  const std::vector<int64_t> points =
      SamplePoints(described.type.shape, state.options.points, state.options.seed);
  const double max_abs = MaxAbs(result);
  const measure::Tolerance tolerance =
      measure::ToleranceOf(state.options.accuracy, described.type.dtype);
  measure::OracleMemo memo(
      state.options.cache,
      state.options.cache == nullptr ? "" : OracleKey(kernel, arguments, output), points,
      [&](std::span<const int64_t> some) {
        return ir::EvaluatePoints(kernel.workload, arguments, output, some);
      });
  const int64_t until = state.clock.NowNs() + state.options.kernel_time_ns;
  for (size_t begin = 0; begin < points.size(); begin += kBatch) {
    if (begin >= memo.num_known() && begin > 0 && state.clock.NowNs() > until) break;
    const size_t count = std::min<size_t>(kBatch, points.size() - begin);
    const std::span<const int64_t> batch = std::span(points).subspan(begin, count);
    HONE_ASSIGN_OR_RETURN(const std::span<const ir::PointValue> oracle, memo.Values(begin, count));
    for (size_t i = 0; i < count; ++i) {
      const double code = result.DoubleAt(batch[i]);
      ++checked.points;
      const bool both_nan = std::isnan(code) && std::isnan(oracle[i].value);
      if (code == oracle[i].value || both_nan) continue;
      const double allowed = AllowedBy(oracle[i], max_abs, tolerance);
      const double difference = std::abs(code - oracle[i].value);
      const bool inside = difference <= allowed;  // false for NaN
      const double share = inside ? difference / allowed : std::numeric_limits<double>::infinity();
      checked.worst_share = std::max(checked.worst_share, share);
      if (inside) continue;
      *wrong = WrongElement{.step = checked,
                            .value = described.name,
                            .index = IndexText(batch[i], described.type.shape),
                            .code = code,
                            .oracle = oracle[i].value,
                            .bound = allowed,
                            .workload = kernel.text,
                            .trace = state.built.kernels[static_cast<size_t>(step.kernel)].trace};
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const CheckState& state, size_t index,
                       const std::vector<ir::TensorBuffer>& arguments, Activations& memory,
                       KernelCheckReport& report) {
  const compiler::ModelStep& step = state.model.steps[index];
  const auto k = static_cast<size_t>(step.kernel);
  CheckedStep checked = {.name = state.model.kernels[k].name,
                         .workload_hash = state.model.kernels[k].hash,
                         .rung = state.traces[k].rung,
                         .step = static_cast<int>(index)};
  for (size_t output = 0; output < step.outputs.size() && !report.wrong; ++output) {
    HONE_RETURN_IF_ERROR(CheckOutput(state, step, static_cast<int>(output), arguments, memory,
                                     checked, &report.wrong));
  }
  report.steps.push_back(std::move(checked));
  return absl::OkStatus();
}

absl::StatusOr<KernelCheckReport> RunSteps(const CheckState& state, graph::Evaluator& evaluator,
                                           const NamedTensors& inputs) {
  KernelCheckReport report;
  Activations memory(state.model);
  HONE_RETURN_IF_ERROR(memory.SetInputs(inputs));
  std::vector<bool> seen(state.model.kernels.size(), false);
  for (size_t i = 0; i < state.model.steps.size() && !report.wrong; ++i) {
    const compiler::ModelStep& step = state.model.steps[i];
    if (step.kind == ir::PlanStepKind::kExtern) {
      HONE_RETURN_IF_ERROR(RunExternStep(state, step, memory));
      ++report.unchecked_routines;
      continue;
    }
    const auto k = static_cast<size_t>(step.kernel);
    const bool check = state.options.every_step || !seen[k];
    seen[k] = true;
    // Before the run: an output may lie where an input did.
    std::vector<ir::TensorBuffer> arguments;
    if (check) {
      for (const std::vector<ValueId>* values : {&step.inputs, &step.constants}) {
        for (const ValueId value : *values) {
          HONE_ASSIGN_OR_RETURN(arguments.emplace_back(), memory.Copy(value));
        }
      }
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<graph::ConstantPtr> prologue,
                          compiler::EvaluatePrologue(state.model, state.built, step, evaluator));
    HONE_RETURN_IF_ERROR(RunKernelStep(state, step, prologue, memory));
    if (check) HONE_RETURN_IF_ERROR(CheckStep(state, i, arguments, memory, report));
  }
  return report;
}

}  // namespace

absl::StatusOr<KernelCheckReport> CheckKernels(graph::Graph graph, const NamedTensors& inputs,
                                               const KernelCheckOptions& options,
                                               measure::BuilderClient& builder,
                                               compiler::TraceSource& traces,
                                               const MonotonicClock& clock) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(options.target, &target, &why)) return absl::InvalidArgumentError(why);
  if (!ir::HostCanRun(target, &why)) return absl::FailedPreconditionError(why);
  compiler::KernelEvaluator evaluator(builder);
  HONE_RETURN_IF_ERROR(graph::RunPipeline(graph, evaluator, target).status());
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Group> groups, graph::GroupNodes(graph, target));
  HONE_ASSIGN_OR_RETURN(
      const compiler::Cascades cascades,
      compiler::JoinCascades(graph, groups, target, options.cascades, traces));
  HONE_ASSIGN_OR_RETURN(compiler::ModelSteps model,
                        compiler::MakeSteps(std::move(graph), cascades.groups));
  compiler::PlaceConcats(model);
  HONE_ASSIGN_OR_RETURN(const std::vector<compiler::FoundTrace> found,
                        compiler::LookUpTraces(model.kernels, target, traces));
  HONE_ASSIGN_OR_RETURN(const compiler::BuiltKernels built,
                        compiler::BuildKernels(model.kernels, found, target, builder));
  CheckState state = {options, clock, model, built, found, {}, nullptr};
  if (!built.shared_object.empty()) {
    auto code =
        runtime::SharedObject::Load(std::as_bytes(std::span(built.shared_object)), "hone-check");
    if (!code.ok()) return ToAbsl(code.status());
    state.code = *std::move(code);
  }
  auto crew = runtime::Crew::Create({.threads = target.threads, .cpus = {}});
  if (!crew.ok()) return ToAbsl(crew.status());
  state.crew = *std::move(crew);
  return RunSteps(state, evaluator, inputs);
}

}  // namespace hone::client

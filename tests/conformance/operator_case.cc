#include "tests/conformance/operator_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_import/tensor_file.h"
#include "runtime/context.h"
#include "runtime/executable.h"

namespace hone::conformance {
namespace {

using graph::ConstantPtr;
using graph::NamedTensor;

/// Numbered tensors of a case: input_0.pb, input_1.pb, …
absl::StatusOr<std::vector<NamedTensor>> ReadNumbered(const std::filesystem::path& folder,
                                                      const std::string& prefix) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const std::filesystem::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!std::filesystem::exists(path)) return tensors;
    HONE_ASSIGN_OR_RETURN(NamedTensor tensor, graph::ReadTensorFile(path));
    tensors.push_back(std::move(tensor));
  }
}

/// The shapes of the files for inputs whose dimensions are symbols; binds inputs that must be known
/// (the import says so by their names) and tries again.
absl::StatusOr<graph::Graph> ImportBinding(const std::filesystem::path& model,
                                           const std::vector<NamedTensor>& inputs, bool* bound) {
  graph::ImportOptions options;
  while (true) {
    auto graph = graph::ImportOnnxFile(model, options);
    if (graph.ok()) return graph;
    const std::string message = StatusMessage(graph.status());
    if (message.find("--dim") != std::string::npos && options.shapes.empty()) {
      for (const NamedTensor& input : inputs)
        if (!input.name.empty()) options.shapes[input.name] = input.data->type.shape;
      if (!options.shapes.empty()) continue;
    }
    const bool open = message.find("must be known while importing") != std::string::npos;
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

/// The Debian package stores bfloat16 values as uint16.
ConstantPtr AsDeclared(const ConstantPtr& data, ir::DType declared) {
  if (declared != ir::DType::kBF16 || data->type.dtype != ir::DType::kU16) return data;
  auto same_bits = std::make_shared<graph::TensorData>(*data);
  same_bits->type.dtype = declared;
  return same_bits;
}

/// The inputs in the plan's order: by name, or by position where the files have no names.
absl::StatusOr<std::vector<ConstantPtr>> InPlanOrder(const std::vector<NamedTensor>& files,
                                                     const std::vector<ir::PlanValue>& values) {
  std::vector<ConstantPtr> ordered;
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::PlanValue& value = values[i];
    auto file = std::find_if(files.begin(), files.end(),
                             [&](const NamedTensor& each) { return each.name == value.name; });
    if (file == files.end() && files.size() == values.size() && files[i].name.empty())
      file = files.begin() + static_cast<std::ptrdiff_t>(i);
    if (file == files.end()) {
      return absl::NotFoundError(fmt::format("no file has the value of input '{}'", value.name));
    }
    const ConstantPtr data = AsDeclared(file->data, value.dtype);
    if (data->type != graph::TensorType{value.dtype, value.shape}) {
      return absl::InvalidArgumentError(fmt::format(
          "input '{}' is {}, the file has {}", value.name,
          graph::ToText(graph::TensorType{value.dtype, value.shape}), graph::ToText(data->type)));
    }
    ordered.push_back(data);
  }
  return ordered;
}

/// One run with poisoned memory.
absl::StatusOr<std::vector<ConstantPtr>> RunOnce(
    std::shared_ptr<const runtime::Executable> executable, const std::vector<ConstantPtr>& inputs) {
  const ir::Plan& plan = executable->plan();
  auto context = runtime::Context::Create(executable, {.poison = true});
  HONE_RETURN_IF_ERROR(ToAbsl(context.status()));
  std::vector<runtime::InputBuffer> in;
  for (const ConstantPtr& input : inputs) in.push_back({input->bytes.data(), input->bytes.size()});
  std::vector<graph::TensorType> types;
  std::vector<std::vector<std::byte>> memory;
  for (const ir::PlanValue& output : plan.outputs) {
    types.push_back({output.dtype, output.shape});
    memory.emplace_back(static_cast<size_t>(types.back().Bytes()));
  }
  std::vector<runtime::OutputBuffer> out;
  for (auto& buffer : memory) out.push_back({buffer.data(), buffer.size()});
  HONE_RETURN_IF_ERROR(ToAbsl((*context)->Run(in, out)));
  std::vector<ConstantPtr> outputs;
  for (size_t i = 0; i < types.size(); ++i)
    outputs.push_back(graph::MakeConstant(types[i], std::move(memory[i])));
  return outputs;
}

/// ONNX allows bfloat16 two units in the last place; float16, whose unit alone is 1e-3, too.
double Relative(const Tolerance& tolerance, ir::DType dtype) {
  if (dtype == ir::DType::kBF16) return std::max(0x1p-6, tolerance.relative);
  return dtype == ir::DType::kF16 ? std::max(0x1p-9, tolerance.relative) : tolerance.relative;
}

double Share(const Tolerance& tolerance, ir::DType dtype) {
  return ir::SizeOf(dtype) == 2 ? std::max(tolerance.half_share, tolerance.share) : tolerance.share;
}

double LargestFinite(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::string IntegerDifference(const graph::TensorData& got, const graph::TensorData& want) {
  const std::vector<int64_t> a = got.AsInt64s();
  const std::vector<int64_t> b = want.AsInt64s();
  const auto at =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  if (at == a.size()) return "other bytes for equal values";
  return fmt::format("element {} is {} instead of {}", at, a[at], b[at]);
}

/// Empty when equal within the tolerance.
std::string Difference(const graph::TensorData& got, const graph::TensorData& want,
                       const Tolerance& tolerance) {
  if (got.type != want.type) {
    return fmt::format("type {} instead of {}", graph::ToText(got.type), graph::ToText(want.type));
  }
  const bool is_float = ir::IsFloat(want.type.dtype);
  if (!is_float && !std::equal(got.bytes.begin(), got.bytes.end(), want.bytes.begin()))
    return IntegerDifference(got, want);
  if (!is_float) return "";
  const std::vector<double> a = got.AsDoubles();
  const std::vector<double> b = want.AsDoubles();
  const double relative = Relative(tolerance, want.type.dtype);
  const double absolute = tolerance.absolute + Share(tolerance, want.type.dtype) * LargestFinite(b);
  for (size_t i = 0; i < b.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= absolute + relative * std::abs(b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
  }
  return "";
}

CaseOutcome Failure(const absl::Status& status) {
  return {.verdict = absl::IsUnimplemented(status) ? Verdict::kUnsupported : Verdict::kFailed,
          .reason = StatusMessage(status)};
}

/// Inputs and what is expected of them.
struct DataSet {
  std::vector<NamedTensor> inputs, outputs;
};

/// test_data_set_0, test_data_set_1, …; the first must exist.
absl::StatusOr<std::vector<DataSet>> ReadDataSets(const std::filesystem::path& folder) {
  std::vector<DataSet> sets;
  for (int k = 0;; ++k) {
    const std::filesystem::path data = folder / fmt::format("test_data_set_{}", k);
    if (k > 0 && !std::filesystem::exists(data)) return sets;
    DataSet set;
    HONE_ASSIGN_OR_RETURN(set.inputs, ReadNumbered(data, "input"));
    HONE_ASSIGN_OR_RETURN(set.outputs, ReadNumbered(data, "output"));
    sets.push_back(std::move(set));
  }
}

absl::Status RunDataSet(const std::shared_ptr<const runtime::Executable>& executable,
                        const DataSet& set, const Tolerance& tolerance) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ConstantPtr> arguments,
                        InPlanOrder(set.inputs, executable->plan().inputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<ConstantPtr> outputs, RunOnce(executable, arguments));
  if (outputs.size() != set.outputs.size()) return absl::InternalError("another number of outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ConstantPtr want = AsDeclared(set.outputs[i].data, outputs[i]->type.dtype);
    const std::string difference = Difference(*outputs[i], *want, tolerance);
    if (!difference.empty())
      return absl::InternalError(fmt::format("wrong output {}: {}", i, difference));
  }
  return absl::OkStatus();
}

/// From the imported graph to "passed" or an error.
absl::StatusOr<CaseOutcome> RunGraph(graph::Graph graph, const std::vector<DataSet>& sets,
                                     const std::string& target, const Tolerance& tolerance,
                                     measure::BuilderClient& builder) {
  compiler::DefaultTraceSource traces;
  HONE_ASSIGN_OR_RETURN(
      const compiler::CompiledModel compiled,
      compiler::CompileModel(std::move(graph), {.target = target}, builder, traces));
  const Result<std::string> package = runtime::SerializePackage(compiled.package);
  HONE_RETURN_IF_ERROR(ToAbsl(package.status()));
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(*package)), {});
  HONE_RETURN_IF_ERROR(ToAbsl(executable.status()));
  const ir::Plan& plan = (*executable)->plan();
  for (size_t k = 0; k < sets.size(); ++k) {
    const absl::Status status = RunDataSet(*executable, sets[k], tolerance);
    if (!status.ok() && k > 0) return Annotate(status, fmt::format("test_data_set_{}", k));
    HONE_RETURN_IF_ERROR(status);
  }
  CaseOutcome outcome{.verdict = plan.steps.empty() ? Verdict::kFolded : Verdict::kPassed};
  outcome.has_extern =
      std::any_of(plan.steps.begin(), plan.steps.end(),
                  [](const ir::PlanStep& step) { return step.kind == ir::PlanStepKind::kExtern; });
  return outcome;
}

}  // namespace

absl::StatusOr<graph::Graph> ImportCase(const std::filesystem::path& folder, bool* bound) {
  HONE_ASSIGN_OR_RETURN(const std::vector<DataSet> sets, ReadDataSets(folder));
  return ImportBinding(folder / "model.onnx", sets.front().inputs, bound);
}

CaseOutcome RunOperatorCase(const std::filesystem::path& folder, const std::string& target,
                            const Tolerance& tolerance, measure::BuilderClient& builder) {
  const auto sets = ReadDataSets(folder);
  if (!sets.ok()) {
    // Files of strings, sequences and the like: what Hone says of the model tells more.
    const auto graph = graph::ImportOnnxFile(folder / "model.onnx");
    return {Verdict::kUnsupported, StatusMessage(graph.ok() ? sets.status() : graph.status())};
  }
  bool bound = false;
  auto graph = ImportBinding(folder / "model.onnx", sets->front().inputs, &bound);
  if (!graph.ok()) return Failure(graph.status());
  auto outcome = RunGraph(*std::move(graph), *sets, target, tolerance, builder);
  if (!outcome.ok()) return Failure(outcome.status());
  outcome->bound_inputs = bound;
  return *outcome;
}

}  // namespace hone::conformance

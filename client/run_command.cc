#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/compare.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/machine_warnings.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_session.h"
#include "client/npz.h"
#include "client/output_path.h"

namespace hone::client {
namespace {

/// A few numbers that let a person see whether an output is sane.
struct Summary {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = low;
  double mean = low;
  int64_t not_finite = 0;
};

Summary Summarise(const graph::TensorData& tensor) {
  Summary summary;
  double sum = 0;
  int64_t finite = 0;
  for (const double value : tensor.AsDoubles()) {
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      continue;
    }
    summary.low = finite == 0 ? value : std::min(summary.low, value);
    summary.high = finite == 0 ? value : std::max(summary.high, value);
    sum += value;
    ++finite;
  }
  if (finite > 0) summary.mean = sum / static_cast<double>(finite);
  return summary;
}

/// One output beside what it should be.
struct OutputReport {
  std::string name;
  graph::TensorType type;
  Summary summary;
  std::optional<Comparison> comparison;
  Tolerance tolerance;  ///< of the comparison
};

/// What --absolute and --relative say, else what the type's steps ask for.
/// Outputs in f32 of a model that multiplies bf16, or f16, are as far off as outputs in that.
Tolerance ToleranceFor(const Arguments& arguments, ir::DType dtype, const std::string& precision) {
  const std::optional<ir::DType> narrow = ir::ParseDType(precision);
  Tolerance tolerance = DefaultTolerance(dtype == ir::DType::kF32 && narrow ? *narrow : dtype);
  if (arguments.Given("absolute")) tolerance.absolute = arguments.Number("absolute");
  if (arguments.Given("relative")) tolerance.relative = arguments.Number("relative");
  if (arguments.Given("absolute") || arguments.Given("relative")) tolerance.steps = 0;
  return tolerance;
}

absl::Status CompareOutputs(const Arguments& arguments, const std::string& precision,
                            const NamedTensors& outputs, const NamedTensors& expected,
                            std::vector<OutputReport>& reports) {
  const std::string path = arguments.Text("expect");
  for (const auto& [name, tensor] : expected) {
    const auto report = std::find_if(reports.begin(), reports.end(),
                                     [&](const OutputReport& each) { return each.name == name; });
    if (report == reports.end()) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' expects an output \"{}\", which the model does not have", path, name));
    }
    if (tensor.type != report->type) {
      return WithExitCode(absl::InvalidArgumentError(fmt::format(
                              "output {}: the model gives {}, '{}' expects {}", name,
                              graph::ToText(report->type), path, graph::ToText(tensor.type))),
                          ExitCode::kOutputsDiffer);
    }
    report->tolerance = ToleranceFor(arguments, tensor.type.dtype, precision);
    report->comparison = CompareTensors(*FindTensor(outputs, name), tensor, report->tolerance);
  }
  for (const OutputReport& report : reports) {
    if (!report.comparison) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' has no output \"{}\"; it must have all that the model gives", path, report.name));
    }
  }
  return absl::OkStatus();
}

std::string ReportText(const OutputReport& report) {
  std::string text = fmt::format("{}: {}  min {:.6g}  mean {:.6g}  max {:.6g}", report.name,
                                 graph::ToText(report.type), report.summary.low,
                                 report.summary.mean, report.summary.high);
  if (report.summary.not_finite > 0)
    text += fmt::format("  {} not finite", report.summary.not_finite);
  if (report.comparison && report.comparison->ok()) {
    text += fmt::format("  as expected (at most {:.2g} off, {:.1f} % of what is allowed)",
                        report.comparison->max_difference, 100 * report.comparison->worst_share);
  }
  return text + '\n';
}

/// JSON has no NaN and no infinity.
nlohmann::ordered_json Number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json ReportJson(const OutputReport& report) {
  nlohmann::ordered_json object = {{"name", report.name},
                                   {"dtype", std::string(ir::ToString(report.type.dtype))},
                                   {"shape", report.type.shape},
                                   {"min", Number(report.summary.low)},
                                   {"mean", Number(report.summary.mean)},
                                   {"max", Number(report.summary.high)},
                                   {"not_finite", report.summary.not_finite}};
  if (report.comparison) {
    object["differing"] = report.comparison->differing;
    object["max_difference"] = Number(report.comparison->max_difference);
    object["share_of_tolerance"] = Number(report.comparison->worst_share);
  }
  return object;
}

/// "1e-04 of the largest + 1e-03 of the value", "1 step", "nothing".
std::string AllowedText(const Tolerance& tolerance, ir::DType dtype) {
  const bool exact = !ir::IsFloat(dtype) && (ir::SizeOf(dtype) > 1 || dtype == ir::DType::kBool);
  if (exact) return "nothing";
  if (tolerance.steps > 0)
    return fmt::format("{:g} step of {}", tolerance.steps, ir::ToString(dtype));
  return fmt::format("{:g} of the largest + {:g} of the value", tolerance.absolute,
                     tolerance.relative);
}

/// The error of the first output that differs; says where and how much.
absl::Status Verdict(const std::vector<OutputReport>& reports, const std::string& path) {
  for (const OutputReport& report : reports) {
    if (!report.comparison || report.comparison->ok()) continue;
    const Comparison& c = *report.comparison;
    return WithExitCode(absl::InvalidArgumentError(fmt::format(
                            "output {} ({}) differs from '{}' in {} of {} elements; the worst is "
                            "{}: {:.9g} instead "
                            "of {:.9g} (allowed: {}; --absolute and --relative change that)",
                            report.name, graph::ToText(report.type), path, c.differing, c.elements,
                            IndexText(c.worst, report.type.shape), c.worst_value, c.worst_expected,
                            AllowedText(report.tolerance, report.type.dtype))),
                        ExitCode::kOutputsDiffer);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRun(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  if (arguments.Given("outputs")) {
    HONE_RETURN_IF_ERROR(CheckOutput(arguments.Text("outputs"), InputFiles(arguments)));
  }
  HONE_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(context, arguments.Text("MODEL")));
  runtime::Context::Options options;
  options.threads = model.threads;
  HONE_ASSIGN_OR_RETURN(const NamedTensors inputs,
                        ReadInputs(arguments, model.inputs, context.err));
  // Before the outputs are written: they might have that name.
  const std::string expect = arguments.TextOr("expect", "");
  NamedTensors expected;
  if (!expect.empty()) {
    HONE_ASSIGN_OR_RETURN(expected, ReadNpz(expect));
  }
  HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(model.executable, options));
  session.SetInputs(inputs);
  context.err << ManyThreadsText(session.context().threads(), CpusHere());
  HONE_RETURN_IF_ERROR(session.Run());
  const NamedTensors outputs = session.Outputs();
  if (arguments.Given("outputs"))
    HONE_RETURN_IF_ERROR(WriteNpz(arguments.Text("outputs"), outputs));

  std::vector<OutputReport> reports;
  for (const auto& [name, tensor] : outputs) {
    reports.push_back({name, tensor.type, Summarise(tensor), std::nullopt, {}});
  }
  if (!expect.empty()) {
    HONE_RETURN_IF_ERROR(
        CompareOutputs(arguments, model.executable->info().precision, outputs, expected, reports));
  }
  nlohmann::ordered_json object = {{"model", model.name},
                                   {"threads", session.context().threads()},
                                   {"log", TextOrNull(model.log)},
                                   {"outputs", nlohmann::ordered_json::array()}};
  for (const OutputReport& report : reports) {
    if (!context.json()) context.out << ReportText(report);
    object["outputs"].push_back(ReportJson(report));
  }
  context.json_result = JsonText(object);
  return Verdict(reports, expect);
}

}  // namespace hone::client

#include "client/model_options.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "fmt/format.h"

#include "base/core/cpu.h"
#include "base/status.h"
#include "client/bf16_gain.h"
#include "client/exit_code.h"
#include "client/npz.h"
#include "ir/target.h"
#include "runtime/package.h"

namespace hone::client {
namespace {

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// A positive extent that fits; false otherwise.
bool ParseExtent(std::string_view text, int64_t* extent) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *extent);
  return error == std::errc() && stop == end && *extent >= 0;
}

absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t cross = rest.find('x');
    int64_t extent = 0;
    if (!ParseExtent(rest.substr(0, cross), &extent)) {
      return Usage(fmt::format("--shape: \"{}\" is not a shape like 1x3x224x224", text));
    }
    shape.push_back(extent);
    if (cross == std::string_view::npos) return shape;
    rest.remove_prefix(cross + 1);
  }
  return Usage(fmt::format("--shape: \"{}\" is not a shape like 1x3x224x224", text));
}

}  // namespace

absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(const std::string& option,
                                                                    const std::string& text) {
  // Names may hold '=' in theory, values of these options never do.
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return Usage(fmt::format("--{}: \"{}\" is not NAME=VALUE", option, text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

absl::StatusOr<graph::ImportOptions> ReadImportOptions(const Arguments& arguments) {
  graph::ImportOptions options;
  const auto twice = [](const std::string& option, const std::string& name) {
    return Usage(fmt::format("--{}: \"{}\" is given twice", option, name));
  };
  for (const std::string& text : arguments.List("dim")) {
    HONE_ASSIGN_OR_RETURN(const auto pair, SplitAssignment("dim", text));
    int64_t extent = 0;
    if (!ParseExtent(pair.second, &extent)) {
      return Usage(fmt::format("--dim: \"{}\" is not a whole number in \"{}\"", pair.second, text));
    }
    if (!options.dims.emplace(pair.first, extent).second) return twice("dim", pair.first);
  }
  for (const std::string& text : arguments.List("shape")) {
    HONE_ASSIGN_OR_RETURN(const auto pair, SplitAssignment("shape", text));
    HONE_ASSIGN_OR_RETURN(auto shape, ParseShape(pair.second));
    if (!options.shapes.emplace(pair.first, std::move(shape)).second) {
      return twice("shape", pair.first);
    }
  }
  for (const std::string& text : arguments.List("bind")) {
    HONE_ASSIGN_OR_RETURN(const auto pair, SplitAssignment("bind", text));
    HONE_ASSIGN_OR_RETURN(graph::TensorData tensor, ReadNpy(pair.second));
    auto shared = std::make_shared<const graph::TensorData>(std::move(tensor));
    if (!options.binds.emplace(pair.first, std::move(shared)).second) {
      return twice("bind", pair.first);
    }
  }
  const bool cuts = arguments.command()->FindOption("cut") != nullptr;
  for (const std::string& text : cuts ? arguments.List("cut") : std::vector<std::string>()) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      options.outputs.push_back(text.substr(at, end - at));
      if (options.outputs.back().empty()) {
        return Usage(fmt::format("--cut: an empty name in \"{}\"", text));
      }
      at = end + 1;
    }
  }
  return options;
}

absl::StatusOr<std::string> ReadTarget(const Arguments& arguments) {
  const std::string given = arguments.Text("target");
  const int threads =
      arguments.Given("threads") ? static_cast<int>(arguments.Integer("threads")) : UsableCores();
  const std::string text = ir::ResolveNative(given, threads);
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(text, &target, &error)) return Usage("--target: " + error);
  HONE_ASSIGN_OR_RETURN(const ir::DType precision, ReadPrecision(arguments));
  if (precision == ir::DType::kBF16 && IsPlainNative(given))
    target = WithoutSlowBf16(target, Bf16GainHere());
  if (!arguments.GivenOnLine("threads") || target.threads == threads) return target.text;
  if (arguments.GivenOnLine("target")) {
    return Usage(fmt::format("--target says threads={} and --threads says {}; say it once",
                             target.threads, threads));
  }
  // The line wins over the target of the config file.
  return fmt::format("{},threads={}", target.family, threads);
}

bool IsPlainNative(const std::string& target) {
  return target.find("native") != std::string::npos && target.find('+') == std::string::npos;
}

absl::StatusOr<std::vector<std::string>> ReadTargets(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(std::string first, ReadTarget(arguments));
  std::vector<std::string> targets = {std::move(first)};
  for (const std::string& given : arguments.List("also")) {
    ir::Target target;
    std::string error;
    if (!ir::ParseTarget(ir::ResolveNative(given, UsableCores()), &target, &error)) {
      return Usage("--also: " + error);
    }
    if (std::ranges::find(targets, target.text) != targets.end()) {
      return Usage(fmt::format("--also: {} is among the targets already", target.text));
    }
    targets.push_back(target.text);
  }
  if (targets.size() > runtime::kMaxVariants) {
    return Usage(
        fmt::format("--also: a package holds code for at most {} targets", runtime::kMaxVariants));
  }
  return targets;
}

compiler::BatchRun ReadBatch(const Arguments& arguments) {
  const bool has_option = arguments.command()->FindOption("batch") != nullptr;
  const std::string text = has_option ? arguments.Text("batch") : "auto";
  if (text == "together") return compiler::BatchRun::kTogether;
  return text == "each" ? compiler::BatchRun::kEach : compiler::BatchRun::kAuto;
}

compiler::BranchRun ReadBranches(const Arguments& arguments) {
  const bool has_option = arguments.command()->FindOption("branches") != nullptr;
  const std::string text = has_option ? arguments.Text("branches") : "auto";
  if (text == "turn") return compiler::BranchRun::kInTurn;
  return text == "beside" ? compiler::BranchRun::kBeside : compiler::BranchRun::kAuto;
}

compiler::CascadeRun ReadCascades(const Arguments& arguments) {
  const bool has_option = arguments.command()->FindOption("cascades") != nullptr;
  const std::string text = has_option ? arguments.Text("cascades") : "auto";
  if (text == "off") return compiler::CascadeRun::kOff;
  if (text == "on") return compiler::CascadeRun::kOn;
  return text == "all" ? compiler::CascadeRun::kAll : compiler::CascadeRun::kAuto;
}

absl::StatusOr<ir::DType> ReadPrecision(const Arguments& arguments) {
  if (arguments.command()->FindOption("precision") == nullptr) return ir::DType::kF32;
  const std::string text = arguments.Text("precision");
  if (text == "f32") return ir::DType::kF32;
  return text == "bf16" ? ir::DType::kBF16 : ir::DType::kF16;
}

absl::StatusOr<ir::AccuracyClass> ReadAccuracy(const Arguments& arguments) {
  if (arguments.command()->FindOption("accuracy") == nullptr) return ir::AccuracyClass::kDefault;
  const std::string text = arguments.Text("accuracy");
  const std::optional<ir::AccuracyClass> accuracy = ir::ParseAccuracyClass(text);
  if (accuracy == ir::AccuracyClass::kStrict || accuracy == ir::AccuracyClass::kDefault) {
    return *accuracy;
  }
  return Usage(fmt::format(
      "--accuracy {}: no schedule of Hone needs a class laxer than default yet, so nothing would "
      "differ; use --accuracy default",
      text));
}

}  // namespace hone::client

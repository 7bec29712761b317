#include "client/calibration_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"

namespace hone::client {
namespace {

constexpr const char* kLabels = "labels";

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.path().extension() == ".npz") files.push_back(entry.path().string());
  if (error)
    return absl::PermissionDeniedError(fmt::format("cannot list '{}': {}", path, error.message()));
  if (files.empty())
    return Invalid(fmt::format("--calibrate: folder '{}' has no .npz file in it", path));
  std::sort(files.begin(), files.end());
  return files;
}

std::string Names(const std::vector<InputSpec>& specs) {
  std::vector<std::string> names;
  for (const InputSpec& spec : specs) names.push_back(Describe(spec));
  return fmt::format("{}", fmt::join(names, ", "));
}

absl::Status CheckFinite(const std::string& where, const graph::TensorData& tensor) {
  if (!ir::IsFloat(tensor.type.dtype)) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.type.NumElements(); ++i) {
    const double value = tensor.DoubleAt(i);
    if (std::isfinite(value)) continue;
    return Invalid(fmt::format(
        "{}: element {} is {}; no range can be calibrated with it: leave such samples out", where,
        i, value));
  }
  return absl::OkStatus();
}

/// How many runs an array holds behind each other.
absl::StatusOr<int64_t> RunsIn(const std::string& where, const graph::TensorData& tensor,
                               const InputSpec& spec) {
  const std::vector<int64_t>& wanted = spec.type.shape;
  const std::vector<int64_t>& have = tensor.type.shape;
  if (tensor.type.dtype != spec.type.dtype) {
    return Invalid(fmt::format("{} is {}, the model wants {} (x.astype(...) of NumPy converts it)",
                               where, graph::ToText(tensor.type), graph::ToText(spec.type)));
  }
  if (tensor.type.NumElements() == 0)
    return Invalid(fmt::format("{} is {}: it has no elements", where, graph::ToText(tensor.type)));
  if (have == wanted) return 1;
  const bool same_rest = have.size() == wanted.size() && !have.empty() &&
                         std::equal(have.begin() + 1, have.end(), wanted.begin() + 1);
  if (same_rest && wanted[0] > 0 && have[0] % wanted[0] == 0) return have[0] / wanted[0];
  return Invalid(fmt::format(
      "{} is {}, the model wants {}, or several of these concatenated along the first axis", where,
      graph::ToText(tensor.type), graph::ToText(spec.type)));
}

graph::TensorData Part(const graph::TensorData& tensor, const graph::TensorType& type,
                       int64_t run) {
  graph::TensorData part = tensor;
  const auto bytes = static_cast<size_t>(type.Bytes());
  part.type = type;
  part.bytes = tensor.bytes.subspan(static_cast<size_t>(run) * bytes, bytes);
  return part;
}

absl::Status CheckNames(const std::string& path, const NamedTensors& tensors,
                        const std::vector<InputSpec>& specs) {
  for (const auto& [name, tensor] : tensors) {
    const bool wanted = std::ranges::any_of(
        specs, [&, &n = name](const InputSpec& spec) { return spec.name == n; });
    if (wanted || name == kLabels) continue;
    return Invalid(
        fmt::format("'{}' has an array \"{}\", which is no input of the model; it has {}", path,
                    name, Names(specs)));
  }
  return absl::OkStatus();
}

absl::Status AddFile(const std::string& path, const std::vector<InputSpec>& specs,
                     CalibrationSet& set) {
  HONE_ASSIGN_OR_RETURN(const NamedTensors tensors, ReadNpz(path));
  HONE_RETURN_IF_ERROR(CheckNames(path, tensors, specs));
  int64_t runs = 0;
  std::string first;
  for (const InputSpec& spec : specs) {
    const graph::TensorData* tensor = FindTensor(tensors, spec.name);
    if (tensor == nullptr)
      return Invalid(fmt::format("'{}' has no array for the input {}", path, Describe(spec)));
    const std::string where = fmt::format("'{}', array {}", path, spec.name);
    HONE_ASSIGN_OR_RETURN(const int64_t own, RunsIn(where, *tensor, spec));
    HONE_RETURN_IF_ERROR(CheckFinite(where, *tensor));
    if (runs != 0 && own != runs) {
      return Invalid(fmt::format("{} holds {} runs, array {} holds {}", where, own, first, runs));
    }
    runs = own;
    first = spec.name;
  }
  for (int64_t run = 0; run < runs; ++run) {
    NamedTensors& inputs = set.runs.emplace_back();
    for (const InputSpec& spec : specs)
      inputs.emplace_back(spec.name, Part(*FindTensor(tensors, spec.name), spec.type, run));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibrationSet> ReadCalibration(const std::vector<std::string>& paths,
                                               const std::vector<InputSpec>& specs) {
  CalibrationSet set;
  for (const std::string& path : paths) {
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
    for (const std::string& file : files) HONE_RETURN_IF_ERROR(AddFile(file, specs, set));
  }
  if (set.runs.empty()) return Invalid("--calibrate: the files hold no data");
  return set;
}

CalibrationSet DrawCalibration(const std::vector<InputSpec>& specs, int runs) {
  CalibrationSet set{.runs = {}, .drawn = true};
  for (int run = 0; run < runs; ++run) {
    NamedTensors& inputs = set.runs.emplace_back();
    for (const InputSpec& spec : specs)
      inputs.emplace_back(spec.name, DrawInput(spec, inputs.size(), static_cast<uint64_t>(run)));
  }
  return set;
}

absl::StatusOr<LabelSet> ReadLabels(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const NamedTensors tensors, ReadNpz(path));
  const graph::TensorData* labels = FindTensor(tensors, kLabels);
  if (labels == nullptr)
    return Invalid(fmt::format("--labels: '{}' has no array \"{}\"", path, kLabels));
  if (!ir::IsInteger(labels->type.dtype) || labels->type.NumElements() == 0) {
    return Invalid(
        fmt::format("--labels: '{}', array {} is {}; it must hold the number of a class "
                    "for each row of the model's first output",
                    path, kLabels, graph::ToText(labels->type)));
  }
  return LabelSet{labels->AsInt64s(), tensors.size() > 1};
}

}  // namespace hone::client

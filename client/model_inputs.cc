#include "client/model_inputs.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/core/random.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "client/model_options.h"
#include "ir/tensor_buffer.h"

namespace hone::client {
namespace {

/// Values found so far, by name.
using Found = std::map<std::string, graph::TensorData>;

/// Checks a tensor against the model's input of that name and keeps it.
absl::Status Take(const std::string& name, graph::TensorData tensor,
                  const std::vector<InputSpec>& specs, Found& found) {
  std::vector<std::string> names;
  for (const InputSpec& spec : specs) {
    names.push_back(Describe(spec));
    if (spec.name != name) continue;
    if (tensor.type != spec.type) {
      return absl::InvalidArgumentError(fmt::format("input {}: the model wants {}, this is {}",
                                                    name, graph::ToText(spec.type),
                                                    graph::ToText(tensor.type)));
    }
    found.insert_or_assign(name, std::move(tensor));
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      fmt::format("the model has no input \"{}\"; it has {}", name,
                  specs.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

/// `strict` for an archive that was asked for: an array of another type or shape is an error then,
/// else only told.
absl::Status TakeArchive(const std::string& path, bool strict, const std::vector<InputSpec>& specs,
                         Found& found, std::ostream& err) {
  HONE_ASSIGN_OR_RETURN(NamedTensors tensors, ReadNpz(path));
  for (auto& [name, tensor] : tensors) {
    const absl::Status status = Take(name, std::move(tensor), specs, found);
    if (absl::IsNotFound(status) || (!status.ok() && !strict)) {
      err << fmt::format("warning: '{}', array {} is not used{}: {}\n", path, name,
                         absl::IsNotFound(status) ? "" : ", its input is drawn",
                         StatusMessage(status));
      continue;
    }
    if (!status.ok()) return Annotate(status, fmt::format("'{}'", path));
  }
  return absl::OkStatus();
}

absl::Status TakeGiven(const Arguments& arguments, const std::vector<InputSpec>& specs,
                       Found& found, std::ostream& err) {
  if (arguments.Given("inputs")) {
    HONE_RETURN_IF_ERROR(TakeArchive(arguments.Text("inputs"), true, specs, found, err));
  }
  for (const std::string& text : arguments.List("input")) {
    HONE_ASSIGN_OR_RETURN(const auto pair, SplitAssignment("input", text));
    HONE_ASSIGN_OR_RETURN(graph::TensorData tensor, ReadNpy(pair.second));
    if (auto status = Take(pair.first, std::move(tensor), specs, found); !status.ok()) {
      return Annotate(status, fmt::format("--input {}", text));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Describe(const InputSpec& spec) {
  return fmt::format("{}: {}", spec.name, graph::ToText(spec.type));
}

std::vector<InputSpec> InputsOf(const graph::Graph& graph) {
  std::vector<InputSpec> specs;
  for (const graph::ValueId id : graph.inputs) {
    const graph::Value& value = graph.values[static_cast<size_t>(id)];
    specs.push_back({value.name, value.type, value.range});
  }
  return specs;
}

std::vector<InputSpec> InputsOf(const ir::Plan& plan) {
  std::vector<InputSpec> specs;
  for (const ir::PlanValue& value : plan.inputs) {
    InputSpec spec = {value.name, {value.dtype, value.shape}, {}};
    if (!ir::IsFloat(value.dtype)) spec.range = {0, 2};
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string EmptyInputsNote(const Arguments& arguments, const std::vector<InputSpec>& specs) {
  const std::vector<std::string> given = arguments.List("shape");
  std::string text;
  for (const InputSpec& spec : specs) {
    const auto is_given = [&](const std::string& shape) {
      return shape.substr(0, shape.rfind('=')) == spec.name;
    };
    if (spec.type.NumElements() > 0 || std::ranges::any_of(given, is_given)) continue;
    std::vector<int64_t> shape = spec.type.shape;
    std::ranges::replace(shape, 0, 1);
    text += fmt::format(
        "note: the model declares input '{}' with no elements ({}), so nothing is computed from "
        "it; "
        "to give it a size: --shape {}={}\n",
        spec.name, graph::ToText(spec.type), ShellWord(spec.name), fmt::join(shape, "x"));
  }
  return text;
}

graph::TensorData DrawInput(const InputSpec& spec, size_t index, uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(spec.type.Bytes()));
  Random random = Random(seed).Fork(index);
  const auto first = static_cast<int64_t>(spec.range.low);
  const auto past = std::max(static_cast<int64_t>(spec.range.high), first + 1);
  for (int64_t i = 0; i < spec.type.NumElements(); ++i) {
    ir::Element element;
    if (ir::IsFloat(spec.type.dtype)) {
      element.f = spec.range.low + (spec.range.high - spec.range.low) * random.Uniform();
    } else {
      element.i =
          ir::IsBool(spec.type.dtype) ? random.Between(0, 1) : random.Between(first, past - 1);
    }
    ir::WriteElement(spec.type.dtype, reinterpret_cast<uint8_t*>(bytes.data()), i, element);
  }
  return *graph::MakeConstant(spec.type, std::move(bytes));
}

absl::StatusOr<NamedTensors> ReadInputs(const Arguments& arguments,
                                        const std::vector<InputSpec>& specs, std::ostream& err) {
  Found found;
  HONE_RETURN_IF_ERROR(TakeGiven(arguments, specs, found, err));
  NamedTensors inputs;
  std::vector<std::string> missing;
  for (const InputSpec& spec : specs) {
    const auto it = found.find(spec.name);
    if (it == found.end() && spec.type.NumElements() == 0) {
      inputs.emplace_back(spec.name, DrawInput(spec, 0, 0));  // there is nothing to give
    } else if (it == found.end()) {
      missing.push_back(Describe(spec));
    } else {
      inputs.emplace_back(spec.name, std::move(it->second));
    }
  }
  if (missing.empty()) return inputs;
  return absl::InvalidArgumentError(fmt::format(
      "these inputs have no value: {}; give them with --inputs X.npz or --input NAME=F.npy",
      fmt::join(missing, ", ")));
}

absl::StatusOr<NamedTensors> ReadOrDrawInputs(const Arguments& arguments,
                                              const std::string& model_path,
                                              const std::vector<InputSpec>& specs,
                                              std::ostream& err) {
  Found found;
  if (!arguments.Given("inputs")) {
    const std::string beside =
        std::filesystem::path(model_path).replace_extension(".inputs.npz").string();
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) {
      // Nobody asked for it: saved for one batch, it must not be in the way of another.
      HONE_RETURN_IF_ERROR(TakeArchive(beside, false, specs, found, err));
    }
  }
  HONE_RETURN_IF_ERROR(TakeGiven(arguments, specs, found, err));
  const auto seed = static_cast<uint64_t>(arguments.Integer("seed"));
  NamedTensors inputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto it = found.find(specs[i].name);
    inputs.emplace_back(specs[i].name,
                        it == found.end() ? DrawInput(specs[i], i, seed) : std::move(it->second));
  }
  return inputs;
}

}  // namespace hone::client

#include "graph/onnx_import/input_shapes.h"

#include <set>
#include <string_view>
#include <utility>

#include "fmt/format.h"

#include "base/shell_word.h"
#include "base/status.h"
#include "graph/onnx_import/dim_formula.h"

namespace hone::graph::onnx_import {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;
using Inputs = std::vector<const onnx::ValueInfoProto*>;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

/// Some exporters write -1 for what they leave open.
bool IsFixed(const Dimension& dim) { return dim.has_dim_value() && dim.dim_value() >= 0; }

/// Whether equal names mean equal sizes. Exporters fill in these where they know no name.
bool IsNamed(const Dimension& dim) {
  if (!dim.has_dim_param()) return false;
  const std::string& name = dim.dim_param();
  return name.find_first_not_of("? ") != std::string::npos && name != "-1" && name != "None";
}

bool IsOpen(const Dimension& dim) { return !IsFixed(dim) && !IsNamed(dim); }

const onnx::TypeProto::Tensor& TensorOf(const onnx::ValueInfoProto& input) {
  return input.type().tensor_type();
}

/// Names that the user gives: formulas of the others are none.
struct Names {
  std::set<std::string> plain;
  std::map<std::string, DimFormula> formulas;
};

Names NamesOf(const Inputs& inputs) {
  Names names;
  for (const onnx::ValueInfoProto* input : inputs) {
    for (const Dimension& dim : TensorOf(*input).shape().dim()) {
      if (IsNamed(dim)) names.plain.insert(dim.dim_param());
    }
  }
  const std::set<std::string> all = names.plain;
  for (const std::string& name : all) {
    std::optional<DimFormula> formula = DimFormula::Parse(name);
    bool follows = formula.has_value();
    if (!follows) continue;
    for (const std::string& part : formula->names()) follows = follows && all.contains(part);
    if (!follows) continue;
    names.plain.erase(name);
    names.formulas.emplace(name, *std::move(formula));
  }
  return names;
}

absl::Status CheckOptions(const Inputs& inputs, const Names& names, const ImportOptions& options) {
  std::set<std::string> known;
  for (const onnx::ValueInfoProto* input : inputs) known.insert(input->name());
  for (const auto& [name, value] : options.dims) {
    if (!names.plain.contains(name) && !names.formulas.contains(name)) {
      return Invalid(fmt::format(
          "--dim {}={}: the model has no such dimension; it has: {}{}", name, value,
          names.plain.empty() ? "none" : fmt::format("{}", fmt::join(names.plain, ", ")),
          name == "?" ? "; --shape gives the ones without a name, with the whole input" : ""));
    }
    if (value < 1)
      return Invalid(fmt::format("--dim {}={}: a dimension must be at least 1", name, value));
  }
  const auto missing = [&](std::string_view option, const std::string& name) {
    return Invalid(fmt::format("--{} {}: the model has no such input; it has: {}", option, name,
                               fmt::join(known, ", ")));
  };
  for (const auto& [name, shape] : options.shapes) {
    if (!known.contains(name)) return missing("shape", name);
  }
  for (const auto& [name, data] : options.binds) {
    if (!known.contains(name)) return missing("bind", name);
  }
  return absl::OkStatus();
}

/// Binds the input's named dimensions to a shape that the user gave (`how`: the option).
absl::Status BindShape(const onnx::ValueInfoProto& input, const std::vector<int64_t>& shape,
                       std::string_view how, std::map<std::string, int64_t>& dims) {
  const onnx::TypeProto::Tensor& type = TensorOf(input);
  if (!type.has_shape()) return absl::OkStatus();
  bool fits = static_cast<size_t>(type.shape().dim_size()) == shape.size();
  for (int i = 0; fits && i < type.shape().dim_size(); ++i) {
    const Dimension& dim = type.shape().dim(i);
    const int64_t extent = shape[static_cast<size_t>(i)];
    fits = extent >= 0;
    // An extent of 0 is how some old exporters leave a dimension open.
    if (fits && IsFixed(dim) && dim.dim_value() > 0 && dim.dim_value() != extent) {
      return Invalid(
          fmt::format("{} of input '{}' makes dimension {} {}, but the model fixes it to {}: give "
                      "{}, or export the model anew with that dimension named",
                      how, input.name(), i, extent, dim.dim_value(), dim.dim_value()));
    }
    if (!IsNamed(dim) || !fits) continue;
    const auto [bound, added] = dims.emplace(dim.dim_param(), extent);
    if (!added && bound->second != extent) {
      return Invalid(fmt::format("{} of input '{}' makes dimension '{}' {}, but it is {} already",
                                 how, input.name(), dim.dim_param(), extent, bound->second));
    }
  }
  if (fits) return absl::OkStatus();
  return Invalid(fmt::format("{} of input '{}' is [{}], but the model declares {}", how,
                             input.name(), fmt::join(shape, ","), ShapeText(type.shape())));
}

/// Gives the formulas whose names are bound their values.
absl::Status BindFormulas(const std::map<std::string, DimFormula>& formulas,
                          std::map<std::string, int64_t>& dims) {
  for (const auto& [text, formula] : formulas) {
    std::vector<std::string> parts;
    bool all = true;
    for (const std::string& name : formula.names()) {
      const auto found = dims.find(name);
      all = all && found != dims.end();
      if (all) parts.push_back(fmt::format("'{}' = {}", name, found->second));
    }
    if (!all) continue;
    const std::optional<int64_t> value = formula.Value(dims);
    const std::string given = fmt::format("{}", fmt::join(parts, ", "));
    if (!value || *value < 0) {
      return Invalid(
          fmt::format("dimension '{}' has no valid size with {}: give other sizes", text, given));
    }
    const auto [bound, added] = dims.emplace(text, *value);
    if (added || bound->second == *value) continue;
    return Invalid(
        fmt::format("dimension '{}' is given as {}, but must be {} with {}: give one of them "
                    "another size",
                    text, bound->second, *value, given));
  }
  return absl::OkStatus();
}

/// The input's shape as far as it is known, ? elsewhere: "?x3x?x?".
std::string ShapeToGive(const onnx::TensorShapeProto& shape) {
  std::vector<std::string> extents;
  for (const Dimension& dim : shape.dim())
    extents.push_back(IsFixed(dim) ? fmt::format("{}", dim.dim_value()) : "?");
  return fmt::format("{}", fmt::join(extents, "x"));
}

/// What is still open, and how to give it.
std::vector<std::string> Unbound(const Inputs& inputs, const Names& names,
                                 const ImportOptions& options,
                                 const std::map<std::string, int64_t>& dims) {
  std::vector<std::string> lines;
  std::set<std::string> listed;
  Inputs rest;
  for (const onnx::ValueInfoProto* input : inputs) {
    const std::string& name = input->name();
    const onnx::TypeProto::Tensor& type = TensorOf(*input);
    if (!input->type().has_tensor_type() || options.shapes.contains(name) ||
        options.binds.contains(name)) {
      continue;
    }
    bool open = false;
    for (const Dimension& dim : type.shape().dim()) open = open || IsOpen(dim);
    if (!type.has_shape()) {
      lines.push_back(fmt::format("input '{}' has no shape: give it with --shape {}=1x3x224x224",
                                  name, ShellWord(name)));
    } else if (open) {
      lines.push_back(
          fmt::format("input '{}' is {}: give its shape, a number for each ?: --shape {}={}", name,
                      ShapeText(type.shape()), ShellWord(name), ShapeToGive(type.shape())));
      // The shape will say what these are.
      for (const Dimension& dim : type.shape().dim()) listed.insert(dim.dim_param());
    } else {
      rest.push_back(input);
    }
  }
  for (const onnx::ValueInfoProto* input : rest) {
    std::vector<std::string> missing, ways;
    for (const Dimension& dim : TensorOf(*input).shape().dim()) {
      const std::string& name = dim.dim_param();
      if (!names.plain.contains(name) || dims.contains(name) || !listed.insert(name).second)
        continue;
      missing.push_back(fmt::format("'{}'", name));
      ways.push_back(fmt::format("--dim {}=N", ShellWord(name)));
    }
    if (missing.empty()) continue;
    const onnx::TensorShapeProto& shape = TensorOf(*input).shape();
    std::string line =
        fmt::format("dimension{} {} of input '{}' ({}) {} not bound: give {} with {}",
                    missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), input->name(),
                    ShapeText(shape), missing.size() == 1 ? "is" : "are",
                    missing.size() == 1 ? "it" : "them", fmt::join(ways, " "));
    if (missing.size() > 1)
      line += fmt::format(" or --shape {}={}", ShellWord(input->name()), ShapeToGive(shape));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string ShapeText(const onnx::TensorShapeProto& shape) {
  std::vector<std::string> dims;
  for (const Dimension& dim : shape.dim()) {
    dims.push_back(IsNamed(dim)   ? dim.dim_param()
                   : IsFixed(dim) ? fmt::format("{}", dim.dim_value())
                                  : "?");
  }
  return fmt::format("[{}]", fmt::join(dims, ","));
}

absl::StatusOr<InputShapes> ResolveInputShapes(const std::vector<FreeInput>& inputs,
                                               const ImportOptions& options) {
  Inputs all, needed;
  for (const FreeInput& input : inputs) {
    all.push_back(input.declared);
    if (input.needed) needed.push_back(input.declared);
  }
  // What no size can mend comes before the sizes that are asked for.
  for (const onnx::ValueInfoProto* input : needed) {
    if (input->type().has_tensor_type()) continue;
    return absl::UnimplementedError(
        fmt::format("input '{}' is no tensor; only tensors are supported", input->name()));
  }
  const Names names = NamesOf(all);
  HONE_RETURN_IF_ERROR(CheckOptions(all, names, options));
  InputShapes resolved{.shapes = options.shapes, .dims = options.dims};
  for (const onnx::ValueInfoProto* input : all) {
    if (const auto shape = options.shapes.find(input->name()); shape != options.shapes.end())
      HONE_RETURN_IF_ERROR(BindShape(*input, shape->second, "--shape", resolved.dims));
    if (const auto bind = options.binds.find(input->name()); bind != options.binds.end())
      HONE_RETURN_IF_ERROR(BindShape(*input, bind->second->type.shape, "--bind", resolved.dims));
  }
  HONE_RETURN_IF_ERROR(BindFormulas(names.formulas, resolved.dims));
  const std::vector<std::string> unbound = Unbound(needed, names, options, resolved.dims);
  if (!unbound.empty()) return Invalid(fmt::format("{}", fmt::join(unbound, "; ")));
  for (const onnx::ValueInfoProto* input : needed) {
    const auto [entry, added] = resolved.shapes.try_emplace(input->name());
    if (!added || options.binds.contains(input->name())) continue;
    for (const Dimension& dim : TensorOf(*input).shape().dim())
      entry->second.push_back(IsFixed(dim) ? dim.dim_value() : resolved.dims.at(dim.dim_param()));
  }
  for (const auto& [name, formula] : names.formulas) resolved.dims.erase(name);
  return resolved;
}

}  // namespace hone::graph::onnx_import

#include "graph/onnx_import/size_conflict.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/shell_word.h"
#include "graph/onnx_import/importer.h"

namespace hone::graph::onnx_import {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// What the size called `name` may have been meant to be, given the others; the likeliest first.
std::vector<int64_t> Candidates(const Sizes& sizes, const std::string& name) {
  std::vector<int64_t> others;
  for (const auto& [other, size] : sizes) {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (other != name && size < kMost) others.push_back(size);
  }
  std::vector<int64_t> candidates;
  const auto add = [&](int64_t size) {
    if (size < 2 || size == sizes.at(name)) return;  // 1 fits wherever shapes broadcast
    if (std::find(candidates.begin(), candidates.end(), size) == candidates.end())
      candidates.push_back(size);
  };
  for (size_t i = 0; i < others.size(); ++i) {
    for (size_t j = 0; j < i; ++j) add(others[i] + others[j]);
  }
  for (size_t i = 0; i < others.size(); ++i) {
    for (size_t j = 0; j < i; ++j) add(std::abs(others[i] - others[j]));
  }
  for (int64_t other : others) {
    for (int64_t size : {other, other + 1, other - 1}) add(size);
  }
  if (sizes.at(name) != 1) candidates.push_back(1);
  return candidates;
}

/// The options that give these sizes by --dim, and by --shape only what has no name.
ImportOptions WithSizes(const onnx::ModelProto& model, const ImportOptions& options,
                        const Sizes& sizes) {
  ImportOptions changed = options;
  changed.data_files = nullptr;
  changed.on_iteration = nullptr;
  changed.dims = sizes;
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    const auto given = changed.shapes.find(input.name());
    if (given == changed.shapes.end()) continue;
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      const auto size = sizes.find(shape.dim(i).dim_param());
      if (size != sizes.end()) given->second[static_cast<size_t>(i)] = size->second;
    }
  }
  return changed;
}

}  // namespace

std::string SizesThatFit(const std::shared_ptr<const onnx::ModelProto>& model,
                         const ImportOptions& options, const InputShapes& resolved) {
  constexpr size_t kMostTries = 64;
  const Sizes& sizes = resolved.dims;
  std::vector<std::string> given, ways;
  size_t tries = 0;
  for (const auto& [name, size] : sizes) {
    given.push_back(fmt::format("'{}' = {}", name, size));
    for (int64_t candidate : Candidates(sizes, name)) {
      if (++tries > kMostTries) break;
      Sizes changed = sizes;
      changed[name] = candidate;
      const ImportOptions tried = WithSizes(*model, options, changed);
      if (!Importer(model, tried).Run().ok()) continue;
      ways.push_back(fmt::format("--dim {}={}", ShellWord(name), candidate));
      break;
    }
  }
  if (ways.empty()) return "";
  return fmt::format("the model does not fit {}; it does with {}", fmt::join(given, ", "),
                     fmt::join(ways, ", or with "));
}

}  // namespace hone::graph::onnx_import

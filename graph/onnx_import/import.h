#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::graph {

/// What the user gives in addition to the model.
struct ImportOptions {
  std::map<std::string, int64_t> dims;  ///< `--dim name=value`: symbolic dimensions
  /// `--shape input=1x3x224x224`; an input that has an initialiser is then one of the graph's.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// `--bind NAME=F.npy`: inputs known now, also in place of their initialiser.
  std::map<std::string, ConstantPtr> binds;
  /// `--cut A,B`: values of the model that are its outputs now; none: its own. What they do
  /// not need is left out.
  std::vector<std::string> outputs;
  std::filesystem::path folder;  ///< where external data lie, for ImportOnnx
  /// Where the model's file lies when the named one is a link to it; empty: in `folder`.
  std::filesystem::path linked_folder;
  /// Called before each iteration of an outermost loop that is unrolled: its node, how many
  /// iterations are done, and how many there are at most (-1: not known).
  std::function<void(const std::string& node, int64_t done, int64_t total)> on_iteration;
  /// Where not null: gets the path of each file of external data, once.
  std::vector<std::string>* data_files = nullptr;
};

/// Turns an ONNX model (opset 7 to kNewestOpset, and older ones where their operators already meant
/// the same) into a Graph of Hone's canonical operators (CANONICAL_OPS.md). All shapes are static;
/// constants and computations of shapes are folded; local functions and branches with a known
/// condition are inlined. Weights may stay in a mapped file that the Graph keeps alive. Inputs and
/// outputs keep their names; a graph input that has an initialiser is a constant unless `shapes`
/// names it. The inputs' doc strings `low=,high=` and `ones=N` give their value ranges. Errors:
/// kInvalidArgument for a file that is damaged, foreign or does not fit itself; kUnimplemented with
/// all nodes that Hone has no operator for; kNotFound for a missing file.
absl::StatusOr<Graph> ImportOnnx(std::span<const std::byte> bytes,
                                 const ImportOptions& options = {});
absl::StatusOr<Graph> ImportOnnxFile(const std::filesystem::path& path,
                                     const ImportOptions& options = {});

/// The newest version of the default operator set that is understood.
inline constexpr int64_t kNewestOpset = 28;

}  // namespace hone::graph

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "graph/graph.h"

namespace hone::graph::onnx_import {

/// The nodes of a model that cannot be imported, and what can be done about them.
class FailedNodes {
 public:
  struct Failure {
    std::string name;
    std::string node;  ///< how messages call it, with the types of its inputs
    std::string op;
    absl::Status reason;
    /// The graph inputs that decide a value which had to be known; none where that is not the
    /// reason.
    std::vector<ValueId> deciders;
  };

  void Add(Failure failure) { failures_.push_back(std::move(failure)); }
  size_t size() const { return failures_.size(); }
  /// Forgets all but the first `count`.
  void Shrink(size_t count) { failures_.resize(count); }
  /// Whether all of them are right and only lack support in Hone.
  bool AllUnimplemented() const;

  /// OK where nothing failed; else one status for all: equal reasons of one operator together, then
  /// each way out once. `cut`: values of the model before which nothing failed, if any.
  absl::Status Verdict(const Graph& graph, const std::vector<std::string>& cut) const;

 private:
  std::vector<std::string> WaysOut(const Graph& graph, const std::vector<std::string>& cut) const;

  std::vector<Failure> failures_;
};

}  // namespace hone::graph::onnx_import

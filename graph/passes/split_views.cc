#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {

absl::StatusOr<int> SplitViews(Graph& graph, const PassContext&) {
  int copies = 0;
  Rewriter rewriter(graph);
  // The reshape that makes a value, to be repeated for its second and later readers.
  std::vector<const Node*> view(graph.values.size(), nullptr);
  std::vector<bool> read(graph.values.size());
  for (ValueId output : graph.outputs) read[output] = true;
  for (const Node& old : rewriter.old_nodes()) {
    Node node = old;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      ValueId& input = node.inputs[k];
      const auto same =
          std::find(old.inputs.begin(), old.inputs.begin() + static_cast<std::ptrdiff_t>(k), input);
      if (same != old.inputs.begin() + static_cast<std::ptrdiff_t>(k)) {
        input = node.inputs[static_cast<size_t>(same - old.inputs.begin())];
        continue;
      }
      if (input == kNoValue || input >= static_cast<ValueId>(view.size()) || view[input] == nullptr)
        continue;
      if (!read[input]) {
        read[input] = true;
        continue;
      }
      Node copy = *view[input];
      copy.outputs.clear();
      HONE_ASSIGN_OR_RETURN(input, rewriter.Add(std::move(copy)));
      ++copies;
    }
    if (old.op == "Reshape") view[old.outputs[0]] = &old;
    rewriter.Keep(std::move(node));
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return copies;
}

}  // namespace hone::graph

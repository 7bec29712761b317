#include "graph/onnx_import/failed_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"

#include "base/shell_word.h"
#include "base/status.h"
#include "graph/onnx_import/foreign_operators.h"

namespace hone::graph::onnx_import {
namespace {

/// Whether an input may be one value for good, as sizes, scales and switches are: a constant image
/// would make the whole model one.
bool MayBeConstant(const Graph& graph, ValueId input) {
  constexpr int64_t kMostElements = 64;
  return graph.inputs.size() > 1 &&
         graph.values[static_cast<size_t>(input)].type.NumElements() <= kMostElements;
}

/// "; 179 more likewise: a, b, c, …".
std::string Others(const std::vector<std::string>& nodes) {
  constexpr size_t kMostNamed = 4;
  if (nodes.size() == 1) return "";
  const size_t named = std::min(nodes.size(), kMostNamed + 1);
  return fmt::format(
      "; {} more likewise: {}{}", nodes.size() - 1,
      fmt::join(nodes.begin() + 1, nodes.begin() + static_cast<ptrdiff_t>(named), ", "),
      named < nodes.size() ? ", …" : "");
}

}  // namespace

bool FailedNodes::AllUnimplemented() const {
  return std::all_of(failures_.begin(), failures_.end(),
                     [](const Failure& f) { return absl::IsUnimplemented(f.reason); });
}

std::vector<std::string> FailedNodes::WaysOut(const Graph& graph,
                                              const std::vector<std::string>& cut) const {
  std::set<std::string> binds;
  for (const Failure& failure : failures_) {
    const bool all = std::all_of(failure.deciders.begin(), failure.deciders.end(),
                                 [&](ValueId input) { return MayBeConstant(graph, input); });
    if (!all) continue;
    for (ValueId input : failure.deciders) {
      const std::string& name = graph.values[static_cast<size_t>(input)].name;
      binds.insert(fmt::format("--bind {}=F.npy", ShellWord(name)));
    }
  }
  std::vector<std::string> ways;
  const auto unknown = [](const Failure& f) { return StatusMessage(f.reason) == kUnknownOperator; };
  if (std::any_of(failures_.begin(), failures_.end(), unknown)) {
    ways.emplace_back(
        "docs/reference/operators.md lists the operators that Hone has: export the model with "
        "those");
  }
  if (!binds.empty())
    ways.push_back(
        fmt::format("inputs that never change can be made constants: {}", fmt::join(binds, " ")));
  if (!cut.empty()) {
    ways.push_back(fmt::format("what comes before {} can be compiled alone: --cut {}",
                               failures_.size() == 1 ? "it" : "them",
                               ShellWord(fmt::format("{}", fmt::join(cut, ",")))));
  }
  return ways;
}

absl::Status FailedNodes::Verdict(const Graph& graph, const std::vector<std::string>& cut) const {
  if (failures_.empty()) return absl::OkStatus();
  const std::vector<std::string> ways = WaysOut(graph, cut);
  if (failures_.size() == 1) {
    const absl::Status& reason = failures_[0].reason;
    std::string text = StatusMessage(reason);
    for (const std::string& way : ways) text += "; " + way;
    return Annotate(absl::Status(reason.code(), text), failures_[0].node);
  }
  using Group = std::pair<std::string, std::vector<std::string>>;  // its text, its nodes
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const Failure& failure : failures_) {
    const auto [found, added] =
        known.try_emplace({failure.op, StatusMessage(failure.reason)}, groups.size());
    if (added)
      groups.emplace_back(StatusMessage(Annotate(failure.reason, failure.node)),
                          std::vector<std::string>());
    groups[found->second].second.push_back(failure.name);
  }
  constexpr size_t kMostGroups = 100;
  std::string text = fmt::format("{} nodes cannot be imported:", failures_.size());
  for (size_t i = 0; i < groups.size() && i < kMostGroups; ++i)
    text += "\n  " + groups[i].first + Others(groups[i].second);
  if (groups.size() > kMostGroups)
    text += fmt::format("\n  and {} more", groups.size() - kMostGroups);
  for (const std::string& way : ways) text += "\n" + way;
  return AllUnimplemented() ? absl::UnimplementedError(text) : absl::InvalidArgumentError(text);
}

}  // namespace hone::graph::onnx_import

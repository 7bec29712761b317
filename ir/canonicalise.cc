#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "ir/workload_builder.h"

namespace hone::ir {
namespace {

/// A load of a tensor of the same scan region at another iteration than t: data of an earlier
/// iteration, so no edge of the order.
bool IsCarried(const ExprNode& load) {
  if (load.args.empty()) return true;
  const ExprNode& t = *load.args[0];
  return !(t.kind == ExprKind::kVar && t.id == 0);
}

/// Orders the Stages that the outputs need. Loads are the edges; a scan region counts as one node,
/// whose own Stages are ordered by their loads at t.
class StageOrder {
 public:
  explicit StageOrder(const Workload& workload)
      : workload_(workload),
        producer_(workload.tensors.size(), -1),
        state_(workload.stages.size()) {
    for (size_t s = 0; s < workload.stages.size(); ++s) {
      for (int tensor : workload.stages[s].results) {
        producer_[static_cast<size_t>(tensor)] = static_cast<int>(s);
      }
    }
  }

  std::vector<int> For(const std::vector<int>& outputs) {
    order_.clear();
    state_.assign(state_.size(), false);
    for (int output : outputs) Need(producer_[static_cast<size_t>(output)]);
    return order_;
  }

 private:
  struct Edge {
    int stage;
    bool carried;
  };

  /// Stages that `stage` loads from, by first load.
  std::vector<Edge> Edges(int stage) const {
    std::vector<Edge> edges;
    const Stage& reader = workload_.stages[static_cast<size_t>(stage)];
    for (const Expr& body : reader.body) {
      Visit(body, [&](const ExprNode& node) {
        if (node.kind != ExprKind::kLoad) return;
        const int producer = producer_[static_cast<size_t>(node.id)];
        if (producer < 0) return;
        const bool inside = reader.scan >= 0 && SameRegion(reader.scan, producer);
        edges.push_back({producer, inside && IsCarried(node)});
      });
    }
    return edges;
  }

  bool SameRegion(int scan, int stage) const {
    return workload_.stages[static_cast<size_t>(stage)].scan == scan;
  }

  void Need(int stage) {
    if (stage < 0 || state_[static_cast<size_t>(stage)]) return;
    const int scan = workload_.stages[static_cast<size_t>(stage)].scan;
    if (scan >= 0) {
      NeedRegion(scan, stage);
      return;
    }
    state_[static_cast<size_t>(stage)] = true;
    for (const Edge& edge : Edges(stage)) Need(edge.stage);
    order_.push_back(stage);
  }

  void NeedRegion(int scan, int entry) {
    // Members in the order of a walk over loads at t, then over carried ones.
    std::vector<int> members;
    std::vector<int> carried = {entry};
    for (size_t next = 0; next < carried.size(); ++next)
      Member(scan, carried[next], &members, &carried);
    for (int member : members) {
      for (const Edge& edge : Edges(member)) {
        if (!SameRegion(scan, edge.stage)) Need(edge.stage);
      }
    }
    order_.insert(order_.end(), members.begin(), members.end());
  }

  void Member(int scan, int stage, std::vector<int>* members, std::vector<int>* carried) {
    if (state_[static_cast<size_t>(stage)]) return;
    state_[static_cast<size_t>(stage)] = true;
    for (const Edge& edge : Edges(stage)) {
      if (!SameRegion(scan, edge.stage)) continue;
      if (edge.carried) {
        carried->push_back(edge.stage);
      } else {
        Member(scan, edge.stage, members, carried);
      }
    }
    members->push_back(stage);
  }

  const Workload& workload_;
  std::vector<int> producer_;
  std::vector<bool> state_;
  std::vector<int> order_;
};

/// A copy with other tensor ids and nothing else changed: no folding, or the form would depend on
/// whether ids moved.
Expr Renumber(const Expr& e, const std::vector<int>& ids) {
  if (e->args.empty() && e->kind != ExprKind::kLoad) return e;
  ExprNode node = *e;
  for (Expr& arg : node.args) arg = Renumber(arg, ids);
  if (node.kind == ExprKind::kLoad) node.id = ids[static_cast<size_t>(node.id)];
  return std::make_shared<const ExprNode>(std::move(node));
}

/// Outputs in the order in which their Stages come.
std::vector<int> OutputsInOrder(const Workload& workload, const std::vector<int>& order,
                                const std::vector<int>& outputs) {
  std::vector<int> ordered;
  for (int stage : order) {
    for (int tensor : workload.stages[static_cast<size_t>(stage)].results) {
      if (std::ranges::find(outputs, tensor) != outputs.end()) ordered.push_back(tensor);
    }
  }
  return ordered;
}

/// Gives the ordered Stages and their tensors their canonical ids and names.
WorkloadBuilder::Result Rename(const Workload& from, const std::vector<int>& order,
                               const std::vector<int>& outputs) {
  WorkloadBuilder::Result result;
  result.canonical.assign(from.tensors.size(), -1);
  Workload& to = result.workload;
  const auto add = [&](int tensor, std::string name) {
    int& id = result.canonical[static_cast<size_t>(tensor)];
    if (id >= 0) return;
    id = static_cast<int>(to.tensors.size());
    to.tensors.push_back(from.tensors[static_cast<size_t>(tensor)]);
    to.tensors.back().name = std::move(name);
    to.tensors.back().output = std::ranges::find(outputs, tensor) != outputs.end();
  };
  for (int s : order) {
    for (const Expr& body : from.stages[static_cast<size_t>(s)].body) {
      Visit(body, [&](const ExprNode& node) {
        if (node.kind != ExprKind::kLoad) return;
        if (from.tensors[static_cast<size_t>(node.id)].kind == TensorKind::kStage) return;
        add(node.id, "x" + std::to_string(to.tensors.size()));
      });
    }
  }
  for (size_t s = 0; s < order.size(); ++s) {
    const Stage& stage = from.stages[static_cast<size_t>(order[s])];
    for (size_t k = 0; k < stage.results.size(); ++k) {
      const std::string name = "s" + std::to_string(s);
      add(stage.results[k], k == 0 ? name : name + "." + std::to_string(k));
    }
  }
  std::map<int, int> scans;
  for (size_t s = 0; s < order.size(); ++s) {
    Stage stage = from.stages[static_cast<size_t>(order[s])];
    stage.name = "s" + std::to_string(s);
    for (Expr& body : stage.body) body = Renumber(body, result.canonical);
    for (int& tensor : stage.results) tensor = result.canonical[static_cast<size_t>(tensor)];
    if (stage.scan >= 0) {
      stage.scan = scans.emplace(stage.scan, static_cast<int>(scans.size())).first->second;
    }
    to.stages.push_back(std::move(stage));
  }
  return result;
}

}  // namespace

WorkloadBuilder::Result CanonicaliseFor(const Workload& workload, const std::vector<int>& outputs) {
  StageOrder stage_order(workload);
  // The order of Stages follows from that of the outputs, and an output that another one reads
  // comes first whatever the caller said: repeat until the two agree (the second time, scans
  // aside).
  std::vector<int> wanted = outputs;
  std::vector<int> order = stage_order.For(wanted);
  for (int round = 0; round < 8; ++round) {
    std::vector<int> made = OutputsInOrder(workload, order, outputs);
    if (made == wanted) break;
    wanted = std::move(made);
    order = stage_order.For(wanted);
  }
  return Rename(workload, order, outputs);
}

WorkloadBuilder::Result Canonicalise(const Workload& workload) {
  return CanonicaliseFor(workload, workload.Outputs());
}

}  // namespace hone::ir

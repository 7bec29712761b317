#include "compiler/cascades.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/group_limits.h"
#include "graph/group_workload.h"
#include "ir/hash.h"
#include "ir/workload_cost.h"
#include "schedule/kind_sketches.h"

namespace hone::compiler {
namespace {

using graph::Group;
using graph::GroupKind;

/// The one value between a group and the one group that reads it.
struct Link {
  int from = -1, to = -1;
  int64_t bytes = 0;
};

/// Groups that are joined so far.
struct Chain {
  std::vector<int> groups;  ///< in order
  std::optional<double> nominal_ns;
};

class Joiner {
 public:
  Joiner(const graph::Graph& graph, const std::vector<Group>& groups, const ir::Target& target,
         TraceSource& traces)
      : graph_(graph),
        groups_(groups),
        target_(target),
        traces_(traces),
        limits_(graph::LimitsOfKinds().Of(target).Of(target)),
        readers_(graph.Readers()) {}

  absl::StatusOr<Cascades> Run(CascadeRun run) {
    if (run != CascadeRun::kAll && limits_.near_bytes == 0) return Cascades{groups_};
    all_ = run == CascadeRun::kAll;
    chain_of_.resize(groups_.size());
    std::iota(chain_of_.begin(), chain_of_.end(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) chains_.push_back({{static_cast<int>(g)}, {}});
    for (const Link& link : Links()) {
      if (!all_ && link.bytes < limits_.near_bytes / kLeastPart) break;
      HONE_RETURN_IF_ERROR(TryJoin(link));
    }
    const int possible = NumJoined();
    if (!all_) HONE_RETURN_IF_ERROR(TakeApartWhatLoses());
    return Cascades{Joined(), possible, NumJoined()};
  }

 private:
  /// What is smaller than this part of the last cache does not go far.
  static constexpr int64_t kLeastPart = 4;
  static constexpr double kWorthIt = 0.97;  ///< of the nominal time apart

  std::vector<Link> Links() const {
    std::vector<int> group_of(graph_.nodes.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const graph::NodeId n : groups_[g].nodes)
        group_of[static_cast<size_t>(n)] = static_cast<int>(g);
    }
    std::vector<Link> links;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].kind != GroupKind::kKernel || groups_[g].anchor < 0) continue;
      const auto outputs = graph::GroupOutputs(graph_, readers_, groups_[g].nodes);
      if (outputs.size() != 1 ||
          std::ranges::find(graph_.outputs, outputs[0]) != graph_.outputs.end())
        continue;
      Link link{static_cast<int>(g), -1,
                graph_.values[static_cast<size_t>(outputs[0])].type.Bytes()};
      bool one = true;
      for (const graph::NodeId reader : readers_[static_cast<size_t>(outputs[0])]) {
        const int to = group_of[static_cast<size_t>(reader)];
        if (to == link.from) continue;
        one = one && (link.to < 0 || link.to == to);
        link.to = to;
      }
      if (!one || link.to < 0) continue;
      const Group& to = groups_[static_cast<size_t>(link.to)];
      if (to.kind == GroupKind::kKernel && to.anchor >= 0) links.push_back(link);
    }
    std::ranges::stable_sort(links, [](const Link& a, const Link& b) { return a.bytes > b.bytes; });
    return links;
  }

  Group GroupOf(const Chain& chain) const {
    Group group = groups_[static_cast<size_t>(chain.groups.back())];
    group.nodes.clear();
    for (const int g : chain.groups) {
      const Group& part = groups_[static_cast<size_t>(g)];
      group.nodes.insert(group.nodes.end(), part.nodes.begin(), part.nodes.end());
    }
    std::ranges::sort(group.nodes);
    return group;
  }

  // Nothing but the link leaves the first chain, so no path leaves the two and comes back.
  absl::Status TryJoin(const Link& link) {
    const int from = chain_of_[static_cast<size_t>(link.from)];
    const int to = chain_of_[static_cast<size_t>(link.to)];
    Chain joined = chains_[static_cast<size_t>(from)];
    const Chain& next = chains_[static_cast<size_t>(to)];
    joined.groups.insert(joined.groups.end(), next.groups.begin(), next.groups.end());
    HONE_ASSIGN_OR_RETURN(const graph::GroupWorkload made, Made(joined));
    const double work = WorkInBands(made.workload);
    if (work == 0) return absl::OkStatus();
    joined.nominal_ns = NominalNs(made, work);
    if (!all_) {
      HONE_ASSIGN_OR_RETURN(const double first, NsOf(chains_[static_cast<size_t>(from)]));
      HONE_ASSIGN_OR_RETURN(const double second, NsOf(chains_[static_cast<size_t>(to)]));
      if (*joined.nominal_ns >= kWorthIt * (first + second)) return absl::OkStatus();
    }
    for (const int g : joined.groups) chain_of_[static_cast<size_t>(g)] = to;
    chains_[static_cast<size_t>(from)].groups.clear();
    chains_[static_cast<size_t>(to)] = std::move(joined);
    return absl::OkStatus();
  }

  // Nominal times are the target's; where all the kernels in question were measured, those count.
  absl::Status TakeApartWhatLoses() {
    for (size_t c = 0; c < chains_.size(); ++c) {
      const std::vector<int> groups = chains_[c].groups;
      if (groups.size() < 2) continue;
      HONE_ASSIGN_OR_RETURN(const double joined_ns, MeasuredNs(chains_[c]));
      double apart_ns = 0;
      bool known = joined_ns > 0;
      for (size_t k = 0; known && k < groups.size(); ++k) {
        HONE_ASSIGN_OR_RETURN(const double ns, MeasuredNs({{groups[k]}, {}}));
        known = ns > 0;
        apart_ns += ns;
      }
      if (!known || joined_ns <= apart_ns) continue;
      for (const int g : groups) chains_[static_cast<size_t>(g)].groups = {g};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> MeasuredNs(const Chain& chain) const {
    HONE_ASSIGN_OR_RETURN(const graph::GroupWorkload made, Made(chain));
    return traces_.FindNs(made.workload, ir::StructuralHash(made.workload).ToHex(), target_);
  }

  absl::StatusOr<graph::GroupWorkload> Made(const Chain& chain) const {
    return graph::BuildWorkload(graph_, readers_, GroupOf(chain));
  }

  double WorkInBands(const ir::Workload& workload) {
    const auto [known, fresh] = work_.try_emplace(ir::StructuralHash(workload).ToHex(), 0);
    if (fresh)
      known->second = schedule::SketchesOfKinds().Of(target_).WorkInBands(workload, target_);
    return known->second;
  }

  absl::StatusOr<double> NsOf(Chain& chain) const {
    if (!chain.nominal_ns) {
      HONE_ASSIGN_OR_RETURN(const graph::GroupWorkload made, Made(chain));
      chain.nominal_ns = NominalNs(made, 1);
    }
    return *chain.nominal_ns;
  }

  // As of a step that reads and writes these; what is written is fetched before.
  double NominalNs(const graph::GroupWorkload& made, double work) const {
    double far = 0;
    const auto add = [&](const std::vector<graph::ValueId>& values, double times) {
      for (const graph::ValueId value : values) {
        const int64_t bytes = graph_.values[static_cast<size_t>(value)].type.Bytes();
        if (bytes > limits_.near_bytes / 2) far += times * static_cast<double>(bytes);
      }
    };
    add(made.inputs, 1);
    add(made.outputs, 2);
    return std::max(work * ir::CostOf(made.workload).flop() / ir::MostFlopPerNs(target_),
                    far / limits_.far_bytes_per_ns);
  }

  int NumJoined() const {
    return static_cast<int>(
        std::ranges::count_if(chains_, [](const Chain& chain) { return chain.groups.size() > 1; }));
  }

  std::vector<Group> Joined() const {
    std::vector<std::pair<int, const Chain*>> order;
    for (const Chain& chain : chains_) {
      if (!chain.groups.empty()) order.emplace_back(std::ranges::max(chain.groups), &chain);
    }
    std::ranges::sort(order);
    std::vector<Group> result;
    for (const auto& [place, chain] : order) {
      result.push_back(chain->groups.size() == 1 ? groups_[static_cast<size_t>(chain->groups[0])]
                                                 : GroupOf(*chain));
    }
    return result;
  }

  const graph::Graph& graph_;
  const std::vector<Group>& groups_;
  const ir::Target& target_;
  TraceSource& traces_;
  const graph::GroupLimits limits_;
  bool all_ = false;
  const std::vector<std::vector<graph::NodeId>> readers_;
  std::vector<int> chain_of_;
  std::vector<Chain> chains_;
  std::map<std::string, double> work_;  ///< by Workload: WorkInBands
};

}  // namespace

absl::StatusOr<Cascades> JoinCascades(const graph::Graph& graph, const std::vector<Group>& groups,
                                      const ir::Target& target, CascadeRun run,
                                      TraceSource& traces) {
  if (run != CascadeRun::kOn && run != CascadeRun::kAll) return Cascades{groups};
  return Joiner(graph, groups, target, traces).Run(run);
}

}  // namespace hone::compiler

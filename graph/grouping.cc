#include "graph/grouping.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/group_limits.h"
#include "graph/node_profile.h"
#include "graph/unchecked_lookups.h"

namespace hone::graph {
namespace {

/// A group while it grows.
struct Draft {
  std::set<NodeId> nodes;
  NodeId anchor = -1;
  NodeRole role = NodeRole::kMove;  ///< of the anchor, else kMap when any node computes
  bool has_rows = false;            ///< has a row-wise node
  bool closed = false;              ///< takes no consumers: extern, scan, concat
  int64_t flops = 0;                ///< of the maps in it, per element
  int instructions = 0;             ///< of the maps in it, for an element
  bool expensive = false;
  bool data_dependent = false;
  int num_sources = 1;  ///< most sources of any move in it
};

class Grouper {
 public:
  /// The nodes of each pair in `apart` are in different groups.
  Grouper(const Graph& graph, const ir::Target& target, std::vector<NodePair> apart)
      : graph_(graph),
        apart_(std::move(apart)),
        limits_(LimitsOfKinds().Of(target).Of(target)),
        readers_(graph.Readers()),
        draft_of_(graph.nodes.size(), -1) {
    is_output_.resize(graph.values.size());
    for (ValueId output : graph.outputs) is_output_[output] = true;
  }

  absl::StatusOr<std::vector<Group>> Run() {
    for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n) {
      HONE_ASSIGN_OR_RETURN(NodeProfile profile, ProfileNode(graph_, n));
      profiles_.push_back(std::move(profile));
      const int joined = DraftToJoin(n);
      const int draft = joined >= 0 ? joined : NewDraft();
      Add(n, draft);
      if (profiles_[n].role != NodeRole::kExtern) TakeProducers(n, draft);
      CloseConcat(n, draft);
    }
    SinkWidenings();
    PeelAliases();
    return Ordered();
  }

 private:
  int NewDraft() {
    drafts_.emplace_back();
    return static_cast<int>(drafts_.size()) - 1;
  }

  void Add(NodeId n, int d) {
    const NodeProfile& profile = profiles_[n];
    Draft& draft = drafts_[d];
    draft.nodes.insert(n);
    draft_of_[n] = d;
    if (IsAnchor(profile.role) || profile.role == NodeRole::kExtern) {
      if (draft.anchor < 0) {
        draft.anchor = n;
        draft.role = profile.role;
      }
      draft.has_rows = draft.has_rows || profile.role == NodeRole::kRowWise;
      draft.closed =
          draft.closed || profile.role == NodeRole::kScan || profile.role == NodeRole::kExtern;
      return;
    }
    if (profile.role == NodeRole::kMap && draft.anchor < 0) draft.role = NodeRole::kMap;
    draft.flops += profile.flops;
    draft.instructions += profile.instructions;
    draft.expensive = draft.expensive || profile.expensive;
    draft.data_dependent = draft.data_dependent || profile.data_dependent;
    if (profile.role == NodeRole::kMove)
      draft.num_sources = std::max(draft.num_sources, profile.num_sources);
  }

  NodeId Producer(ValueId value) const {
    return value == kNoValue ? -1 : graph_.values[value].producer;
  }

  // The draft of the last producer (in topological order) that `n` may follow, or -1.
  int DraftToJoin(NodeId n) const {
    const NodeRole role = profiles_[n].role;
    if (role == NodeRole::kContraction && MayCloseAttention(n))
      return draft_of_[Producer(graph_.nodes[n].inputs[0])];
    if (role != NodeRole::kMove && role != NodeRole::kMap && role != NodeRole::kRowWise) return -1;
    std::set<NodeId, std::greater<>> producers;
    for (ValueId input : graph_.nodes[n].inputs) {
      if (Producer(input) >= 0) producers.insert(Producer(input));
    }
    for (NodeId producer : producers) {
      if (MayJoin(n, producer)) return draft_of_[producer];
    }
    return -1;
  }

  // Whether `n` may be a consumer in the draft of its producer.
  bool MayJoin(NodeId n, NodeId producer) const {
    const int d = draft_of_[producer];
    const NodeProfile& profile = profiles_[n];
    if (MustStayApart(drafts_[d].nodes, {n})) return false;
    if (drafts_[d].closed || IsLong(drafts_[d], profile.instructions, 1)) return false;
    if (profile.role == NodeRole::kRowWise && !RowsFit(profile, drafts_[d])) return false;
    // A relabelling of a value that others read too is cheaper in its reader than stored a second
    // time.
    if (profile.role == NodeRole::kMove && !profile.alias_offset && !IsOnlyReader(n, producer))
      return false;
    for (size_t k = 0; k < profile.reads.size(); ++k) {
      const NodeId source = Producer(graph_.nodes[n].inputs[k]);
      if (source < 0 || draft_of_[source] != d) continue;
      if (profile.reads[k].read && !profile.reads[k].bijective) return false;
    }
    return !MakesCycle(d, n);
  }

  // A product that RecogniseAttention marked joins the group of the product and the softmax that
  // make its probabilities, when nobody outside reads what that group computes.
  bool MayCloseAttention(NodeId n) const {
    const Node& node = graph_.nodes[n];
    const NodeId producer = Producer(node.inputs[0]);
    if (!node.attributes.contains("attention") || producer < 0) return false;
    const int d = draft_of_[producer];
    const Draft& draft = drafts_[d];
    if (draft.closed || !draft.has_rows || draft.role != NodeRole::kContraction) return false;
    for (NodeId inside : draft.nodes) {
      for (ValueId output : graph_.nodes[inside].outputs) {
        if (output == kNoValue) continue;
        if (is_output_[output]) return false;
        for (NodeId reader : readers_[output]) {
          if (reader != n && draft_of_[reader] != d) return false;
        }
      }
    }
    return Producer(node.inputs[1]) != producer && !MakesCycle(d, n);
  }

  bool MustStayApart(const std::set<NodeId>& one, const std::set<NodeId>& other) const {
    return std::ranges::any_of(apart_, [&](const NodePair& pair) {
      return (one.contains(pair.first) && other.contains(pair.second)) ||
             (one.contains(pair.second) && other.contains(pair.first));
    });
  }

  // Whether more of this would make a group that takes seconds to build: its code is unrolled.
  static bool IsLong(const Draft& draft, int instructions, size_t nodes) {
    constexpr int kMostInstructions = 640;  // 32 transcendental functions
    constexpr size_t kMostNodes = 96;
    return draft.instructions + instructions > kMostInstructions ||
           draft.nodes.size() + nodes > kMostNodes;
  }

  // At most one row-wise consumer joins, where its rows stay near.
  bool RowsFit(const NodeProfile& profile, const Draft& draft) const {
    return !draft.has_rows && profile.contiguous_rows && profile.row_bytes <= limits_.row_bytes;
  }

  bool IsOnlyReader(NodeId n, NodeId producer) const {
    for (ValueId output : graph_.nodes[producer].outputs) {
      if (output == kNoValue) continue;
      if (is_output_[output]) return false;
      for (NodeId reader : readers_[output]) {
        if (reader != n) return false;
      }
    }
    return true;
  }

  void TakeProducers(NodeId n, int d) {
    for (size_t k = 0; k < graph_.nodes[n].inputs.size(); ++k) {
      const NodeId producer = Producer(graph_.nodes[n].inputs[k]);
      if (producer < 0 || draft_of_[producer] == d) continue;
      const int from = draft_of_[producer];
      if (MayTake(n, profiles_[n].reads[k], from, d)) Merge(from, d);
    }
  }

  // Whether draft `from`, read by node n of draft d, may be computed inside d.
  bool MayTake(NodeId n, const OperandRead& read, int from, int d) const {
    const Draft& draft = drafts_[from];
    if (draft.anchor >= 0 || draft.closed ||
        IsLong(drafts_[d], draft.instructions, draft.nodes.size()) ||
        MustStayApart(draft.nodes, drafts_[d].nodes))
      return false;
    for (NodeId node : draft.nodes) {
      if (profiles_[n].role == NodeRole::kContraction && IsNarrowing(node)) return false;
      for (ValueId output : graph_.nodes[node].outputs) {
        if (output == kNoValue) continue;
        if (is_output_[output]) return false;
        for (NodeId reader : readers_[output]) {
          const int reader_draft = draft_of_[reader];
          if (reader_draft != from && reader_draft != d) return false;
        }
      }
    }
    const NodeRole reader = profiles_[n].role;
    const bool once = reader == NodeRole::kRowWise || (read.read && read.once);
    // Gathers and concatenations read by tiles again and again would repeat their tests.
    if (!once && (draft.data_dependent || draft.num_sources > 1)) return false;
    if (reader == NodeRole::kScan && draft.role != NodeRole::kMove) return false;
    if (!once && IsDear(draft.flops, draft.expensive)) return false;
    return !MergeMakesCycle(from, d);
  }

  // What a product reads rounded to bf16 is loaded in pairs, and so must be stored.
  bool IsNarrowing(NodeId n) const {
    const ir::DType dtype = graph_.values[graph_.nodes[n].outputs[0]].type.dtype;
    return dtype == ir::DType::kBF16 && profiles_[n].role == NodeRole::kMap;
  }

  // Too much to be computed anew wherever it is read.
  static bool IsDear(int64_t flops, bool expensive) { return flops > 2 || expensive; }

  void Merge(int from, int to) {
    for (NodeId node : drafts_[from].nodes) {
      drafts_[to].nodes.insert(node);
      draft_of_[node] = to;
    }
    Draft& draft = drafts_[to];
    const Draft& source = drafts_[from];
    if (draft.anchor < 0 && source.role == NodeRole::kMap) draft.role = NodeRole::kMap;
    draft.flops += source.flops;
    draft.instructions += source.instructions;
    draft.expensive = draft.expensive || source.expensive;
    draft.data_dependent = draft.data_dependent || source.data_dependent;
    draft.num_sources = std::max(draft.num_sources, source.num_sources);
    drafts_[from] = Draft{};
  }

  // A concatenation of whole values that kernels make stays by itself: they can write their parts
  // in place.
  void CloseConcat(NodeId n, int d) {
    Draft& draft = drafts_[d];
    const NodeProfile& profile = profiles_[n];
    if (draft.nodes.size() != 1 || profile.role != NodeRole::kMove || profile.num_sources < 2)
      return;
    for (ValueId input : graph_.nodes[n].inputs) {
      if (Producer(input) < 0) return;
    }
    draft.closed = true;
  }

  // Whether any of the drafts in `from` depends on draft `target` by a way that leaves `target`.
  bool Reaches(std::vector<int> from, int target) const {
    std::vector<bool> seen(drafts_.size());
    while (!from.empty()) {
      const int d = from.back();
      from.pop_back();
      if (d == target) return true;
      if (seen[d]) continue;
      seen[d] = true;
      for (int producer : ProducersOf(d)) from.push_back(producer);
    }
    return false;
  }

  std::vector<int> ProducersOf(int d) const {
    std::vector<int> producers;
    for (NodeId node : drafts_[d].nodes) {
      for (ValueId input : graph_.nodes[node].inputs) {
        const NodeId producer = Producer(input);
        if (producer >= 0 && draft_of_[producer] != d) producers.push_back(draft_of_[producer]);
      }
    }
    return producers;
  }

  // Node n, in no draft yet, joining d: a cycle when another producer of n depends on d.
  bool MakesCycle(int d, NodeId n) const {
    std::vector<int> others;
    for (ValueId input : graph_.nodes[n].inputs) {
      const NodeId producer = Producer(input);
      if (producer >= 0 && draft_of_[producer] != d) others.push_back(draft_of_[producer]);
    }
    return Reaches(std::move(others), d);
  }

  // `from` is read by d: a cycle when `from` depends on d, or d on `from` by another way.
  bool MergeMakesCycle(int from, int d) const {
    if (Reaches(ProducersOf(from), d)) return true;
    std::vector<int> others;
    for (int producer : ProducersOf(d)) {
      if (producer != from) others.push_back(producer);
    }
    return Reaches(std::move(others), from);
  }

  // What is widened from a group's bytes for one other group is widened there: the bytes are a
  // quarter of what would be stored.
  void SinkWidenings() {
    for (NodeId n = static_cast<NodeId>(graph_.nodes.size()); n-- > 0;) {
      bool once = true;
      const int to = OnlyReadingDraft(n, &once);
      if (to < 0) continue;
      const std::vector<NodeId> chain = WideningTo(n);
      int64_t flops = 0;
      bool expensive = false;
      for (NodeId node : chain) {
        flops += profiles_[node].flops;
        expensive = expensive || profiles_[node].expensive;
      }
      if (!once && IsDear(flops, expensive)) continue;
      if (MustStayApart({chain.begin(), chain.end()}, drafts_[to].nodes)) continue;
      for (NodeId node : chain) {
        drafts_[draft_of_[node]].nodes.erase(node);
        drafts_[to].nodes.insert(node);
        drafts_[to].instructions += profiles_[node].instructions;
        draft_of_[node] = to;
      }
    }
  }

  // The one other draft that reads the node's result and may take maps, or -1; and whether it reads
  // each element once.
  int OnlyReadingDraft(NodeId n, bool* once) const {
    const ValueId value = graph_.nodes[n].outputs[0];
    if (profiles_[n].role != NodeRole::kMap || is_output_[value]) return -1;
    int to = -1;
    for (NodeId reader : readers_[value]) {
      const int d = draft_of_[reader];
      if (d == draft_of_[n] || (to >= 0 && d != to) || drafts_[d].closed) return -1;
      to = d;
      for (size_t k = 0; k < graph_.nodes[reader].inputs.size(); ++k) {
        if (graph_.nodes[reader].inputs[k] != value) continue;
        *once = *once &&
                (profiles_[reader].role == NodeRole::kRowWise || profiles_[reader].reads[k].once);
      }
    }
    return to;
  }

  // The maps of n's draft from a byte to n, each read by the next alone; none where there is no
  // such way.
  std::vector<NodeId> WideningTo(NodeId n) const {
    std::vector<NodeId> chain;
    while (true) {
      chain.push_back(n);
      NodeId from = -1;
      for (ValueId input : graph_.nodes[n].inputs) {
        if (Producer(input) >= 0 && std::exchange(from, Producer(input)) >= 0) return {};
      }
      if (from < 0 || draft_of_[from] != draft_of_[n]) return {};
      const ir::DType dtype = graph_.values[graph_.nodes[from].outputs[0]].type.dtype;
      if (dtype == ir::DType::kU8 || dtype == ir::DType::kI8) return chain;
      if (profiles_[from].role != NodeRole::kMap || !IsOnlyReader(n, from)) return {};
      n = from;
    }
  }

  // Relabellings at the ends of a group need no loops: they become aliases of buffers.
  void PeelAliases() {
    const size_t count = drafts_.size();
    for (size_t d = 0; d < count; ++d) {
      bool changed = true;
      while (changed && drafts_[d].nodes.size() > 1) {
        changed = false;
        for (NodeId n : std::vector<NodeId>(drafts_[d].nodes.begin(), drafts_[d].nodes.end())) {
          if (drafts_[d].nodes.size() == 1 || !IsAliasAtEnd(n, static_cast<int>(d))) continue;
          drafts_[d].nodes.erase(n);
          const int own = NewDraft();
          drafts_[own].nodes.insert(n);
          draft_of_[n] = own;
          changed = true;
        }
      }
    }
  }

  bool IsAliasAtEnd(NodeId n, int d) const {
    if (!IsAlias(n)) return false;
    const NodeId producer = Producer(graph_.nodes[n].inputs[0]);
    if (producer < 0 || draft_of_[producer] != d) return true;
    for (NodeId reader : readers_[graph_.nodes[n].outputs[0]]) {
      if (draft_of_[reader] == d) return false;
    }
    return true;
  }

  // A part of a buffer can stand for a tensor when it starts on a vector boundary.
  bool IsAlias(NodeId n) const {
    constexpr int64_t kAlignmentBytes = 64;
    const NodeProfile& profile = profiles_[n];
    if (!profile.alias_offset) return false;
    const int64_t element_bytes = ir::SizeOf(graph_.values[graph_.nodes[n].outputs[0]].type.dtype);
    return *profile.alias_offset * element_bytes % kAlignmentBytes == 0;
  }

  // Topological order of drafts, ready ones by their first node.
  std::vector<Group> Ordered() const {
    std::vector<int> waiting(drafts_.size());
    std::vector<std::set<int>> readers(drafts_.size());
    std::set<std::pair<NodeId, int>> ready;
    for (size_t d = 0; d < drafts_.size(); ++d) {
      if (drafts_[d].nodes.empty()) continue;
      const std::vector<int> list = ProducersOf(static_cast<int>(d));
      const std::set<int> producers(list.begin(), list.end());
      waiting[d] = static_cast<int>(producers.size());
      for (int producer : producers) readers[producer].insert(static_cast<int>(d));
      if (producers.empty()) ready.insert({*drafts_[d].nodes.begin(), static_cast<int>(d)});
    }
    std::vector<Group> groups;
    size_t placed = 0;
    while (!ready.empty()) {
      const int d = ready.begin()->second;
      ready.erase(ready.begin());
      groups.push_back(ToGroup(d));
      placed += drafts_[d].nodes.size();
      for (int reader : readers[d]) {
        if (--waiting[reader] == 0) ready.insert({*drafts_[reader].nodes.begin(), reader});
      }
    }
    HONE_CHECK(placed == graph_.nodes.size()) << "groups depend on each other in a circle";
    return groups;
  }

  Group ToGroup(int d) const {
    const Draft& draft = drafts_[d];
    Group group;
    group.nodes.assign(draft.nodes.begin(), draft.nodes.end());
    group.anchor = draft.anchor;
    const NodeId only = group.nodes.size() == 1 ? group.nodes[0] : -1;
    if (draft.role == NodeRole::kExtern) {
      group.kind = GroupKind::kExtern;
    } else if (only >= 0 && IsAlias(only)) {
      group.kind = GroupKind::kAlias;
      group.alias_offset = *profiles_[only].alias_offset;
    } else if (only >= 0 && draft.closed && profiles_[only].role == NodeRole::kMove) {
      group.kind = GroupKind::kConcat;
    }
    return group;
  }

  const Graph& graph_;
  const std::vector<NodePair> apart_;
  const GroupLimits limits_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  std::vector<NodeProfile> profiles_;
  std::vector<Draft> drafts_;
  std::vector<int> draft_of_;
};

}  // namespace

absl::StatusOr<std::vector<Group>> GroupNodes(const Graph& graph, const ir::Target& target) {
  std::vector<NodePair> apart;
  while (true) {
    HONE_ASSIGN_OR_RETURN(std::vector<Group> groups, Grouper(graph, target, apart).Run());
    HONE_ASSIGN_OR_RETURN(const std::vector<NodePair> unchecked, UncheckedLookUps(graph, groups));
    if (unchecked.empty()) return groups;
    apart.insert(apart.end(), unchecked.begin(), unchecked.end());
  }
}

}  // namespace hone::graph

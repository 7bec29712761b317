#include "graph/workload_rewrite.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "graph/index_map.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ExprNode;
using ir::Stage;
using ir::Workload;

std::vector<int64_t> ExtentsOf(const Stage& stage) {
  std::vector<int64_t> extents = stage.spatial;
  extents.insert(extents.end(), stage.reduce.begin(), stage.reduce.end());
  return extents;
}

std::vector<Expr> Axes(size_t count) {
  std::vector<Expr> axes;
  for (size_t k = 0; k < count; ++k) axes.push_back(ir::Var(static_cast<int>(k)));
  return axes;
}

// Shortens the indices of every load in `e`, an expression over axes of these extents.
Expr SimplifyLoads(const Expr& e, const std::vector<int64_t>& extents) {
  return ir::Rewrite(e, [&](const Expr& node) -> Expr {
    if (node->kind != ExprKind::kLoad) return nullptr;
    std::vector<Expr> indices;
    for (const Expr& index : node->args) indices.push_back(SimplifyIndex(index, extents));
    return ir::Load(node->id, node->dtype, std::move(indices));
  });
}

bool IsMap(const Stage& stage) {
  return stage.reduce.empty() && stage.combiner == ir::Combiner::kNone && stage.scan < 0 &&
         stage.store.empty() && stage.body.size() == 1;
}

bool IsInlinable(const Workload& workload, const Stage& stage) {
  return IsMap(stage) && !workload.tensors[stage.results[0]].output;
}

bool HasLoad(const Expr& e) {
  bool found = false;
  ir::Visit(e, [&](const ExprNode& node) { found = found || node.kind == ExprKind::kLoad; });
  return found;
}

// A load whose indices are computed from the axes alone.
bool IsMove(const Expr& body) {
  return body->kind == ExprKind::kLoad && std::ranges::none_of(body->args, HasLoad);
}

// Index k is axis k; an axis of extent 1 may also stand as 0.
bool IsIdentity(const std::vector<Expr>& indices, const std::vector<int64_t>& extents) {
  if (indices.size() != extents.size()) return false;
  for (size_t k = 0; k < indices.size(); ++k) {
    if (extents[k] == 1) continue;
    if (indices[k]->kind != ExprKind::kVar || indices[k]->id != static_cast<int>(k)) return false;
  }
  return true;
}

// A scan's own tensors are loaded at t and t - 1, which must stay visible also when there is only
// one step.
bool IsOfRegion(const Workload& workload, int tensor, int scan) {
  const int producer = scan < 0 ? -1 : workload.Producer(tensor);
  return producer >= 0 && workload.stages[producer].scan == scan;
}

// A move that splits or merges axes.
bool IsReshape(const Stage& stage) {
  if (!IsMap(stage) || !IsMove(stage.body[0])) return false;
  bool found = false;
  ir::Visit(stage.body[0], [&](const ExprNode& node) {
    found = found || (node.kind == ExprKind::kBinary &&
                      (node.binary() == ir::BinaryOp::kDiv || node.binary() == ir::BinaryOp::kMod));
  });
  return found;
}

// Whether one reshape, which repeats nothing and which reductions read, is all that reads a Stage.
bool OnlyReshaped(const Workload& workload, int stage) {
  const std::vector<int> readers = workload.Readers(stage);
  if (readers.size() != 1 || !IsReshape(workload.stages[readers[0]]) ||
      !IsInlinable(workload, workload.stages[readers[0]]) ||
      std::ranges::any_of(workload.Readers(readers[0]),
                          [&](int r) { return workload.stages[r].reduce.empty(); }))
    return false;
  const auto elements = [&](int s) {
    return workload.tensors[workload.stages[s].results[0]].NumElements();
  };
  return elements(readers[0]) <= elements(stage);
}

void DropUnitReduceAxes(Stage& stage) {
  // A reduction over nothing but ones is still the reduction of one element: its last axis stays.
  std::vector<Expr> renamed = Axes(stage.spatial.size());
  std::vector<int64_t> kept;
  for (size_t r = 0; r < stage.reduce.size(); ++r) {
    const bool last_chance = kept.empty() && r + 1 == stage.reduce.size();
    if (stage.reduce[r] == 1 && !last_chance) {
      renamed.push_back(ir::Int(0));
      continue;
    }
    renamed.push_back(ir::Var(static_cast<int>(stage.spatial.size() + kept.size())));
    kept.push_back(stage.reduce[r]);
  }
  if (kept.size() == stage.reduce.size()) return;
  stage.reduce = std::move(kept);
  for (Expr& body : stage.body) body = ir::SubstituteVars(body, renamed);
}

/// Moves maps one after the other, in Stage order. Without a reduction or scan the first output
/// takes its place.
class AnchorAxes {
 public:
  explicit AnchorAxes(Workload& workload)
      : workload_(workload), anchored_(workload.tensors.size()) {}

  void Run() {
    // Stages appended while running are outputs split off, which need no second look.
    const size_t count = workload_.stages.size();
    bool has_anchor = std::ranges::any_of(workload_.stages, [](const Stage& stage) {
      return !stage.reduce.empty() || stage.scan >= 0;
    });
    for (size_t s = 0; s < count; ++s) {
      bool follows = FollowsAnchor(workload_.stages[s]);
      if (!has_anchor && workload_.tensors[workload_.stages[s].results[0]].output)
        follows = has_anchor = true;
      if (follows && IsMap(workload_.stages[s])) MoveMap(static_cast<int>(s));
      for (int result : workload_.stages[s].results) {
        anchored_.resize(workload_.tensors.size());
        anchored_[result] = follows;
      }
    }
    FoldCopies();
  }

 private:
  bool FollowsAnchor(const Stage& stage) const {
    if (!stage.reduce.empty() || stage.scan >= 0) return true;
    bool found = false;
    for (const Expr& body : stage.body) {
      ir::Visit(body, [&](const ExprNode& node) {
        found = found || (node.kind == ExprKind::kLoad && anchored_[node.id]);
      });
    }
    return found;
  }

  // The load to follow: none when one of them already reads along the axes. A scalar's Stage keeps
  // its lack of axes: no index says where in a scalar a point of others would be stored.
  std::optional<ExprNode> LoadToFollow(const Stage& stage) const {
    if (stage.spatial.empty()) return std::nullopt;
    std::optional<ExprNode> chosen;
    bool in_place = false;
    ir::Visit(stage.body[0], [&](const ExprNode& node) {
      if (node.kind != ExprKind::kLoad || !anchored_[node.id]) return;
      const std::vector<int64_t>& shape = workload_.tensors[node.id].shape;
      if (shape == stage.spatial && IsIdentity(node.args, shape)) in_place = true;
      // Only a Stage's whole result is followed, which a result with a store map is not.
      if (!chosen && InvertIndices(node.args, stage.spatial, shape)) chosen = node;
    });
    return in_place ? std::nullopt : chosen;
  }

  void MoveMap(int s) {
    const std::optional<ExprNode> load = LoadToFollow(workload_.stages[s]);
    if (!load) return;
    Stage stage = workload_.stages[s];
    const std::vector<int64_t> shape = workload_.tensors[load->id].shape;
    const std::vector<Expr> inverse = *InvertIndices(load->args, stage.spatial, shape);
    const int old_result = stage.results[0];
    const std::vector<int64_t> old_axes = stage.spatial;

    stage.body[0] = SimplifyLoads(ir::SubstituteVars(stage.body[0], inverse), shape);
    stage.spatial = shape;
    const bool output = workload_.tensors[old_result].output;
    if (output && workload_.Readers(s).empty()) {
      stage.store = inverse;
      workload_.stages[s] = std::move(stage);
      return;
    }
    ir::Tensor moved = workload_.tensors[old_result];
    moved.shape = shape;
    moved.output = false;
    const int moved_id = static_cast<int>(workload_.tensors.size());
    workload_.tensors.push_back(moved);
    anchored_.push_back(true);
    RedirectLoads(old_result, moved_id, load->args);
    stage.results[0] = moved_id;
    workload_.stages[s] = std::move(stage);
    if (!output) return;
    Stage copy;
    copy.spatial = shape;
    copy.body = {ir::Load(moved_id, moved.dtype, Axes(shape.size()))};
    copy.results = {old_result};
    copy.store = inverse;
    workload_.stages.push_back(std::move(copy));
  }

  // Loads of `from` at J become loads of `to` at map(J).
  void RedirectLoads(int from, int to, const std::vector<Expr>& map) {
    for (Stage& reader : workload_.stages) {
      const std::vector<int64_t> extents = ExtentsOf(reader);
      for (Expr& body : reader.body) {
        body = ir::Rewrite(body, [&](const Expr& node) -> Expr {
          if (node->kind != ExprKind::kLoad || node->id != from) return nullptr;
          std::vector<Expr> indices;
          for (const Expr& index : map) {
            indices.push_back(SimplifyIndex(ir::SubstituteVars(index, node->args), extents));
          }
          return ir::Load(to, node->dtype, std::move(indices));
        });
      }
    }
  }

  // A Stage that only copies a map's result to an output, with a store map, becomes that map.
  void FoldCopies() {
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      const Stage& copy = workload_.stages[s];
      if (copy.store.empty() || copy.body.size() != 1 || !IsMove(copy.body[0]) ||
          !IsIdentity(copy.body[0]->args, copy.spatial)) {
        continue;
      }
      const int source = workload_.Producer(copy.body[0]->id);
      if (source < 0 || !IsInlinable(workload_, workload_.stages[source]) ||
          workload_.Readers(source) != std::vector<int>{static_cast<int>(s)}) {
        continue;
      }
      workload_.stages[source].store = copy.store;
      workload_.stages[source].results = copy.results;
      workload_.stages.erase(workload_.stages.begin() + static_cast<std::ptrdiff_t>(s));
      --s;
    }
  }

  Workload& workload_;
  std::vector<bool> anchored_;
};

}  // namespace

void InlineStage(Workload& workload, int stage) {
  const Stage inlined = workload.stages[stage];
  HONE_CHECK(IsInlinable(workload, inlined)) << "Stage " << inlined.name << " cannot be inlined";
  const int result = inlined.results[0];
  workload.stages.erase(workload.stages.begin() + stage);
  for (Stage& reader : workload.stages) {
    const std::vector<int64_t> extents = ExtentsOf(reader);
    for (Expr& body : reader.body) {
      body = ir::Rewrite(body, [&](const Expr& node) -> Expr {
        if (node->kind != ExprKind::kLoad || node->id != result) return nullptr;
        return SimplifyLoads(ir::SubstituteVars(inlined.body[0], node->args), extents);
      });
    }
  }
}

void InlineMoves(Workload& workload) {
  for (size_t s = 0; s < workload.stages.size();) {
    const Stage& stage = workload.stages[s];
    if (IsInlinable(workload, stage) && IsMove(stage.body[0])) {
      InlineStage(workload, static_cast<int>(s));
    } else {
      ++s;
    }
  }
}

void MoveOntoReshapes(Workload& workload) {
  std::vector<bool> follows(workload.tensors.size());  // a reduction or scan
  for (size_t s = 0; s < workload.stages.size();) {
    const Stage& stage = workload.stages[s];
    bool after = !stage.reduce.empty() || stage.scan >= 0;
    for (const Expr& body : stage.body) {
      ir::Visit(body, [&](const ExprNode& node) {
        after = after || (node.kind == ExprKind::kLoad && follows[node.id]);
      });
    }
    for (int result : stage.results) follows[result] = after;
    if (!after && IsInlinable(workload, stage) && !IsMove(stage.body[0]) &&
        OnlyReshaped(workload, static_cast<int>(s))) {
      InlineStage(workload, static_cast<int>(s));
    } else {
      ++s;
    }
  }
}

void InlineMaps(Workload& workload) {
  for (size_t s = 0; s < workload.stages.size();) {
    if (IsInlinable(workload, workload.stages[s])) {
      InlineStage(workload, static_cast<int>(s));
    } else {
      ++s;
    }
  }
}

void MoveOntoAnchorAxes(Workload& workload) { AnchorAxes(workload).Run(); }

void Tidy(Workload& workload) {
  for (Stage& stage : workload.stages) {
    DropUnitReduceAxes(stage);
    const std::vector<int64_t> extents = ExtentsOf(stage);
    for (Expr& body : stage.body) {
      body = ir::Rewrite(body, [&](const Expr& node) -> Expr {
        if (node->kind != ExprKind::kLoad || IsOfRegion(workload, node->id, stage.scan))
          return nullptr;
        std::vector<Expr> indices;
        for (const Expr& index : node->args) indices.push_back(SimplifyIndex(index, extents));
        const std::vector<int64_t>& shape = workload.tensors[node->id].shape;
        if (shape == stage.spatial && IsIdentity(indices, shape)) indices = Axes(shape.size());
        return ir::Load(node->id, node->dtype, std::move(indices));
      });
    }
  }
}

}  // namespace hone::graph

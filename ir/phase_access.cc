#include "ir/phase_access.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/index/range_analysis.h"

namespace hone::ir {
namespace {

void VisitStmts(const std::vector<Stmt>& body, const std::function<void(const StmtNode&)>& visit) {
  for (const Stmt& stmt : body) {
    visit(*stmt);
    VisitStmts(stmt->body, visit);
  }
}

bool DependsOn(const Expr& e, int var) {
  bool depends = false;
  Visit(e, [&](const ExprNode& node) { depends |= node.kind == ExprKind::kVar && node.id == var; });
  return depends;
}

class Collector {
 public:
  Collector(const LoopNest& nest, const Phase& phase) : nest_(nest), ranges_(Ranges(phase), {}) {
    VisitStmts({phase.body}, [this](const StmtNode& node) {
      if (node.kind == StmtKind::kFor && node.loop == LoopKind::kParallel) {
        // An iteration of several beside each other does not say what it is.
        may_stop_ |= parallel_ >= 0;
        parallel_ = node.var;
      }
      may_stop_ |= node.kind == StmtKind::kFail;
    });
    if (parallel_ >= 0 && !may_stop_) Add(*phase.body);
  }

  std::vector<PhaseAccess> Take() { return std::move(accesses_); }

 private:
  static std::vector<Interval> Ranges(const Phase& phase) {
    std::vector<Interval> ranges;
    VisitStmts({phase.body}, [&ranges](const StmtNode& node) {
      if (node.kind != StmtKind::kFor) return;
      const auto var = static_cast<size_t>(node.var);
      if (var >= ranges.size()) ranges.resize(var + 1, {0, 0});
      ranges[var].high = std::max(ranges[var].high, node.extent - 1);
    });
    return ranges;
  }

  void Add(const StmtNode& node) {
    if (node.kind == StmtKind::kPrefetch) return;
    const size_t mark = ranges_.Mark();
    if (node.condition != nullptr) {
      AddLoads(node.condition);
      ranges_.Assume(node.condition, true);
    }
    for (const Expr& value : node.values) AddLoads(value);
    if (node.kind == StmtKind::kStore) {
      AddLoads(node.index);
      for (const int buffer : node.buffers) AddAccess(buffer, node.index, true);
    }
    for (const int buffer : node.buffers) {
      const Buffer& filled = nest_.buffers[static_cast<size_t>(buffer)];
      if (node.kind == StmtKind::kFill && filled.scope == Scope::kArgument) {
        Merge(filled, 0, {}, true);
      }
    }
    for (const Stmt& inner : node.body) Add(*inner);
    ranges_.Forget(mark);
  }

  // A load under a select counts as if it always happened.
  void AddLoads(const Expr& e) {
    if (e->kind == ExprKind::kLoad) AddAccess(e->id, e->args[0], false);
    for (const Expr& arg : e->args) AddLoads(arg);
  }

  void AddAccess(int id, const Expr& index, bool writes) {
    const Buffer& buffer = nest_.buffers[static_cast<size_t>(id)];
    if (buffer.scope != Scope::kArgument) return;
    int64_t stride = 0;
    for (const Linear::Term& term : ranges_.LinearOf(index).terms) {
      const bool itself = term.atom->kind == ExprKind::kVar && term.atom->id == parallel_;
      if (!itself && DependsOn(term.atom, parallel_)) return Merge(buffer, 0, {}, writes);
      if (itself) stride = term.coefficient;
    }
    const Expr first = index - Var(parallel_) * stride;
    Merge(buffer, stride, ranges_.OfSum(first), writes);
  }

  void Merge(const Buffer& buffer, int64_t stride, Interval elements, bool writes) {
    const int64_t size = SizeOf(buffer.dtype);
    if (stride == 0) {
      elements = {std::max<int64_t>(elements.low, 0), std::min(elements.high, buffer.elements - 1)};
    }
    // Bounds beyond any buffer would only overflow.
    const int64_t most = buffer.elements + 1;
    const int64_t reach = most * (1 + std::abs(stride));
    const PhaseAccess access = {.argument = buffer.argument,
                                .writes = writes,
                                .stride = stride * size,
                                .begin = std::max(elements.low, -reach) * size,
                                .end = (std::min(elements.high, reach) + 1) * size};
    for (PhaseAccess& known : accesses_) {
      if (known.argument != access.argument || known.writes != writes ||
          known.stride != access.stride) {
        continue;
      }
      known.begin = std::min(known.begin, access.begin);
      known.end = std::max(known.end, access.end);
      return;
    }
    accesses_.push_back(access);
  }

  const LoopNest& nest_;
  RangeAnalysis ranges_;
  int parallel_ = -1;
  bool may_stop_ = false;
  std::vector<PhaseAccess> accesses_;
};

}  // namespace

std::vector<PhaseAccess> AccessesOf(const LoopNest& nest, const Phase& phase) {
  if (phase.parallel_extent < 2 || phase.threads < 2) return {};
  return Collector(nest, phase).Take();
}

}  // namespace hone::ir

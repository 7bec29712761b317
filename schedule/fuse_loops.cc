#include <algorithm>
#include <cstddef>

#include "schedule/loop_passes.h"

namespace hone::schedule {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

namespace {

/// How many statements before a loop are looked at: nests may have thousands of siblings.
constexpr size_t kFarthest = 16;

/// A place of a buffer that a statement reads or writes; no index: anywhere in it.
struct Touch {
  int buffer = -1;
  Expr index;
  bool writes = false;
};

struct Effects {
  std::vector<Touch> touches;
  bool orders = false;  ///< a barrier or an early end: nothing moves across it
};

void CollectLoads(const Expr& e, std::vector<Touch>* out) {
  if (!e) return;
  if (e->kind == ir::ExprKind::kLoad) out->push_back({e->id, e->args[0], false});
  for (const Expr& a : e->args) CollectLoads(a, out);
}

void CollectEffects(const Stmt& stmt, Effects* out) {
  out->orders |= stmt->kind == StmtKind::kSync || stmt->kind == StmtKind::kFail;
  const bool writes = stmt->kind == StmtKind::kStore || stmt->kind == StmtKind::kFill;
  for (int buffer : stmt->buffers) {
    if (writes) out->touches.push_back({buffer, stmt->index, true});
  }
  for (const Expr& value : stmt->values) CollectLoads(value, &out->touches);
  CollectLoads(stmt->condition, &out->touches);
  CollectLoads(stmt->index, &out->touches);
  for (const Stmt& inner : stmt->body) CollectEffects(inner, out);
}

bool HasSync(const Stmt& stmt) {
  return stmt->kind == StmtKind::kSync ||
         std::any_of(stmt->body.begin(), stmt->body.end(), HasSync);
}

bool HasSerialLoop(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kFor && stmt->loop != ir::LoopKind::kVector &&
      stmt->loop != ir::LoopKind::kDot && stmt->loop != ir::LoopKind::kUnrolled && stmt->extent > 1)
    return true;
  return std::any_of(stmt->body.begin(), stmt->body.end(), HasSerialLoop);
}

/// A serial loop around straight code.
bool IsInnermost(const Stmt& stmt) {
  return stmt->kind == StmtKind::kFor && stmt->loop == ir::LoopKind::kSerial && stmt->extent > 1 &&
         std::none_of(stmt->body.begin(), stmt->body.end(), HasSerialLoop);
}

class Fuser {
 public:
  Fuser(const std::vector<ir::Buffer>& buffers, const ir::VarRanges& ranges)
      : buffers_(buffers), ranges_(ranges) {}

  Stmt Rebuild(const Stmt& stmt) {
    if (stmt->body.empty()) return stmt;
    std::vector<Stmt> body;
    for (const Stmt& inner : stmt->body) Append(Rebuild(inner), &body);
    FuseSiblings(&body);
    ir::StmtNode node = *stmt;
    node.body = std::move(body);
    return std::make_shared<const ir::StmtNode>(std::move(node));
  }

 private:
  static void Append(const Stmt& stmt, std::vector<Stmt>* out) {
    if (stmt->kind != StmtKind::kBlock) {
      out->push_back(stmt);
      return;
    }
    for (const Stmt& inner : stmt->body) Append(inner, out);
  }

  void FuseSiblings(std::vector<Stmt>* list) {
    for (size_t later = 1; later < list->size(); ++later) {
      if (!IsInnermost((*list)[later])) continue;
      for (size_t first = later; first-- > later - std::min(later, kFarthest);) {
        if (!CanFuse(*list, first, later)) continue;
        (*list)[later] = Fused((*list)[first], (*list)[later]);
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(first));
        --later;
        break;
      }
    }
  }

  static Stmt Fused(const Stmt& first, const Stmt& second) {
    std::vector<Stmt> body = first->body;
    for (const Stmt& inner : second->body)
      body.push_back(SubstituteVar(inner, second->var, ir::Var(first->var)));
    return ir::For(first->var, first->extent, first->loop, ir::Block(std::move(body)));
  }

  bool CanFuse(const std::vector<Stmt>& list, size_t first, size_t later) {
    const Stmt &a = list[first], &b = list[later];
    if (a->extent != b->extent || !IsInnermost(a) || a->var == b->var) return false;
    Effects before, after;
    CollectEffects(a, &before);
    CollectEffects(b, &after);
    if (before.orders || after.orders || !Feeds(before, after)) return false;
    for (size_t k = first + 1; k < later; ++k) {
      Effects between;
      CollectEffects(list[k], &between);
      if (between.orders || Conflict(before, between)) return false;
    }
    return std::all_of(before.touches.begin(), before.touches.end(), [&](const Touch& x) {
      return std::all_of(after.touches.begin(), after.touches.end(), [&](const Touch& y) {
        return !(x.writes || y.writes) || KeepsOrder(x, a, y, b);
      });
    });
  }

  static bool Feeds(const Effects& a, const Effects& b) {
    return std::any_of(a.touches.begin(), a.touches.end(), [&](const Touch& x) {
      return x.writes && std::any_of(b.touches.begin(), b.touches.end(), [&](const Touch& y) {
               return !y.writes && x.buffer == y.buffer;
             });
    });
  }

  bool Overlap(int x, int y) const {
    if (x == y) return true;
    const ir::Buffer &a = buffers_[static_cast<size_t>(x)], &b = buffers_[static_cast<size_t>(y)];
    if (a.scope != ir::Scope::kScratch || b.scope != ir::Scope::kScratch) return false;
    return a.scratch_offset < b.scratch_offset + b.elements * ir::SizeOf(b.dtype) &&
           b.scratch_offset < a.scratch_offset + a.elements * ir::SizeOf(a.dtype);
  }

  bool Conflict(const Effects& a, const Effects& b) const {
    return std::any_of(a.touches.begin(), a.touches.end(), [&](const Touch& x) {
      return std::any_of(b.touches.begin(), b.touches.end(), [&](const Touch& y) {
        return (x.writes || y.writes) && Overlap(x.buffer, y.buffer);
      });
    });
  }

  /// Whether x in an iteration of `a` never meets y in an earlier iteration of `b`.
  bool KeepsOrder(const Touch& x, const Stmt& a, const Touch& y, const Stmt& b) const {
    if (!Overlap(x.buffer, y.buffer)) return true;
    if (x.buffer != y.buffer || !x.index || !y.index) return false;
    ir::Linear distance = ir::ToLinear(x.index - y.index, ranges_);
    int64_t step_a = 0, step_b = 0;
    std::erase_if(distance.terms, [&](const ir::Linear::Term& t) {
      if (t.atom->kind != ir::ExprKind::kVar) return false;
      if (t.atom->id == a->var) step_a = t.coefficient;
      if (t.atom->id == b->var) step_b = -t.coefficient;
      return t.atom->id == a->var || t.atom->id == b->var;
    });
    for (const ir::Linear::Term& t : distance.terms) {
      if (ir::DependsOnVar(t.atom, a->var) || ir::DependsOnVar(t.atom, b->var)) return false;
    }
    if (step_a != step_b) return false;
    // a is at least one iteration further on.
    const ir::Interval rest = ir::BoundsOf(distance, ranges_);
    if (step_a == 0) return rest.low > 0 || rest.high < 0;
    return step_a > 0 ? step_a + rest.low > 0 : step_a + rest.high < 0;
  }

  const std::vector<ir::Buffer>& buffers_;
  const ir::VarRanges& ranges_;
};

}  // namespace

Stmt FuseLoops(const Stmt& stmt, const std::vector<ir::Buffer>& buffers,
               const ir::VarRanges& ranges) {
  if (HasSync(stmt)) return stmt;  // whose threads meet where the nest says
  return Fuser(buffers, ranges).Rebuild(stmt);
}

}  // namespace hone::schedule

#include <algorithm>
#include <functional>
#include <utility>

#include "schedule/loop_passes.h"

namespace hone::schedule {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

namespace {

/// Statements after unrolling above which two copies of a body cost more than its masks.
constexpr int64_t kMostStatements = 48;

bool Any(const Stmt& stmt, const std::function<bool(const ir::StmtNode&)>& test) {
  return test(*stmt) || std::any_of(stmt->body.begin(), stmt->body.end(),
                                    [&](const Stmt& inner) { return Any(inner, test); });
}

/// Statements after unrolling; a large number where a reduction runs in loops inside.
int64_t StatementsOf(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kStore) return 1;
  int64_t sum = 0;
  for (const Stmt& inner : stmt->body) sum += StatementsOf(inner);
  if (stmt->kind != StmtKind::kFor) return sum;
  if (stmt->loop == ir::LoopKind::kUnrolled) return sum * stmt->extent;
  const bool reduces = stmt->loop != ir::LoopKind::kVector && stmt->loop != ir::LoopKind::kDot &&
                       stmt->extent > 1 && Any(stmt, [](const ir::StmtNode& s) {
                         return s.kind == StmtKind::kStore && s.combiner != ir::Combiner::kNone;
                       });
  return reduces ? kMostStatements + 1 : sum;
}

void CollectConditions(const Expr& e, std::vector<Expr>* out) {
  if (!e) return;
  if (e->kind == ir::ExprKind::kSelect) ir::SplitConjunction(e->args[0], out);
  for (const Expr& a : e->args) CollectConditions(a, out);
}

/// The conditions in a statement, and the variables of its vector loops.
void CollectConditions(const Stmt& stmt, std::vector<Expr>* out, std::vector<int>* lanes) {
  if (stmt->kind == StmtKind::kFor && stmt->loop == ir::LoopKind::kVector)
    lanes->push_back(stmt->var);
  if (stmt->condition) ir::SplitConjunction(stmt->condition, out);
  CollectConditions(stmt->index, out);
  for (const Expr& value : stmt->values) CollectConditions(value, out);
  for (const Stmt& inner : stmt->body) CollectConditions(inner, out, lanes);
}

class Peeler {
 public:
  explicit Peeler(ir::VarRanges& ranges) : ranges_(ranges) {}

  Stmt Rebuild(const Stmt& stmt) {
    if (stmt->body.empty()) return stmt;
    ir::StmtNode node = *stmt;
    for (Stmt& inner : node.body) inner = Rebuild(inner);
    Stmt rebuilt = std::make_shared<const ir::StmtNode>(std::move(node));
    return Pays(rebuilt) ? Peeled(rebuilt) : rebuilt;
  }

 private:
  bool Pays(const Stmt& loop) {
    if (loop->kind != StmtKind::kFor || loop->loop != ir::LoopKind::kSerial || loop->extent < 2)
      return false;
    int64_t statements = 0;
    for (const Stmt& inner : loop->body) statements += StatementsOf(inner);
    if (statements > kMostStatements) return false;
    std::vector<Expr> conditions;
    std::vector<int> lanes;
    for (const Stmt& inner : loop->body) CollectConditions(inner, &conditions, &lanes);
    return std::any_of(conditions.begin(), conditions.end(), [&](const Expr& c) {
      const bool masks = std::any_of(lanes.begin(), lanes.end(),
                                     [&](int lane) { return ir::DependsOnVar(c, lane); });
      return masks && ir::DependsOnVar(c, loop->var) && !ir::Decide(c, ranges_) &&
             DecidedBefore(c, *loop);
    });
  }

  /// Whether the condition is known in all iterations but the last.
  bool DecidedBefore(const Expr& condition, const ir::StmtNode& loop) {
    int64_t& extent = ranges_.extent[static_cast<size_t>(loop.var)];
    const int64_t whole = std::exchange(extent, loop.extent - 1);
    const bool decided = ir::Decide(condition, ranges_).has_value();
    extent = whole;
    return decided;
  }

  static Stmt Peeled(const Stmt& loop) {
    const auto iteration = [&](int64_t k) {
      return SubstituteVar(ir::Block(loop->body), loop->var, ir::Int(k));
    };
    const int64_t others = loop->extent - 1;
    if (others == 1) return ir::Block({iteration(0), iteration(1)});
    return ir::Block(
        {ir::For(loop->var, others, loop->loop, ir::Block(loop->body)), iteration(others)});
  }

  ir::VarRanges& ranges_;
};

Expr Substituted(const Expr& e, int var, const Expr& value) {
  if (!e || !ir::DependsOnVar(e, var)) return e;
  if (e->kind == ir::ExprKind::kVar) return value;
  std::vector<Expr> values(static_cast<size_t>(var) + 1);
  values.back() = value;
  return ir::SubstituteVars(e, values);
}

}  // namespace

Stmt SubstituteVar(const Stmt& stmt, int var, const Expr& value) {
  ir::StmtNode node = *stmt;
  node.condition = Substituted(node.condition, var, value);
  node.index = Substituted(node.index, var, value);
  for (Expr& e : node.values) e = Substituted(e, var, value);
  for (Stmt& inner : node.body) inner = SubstituteVar(inner, var, value);
  return std::make_shared<const ir::StmtNode>(std::move(node));
}

Stmt PeelMaskedTails(const Stmt& stmt, ir::VarRanges& ranges) {
  return Peeler(ranges).Rebuild(stmt);
}

}  // namespace hone::schedule

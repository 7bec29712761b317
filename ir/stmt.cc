#include "ir/stmt.h"

#include <array>
#include <utility>

#include "base/core/check.h"
#include "ir/async_copy.h"
#include "ir/box_copy.h"
#include "ir/lanes.h"
#include "ir/text.h"
#include "ir/wgmma.h"

namespace hone::ir {
namespace {

constexpr std::array<std::string_view, 15> kLoopNames = {
    "for",   "unrolled", "vector",  "parallel", "step",    "dot",      "mma",     "tile",
    "wgmma", "box",      "block.x", "block.y",  "block.z", "thread.x", "thread.y"};
constexpr std::array<std::string_view, 5> kScopeNames = {"argument", "scratch", "register", "table",
                                                         "shared"};

Stmt Make(StmtNode node) { return std::make_shared<const StmtNode>(std::move(node)); }

class StmtPrinter {
 public:
  explicit StmtPrinter(const LoopNest& nest) : nest_(nest) {
    names_.var = [](int id) { return "v" + std::to_string(id); };
    names_.tensor = [this](int id) { return BufferName(id); };
  }

  void Print(const Stmt& stmt, int depth, std::string* out) const {
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    switch (stmt->kind) {
      case StmtKind::kBlock: PrintBody(*stmt, depth, out); return;
      case StmtKind::kFor:
        *out += indent + std::string(ToString(stmt->loop)) + " " + names_.var(stmt->var) + " < " +
                std::to_string(stmt->extent) + BoxText(*stmt) + ":\n";
        PrintBody(*stmt, depth + 1, out);
        return;
      case StmtKind::kIf:
        *out += indent + "if " + ToText(stmt->condition, names_) + ":\n";
        PrintBody(*stmt, depth + 1, out);
        return;
      case StmtKind::kStore: *out += indent + StoreText(*stmt) + "\n"; return;
      case StmtKind::kFill:
        *out += indent + "fill " + BufferName(stmt->buffers[0]) + "[0.." +
                std::to_string(stmt->extent) + "] = " + ToText(stmt->values[0], names_) + "\n";
        return;
      case StmtKind::kSync: *out += indent + SyncText(*stmt) + "\n"; return;
      case StmtKind::kFail: *out += indent + "fail " + std::to_string(stmt->extent) + "\n"; return;
      case StmtKind::kPrefetch:
        *out += indent + "prefetch " + BufferName(stmt->buffers[0]) + "[" +
                ToText(stmt->index, names_) + "]\n";
        return;
    }
  }

 private:
  void PrintBody(const StmtNode& stmt, int depth, std::string* out) const {
    for (const Stmt& inner : stmt.body) Print(inner, depth, out);
  }

  std::string StoreText(const StmtNode& stmt) const {
    std::string text = IsAsyncStore(stmt) ? "async " : "";
    for (size_t k = 0; k < stmt.buffers.size(); ++k) {
      if (k > 0) text += ", ";
      text += BufferName(stmt.buffers[k]) + "[" + ToText(stmt.index, names_) + "]";
    }
    text += " ";
    if (stmt.combiner != Combiner::kNone) text += std::string(ToString(stmt.combiner));
    text += "= ";
    for (size_t k = 0; k < stmt.values.size(); ++k) {
      if (k > 0) text += ", ";
      text += ToText(stmt.values[k], names_);
    }
    return text;
  }

  std::string BoxText(const StmtNode& stmt) const {
    if (stmt.loop != LoopKind::kBox) return "";
    const BoxCopy box = BoxOf(stmt);
    return " to " + BufferName(box.buffer) + "[" + ToText(box.to, names_) + "] from map " +
           std::to_string(box.map) + " [" + ToText(box.row, names_) + ", " +
           ToText(box.column, names_) + "], barrier " + ToText(box.slot, names_);
  }

  std::string SyncText(const StmtNode& stmt) const {
    if (BegunBarriers(stmt) > 0) return "begin barriers " + std::to_string(BegunBarriers(stmt));
    if (ExpectedBytes(stmt) > 0) {
      return "expect " + std::to_string(ExpectedBytes(stmt)) + " bytes at barrier " +
             ToText(stmt.values[0], names_);
    }
    if (IsCommit(stmt)) return "commit";
    if (AwaitedGroups(stmt) >= 0 && !stmt.buffers.empty()) {
      return "wait " + std::to_string(AwaitedGroups(stmt)) + " at barrier " +
             ToText(stmt.values[0], names_) + " parity " + ToText(stmt.values[1], names_);
    }
    if (AwaitedGroups(stmt) >= 0) return "wait " + std::to_string(AwaitedGroups(stmt));
    if (IsShowToProducts(stmt)) return "show to products";
    if (AwaitedProducts(stmt) >= 0)
      return "wait for products " + std::to_string(AwaitedProducts(stmt)) + ": " +
             BufferName(stmt.buffers[0]);
    if (LanesOf(stmt) == 0) return "sync";
    return "lanes " + std::to_string(LanesOf(stmt)) + ": " + BufferName(stmt.buffers[0]) + "[" +
           ToText(stmt.index, names_) + "] " + std::string(ToString(stmt.combiner)) + "=";
  }

  std::string BufferName(int id) const {
    const bool known = id >= 0 && static_cast<size_t>(id) < nest_.buffers.size();
    if (known && !nest_.buffers[static_cast<size_t>(id)].name.empty()) {
      return nest_.buffers[static_cast<size_t>(id)].name;
    }
    return "b" + std::to_string(id);
  }

  const LoopNest& nest_;
  ExprNames names_;
};

void AddLoads(const Expr& expr, std::set<int>* buffers) {
  Visit(expr, [&](const ExprNode& node) {
    if (node.kind == ExprKind::kLoad) buffers->insert(node.id);
  });
}

void AddBuffers(const StmtNode& stmt, std::set<int>* buffers) {
  buffers->insert(stmt.buffers.begin(), stmt.buffers.end());
  if (stmt.condition != nullptr) AddLoads(stmt.condition, buffers);
  if (stmt.index != nullptr) AddLoads(stmt.index, buffers);
  for (const Expr& value : stmt.values) AddLoads(value, buffers);
  for (const Stmt& inner : stmt.body) AddBuffers(*inner, buffers);
}

std::string BufferText(const Buffer& buffer) {
  std::string text = "buffer " + buffer.name + ": " + std::string(ToString(buffer.dtype)) + "[" +
                     std::to_string(buffer.elements) + "] " +
                     std::string(kScopeNames[static_cast<size_t>(buffer.scope)]);
  if (buffer.scope == Scope::kArgument) text += " " + std::to_string(buffer.argument);
  if (buffer.scope == Scope::kScratch) text += " at " + std::to_string(buffer.scratch_offset);
  if (buffer.read_only) text += " read-only";
  if (buffer.swizzle == Swizzle::k128) text += " swizzled";
  return text + "\n";
}

}  // namespace

std::set<int> BuffersOf(const Stmt& stmt) {
  std::set<int> buffers;
  AddBuffers(*stmt, &buffers);
  return buffers;
}

std::string_view ToString(LoopKind kind) { return kLoopNames[static_cast<size_t>(kind)]; }

Stmt Block(std::vector<Stmt> body) {
  if (body.size() == 1) return body[0];
  StmtNode node{.kind = StmtKind::kBlock};
  node.body = std::move(body);
  return Make(std::move(node));
}

Stmt For(int var, int64_t extent, LoopKind kind, Stmt body) {
  HONE_CHECK(var >= 0 && extent >= 0 && body != nullptr);
  StmtNode node{.kind = StmtKind::kFor};
  node.body = {std::move(body)};
  node.var = var;
  node.extent = extent;
  node.loop = kind;
  return Make(std::move(node));
}

Stmt If(Expr condition, Stmt body) {
  HONE_CHECK(condition != nullptr && IsBool(condition->dtype) && body != nullptr);
  StmtNode node{.kind = StmtKind::kIf};
  node.condition = std::move(condition);
  node.body = {std::move(body)};
  return Make(std::move(node));
}

Stmt Store(int buffer, Expr index, Expr value, Combiner combiner) {
  HONE_CHECK(!IsTuple(combiner)) << "a tuple combiner needs StoreTuple";
  return StoreTuple({buffer}, std::move(index), {std::move(value)}, combiner);
}

Stmt StoreTuple(std::vector<int> buffers, Expr index, std::vector<Expr> values, Combiner combiner) {
  HONE_CHECK(buffers.size() == values.size() && !buffers.empty());
  HONE_CHECK(buffers.size() == (IsTuple(combiner) ? 2U : 1U))
      << ToString(combiner) << " with " << buffers.size() << " buffers";
  HONE_CHECK(index != nullptr && IsInteger(index->dtype));
  StmtNode node{.kind = StmtKind::kStore};
  node.buffers = std::move(buffers);
  node.index = std::move(index);
  node.values = std::move(values);
  node.combiner = combiner;
  return Make(std::move(node));
}

Stmt Fill(int buffer, int64_t elements, Expr value) {
  HONE_CHECK(elements >= 0 && value != nullptr);
  StmtNode node{.kind = StmtKind::kFill};
  node.buffers = {buffer};
  node.extent = elements;
  node.values = {std::move(value)};
  return Make(std::move(node));
}

Stmt Sync() { return Make({.kind = StmtKind::kSync}); }

Stmt Fail(int32_t result) {
  HONE_CHECK(result != 0) << "0 is success";
  StmtNode node{.kind = StmtKind::kFail};
  node.extent = result;
  return Make(std::move(node));
}

Stmt Prefetch(int buffer, Expr index) {
  HONE_CHECK(index != nullptr && IsInteger(index->dtype));
  StmtNode node{.kind = StmtKind::kPrefetch};
  node.buffers = {buffer};
  node.index = std::move(index);
  return Make(std::move(node));
}

std::string ToText(const Stmt& stmt, const LoopNest& nest) {
  std::string text;
  StmtPrinter(nest).Print(stmt, 0, &text);
  return text;
}

std::string ToText(const LoopNest& nest) {
  std::string text;
  for (const Buffer& buffer : nest.buffers) text += BufferText(buffer);
  const StmtPrinter printer(nest);
  for (size_t p = 0; p < nest.phases.size(); ++p) {
    const Phase& phase = nest.phases[p];
    text += "phase " + std::to_string(p);
    if (!phase.symbol.empty()) text += " " + phase.symbol;
    text += " extent=" + std::to_string(phase.parallel_extent) +
            " threads=" + std::to_string(phase.threads);
    if (phase.scratch_bytes > 0) text += " scratch=" + std::to_string(phase.scratch_bytes);
    text += ":\n";
    printer.Print(phase.body, 1, &text);
  }
  for (const KernelStep& step : nest.steps) {
    text += "step " + std::to_string(step.first) + " count=" + std::to_string(step.count) +
            " repeats=" + std::to_string(step.repeats) + "\n";
  }
  return text;
}

}  // namespace hone::ir

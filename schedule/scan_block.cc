#include "schedule/scan_block.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "ir/index/range_analysis.h"
#include "ir/launch.h"
#include "schedule/loop_passes.h"

// Scans on a GPU: blocks cannot wait for each other inside a launch, threads of a block can.
namespace hone::schedule {

using ir::Expr;
using ir::LoopKind;
using ir::Stmt;

namespace {

absl::Status Refuse(std::string reason) { return absl::InvalidArgumentError(std::move(reason)); }

bool Has(const Stmt& stmt, bool (*is)(const ir::StmtNode&)) {
  return is(*stmt) || std::ranges::any_of(stmt->body, [&](const Stmt& s) { return Has(s, is); });
}

/// A phase of the scan without its loops over steps and threads.
struct Part {
  Stmt body;
  int step = -1;
  int thread = -1;
  int64_t threads = 1;
};

absl::StatusOr<Part> PartOf(const ir::Phase& phase) {
  Part part{.body = phase.body};
  if (part.body->kind == ir::StmtKind::kFor && part.body->loop == LoopKind::kStep) {
    part.step = part.body->var;
    part.body = ir::Block(part.body->body);
  }
  if (part.body->kind == ir::StmtKind::kFor && part.body->loop == LoopKind::kThreadX) {
    part.thread = part.body->var;
    part.threads = part.body->extent;
    part.body = ir::Block(part.body->body);
  }
  const bool alone = Has(part.body, [](const ir::StmtNode& n) {
    return n.kind == ir::StmtKind::kSync || n.kind == ir::StmtKind::kFail ||
           (n.kind == ir::StmtKind::kFor &&
            (ir::AxisOf(n.loop) != nullptr || n.loop == LoopKind::kMma));
  });
  if (alone)
    return Refuse("threads of one block run the steps of a scan: no blocks or barriers inside");
  return part;
}

/// An element that a part reads or writes, as a function of step, thread and loops inside.
struct Touch {
  int buffer = -1;
  bool writes = false;
  bool known = false;  ///< the following
  int64_t constant = 0, of_step = 0, of_thread = 0;
  std::vector<std::pair<int64_t, int64_t>> loops;  ///< coefficient, extent
  ir::Interval rest = {};  ///< bounds of the index without its step and its constant
};

class Touches {
 public:
  Touches(const Stmt& body, int step, int thread, const std::vector<ir::Buffer>& buffers)
      : step_(step), thread_(thread), buffers_(buffers), ranges_(Intervals(body), {}) {
    Add(*body);
  }
  std::vector<Touch> Take() { return std::move(touches_); }

 private:
  std::vector<ir::Interval> Intervals(const Stmt& body) {
    Extents(*body);
    std::vector<ir::Interval> ranges;
    for (const int64_t extent : extents_) ranges.push_back({0, extent - 1});
    return ranges;
  }

  void Extents(const ir::StmtNode& node) {
    if (node.kind == ir::StmtKind::kFor) {
      const auto var = static_cast<size_t>(node.var);
      if (var >= extents_.size()) extents_.resize(var + 1, 1);
      extents_[var] = std::max(extents_[var], node.extent);
    }
    for (const Stmt& inner : node.body) Extents(*inner);
  }

  void Add(const ir::StmtNode& node) {
    if (node.kind == ir::StmtKind::kPrefetch) return;
    const size_t mark = ranges_.Mark();
    AddLoads(node.condition);
    if (node.condition) ranges_.Assume(node.condition, true);
    AddLoads(node.index);
    for (const Expr& value : node.values) AddLoads(value);
    for (const int buffer : node.buffers) {
      const bool adds =
          node.kind == ir::StmtKind::kStore && node.combiner != ir::Combiner::kNone;
      if (adds) AddTouch(buffer, node.index, false);
      AddTouch(buffer, node.kind == ir::StmtKind::kStore ? node.index : nullptr, true);
    }
    for (const Stmt& inner : node.body) Add(*inner);
    ranges_.Forget(mark);
  }

  void AddLoads(const Expr& e) {
    if (!e) return;
    if (e->kind == ir::ExprKind::kLoad) AddTouch(e->id, e->args[0], false);
    for (const Expr& arg : e->args) AddLoads(arg);
  }

  void AddTouch(int buffer, const Expr& index, bool writes) {
    if (buffers_[static_cast<size_t>(buffer)].scope != ir::Scope::kArgument) return;
    Touch touch{.buffer = buffer, .writes = writes};
    if (index) Resolve(index, &touch);
    touches_.push_back(std::move(touch));
  }

  void Resolve(const Expr& index, Touch* touch) {
    const ir::Linear form = ranges_.LinearOf(index);
    for (const ir::Linear::Term& term : form.terms) {
      if (term.atom->kind != ir::ExprKind::kVar) return;
      const int var = term.atom->id;
      if (var == step_)
        touch->of_step = term.coefficient;
      else if (var == thread_)
        touch->of_thread = term.coefficient;
      else
        touch->loops.emplace_back(term.coefficient, extents_[static_cast<size_t>(var)]);
    }
    std::ranges::sort(touch->loops);
    touch->constant = form.constant;
    Expr rest = index - form.constant;
    if (touch->of_step != 0) rest = rest - ir::Var(step_) * touch->of_step;
    touch->rest = ranges_.OfSum(rest);
    touch->known = true;
  }

  const int step_, thread_;
  const std::vector<ir::Buffer>& buffers_;
  std::vector<int64_t> extents_;
  ir::RangeAnalysis ranges_;
  std::vector<Touch> touches_;
};

/// Whether no two threads of so many meet at one element of a form, wherever its loops stand.
bool TellsThreads(const Touch& touch, int64_t threads) {
  auto digits = touch.loops;
  digits.emplace_back(touch.of_thread, threads);
  std::ranges::sort(digits);
  int64_t reach = 0;
  for (const auto& [coefficient, extent] : digits) {
    if (coefficient <= reach) return false;
    reach += coefficient * (extent - 1);
  }
  return true;
}

/// Whether what one touches at any step is touched by the same thread in the other.
bool IsOfOneThread(const Touch& a, const Touch& b, int64_t threads) {
  if (!a.known || !b.known || a.of_step != b.of_step || a.of_thread != b.of_thread ||
      a.loops != b.loops || !TellsThreads(a, threads))
    return false;
  const int64_t apart = a.constant - b.constant;
  if (a.of_step == 0) return apart == 0;
  const int64_t low = std::min(a.rest.low, b.rest.low), high = std::max(a.rest.high, b.rest.high);
  return apart % a.of_step == 0 && low >= 0 && high < a.of_step;
}

bool Depends(const std::vector<Touch>& later, const std::vector<Touch>& open, int64_t threads) {
  for (const Touch& b : later) {
    for (const Touch& a : open) {
      if (a.buffer != b.buffer || (!a.writes && !b.writes)) continue;
      if (!IsOfOneThread(a, b, threads)) return true;
    }
  }
  return false;
}

/// Before which parts a barrier stands. A second round finds what later steps need; before the
/// first part stands what it needs of the step before.
std::vector<bool> Barriers(const std::vector<std::vector<Touch>>& parts, int64_t threads,
                           int64_t repeats) {
  std::vector<bool> barrier(parts.size(), false);
  for (bool changed = true; std::exchange(changed, false);) {
    std::vector<Touch> open;
    for (int64_t round = 0; round < std::min<int64_t>(repeats, 2); ++round) {
      for (size_t k = 0; k < parts.size(); ++k) {
        if (!barrier[k] && Depends(parts[k], open, threads)) barrier[k] = changed = true;
        if (barrier[k]) open.clear();
        open.insert(open.end(), parts[k].begin(), parts[k].end());
      }
    }
  }
  return barrier;
}

}  // namespace

bool HasThreads(const ir::Phase& phase) {
  return Has(phase.body, [](const ir::StmtNode& n) {
    return n.kind == ir::StmtKind::kFor &&
           (n.loop == LoopKind::kThreadX || n.loop == LoopKind::kThreadY);
  });
}

absl::StatusOr<ir::Phase> ScanInOneBlock(const std::vector<ir::Phase>& phases, int64_t repeats,
                                         const std::vector<ir::Buffer>& buffers) {
  std::vector<Part> parts;
  Part block;
  ir::Phase out;
  for (const ir::Phase& phase : phases) {
    HONE_ASSIGN_OR_RETURN(Part part, PartOf(phase));
    if (block.step < 0) block.step = part.step;
    if (part.threads > block.threads || block.thread < 0) {
      block.thread = part.thread;
      block.threads = part.threads;
    }
    out.scratch_bytes = std::max(out.scratch_bytes, phase.scratch_bytes);
    parts.push_back(std::move(part));
  }
  std::vector<std::vector<Touch>> touches;
  for (Part& part : parts) {
    if (part.step >= 0) part.body = SubstituteVar(part.body, part.step, ir::Var(block.step));
    if (part.thread >= 0) part.body = SubstituteVar(part.body, part.thread, ir::Var(block.thread));
    if (part.threads < block.threads)
      part.body = ir::If(ir::Lt(ir::Var(block.thread), ir::Int(part.threads)), part.body);
    const Stmt around = ir::For(block.thread, block.threads, LoopKind::kThreadX, part.body);
    touches.push_back(
        Touches(block.step < 0 ? around : ir::For(block.step, repeats, LoopKind::kStep, around),
                block.step, block.thread, buffers)
            .Take());
  }
  const std::vector<bool> barrier = Barriers(touches, block.threads, repeats);
  std::vector<Stmt> body;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (barrier[k]) body.push_back(ir::Sync());
    body.push_back(std::move(parts[k].body));
  }
  Stmt steps = ir::Block(std::move(body));
  if (block.step >= 0) steps = ir::For(block.step, repeats, LoopKind::kSerial, std::move(steps));
  out.body = ir::For(block.thread, block.threads, LoopKind::kThreadX, std::move(steps));
  return out;
}

}  // namespace hone::schedule

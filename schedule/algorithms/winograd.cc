#include "schedule/algorithms/winograd.h"

#include <fmt/format.h>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/primitives/primitive.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::Int;
using ir::Var;

/// A transform matrix, row-major.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> values;
};
struct Matrices {
  Matrix bt, g, at;
};

Matrices MatricesFor(int m) {
  if (m == 2) {
    return {{4, 4, {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1}},
            {4, 3, {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1}},
            {2, 4, {1, 1, 1, 0, 0, 1, -1, -1}}};
  }
  // As f32 holds them.
  const double a = 1.0F / 6, b = 1.0F / 24, c = 1.0F / 12;
  return {{6, 6, {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                  0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1}},
          {6, 3, {0.25, 0, 0, -a, -a, -a, -a, a, -a, b, c, a, b, -c, a, 0, 0, 1}},
          {4, 6, {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}}};
}

/// The convolution's shape and where its parts stand.
struct Form {
  int x = -1, w = -1;             ///< tensors
  int kh = -1, kw = -1, ic = -1;  ///< axes (variables of the body)
  std::vector<int> w_axes;        ///< axis per dimension of w
};

bool IsSumOf(const Expr& e, int a, int b) {
  ir::VarRanges none;
  ir::Linear l = ir::ToLinear(e, none);
  if (l.constant != 0 || l.terms.size() != 2) return false;
  bool seen_a = false, seen_b = false;
  for (const auto& t : l.terms) {
    if (t.coefficient != 1 || t.atom->kind != ir::ExprKind::kVar) return false;
    seen_a |= t.atom->id == a;
    seen_b |= t.atom->id == b;
  }
  return seen_a && seen_b;
}

bool MatchInput(const ir::Stage& s, const Expr& x, Form* f) {
  if (x->kind != ir::ExprKind::kLoad || x->args.size() != 4) return false;
  // A batch of one may stand as the constant 0.
  const bool one = s.spatial[0] == 1 && ir::AsInt(x->args[0]) == 0;
  if (!one && (x->args[0]->kind != ir::ExprKind::kVar || x->args[0]->id != 0)) return false;
  if (x->args[3]->kind != ir::ExprKind::kVar) return false;
  f->ic = x->args[3]->id;
  for (int r = 4; r < s.num_axes(); ++r) {
    if (s.Extent(r) != 3 || r == f->ic) continue;
    if (f->kh < 0 && IsSumOf(x->args[1], 1, r))
      f->kh = r;
    else if (f->kw < 0 && IsSumOf(x->args[2], 2, r))
      f->kw = r;
  }
  f->x = x->id;
  return f->kh >= 0 && f->kw >= 0 && f->ic >= 4;
}

bool MatchWeights(const Expr& w, Form* f) {
  if (w->kind != ir::ExprKind::kLoad || w->args.size() != 4) return false;
  for (const Expr& i : w->args) {
    if (i->kind != ir::ExprKind::kVar) return false;
    if (i->id != 3 && i->id != f->kh && i->id != f->kw && i->id != f->ic) return false;
    f->w_axes.push_back(i->id);
  }
  f->w = w->id;
  return true;
}

absl::StatusOr<Form> Match(const Schedule& schedule, int id) {
  const ir::Stage& s = schedule.workload.stages[id];
  const Expr& body = s.body[0];
  if (s.combiner == ir::Combiner::kSum && s.num_spatial() == 4 && s.num_reduce() == 3 &&
      s.store.empty() && s.scan < 0 && body->kind == ir::ExprKind::kBinary &&
      body->binary() == ir::BinaryOp::kMul && body->dtype == ir::DType::kF32) {
    for (int flip = 0; flip < 2; ++flip) {
      Form f;
      if (MatchInput(s, body->args[flip], &f) && MatchWeights(body->args[1 - flip], &f)) return f;
    }
  }
  return Illegal(fmt::format("winograd: {} is no 3x3 stride-1 convolution in NHWC", s.name));
}

class Rewriter {
 public:
  Rewriter(Schedule& schedule, int stage, int m, int first, Form form)
      : s_(schedule),
        stage_(stage),
        m_(m),
        alpha_(m + 2),
        first_(first),
        f_(std::move(form)),
        t_(MatricesFor(m)) {}

  void Run() {
    const ir::Stage old = s_.workload.stages[stage_];
    const int64_t n = old.spatial[0], oc = old.spatial[3], ic = old.Extent(f_.ic);
    const int64_t th = (old.spatial[1] + m_ - 1) / m_, tw = (old.spatial[2] + m_ - 1) / m_;
    const int bt = Immediate(t_.bt), g = Immediate(t_.g), at = Immediate(t_.at);
    const int64_t a = alpha_;
    // Input: axes n th tw i j c | i'.
    int rows = Reduce({n, th, tw, a, a, ic}, a, Element(bt, Var(3), Var(6)) * Input());
    // V: axes i j n th tw c | j'.
    int v = Reduce(
        {a, a, n, th, tw, ic}, a,
        Element(bt, Var(1), Var(6)) * At(rows, {Var(2), Var(3), Var(4), Var(0), Var(6), Var(5)}));
    // Weights: axes i kw ic oc | kh, then i j ic oc | kw.
    int w_rows = Reduce({a, 3, ic, oc}, 3, Element(g, Var(0), Var(4)) * Weights());
    int u = Reduce({a, a, ic, oc}, 3,
                   Element(g, Var(1), Var(4)) * At(w_rows, {Var(0), Var(4), Var(2), Var(3)}));
    // Product: axes i j n th tw oc | ic.
    int p = Reduce({a, a, n, th, tw, oc}, ic,
                   At(v, {Var(0), Var(1), Var(2), Var(3), Var(4), Var(6)}) *
                       At(u, {Var(0), Var(1), Var(6), Var(5)}));
    // Output: axes n th tw p j oc | i.
    int y = Reduce(
        {n, th, tw, m_, a, oc}, a,
        Element(at, Var(3), Var(6)) * At(p, {Var(6), Var(4), Var(0), Var(1), Var(2), Var(5)}));
    ir::Stage& out = s_.workload.stages[stage_];
    out.reduce = {a};
    out.body = {Element(at, ir::FloorMod(Var(2), m_), Var(4)) *
                At(y, {Var(0), ir::FloorDiv(Var(1), m_), ir::FloorDiv(Var(2), m_),
                       ir::FloorMod(Var(1), m_), Var(4), Var(3)})};
    ResetLoops(s_, stage_);
  }

 private:
  int Immediate(const Matrix& matrix) {
    ir::Tensor t;
    t.name = fmt::format("x{}", s_.workload.tensors.size());
    t.kind = ir::TensorKind::kImmediate;
    t.dtype = ir::DType::kF32;
    t.shape = {matrix.rows, matrix.columns};
    t.immediate = matrix.values;
    s_.workload.tensors.push_back(std::move(t));
    return static_cast<int>(s_.workload.tensors.size()) - 1;
  }
  Expr At(int tensor, std::vector<Expr> indices) {
    return ir::Load(tensor, ir::DType::kF32, std::move(indices));
  }
  Expr Element(int matrix, Expr row, Expr column) {
    return At(matrix, {std::move(row), std::move(column)});
  }
  int Reduce(std::vector<int64_t> spatial, int64_t reduce, Expr body) {
    ir::Stage stage;
    stage.spatial = spatial;
    stage.reduce = {reduce};
    stage.combiner = ir::Combiner::kSum;
    stage.body = {std::move(body)};
    return AppendStage(s_, std::move(stage), fmt::format("s{}", first_++), ir::DType::kF32,
                       std::move(spatial));
  }
  /// The input at row th·m + i', column tw·m + j; beyond the image (a last tile that sticks out)
  /// zero.
  Expr Input() {
    const auto& shape = s_.workload.tensors[f_.x].shape;
    Expr h = Var(1) * m_ + Var(6), w = Var(2) * m_ + Var(4);
    Expr load = At(f_.x, {Var(0), h, w, Var(5)});
    const ir::Stage& old = s_.workload.stages[stage_];
    Expr inside;
    if (old.spatial[1] % m_ != 0) inside = ir::Lt(h, Int(shape[1]));
    if (old.spatial[2] % m_ != 0) {
      Expr c = ir::Lt(w, Int(shape[2]));
      inside = inside ? ir::And(inside, c) : c;
    }
    return inside ? ir::Select(inside, load, ir::Const(ir::DType::kF32, 0)) : load;
  }
  /// Weights over axes i kw ic oc | kh.
  Expr Weights() {
    std::vector<Expr> indices;
    for (int axis : f_.w_axes) {
      indices.push_back(axis == 3       ? Var(3)
                        : axis == f_.ic ? Var(2)
                        : axis == f_.kh ? Var(4)
                                        : Var(1));
    }
    return At(f_.w, std::move(indices));
  }

  Schedule& s_;
  int stage_;
  int64_t m_, alpha_;
  int first_;
  Form f_;
  Matrices t_;
};

}  // namespace

absl::Status RewriteAsWinograd(Schedule& schedule, int stage, int64_t m,
                               const std::string& first_name) {
  if (m != 2 && m != 4) return Illegal(fmt::format("winograd: m is {}; there are 2 and 4", m));
  HONE_ASSIGN_OR_RETURN(Form form, Match(schedule, stage));
  HONE_ASSIGN_OR_RETURN(int64_t first, ParseInteger(std::string_view(first_name).substr(1)));
  Rewriter(schedule, stage, static_cast<int>(m), static_cast<int>(first), std::move(form)).Run();
  schedule.next_name = static_cast<int>(first) + 6;
  return absl::OkStatus();
}

int FindWinogradStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    if (workload.stages[id].combiner != ir::Combiner::kSum) continue;
    TraceWriter probe(workload);
    probe.Emit(fmt::format("{} = algorithm({}, winograd, 2)", probe.NextStage(),
                           workload.stages[id].name));
    if (probe.status().ok()) return static_cast<int>(id);
  }
  return -1;
}

}  // namespace hone::schedule

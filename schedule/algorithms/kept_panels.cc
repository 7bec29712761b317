#include "schedule/algorithms/kept_panels.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/algorithms/panel_rewriter.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

using ir::DType;
using ir::Expr;
using ir::Int;
using ir::Var;

/// Terms of a block: to find the l-th of many kept groups, blocks are passed over first.
constexpr int64_t kBlock = 32;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Rewriter : PanelRewriter {
 public:
  Rewriter(Schedule& schedule, int stage, PanelSubject subject, int first)
      : PanelRewriter(schedule, stage, std::move(subject), first),
        blocks_(CeilDiv(matrix().terms, kBlock)),
        most_(kTermsAtOnce *
              std::max<int64_t>(1, CeilDiv(ir::MostTerms(panels(), matrix()), kTermsAtOnce))) {}

  void Run() {
    CountKept();
    FindTerms();
    // Axes p l c.
    const Expr column = Var(0) * width() + Var(2);
    Expr there = ir::Lt(Var(1), Total(Var(0)));
    if (is_ragged()) there = ir::And(there, ir::Lt(column, Int(matrix().columns)));
    const Expr term = Limited(terms_, {Var(0), Var(1)}, matrix().terms);
    const int values = Sum(DType::kF32, {num_panels(), most_, width()}, 1,
                           ir::Select(there, Weight(term, column), ir::Const(DType::kF32, 0)));
    const int spare =
        Sum(DType::kI32, {num_panels()}, 1,
            ir::Cast(DType::kI32, ir::FloorDiv(Int(most_) - Total(Var(0)), kTermsAtOnce)));
    // The Stage itself.
    const int spatial = out().num_spatial();
    const Expr panel = ir::FloorDiv(Var(this->column()), width());
    const Expr l = Var(spatial) * kTermsAtOnce + Var(spatial + 1);
    const Expr product =
        Other(Index(terms_, {panel, l})) *
        ir::Load(values, DType::kF32, {panel, l, ir::FloorMod(Var(this->column()), width())});
    const Expr has_more = ir::Lt(Var(spatial) + Index(spare, {panel}), Int(most_ / kTermsAtOnce));
    Become({most_ / kTermsAtOnce, kTermsAtOnce},
           ir::Select(has_more, product, ir::Const(DType::kF32, 0)));
  }

 private:
  /// [P, K] and [P, B]: what is kept.
  void CountKept() {
    // Axes p k | c.
    const Expr column = Var(0) * width() + Var(2);
    Expr kept = ir::Binary(ir::BinaryOp::kNe, Weight(Var(1), column), ir::Const(DType::kF32, 0));
    if (is_ragged()) kept = ir::And(ir::Lt(column, Int(matrix().columns)), kept);
    kept_ = Append(ir::Combiner::kMax, DType::kI32, {num_panels(), matrix().terms}, width(),
                   OneIf(kept));
    // Axes p k | d: those of the block up to k.
    const Expr before = ir::FloorDiv(Var(1), kBlock) * kBlock + Var(2);
    ranks_ = Sum(DType::kI32, {num_panels(), matrix().terms}, kBlock,
                 ir::Select(ir::Ge(Var(1), before),
                            Number(kept_, {Var(0), ir::Min(before, Int(matrix().terms - 1))}),
                            Nothing()));
    // Axes p b | d.
    const Expr inside = Var(1) * kBlock + Var(2);
    counts_ = Sum(DType::kI32, {num_panels(), blocks_}, kBlock,
                  ir::Select(ir::Lt(inside, Int(matrix().terms)),
                             Number(kept_, {Var(0), ir::Min(inside, Int(matrix().terms - 1))}),
                             Nothing()));
    ends_ = Sum(DType::kI32, {num_panels(), blocks_}, blocks_,
                ir::Select(ir::Ge(Var(1), Var(2)), Number(counts_, {Var(0), Var(2)}), Nothing()));
  }

  /// [P, L]: the block, then the term of the l-th kept group.
  void FindTerms() {
    // Axes p l | b: the blocks that end before it.
    const int block_of = Sum(DType::kI32, {num_panels(), most_}, blocks_,
                             OneIf(ir::Ge(Var(1), Index(ends_, {Var(0), Var(2)}))));
    // Axes p l | d: its place in the block is how many of the block's terms have ranks up to it.
    const Expr block = Limited(block_of, {Var(0), Var(1)}, blocks_);
    const Expr before = Index(ends_, {Var(0), block}) - Index(counts_, {Var(0), block});
    const Expr term = ir::Min(block * kBlock + Var(2), Int(matrix().terms - 1));
    const Expr passed = ir::Ge(Var(1) - before, Index(ranks_, {Var(0), term}));
    // The block's number kBlock times, once for each d, is where it begins.
    terms_ = Sum(DType::kI32, {num_panels(), most_}, kBlock,
                 ir::Select(ir::Lt(Var(1), Total(Var(0))),
                            OneIf(passed) + ir::Cast(DType::kI32, block), Nothing()));
  }

  /// Groups that a panel keeps.
  Expr Total(const Expr& panel) const { return Index(ends_, {panel, Int(blocks_ - 1)}); }

  int64_t blocks_;
  int64_t most_;  ///< L
  int kept_ = -1, ranks_ = -1, counts_ = -1, ends_ = -1, terms_ = -1;
};

}  // namespace

absl::Status RewriteAsKeptPanels(Schedule& schedule, int stage, int64_t width,
                                 const std::string& first_name) {
  HONE_ASSIGN_OR_RETURN(PanelSubject subject,
                        FindPanelSubject(schedule.workload, stage, width, "panels"));
  HONE_ASSIGN_OR_RETURN(int64_t first, ParseInteger(std::string_view(first_name).substr(1)));
  Rewriter(schedule, stage, std::move(subject), static_cast<int>(first)).Run();
  schedule.next_name = static_cast<int>(first) + kStagesOfKeptPanels;
  return absl::OkStatus();
}

int FindPanelsStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    if (ir::PanelsOfStage(workload, static_cast<int>(id))) return static_cast<int>(id);
  }
  return -1;
}

}  // namespace hone::schedule

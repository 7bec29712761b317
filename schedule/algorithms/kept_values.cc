#include "schedule/algorithms/kept_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/bit_rank.h"
#include "schedule/algorithms/panel_rewriter.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

using ir::DType;
using ir::Expr;
using ir::Int;
using ir::Var;

constexpr int64_t kBits = 64;   ///< of a word
constexpr int64_t kGroup = 32;  ///< words

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Rewriter : PanelRewriter {
 public:
  Rewriter(Schedule& schedule, int stage, PanelSubject subject, int first)
      : PanelRewriter(schedule, stage, std::move(subject), first),
        at_once_(kBits / width()),
        words_(CeilDiv(matrix().terms, at_once_)),
        groups_(CeilDiv(words_, kGroup)),
        most_(std::max<int64_t>(
            1, matrix().terms * width() * panels().values / ir::KeptPanels::kSteps)) {}

  void Run() {
    Rearrange();
    CountValues();
    const int values = FindValues();
    // The Stage itself.
    const int spatial = out().num_spatial();
    const Expr panel = ir::FloorDiv(Var(column()), width());
    const Expr word = ir::Load(bits_, DType::kU64, {panel, Var(spatial)});
    const Expr place = Var(spatial + 1) * width() + ir::FloorMod(Var(column()), width());
    const Expr at = Index(starts_, {panel, Var(spatial)}) + ir::BitsBelow(word, place);
    const Expr weight =
        ir::WhereSet(word, place, ir::Load(values, DType::kF32, {panel, at}));
    const Expr term =
        ir::Min(Var(spatial) * at_once_ + Var(spatial + 1), Int(matrix().terms - 1));
    Become({words_, at_once_}, Other(term) * weight);
  }

 private:
  /// The weights of word a, in the order of its bits; 0 where there is none.
  void Rearrange() {
    // Axes p a d.
    const Expr term = Var(1) * at_once_ + ir::FloorDiv(Var(2), width());
    const Expr column = Var(0) * width() + ir::FloorMod(Var(2), width());
    Expr weight = Weight(ir::Min(term, Int(matrix().terms - 1)), column);
    const Expr nothing = ir::Const(DType::kF32, 0);
    if (matrix().terms % at_once_ != 0)
      weight = ir::Select(ir::Lt(term, Int(matrix().terms)), weight, nothing);
    if (is_ragged()) weight = ir::Select(ir::Lt(column, Int(matrix().columns)), weight, nothing);
    weights_ = Sum(DType::kF32, {num_panels(), words_, kBits}, 1, weight);
  }
  Expr WeightOf(const Expr& word, const Expr& d) const {
    return ir::Load(weights_, DType::kF32, {Var(0), word, d});
  }
  Expr IsKept(const Expr& word, const Expr& d) const {
    return ir::Binary(ir::BinaryOp::kNe, WeightOf(word, d), ir::Const(DType::kF32, 0));
  }

  void CountValues() {
    const Expr bit = ir::Binary(ir::BinaryOp::kShl, ir::ConstInt(DType::kU64, 1),
                                ir::Cast(DType::kU64, Var(2)));
    bits_ = Sum(DType::kU64, {num_panels(), words_}, kBits,
                ir::Select(IsKept(Var(1), Var(2)), bit, ir::ConstInt(DType::kU64, 0)));
    counts_ = Sum(DType::kI32, {num_panels(), words_}, kBits, OneIf(IsKept(Var(1), Var(2))));
    // Axes p g | d.
    const Expr inside = Var(1) * kGroup + Var(2);
    of_groups_ = Sum(DType::kI32, {num_panels(), groups_}, kGroup,
                     ir::Select(ir::Lt(inside, Int(words_)),
                                Number(counts_, {Var(0), ir::Min(inside, Int(words_ - 1))}),
                                Nothing()));
    ends_ = Sum(DType::kI32, {num_panels(), groups_}, groups_,
                ir::Select(ir::Ge(Var(1), Var(2)), Number(of_groups_, {Var(0), Var(2)}),
                           Nothing()));
    // Axes p a | d: those before in the group, and once those before the group.
    const Expr group = ir::FloorDiv(Var(1), kGroup);
    const Expr before = group * kGroup + Var(2);
    const Expr others =
        Number(ends_, {Var(0), group}) - Number(of_groups_, {Var(0), group});
    starts_ = Sum(DType::kI32, {num_panels(), words_}, kGroup,
                  ir::Select(ir::Lt(before, Var(1)),
                             Number(counts_, {Var(0), ir::Min(before, Int(words_ - 1))}),
                             Nothing()) +
                      ir::Select(ir::Lt(Var(2), Int(1)), others, Nothing()));
  }

  int FindValues() {
    // Axes p l | g: the groups that end before it.
    const int group_of = Sum(DType::kI32, {num_panels(), most_}, groups_,
                             OneIf(ir::Ge(Var(1), Index(ends_, {Var(0), Var(2)}))));
    // Axes p l | d: the words of its group that end before it; the group's number kGroup times.
    const Expr group = Limited(group_of, {Var(0), Var(1)}, groups_);
    const Expr word = ir::Min(group * kGroup + Var(2), Int(words_ - 1));
    const Expr end = Index(starts_, {Var(0), word}) + Index(counts_, {Var(0), word});
    const int word_of = Sum(DType::kI32, {num_panels(), most_}, kGroup,
                            OneIf(ir::Ge(Var(1), end)) + ir::Cast(DType::kI32, group));
    // Axes p a d | e.
    const int places =
        Sum(DType::kI32, {num_panels(), words_, kBits}, kBits,
            OneIf(ir::And(ir::Lt(Var(3), Var(2)), IsKept(Var(1), Var(3)))));
    // Axes p l | d: of the word's values the one whose place is l's.
    const Expr its_word = Limited(word_of, {Var(0), Var(1)}, words_);
    const Expr its_place = Var(1) - Index(starts_, {Var(0), its_word});
    return Sum(DType::kF32, {num_panels(), most_}, kBits,
               ir::Select(ir::Binary(ir::BinaryOp::kEq, Index(places, {Var(0), its_word, Var(2)}),
                                     its_place),
                          WeightOf(its_word, Var(2)), ir::Const(DType::kF32, 0)));
  }

  int64_t at_once_;  ///< terms of a word
  int64_t words_, groups_;
  int64_t most_;  ///< L
  int weights_ = -1, bits_ = -1, counts_ = -1, of_groups_ = -1, ends_ = -1,
      starts_ = -1;
};

}  // namespace

absl::Status RewriteAsKeptValues(Schedule& schedule, int stage, int64_t width,
                                 const std::string& first_name) {
  HONE_ASSIGN_OR_RETURN(PanelSubject subject,
                        FindPanelSubject(schedule.workload, stage, width, "bitmask"));
  HONE_ASSIGN_OR_RETURN(int64_t first, ParseInteger(std::string_view(first_name).substr(1)));
  Rewriter(schedule, stage, std::move(subject), static_cast<int>(first)).Run();
  schedule.next_name = static_cast<int>(first) + kStagesOfKeptValues;
  return absl::OkStatus();
}

}  // namespace hone::schedule

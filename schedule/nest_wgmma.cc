#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/status.h"
#include "ir/mma.h"
#include "ir/wgmma.h"
#include "schedule/nest_builder.h"

// Whether four warps can multiply together what their threads do in the loops of a wgmma, and where
// they wait for it.
namespace hone::schedule {

using ir::Expr;

namespace {

/// The index of a factor, as a function of where its loops and the threads stand.
class FactorIndex {
 public:
  FactorIndex(const Expr& load, const std::map<int, Expr>& origin, const ir::VarRanges& ranges)
      : index_(load->args[0]), origin_(origin), ranges_(ranges), first_(At({})) {}

  /// From element (0, 0); nothing where that is no number.
  std::optional<int64_t> Offset(const std::map<int, Expr>& moved) const {
    return ir::AsInt(ir::Simplify(At(moved) - first_, ranges_));
  }
  /// Whether the first element is always that of whole pieces, whatever warps stand there.
  bool BeginsPieces() const {
    const ir::Linear sum = ir::ToLinear(first_, ranges_);
    bool whole = sum.constant % ir::kSwizzledPiece == 0;
    for (const ir::Linear::Term& term : sum.terms)
      whole = whole && term.coefficient % ir::kSwizzledPiece == 0;
    return whole;
  }

 private:
  Expr At(const std::map<int, Expr>& moved) const {
    std::vector<Expr> vars;
    for (size_t v = 0; v < ranges_.extent.size(); ++v) vars.push_back(ir::Var(static_cast<int>(v)));
    for (const auto& [var, value] : origin_) vars[static_cast<size_t>(var)] = value;
    for (const auto& [var, value] : moved) vars[static_cast<size_t>(var)] = value;
    return ir::Simplify(ir::SubstituteVars(index_, vars), ranges_);
  }

  const Expr& index_;
  const std::map<int, Expr>& origin_;
  const ir::VarRanges& ranges_;
  const Expr first_;
};

/// Where rows (or columns) and terms lie, if that is a layout of wgmma: along either of them alone
/// all elements are looked at, and the index is a sum of what each gives.
template <typename Place>
bool IsLayout(const FactorIndex& index, int64_t rows, int64_t terms, int term, const Place& place) {
  const auto next = index.Offset({{term, ir::Int(1)}});
  ir::FactorLayout layout{.by_term = next == 1};
  const int64_t along = layout.by_term ? terms : rows;
  if (along > ir::kSwizzledRow) {
    const Expr second = ir::Int(ir::kSwizzledRow);
    const auto apart =
        layout.by_term ? index.Offset({{term, second}}) : index.Offset(place(ir::kSwizzledRow));
    if (!apart) return false;
    layout.next_row = *apart;
  }
  if (layout.next_row % ir::kSwizzledPiece != 0) return false;
  for (int64_t k = 0; k < terms; ++k) {
    if (index.Offset({{term, ir::Int(k)}}) != layout.Of(0, k)) return false;
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (index.Offset(place(i)) != layout.Of(i, 0)) return false;
  }
  return index.BeginsPieces();
}

}  // namespace

absl::Status NestBuilder::FinishWgmma(const std::string& loop, Emitted* e) const {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("tensorize({}, wgmma): {}", loop, why));
  };
  const int x = threads_[0].var, y = threads_[1].var;
  if (x < 0 || y < 0 || threads_[0].count != ir::kMmaLanes ||
      threads_[1].count % ir::kGroupWarps != 0)
    return refuse("it must stand inside of 32 thread.x, a warp, and a multiple of four thread.y");
  if (!e->domain.empty() || !e->value.empty())
    return refuse("not all threads would come to it, or not for all of its terms");
  const std::optional<ir::WgmmaLoop> found = ir::FindWgmma(*e->stmt);
  if (!found) {
    return refuse(
        "around 2 to 32 eights of columns, 2 columns and a multiple of 16 terms, all of them "
        "there, it must add up f32 of loads of f16 or bf16, one by rows and one by columns");
  }
  for (const Expr& load : {found->first, found->second}) {
    const ir::Buffer& buffer = nest_.buffers[static_cast<size_t>(load->id)];
    if (buffer.scope != ir::Scope::kShared || buffer.swizzle != ir::Swizzle::k128)
      return refuse(fmt::format("{} is not in swizzled shared memory", buffer.name));
  }
  // The first lane of the first of four warps.
  const Expr warp =
      ir::Simplify(ir::FloorDiv(ir::Var(y), ir::kGroupWarps) * ir::kGroupWarps, ranges_);
  std::map<int, Expr> origin = {{x, ir::Int(0)}, {y, warp}};
  for (const int var : {found->row, found->eight, found->column, found->term})
    origin[var] = ir::Int(0);
  const auto row = [&](int64_t i) -> std::map<int, Expr> {
    return {{y, warp + ir::Int(i / ir::kMmaRows)},
            {found->row, ir::Int(i % ir::kMmaRows / 8)},
            {x, ir::Int(i % 8 * 4)}};
  };
  const auto column = [&](int64_t i) -> std::map<int, Expr> {
    return {{found->eight, ir::Int(i / ir::kMmaColumns)},
            {x, ir::Int(i % ir::kMmaColumns / 2)},
            {found->column, ir::Int(i % 2)}};
  };
  if (!IsLayout(FactorIndex(found->first, origin, ranges_), ir::kGroupRows, found->terms,
                found->term, row))
    return refuse("the rows of four warps must follow each other in the first factor's tile");
  if (!IsLayout(FactorIndex(found->second, origin, ranges_), found->columns, found->terms,
                found->term, column))
    return refuse("columns must follow each other in the second factor's tile");
  if (!products_ahead_)
    e->stmt = ir::Block({e->stmt, ir::AwaitProducts(found->store->buffers[0], 0)});
  return absl::OkStatus();
}

/// How many wgmma loops an iteration of the loop at this position runs; 0: none.
int64_t NestBuilder::ProductsInside(const Instance& instance, size_t position) const {
  const StageSchedule& schedule = s_.stages[instance.stage];
  int64_t count = 1;
  for (size_t p = position + 1; p < schedule.order.size(); ++p) {
    const int loop = schedule.order[p];
    if (schedule.loops[loop].kind == ir::LoopKind::kWgmma) return count;
    count *= ExtentOf(s_, instance, loop);
  }
  return 0;
}

/// A tile in the layout of ir::FactorLayout, whichever way round it is read.
absl::Status NestBuilder::SwizzleTile(const std::string& stage, ir::DType dtype, Location* at) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("swizzle({}): {}", stage, why));
  };
  if (ir::SizeOf(dtype) != 2) return refuse("its numbers have not 16 bits");
  const int64_t row = at->extent.back();
  if (row % ir::kSwizzledRow != 0) return refuse("its rows are no multiple of 64 numbers");
  int64_t rows = 1;
  for (size_t d = at->extent.size() - 1; d-- > 0;) {
    if (at->strides[d] != rows * row) return refuse("its rows lie apart");
    at->strides[d] = rows * ir::kSwizzledRow;
    rows *= at->extent[d];
  }
  if (rows * ir::kSwizzledRow % ir::kSwizzledPiece != 0)
    return refuse("it has no multiple of 8 rows");
  if (row > ir::kSwizzledRow) at->piece = rows * ir::kSwizzledRow;
  return absl::OkStatus();
}

}  // namespace hone::schedule

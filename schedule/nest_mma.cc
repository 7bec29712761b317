#include <fmt/format.h>

#include <array>
#include <optional>

#include "ir/mma.h"
#include "schedule/nest_builder.h"

// Whether a warp can multiply together what its threads do in the loops of an mma.
namespace hone::schedule {

using ir::Expr;

namespace {

/// How far elements lie apart for the next iteration of an mma's loops and for what the lane's
/// number adds.
struct Strides {
  int64_t loop = 0, lane = 0, term = 0;
  bool whole = true;  ///< other parts are rows of matrices, 16 bytes
};

/// For a factor whose rows (or columns) are counted by `loop` and by `lane`, an expression of the
/// thread's number; nothing where it depends on that otherwise. `width`: elements of 16 bytes, a
/// row of a matrix as the machine fetches it.
std::optional<Strides> StridesOf(const Expr& index, int loop, const Expr& lane, int thread,
                                 const ir::MmaLoop& mma, int64_t width,
                                 const ir::VarRanges& ranges) {
  Strides strides;
  const ir::Linear sum = ir::ToLinear(index, ranges);
  strides.whole = sum.constant % width == 0;
  for (const ir::Linear::Term& term : sum.terms) {
    if (ir::Equal(term.atom, ir::Var(loop))) {
      strides.loop = term.coefficient;
    } else if (ir::Equal(term.atom, ir::Var(mma.term))) {
      strides.term = term.coefficient;
    } else if (ir::Equal(term.atom, lane)) {
      strides.lane = term.coefficient;
    } else {
      const std::array<int, 4> own = {mma.row, mma.column, mma.term, thread};
      for (const int var : own) {
        if (ir::DependsOnVar(term.atom, var)) return std::nullopt;
      }
      strides.whole = strides.whole && term.coefficient % width == 0;
    }
  }
  return strides;
}

/// Whether terms lie side by side in rows of 16 bytes, or rows (columns) do. Where bytes lie so,
/// each lane loads its own, wherever they begin.
bool AreRows(const Strides& strides, int64_t next, int64_t width) {
  const bool by_row = strides.term == 1 && next % width == 0;
  const bool by_term = next == 1 && strides.term % width == 0;
  constexpr int64_t kBytes = 16;
  return strides.whole ? by_row || by_term : by_term && width == kBytes;
}

}  // namespace

absl::Status NestBuilder::CheckMma(const Emitted& e, const std::string& loop) const {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("tensorize({}, mma): {}", loop, why));
  };
  if (threads_[0].var < 0 || threads_[0].count != ir::kMmaLanes)
    return refuse("it must stand inside of a loop of 32 iterations that is thread.x, a warp");
  if (!e.domain.empty() || !e.value.empty())
    return refuse("not all threads of a warp would come to it, or not for all of its terms");
  const std::optional<ir::MmaLoop> mma = ir::FindMma(*e.stmt);
  if (!mma) {
    return refuse(
        "around 2 columns and a multiple of 16 terms, all of them there, it must add up f32 of "
        "loads of f16 or bf16, or i32 of 32 terms of bytes, one by rows and one by columns");
  }
  for (const Expr& load : {mma->first, mma->second}) {
    const ir::Buffer& buffer = nest_.buffers[static_cast<size_t>(load->id)];
    if (buffer.scope != ir::Scope::kShared)
      return refuse(fmt::format("{} is not in shared memory", buffer.name));
  }
  const Expr thread = ir::Var(threads_[0].var);
  const int64_t width = mma->step() / 2;
  const auto row = StridesOf(mma->first->args[0], mma->row, ir::FloorDiv(thread, 4),
                             threads_[0].var, *mma, width, ranges_);
  if (!row || row->loop != 8 * row->lane || !AreRows(*row, row->lane, width))
    return refuse("a thread's rows must be number thread.x div 4 and 8 further, in whole 16 bytes");
  const auto column = StridesOf(mma->second->args[0], mma->column, ir::FloorMod(thread, 4),
                                threads_[0].var, *mma, width, ranges_);
  if (!column || column->lane != 2 * column->loop || !AreRows(*column, column->loop, width))
    return refuse("a thread's columns must be 2 from thread.x mod 4 times 2 on, in whole 16 bytes");
  return absl::OkStatus();
}

}  // namespace hone::schedule

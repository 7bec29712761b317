#include "schedule/algorithms/late_quotient.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

absl::Status RewriteWithLateQuotient(Schedule& schedule, int product, int64_t /*number*/,
                                     const std::string& first_name) {
  HONE_ASSIGN_OR_RETURN(const AttentionForm f, MatchAttention(schedule, product));
  if (!f.divided)
    return Illegal(fmt::format("the weights of {} are not divided",
                               schedule.workload.stages[static_cast<size_t>(product)].name));
  HONE_ASSIGN_OR_RETURN(const int64_t first, ParseInteger(std::string_view(first_name).substr(1)));
  const ir::DType type = ir::DType::kF32;
  const auto stage = [&](int id) { return schedule.workload.stages[static_cast<size_t>(id)]; };
  const ir::Stage sum = stage(f.sum), exponential = stage(f.exponential), old = stage(product);

  std::vector<ir::Expr> point;
  for (int a = 0; a < sum.num_spatial(); ++a) point.push_back(ir::Var(a));
  ir::Stage inverse;
  inverse.spatial = sum.spatial;
  inverse.body = {
      ir::Binary(ir::BinaryOp::kDiv, ir::Const(type, 1), ir::Load(sum.results[0], type, point))};
  const int inverted = AppendStage(schedule, std::move(inverse), first_name, type, sum.spatial);

  std::vector<ir::Expr> at = f.row;
  at.push_back(ir::Var(old.num_spatial()));
  ir::Stage whole;
  whole.spatial = old.spatial;
  whole.reduce = old.reduce;
  whole.combiner = ir::Combiner::kSum;
  whole.body = {ir::Load(exponential.results[0], type, std::move(at)) * f.values};
  const int summed =
      AppendStage(schedule, std::move(whole), fmt::format("s{}", first + 1), type, old.spatial);
  schedule.next_name = static_cast<int>(first) + kStagesOfLateQuotient;

  point.clear();
  for (int a = 0; a < old.num_spatial(); ++a) point.push_back(ir::Var(a));
  ir::Stage& map = schedule.workload.stages[static_cast<size_t>(product)];
  map.combiner = ir::Combiner::kNone;
  map.reduce.clear();
  const ir::Expr quotient = ir::Load(inverted, type, f.row);
  const ir::Expr result = ir::Load(summed, type, point) * quotient;
  map.body = {f.zero_nan
                  ? ir::Select(ir::Unary(ir::UnaryOp::kIsNan, quotient), ir::Const(type, 0), result)
                  : result};
  ResetLoops(schedule, product);
  return absl::OkStatus();
}

}  // namespace hone::schedule

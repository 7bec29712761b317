#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {
constexpr size_t kMaxFactors = 8;
constexpr int64_t kMaxPart = int64_t{1} << 40;
constexpr int64_t kMaxPadding = 4096;
}  // namespace

// split(LOOP, [f1, …, fn], tail): LOOP becomes LOOP.0 … LOOP.n, outer to inner; f1…fn are the sizes
// of the inner loops. tail: exact (default), mask, two_sizes (one factor only: sizes h and h-1, no
// remainder). A factor larger than the extent is the extent.
absl::Status ApplySplit(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 3));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> factors, args.Integers(1));
  Tail tail = Tail::kExact;
  if (args.count() == 3) {
    const std::string& t = args.Text(2);
    if (t == "mask")
      tail = Tail::kMask;
    else if (t == "two_sizes")
      tail = Tail::kTwoSizes;
    else if (t != "exact")
      return Illegal(fmt::format("no tail {}; there are: exact mask two_sizes", t));
  }
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  HONE_RETURN_IF_ERROR(RequireFree(schedule, ref));
  if (!schedule.node(ref).cuts.empty()) return Illegal("a partitioned loop cannot be split");
  const bool two_sizes = schedule.stages[ref.stage].HasTwoSizes(ref.loop);
  if (!two_sizes && schedule.stages[ref.stage].HasSiblings(ref.loop))
    return Illegal("a fusion with siblings cannot be split");
  if (two_sizes) {
    return Illegal("the parts of a two_sizes split cannot be split; split what is outside first");
  }
  if (factors.empty()) return Illegal("needs a factor");
  if (tail == Tail::kTwoSizes && factors.size() != 1) return Illegal("two_sizes takes one factor");
  if (factors.size() > kMaxFactors)
    return Illegal(fmt::format("takes at most {} factors", kMaxFactors));
  // A mask keeps the size of its parts, so they should not be much larger than the loop.
  const int64_t most = tail == Tail::kMask
                           ? std::min(kMaxPart, 2 * schedule.NominalExtent(ref) + kMaxPadding)
                           : kMaxPart;
  int64_t part = 1;
  for (int64_t f : factors) {
    if (f < 1) return Illegal(fmt::format("the factor {} is not positive", f));
    if (f > most / part) return Illegal(fmt::format("the factors multiply to more than {}", most));
    part *= f;
  }
  StageSchedule& s = schedule.stages[ref.stage];
  const std::string base = s.loops[ref.loop].name;
  int position = schedule.PositionOf(ref);
  int parent = ref.loop;
  std::vector<int> leaves;
  // Outer to inner: at each level the outer part is a leaf and the inner part is split on.
  for (size_t k = 0; k < factors.size(); ++k) {
    int64_t inner_size = 1;
    for (size_t j = k; j < factors.size(); ++j) inner_size *= factors[j];
    LoopNode outer, inner;
    outer.origin = LoopNode::Origin::kOuter;
    inner.origin = LoopNode::Origin::kInner;
    outer.parent = inner.parent = parent;
    outer.factor = inner.factor = inner_size;
    outer.tail = inner.tail = tail;
    outer.name = fmt::format("{}.{}", base, k);
    bool last = k + 1 == factors.size();
    inner.name = last ? fmt::format("{}.{}", base, k + 1) : fmt::format("{}.({})", base, k + 1);
    s.loops[parent].split_outer = static_cast<int>(s.loops.size());
    s.loops[parent].split_inner = static_cast<int>(s.loops.size()) + 1;
    leaves.push_back(s.loops[parent].split_outer);
    parent = s.loops[parent].split_inner;
    s.loops.push_back(std::move(outer));
    s.loops.push_back(std::move(inner));
    if (last) leaves.push_back(parent);
  }
  s.order.erase(s.order.begin() + position);
  s.order.insert(s.order.begin() + position, leaves.begin(), leaves.end());
  return absl::OkStatus();
}

}  // namespace hone::schedule

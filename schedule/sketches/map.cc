#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/sketches/rules.h"

namespace hone::schedule {

namespace {
/// A share of the work below this many elements per thread is not worth a barrier.
constexpr int64_t kGrain = 4096;
}  // namespace

ParallelLoop Parallelise(TraceWriter& w, int owner, const std::vector<std::string>& loops,
                         const std::vector<int64_t>& extents, const ir::Target& target) {
  const std::string name = w.name(owner);
  // Leading loops of one iteration do not count; then fuse until the threads' shares differ by at
  // most a quarter.
  size_t first = 0;
  while (first < loops.size() && extents[first] == 1) ++first;
  if (first == loops.size()) return {};
  std::string loop = loops[first];
  int64_t n = extents[first];
  int fused = 0;
  auto uneven = [&] {
    return (n + target.threads - 1) / target.threads * target.threads * 4 > n * 5;
  };
  size_t consumed = first + 1;
  for (size_t k = first + 1; k < loops.size() && target.threads > 1 && uneven(); ++k) {
    consumed = k + 1;
    std::string result = fmt::format("{}.f{}", name, fused++);
    w.Emit(fmt::format("{} = fuse({}, {})", result, loop, loops[k]));
    loop = result;
    n *= extents[k];
  }
  w.Emit(fmt::format("parallel({}, {})", loop, target.threads));
  return {loop, consumed};
}

void ScheduleMap(TraceWriter& w, int id, int64_t unroll, const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const int v = VectorAxis(stage);
  if (v < 0) return;
  const ir::DType dtype = w.workload().tensors[stage.results[0]].dtype;
  const int lanes = LanesFor(dtype, target);
  std::vector<std::string> loops;
  std::vector<int64_t> extents;
  int64_t points = 1;
  int last = v;
  for (int a = v; a < stage.num_spatial(); ++a) {
    if (stage.spatial[a] > 1) last = a;
  }
  for (int a = 0; a < stage.num_spatial(); ++a) {
    points *= stage.spatial[a];
    if (a == v || (a > v && stage.spatial[a] == 1)) continue;
    loops.push_back(fmt::format("{}.i{}", stage.name, a));
    extents.push_back(stage.spatial[a]);
  }
  const int64_t n = stage.spatial[v];
  const std::string axis = fmt::format("{}.i{}", stage.name, v);
  if (n >= 2) {
    int64_t width = std::min<int64_t>(lanes, n);
    const bool unrolled = unroll > 1 && n >= width * unroll;
    const int64_t step = unrolled ? width * unroll : width;
    const std::string factors =
        unrolled ? fmt::format("[{}, {}]", unroll, width) : fmt::format("{}", width);
    w.Emit(fmt::format("split({}, {}{})", axis, factors, n % step == 0 ? "" : ", mask"));
    if (v != last) {
      std::vector<std::string> order = loops;
      for (int k = 0; k <= (unrolled ? 2 : 1); ++k) order.push_back(fmt::format("{}.{}", axis, k));
      w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    }
    if (unrolled) w.Emit(fmt::format("unroll({}.1)", axis));
    w.Emit(fmt::format("vectorize({}.{})", axis, unrolled ? 2 : 1));
    loops.push_back(axis + ".0");
    extents.push_back((n + step - 1) / step);
  }
  if (points < kGrain) return;
  Parallelise(w, id, loops, extents, target);
}

}  // namespace hone::schedule

#include "ir/loop_mma.h"

namespace hone::ir {

void RunMma(const MmaLoop& mma, std::span<LoopMachine> lanes, const ReadOfLane& read,
            const WriteOfLane& write) {
  // A place of the tile stands where the lane that has its row and column says.
  const auto at = [&](int buffer, const Expr& index, const MmaPlace& place, int64_t owner) {
    LaneElement element{buffer, index, lanes[static_cast<size_t>(owner)].vars};
    element.vars[static_cast<size_t>(mma.row)] = place.row / 8;
    element.vars[static_cast<size_t>(mma.column)] = place.column % kMmaColumnPair;
    element.vars[static_cast<size_t>(mma.term)] = place.term;
    return element;
  };
  const auto sum = [&](int64_t lane, size_t e) {
    return at(mma.store->buffers[0], mma.store->index, SumPlace(lane, static_cast<int64_t>(e)),
              lane);
  };
  MmaFragments parts;
  for (int64_t first = 0; first < mma.terms; first += kMmaTerms) {
    for (int64_t k = 0; k < kMmaLanes; ++k) {
      LoopMachine& lane = lanes[static_cast<size_t>(k)];
      const auto fetch = [&](const Expr& load, MmaPlace place) {
        place.term += first;
        const int64_t owner = place.row % 8 * 4 + place.column / kMmaColumnPair;
        return read(lane, at(load->id, load->args[0], place, owner));
      };
      for (size_t e = 0; e < kMmaFirst; ++e)
        parts.first[static_cast<size_t>(k)][e] =
            fetch(mma.first, FirstPlace(k, static_cast<int64_t>(e)));
      for (size_t e = 0; e < kMmaSecond; ++e)
        parts.second[static_cast<size_t>(k)][e] =
            fetch(mma.second, SecondPlace(k, static_cast<int64_t>(e)));
      for (size_t e = 0; e < kMmaSums; ++e)
        parts.sums[static_cast<size_t>(k)][e] = read(lane, sum(k, e));
    }
    MultiplyFragments(&parts);
    for (int64_t k = 0; k < kMmaLanes; ++k) {
      for (size_t e = 0; e < kMmaSums; ++e)
        write(lanes[static_cast<size_t>(k)], sum(k, e), parts.sums[static_cast<size_t>(k)][e]);
    }
  }
}

}  // namespace hone::ir

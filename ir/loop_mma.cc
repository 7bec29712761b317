#include "ir/loop_mma.h"

#include "ir/integer.h"

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
  // i32 and products of bytes are exact in double.
  const bool real = IsFloat(mma.sum_dtype());
  const auto number = [&](const LaneElement& element, LoopMachine& lane) {
    const Value value = read(lane, element);
    return real ? value.f : static_cast<double>(value.i);
  };
  MmaFragments parts;
  const int64_t step = parts.terms = mma.step();
  for (int64_t first = 0; first < mma.terms; first += step) {
    for (int64_t k = 0; k < kMmaLanes; ++k) {
      LoopMachine& lane = lanes[static_cast<size_t>(k)];
      const auto fetch = [&](const Expr& load, MmaPlace place) {
        place.term += first;
        const int64_t owner = place.row % 8 * 4 + place.column / kMmaColumnPair;
        return number(at(load->id, load->args[0], place, owner), lane);
      };
      for (int64_t e = 0; e < step / 2; ++e)
        parts.first[static_cast<size_t>(k)][static_cast<size_t>(e)] =
            fetch(mma.first, FirstPlace(k, e, step));
      for (int64_t e = 0; e < step / 4; ++e)
        parts.second[static_cast<size_t>(k)][static_cast<size_t>(e)] =
            fetch(mma.second, SecondPlace(k, e, step));
      for (size_t e = 0; e < kMmaSums; ++e)
        parts.sums[static_cast<size_t>(k)][e] = number(sum(k, e), lane);
    }
    MultiplyFragments(&parts);
    for (int64_t k = 0; k < kMmaLanes; ++k) {
      for (size_t e = 0; e < kMmaSums; ++e) {
        const double made = parts.sums[static_cast<size_t>(k)][e];
        write(lanes[static_cast<size_t>(k)], sum(k, e),
              real ? Value{.f = made}
                   : Value{.i = WrapTo(mma.sum_dtype(), static_cast<int64_t>(made))});
      }
    }
  }
}

}  // namespace hone::ir

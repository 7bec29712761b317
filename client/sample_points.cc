#include "client/sample_points.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/core/random.h"

namespace hone::client {
namespace {

/// Sizes that register tiles, vectors and blocks have.
constexpr int64_t kTiles[] = {2, 3, 4, 6, 8, 12, 14, 16, 24, 28, 32, 48, 64, 96, 128, 256};

class PointSet {
 public:
  PointSet(const std::vector<int64_t>& shape, int count) : shape_(shape), count_(count) {}

  bool full() const { return static_cast<int>(points_.size()) >= count_; }

  void Add(const std::vector<int64_t>& index) {
    if (full()) return;
    int64_t flat = 0;
    for (size_t d = 0; d < shape_.size(); ++d) flat = flat * shape_[d] + index[d];
    if (seen_.insert(flat).second) points_.push_back(flat);
  }

  std::vector<int64_t> Take() { return std::move(points_); }

 private:
  const std::vector<int64_t>& shape_;
  int count_;
  std::set<int64_t> seen_;
  std::vector<int64_t> points_;
};

std::vector<int64_t> RandomIndex(const std::vector<int64_t>& shape, Random& random) {
  std::vector<int64_t> index;
  for (const int64_t extent : shape) index.push_back(random.Between(0, extent - 1));
  return index;
}

/// Places along one axis where a loop may be cut.
std::vector<int64_t> Seams(int64_t extent) {
  std::set<int64_t> places = {0, extent - 1};
  for (const int64_t tile : kTiles) {
    if (tile >= extent) break;
    const int64_t last = extent / tile * tile;
    for (const int64_t place : {tile - 1, tile, last - 1, last}) {
      if (place < extent) places.insert(place);
    }
  }
  return {places.begin(), places.end()};
}

}  // namespace

std::vector<int64_t> SamplePoints(const std::vector<int64_t>& shape, int count, uint64_t seed) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  if (elements <= count) {
    std::vector<int64_t> all(static_cast<size_t>(elements));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Random random(seed);
  PointSet points(shape, count);
  const size_t corner_axes = std::min<size_t>(shape.size(), 4);
  for (size_t mask = 0; mask < size_t{1} << corner_axes; ++mask) {
    std::vector<int64_t> index(shape.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      // Beyond the fourth axis from the back, all at once.
      const size_t bit = std::min(shape.size() - 1 - d, corner_axes - 1);
      if ((mask >> bit & 1) != 0) index[d] = shape[d] - 1;
    }
    points.Add(index);
  }
  struct Place {
    size_t axis;
    int64_t at;
  };
  std::vector<Place> places;
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const int64_t at : Seams(shape[d])) places.push_back({d, at});
  }
  random.Shuffle(places);
  // Half of the points at most, so that some are free of any pattern.
  const size_t seams = std::min(places.size(), static_cast<size_t>(count) / 2);
  for (size_t i = 0; i < seams; ++i) {
    std::vector<int64_t> index = RandomIndex(shape, random);
    index[places[i].axis] = places[i].at;
    points.Add(index);
  }
  // More tries than needed: repeats are not added.
  for (int i = 0; i < 4 * count && !points.full(); ++i) points.Add(RandomIndex(shape, random));
  return points.Take();
}

}  // namespace hone::client

#pragma once

#include <cstdint>
#include <vector>

namespace hone::client {

/// Elements of a tensor worth checking, row-major numbers without repeats: first its corners, then
/// places where schedules have their seams (ends of an axis, both sides of the last multiple of
/// each usual tile size) with the other axes random, then random ones. At most `count`, all when it
/// has no more.
std::vector<int64_t> SamplePoints(const std::vector<int64_t>& shape, int count, uint64_t seed);

}  // namespace hone::client

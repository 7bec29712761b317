#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"

namespace hone::graph {

/// A Workload cut down to its first image.
struct FirstImage {
  ir::Workload workload;
  std::vector<int> axes;  ///< by tensor, which of its axes holds the images; -1: none
};

/// A Workload of a batch cut down to its first image, if all images are computed alike and apart.
/// `axes` says of each input along which axis, whose extent is a multiple of `images`, it holds
/// them one after the other; -1: it is the same for all. In the result every tensor that depends on
/// those has the extent of its own such axis divided by `images`, and so have the Stages that make
/// them. Empty where a Stage reads across images or is a scan, or where it cannot be shown
/// otherwise.
///
/// The proof: with n rows of a Stage to an image, its body may not change when one of its axes
/// grows by n and every tensor that depends on the inputs is read as many images on; and in the
/// first image every such read stays in the first image.
std::optional<FirstImage> FirstImageOf(const ir::Workload& workload, std::vector<int> axes,
                                       int64_t images);

}  // namespace hone::graph

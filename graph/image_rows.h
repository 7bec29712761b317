#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"

namespace hone::graph {

/// A Workload of a batch cut down to its first image, if all images are computed alike and apart.
/// `batched` says of each tensor whether it is an input whose first extent is a multiple of
/// `images` and holds them one after the other. In the result every tensor that depends on those
/// has its first extent divided by `images`, and so have the Stages that make them. Empty where a
/// Stage reads across images, makes them along another axis, or is a scan; or where neither can be
/// shown.
///
/// The proof: with n rows of a Stage to an image, its body may not change when its first axis grows
/// by n and every tensor that depends on the inputs is read as many images on; and in the first
/// image every such read stays in the first image.
std::optional<ir::Workload> FirstImageOf(const ir::Workload& workload,
                                         const std::vector<bool>& batched, int64_t images);

}  // namespace hone::graph

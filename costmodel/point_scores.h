#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "costmodel/features.h"
#include "costmodel/xgboost_model.h"

namespace hone::costmodel {

/// What the trees say of many points of one Space, features included, in the order of `ids`. The
/// work is cut into blocks that stay in the caches, which `threads` threads share (the caller is
/// one of them; at least 1). The same bits for every number of threads. Errors of
/// XgboostModel::Predict.
absl::StatusOr<std::vector<Prediction>> ScorePoints(const FeatureExtractor& extractor,
                                                    const XgboostModel& model,
                                                    std::span<const uint64_t> ids, int threads);

}  // namespace hone::costmodel

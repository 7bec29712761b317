#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/xgboost_model.h"

namespace hone::costmodel {

/// Columns of the CPU's features, which rows of tests have.
inline constexpr size_t kColumns = 44;

/// A model that was trained, written and read again, as a search's is.
inline absl::StatusOr<std::unique_ptr<XgboostModel>> TrainedModel(
    const std::vector<TrainingTask>& tasks, uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, XgboostModel::Train(tasks, seed));
  return XgboostModel::Load(bytes);
}

}  // namespace hone::costmodel

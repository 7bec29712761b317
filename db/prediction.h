#pragma once

#include <string>

#include "db/record.h"

// Predictions of an analytic model stand in the log under keys of their own: a look-up of what was
// measured never meets one, nor does a search, a comparison or a verdict.
namespace hone::db {

/// What a target's predictions are "measured" on: `predicted-1:cuda`, 1 being
/// KindVersions::analytic_model. The fingerprint says the same in words.
Device PredictedDevice(const std::string& target);

/// Where predictions of the key's Workload stand, whichever device it names.
RecordKey PredictedKey(RecordKey key);

}  // namespace hone::db

#include "db/prediction.h"

#include <utility>

#include "fmt/core.h"

#include "base/versions.h"
#include "ir/kind_facts.h"

namespace hone::db {

Device PredictedDevice(const std::string& target) {
  const std::string_view kind = ir::KindNameOf(target);
  const int version = ir::VersionsOf(target).analytic_model;
  return {.device_class = fmt::format("predicted-{}:{}", version, kind),
          .fingerprint = fmt::format("no device: analytic model {} of {}", version, kind)};
}

RecordKey PredictedKey(RecordKey key) {
  key.device_class = PredictedDevice(key.target).device_class;
  key.measurement_policy = kNotMeasured;
  return key;
}

}  // namespace hone::db

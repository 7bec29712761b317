#pragma once

#include "absl/status/statusor.h"

#include "proto/farm_messages.h"

namespace hone::v1 {
class Probes;
}  // namespace hone::v1

// A part of convert.h, for convert.cc alone.
namespace hone::proto {

absl::StatusOr<Probes> FromProbes(const v1::Probes& wire);
void ToProbes(const Probes& probes, v1::Probes* wire);

}  // namespace hone::proto

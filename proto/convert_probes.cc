#include "proto/convert_probes.h"

#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::proto {

absl::StatusOr<Probes> FromProbes(const v1::Probes& wire) {
  HONE_RETURN_IF_ERROR(RealInRange(wire.flop_per_second(), 1, kMaxRate, "probes.flop_per_second"));
  HONE_RETURN_IF_ERROR(
      RealInRange(wire.memory_bytes_per_second(), 1, kMaxRate, "probes.memory_bytes_per_second"));
  HONE_RETURN_IF_ERROR(RealInRange(wire.noise(), 0, kMaxNoise, "probes.noise"));
  HONE_RETURN_IF_ERROR(InRange(wire.number(), 1, INT64_MAX, "probes.number"));
  return Probes{wire.flop_per_second(), wire.memory_bytes_per_second(), wire.noise(),
                wire.number()};
}

void ToProbes(const Probes& probes, v1::Probes* wire) {
  wire->set_flop_per_second(probes.flop_per_second);
  wire->set_memory_bytes_per_second(probes.memory_bytes_per_second);
  wire->set_noise(probes.noise);
  wire->set_number(probes.number);
}

}  // namespace hone::proto

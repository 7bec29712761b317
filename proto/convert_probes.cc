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
  HONE_RETURN_IF_ERROR(
      RealInRange(wire.dot_i8_per_second(), 0, kMaxDotRate, "probes.dot_i8_per_second"));
  HONE_RETURN_IF_ERROR(
      RealInRange(wire.dot_bf16_per_second(), 0, kMaxDotRate, "probes.dot_bf16_per_second"));
  HONE_RETURN_IF_ERROR(
      AtMost(static_cast<size_t>(wire.caches_size()), kMaxCaches, "probes.caches"));
  Probes probes{wire.flop_per_second(), wire.memory_bytes_per_second(), wire.noise(),
                wire.number(),          wire.dot_i8_per_second(),       wire.dot_bf16_per_second()};
  int64_t smaller = 0;
  for (const v1::MemoryLevel& cache : wire.caches()) {
    HONE_RETURN_IF_ERROR(
        InRange(cache.bytes(), smaller + 1, int64_t{1} << 50, "probes.caches.bytes"));
    HONE_RETURN_IF_ERROR(
        RealInRange(cache.bytes_per_second(), 1, kMaxDotRate, "probes.caches.bytes_per_second"));
    probes.caches.push_back({cache.bytes(), cache.bytes_per_second()});
    smaller = cache.bytes();
  }
  return probes;
}

void ToProbes(const Probes& probes, v1::Probes* wire) {
  wire->set_flop_per_second(probes.flop_per_second);
  wire->set_memory_bytes_per_second(probes.memory_bytes_per_second);
  wire->set_noise(probes.noise);
  wire->set_number(probes.number);
  wire->set_dot_i8_per_second(probes.dot_i8_per_second);
  wire->set_dot_bf16_per_second(probes.dot_bf16_per_second);
  for (const measure::MemoryLevel& cache : probes.caches) {
    v1::MemoryLevel* const level = wire->add_caches();
    level->set_bytes(cache.bytes);
    level->set_bytes_per_second(cache.bytes_per_second);
  }
}

}  // namespace hone::proto

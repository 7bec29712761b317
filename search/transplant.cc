#include "search/transplant.h"

#include "ir/text.h"

namespace hone::search {

std::optional<uint64_t> TransplantPoint(const db::NearCandidate& candidate,
                                        const schedule::Space& space) {
  const auto other = ir::ParseWorkload(candidate.workload.text);
  if (!other.ok()) return std::nullopt;
  const schedule::Space source(*other, space.target(), candidate.record.record.key.accuracy);
  const auto from = source.Locate(candidate.record.record.trace);
  if (!from) return std::nullopt;
  return space.Nearest(source, *from);
}

}  // namespace hone::search

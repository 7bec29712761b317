#pragma once

#include <cstdint>
#include <vector>

#include "ir/artifact.h"
#include "measure/wire.h"

// Artifacts and lists of numbers as parts of payloads. std only: both pipes carry them.
namespace hone::measure {

void PutInts(WireWriter& writer, const std::vector<int64_t>& values);
std::vector<int64_t> GetInts(WireReader& reader);

void PutInts(WireWriter& writer, const std::vector<int32_t>& values);
/// Positions in a list of `size`; others make the reader fail.
std::vector<int32_t> GetPositions(WireReader& reader, size_t size);

/// An unknown number makes the reader fail and gives kF32.
ir::DType GetDType(WireReader& reader);

void PutArtifact(WireWriter& writer, const ir::Artifact& artifact);
ir::Artifact GetArtifact(WireReader& reader);

}  // namespace hone::measure

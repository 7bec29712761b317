#pragma once

#include <cstdint>
#include <vector>

#include "base/core/byte_stream.h"
#include "ir/artifact.h"

// Artifacts as parts of payloads. std only: both pipes carry them.
namespace hone::measure {

/// Positions in something that has `size` elements: negative ones and larger ones make the reader
/// fail.
std::vector<int32_t> GetPositions(ByteReader& reader, size_t size);

/// An artifact as a package has it (ir::EncodeArtifact), then what a package says elsewhere or not
/// at all: launches, what phases touch, the prologue.
void PutArtifact(ByteWriter& writer, const ir::Artifact& artifact);
/// Reads one; bad numbers make the reader fail.
ir::Artifact GetArtifact(ByteReader& reader);

}  // namespace hone::measure

#pragma once

#include <vector>

#include "base/core/byte_stream.h"
#include "ir/artifact.h"
#include "ir/dtype.h"

// Artifacts as bytes, in packages (docs/formats/package.md, "Plan") and between programs. What is
// no artifact makes the reader fail, and is then incomplete.
namespace hone::ir {

void EncodeDType(DType dtype, ByteWriter& writer);
DType GetDType(ByteReader& reader);

void EncodeBuffers(const std::vector<ArtifactBuffer>& buffers, ByteWriter& writer);
std::vector<ArtifactBuffer> DecodeBuffers(ByteReader& reader);

/// Blocks and threads along x and y: what there was first, and stands apart in packages.
void EncodePlane(const Launch& launch, ByteWriter& writer);
void DecodePlane(ByteReader& reader, Launch* launch);
/// All else of a launch.
void EncodeDepth(const Launch& launch, ByteWriter& writer);
void DecodeDepth(ByteReader& reader, Launch* launch);

/// Without launches, what phases touch and the prologue: those follow elsewhere, where at all.
void EncodeArtifact(const Artifact& artifact, ByteWriter& writer);
Artifact DecodeArtifact(ByteReader& reader);

}  // namespace hone::ir

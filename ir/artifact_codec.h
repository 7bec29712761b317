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

void EncodeLaunch(const Launch& launch, ByteWriter& writer);
Launch DecodeLaunch(ByteReader& reader);

/// Without launches, what phases touch and the prologue: those follow elsewhere, where at all.
void EncodeArtifact(const Artifact& artifact, ByteWriter& writer);
Artifact DecodeArtifact(ByteReader& reader);

}  // namespace hone::ir

#include "measure/artifact_wire.h"

#include "ir/artifact_codec.h"

namespace hone::measure {

std::vector<int32_t> GetPositions(ByteReader& reader, size_t size) {
  std::vector<int32_t> values = reader.GetList<int32_t>();
  for (const int32_t value : values) {
    if (value < 0 || static_cast<size_t>(value) >= size) reader.Fail("a position out of range");
  }
  return values;
}

void PutArtifact(ByteWriter& writer, const ir::Artifact& artifact) {
  ir::EncodeArtifact(artifact, writer);
  for (const ir::ArtifactPhase& phase : artifact.phases) {
    ir::EncodePlane(phase.launch, writer);
    ir::EncodeDepth(phase.launch, writer);
    writer.PutCount(phase.accesses.size());
    for (const ir::PhaseAccess& access : phase.accesses) {
      writer.Put(access.argument);
      writer.Put(static_cast<uint8_t>(access.writes));
      writer.Put(access.stride);
      writer.Put(access.begin);
      writer.Put(access.end);
    }
  }
  writer.PutText(artifact.prologue_workload);
  writer.PutList(artifact.prologue_inputs);
  writer.PutList(artifact.prologue_outputs);
}

ir::Artifact GetArtifact(ByteReader& reader) {
  ir::Artifact artifact = ir::DecodeArtifact(reader);
  for (ir::ArtifactPhase& phase : artifact.phases) {
    if (!reader.ok()) break;
    ir::DecodePlane(reader, &phase.launch);
    ir::DecodeDepth(reader, &phase.launch);
    phase.accesses.resize(reader.GetCount(29));
    for (ir::PhaseAccess& access : phase.accesses) {
      access.argument = reader.Get<int32_t>();
      access.writes = reader.Get<uint8_t>() != 0;
      access.stride = reader.Get<int64_t>();
      access.begin = reader.Get<int64_t>();
      access.end = reader.Get<int64_t>();
    }
  }
  artifact.prologue_workload = reader.GetText();
  artifact.prologue_inputs = GetPositions(reader, artifact.constants.size());
  artifact.prologue_outputs = GetPositions(reader, artifact.prologue.size());
  return artifact;
}

}  // namespace hone::measure

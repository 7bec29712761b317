#include "measure/artifact_wire.h"

#include <string>

namespace hone::measure {
namespace {

void PutBuffers(WireWriter& writer, const std::vector<ir::ArtifactBuffer>& buffers) {
  writer.PutCount(buffers.size());
  for (const ir::ArtifactBuffer& buffer : buffers) {
    writer.Put(static_cast<uint8_t>(buffer.dtype));
    PutInts(writer, buffer.shape);
    writer.Put(buffer.bytes);
  }
}

std::vector<ir::ArtifactBuffer> GetBuffers(WireReader& reader) {
  std::vector<ir::ArtifactBuffer> buffers(reader.GetCount(13));
  for (ir::ArtifactBuffer& buffer : buffers) {
    buffer.dtype = GetDType(reader);
    buffer.shape = GetInts(reader);
    buffer.bytes = reader.Get<int64_t>();
  }
  return buffers;
}

}  // namespace

void PutInts(WireWriter& writer, const std::vector<int64_t>& values) {
  writer.PutCount(values.size());
  for (const int64_t value : values) writer.Put(value);
}

std::vector<int64_t> GetInts(WireReader& reader) {
  std::vector<int64_t> values(reader.GetCount(sizeof(int64_t)));
  for (int64_t& value : values) value = reader.Get<int64_t>();
  return values;
}

void PutInts(WireWriter& writer, const std::vector<int32_t>& values) {
  writer.PutCount(values.size());
  for (const int32_t value : values) writer.Put(value);
}

std::vector<int32_t> GetPositions(WireReader& reader, size_t size) {
  std::vector<int32_t> values(reader.GetCount(sizeof(int32_t)));
  for (int32_t& value : values) {
    value = reader.Get<int32_t>();
    if (value < 0 || static_cast<size_t>(value) >= size) reader.Fail("a position out of range");
  }
  return values;
}

ir::DType GetDType(WireReader& reader) {
  const auto dtype = reader.Get<uint8_t>();
  if (dtype >= ir::kNumDTypes) reader.Fail("dtype " + std::to_string(dtype));
  return reader.failed() ? ir::DType::kF32 : static_cast<ir::DType>(dtype);
}

void PutArtifact(WireWriter& writer, const ir::Artifact& artifact) {
  writer.PutString(artifact.target);
  writer.Put(artifact.builder);
  writer.PutString(artifact.workload_hash);
  writer.PutString(artifact.trace_hash);
  writer.PutString(artifact.binding_hash);
  writer.PutCount(artifact.phases.size());
  for (const ir::ArtifactPhase& phase : artifact.phases) {
    writer.PutString(phase.symbol);
    writer.Put(phase.parallel_extent);
    writer.Put(phase.scratch_bytes);
    writer.Put(phase.threads);
    for (const int64_t extent :
         {phase.launch.grid_x, phase.launch.grid_y, phase.launch.block_x, phase.launch.block_y}) {
      writer.Put(extent);
    }
    writer.PutCount(phase.accesses.size());
    for (const ir::PhaseAccess& access : phase.accesses) {
      writer.Put(access.argument);
      writer.Put(static_cast<uint8_t>(access.writes));
      writer.Put(access.stride);
      writer.Put(access.begin);
      writer.Put(access.end);
    }
  }
  writer.PutCount(artifact.steps.size());
  for (const ir::ArtifactStep& step : artifact.steps) {
    writer.Put(step.first);
    writer.Put(step.count);
    writer.Put(step.repeats);
  }
  for (const auto* buffers : {&artifact.inputs, &artifact.constants, &artifact.prologue,
                              &artifact.outputs, &artifact.workspace}) {
    PutBuffers(writer, *buffers);
  }
  writer.PutString(artifact.prologue_workload);
  PutInts(writer, artifact.prologue_inputs);
  PutInts(writer, artifact.prologue_outputs);
  writer.Put(static_cast<uint8_t>(artifact.may_alias));
}

ir::Artifact GetArtifact(WireReader& reader) {
  ir::Artifact artifact;
  artifact.target = reader.GetString();
  artifact.builder = reader.Get<int32_t>();
  artifact.workload_hash = reader.GetString();
  artifact.trace_hash = reader.GetString();
  artifact.binding_hash = reader.GetString();
  artifact.phases.resize(reader.GetCount(60));
  for (ir::ArtifactPhase& phase : artifact.phases) {
    phase.symbol = reader.GetString();
    phase.parallel_extent = reader.Get<int64_t>();
    phase.scratch_bytes = reader.Get<int64_t>();
    phase.threads = reader.Get<int32_t>();
    for (int64_t* extent : {&phase.launch.grid_x, &phase.launch.grid_y, &phase.launch.block_x,
                            &phase.launch.block_y}) {
      *extent = reader.Get<int64_t>();
    }
    phase.accesses.resize(reader.GetCount(29));
    for (ir::PhaseAccess& access : phase.accesses) {
      access.argument = reader.Get<int32_t>();
      access.writes = reader.Get<uint8_t>() != 0;
      access.stride = reader.Get<int64_t>();
      access.begin = reader.Get<int64_t>();
      access.end = reader.Get<int64_t>();
    }
  }
  artifact.steps.resize(reader.GetCount(16));
  for (ir::ArtifactStep& step : artifact.steps) {
    step.first = reader.Get<int32_t>();
    step.count = reader.Get<int32_t>();
    step.repeats = reader.Get<int64_t>();
  }
  for (auto* buffers : {&artifact.inputs, &artifact.constants, &artifact.prologue,
                        &artifact.outputs, &artifact.workspace}) {
    *buffers = GetBuffers(reader);
  }
  artifact.prologue_workload = reader.GetString();
  artifact.prologue_inputs = GetPositions(reader, artifact.constants.size());
  artifact.prologue_outputs = GetPositions(reader, artifact.prologue.size());
  artifact.may_alias = reader.Get<uint8_t>() != 0;
  return artifact;
}

}  // namespace hone::measure

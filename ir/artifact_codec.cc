#include "ir/artifact_codec.h"

#include <string>

namespace hone::ir {
namespace {

constexpr size_t kMaxNameBytes = 4096;

}  // namespace

void EncodeDType(DType dtype, ByteWriter& writer) {
  writer.Put<uint8_t>(static_cast<uint8_t>(dtype));
}

DType GetDType(ByteReader& reader) {
  const uint8_t value = reader.Get<uint8_t>();
  if (value >= kNumDTypes) {
    reader.Fail("unknown element type " + std::to_string(value));
    return DType::kF32;
  }
  return static_cast<DType>(value);
}

void EncodeBuffers(const std::vector<ArtifactBuffer>& buffers, ByteWriter& writer) {
  writer.PutCount(buffers.size());
  for (const ArtifactBuffer& buffer : buffers) {
    EncodeDType(buffer.dtype, writer);
    writer.PutList(buffer.shape);
    writer.Put<int64_t>(buffer.bytes);
  }
}

std::vector<ArtifactBuffer> DecodeBuffers(ByteReader& reader) {
  std::vector<ArtifactBuffer> buffers(reader.GetCount(1 + 4 + 8));
  for (ArtifactBuffer& buffer : buffers) {
    if (!reader.ok()) break;
    buffer.dtype = GetDType(reader);
    buffer.shape = reader.GetList<int64_t>();
    buffer.bytes = reader.Get<int64_t>();
  }
  return buffers;
}

void EncodeArtifact(const Artifact& kernel, ByteWriter& writer) {
  writer.PutText(kernel.target);
  writer.Put<int32_t>(kernel.builder);
  writer.PutText(kernel.workload_hash);
  writer.PutText(kernel.trace_hash);
  writer.PutText(kernel.binding_hash);
  writer.PutCount(kernel.phases.size());
  for (const ArtifactPhase& phase : kernel.phases) {
    writer.PutText(phase.symbol);
    writer.Put<int64_t>(phase.parallel_extent);
    writer.Put<int64_t>(phase.scratch_bytes);
    writer.Put<int32_t>(phase.threads);
  }
  writer.PutCount(kernel.steps.size());
  for (const ArtifactStep& step : kernel.steps) {
    writer.Put<int32_t>(step.first);
    writer.Put<int32_t>(step.count);
    writer.Put<int64_t>(step.repeats);
  }
  EncodeBuffers(kernel.inputs, writer);
  EncodeBuffers(kernel.constants, writer);
  EncodeBuffers(kernel.prologue, writer);
  EncodeBuffers(kernel.outputs, writer);
  EncodeBuffers(kernel.workspace, writer);
  writer.Put<uint8_t>(kernel.may_alias ? 1 : 0);
}

Artifact DecodeArtifact(ByteReader& reader) {
  Artifact kernel;
  kernel.target = reader.GetText(kMaxNameBytes);
  kernel.builder = reader.Get<int32_t>();
  kernel.workload_hash = reader.GetText(kMaxNameBytes);
  kernel.trace_hash = reader.GetText(kMaxNameBytes);
  kernel.binding_hash = reader.GetText(kMaxNameBytes);
  kernel.phases.resize(reader.GetCount(4 + 8 + 8 + 4));
  for (ArtifactPhase& phase : kernel.phases) {
    if (!reader.ok()) break;
    phase.symbol = reader.GetText(kMaxNameBytes);
    phase.parallel_extent = reader.Get<int64_t>();
    phase.scratch_bytes = reader.Get<int64_t>();
    phase.threads = reader.Get<int32_t>();
  }
  kernel.steps.resize(reader.GetCount(4 + 4 + 8));
  for (ArtifactStep& step : kernel.steps) {
    step.first = reader.Get<int32_t>();
    step.count = reader.Get<int32_t>();
    step.repeats = reader.Get<int64_t>();
  }
  kernel.inputs = DecodeBuffers(reader);
  kernel.constants = DecodeBuffers(reader);
  kernel.prologue = DecodeBuffers(reader);
  kernel.outputs = DecodeBuffers(reader);
  kernel.workspace = DecodeBuffers(reader);
  const uint8_t may_alias = reader.Get<uint8_t>();
  if (may_alias > 1) reader.Fail("a yes-or-no of value " + std::to_string(may_alias));
  kernel.may_alias = may_alias == 1;
  return kernel;
}

void EncodePlane(const Launch& launch, ByteWriter& writer) {
  for (const int64_t extent : {launch.grid_x, launch.grid_y, launch.block_x, launch.block_y})
    writer.Put<int64_t>(extent);
}

void DecodePlane(ByteReader& reader, Launch* launch) {
  for (int64_t* extent : {&launch->grid_x, &launch->grid_y, &launch->block_x, &launch->block_y})
    *extent = reader.Get<int64_t>();
}

void EncodeDepth(const Launch& launch, ByteWriter& writer) {
  for (const int64_t extent : {launch.grid_z, launch.block_z, launch.cluster_x, launch.cluster_y,
                               launch.cluster_z, launch.shared_bytes}) {
    writer.Put<int64_t>(extent);
  }
  writer.PutCount(launch.descriptors.size());
  for (const Descriptor& descriptor : launch.descriptors) {
    writer.Put<int32_t>(descriptor.argument);
    EncodeDType(descriptor.dtype, writer);
    for (const auto* list : {&descriptor.shape, &descriptor.strides, &descriptor.box})
      writer.PutList(*list);
    writer.Put<uint8_t>(static_cast<uint8_t>(descriptor.swizzle));
  }
}

void DecodeDepth(ByteReader& reader, Launch* launch) {
  for (int64_t* extent : {&launch->grid_z, &launch->block_z, &launch->cluster_x, &launch->cluster_y,
                          &launch->cluster_z, &launch->shared_bytes}) {
    *extent = reader.Get<int64_t>();
  }
  launch->descriptors.resize(reader.GetCount(4 + 1 + 3 * 4 + 1));
  for (Descriptor& descriptor : launch->descriptors) {
    if (!reader.ok()) return;
    descriptor.argument = reader.Get<int32_t>();
    descriptor.dtype = GetDType(reader);
    for (auto* list : {&descriptor.shape, &descriptor.strides, &descriptor.box})
      *list = reader.GetList<int64_t>();
    const uint8_t swizzle = reader.Get<uint8_t>();
    if (swizzle >= kNumSwizzles) reader.Fail("unknown swizzle " + std::to_string(swizzle));
    descriptor.swizzle = static_cast<Swizzle>(swizzle % kNumSwizzles);
  }
}

}  // namespace hone::ir

#include "runtime/plan_codec.h"

#include <string>
#include <vector>

#include "ir/artifact_codec.h"

namespace hone::runtime {
namespace {

constexpr size_t kMaxNameBytes = 4096;

template <typename Enum>
Enum DecodeEnum(ByteReader& reader, Enum last, const char* what) {
  const uint8_t value = reader.Get<uint8_t>();
  if (value > static_cast<uint8_t>(last)) {
    reader.Fail(std::string("unknown ") + what + " " + std::to_string(value));
    return last;
  }
  return static_cast<Enum>(value);
}

void EncodeStep(const ir::PlanStep& step, ByteWriter& writer) {
  writer.Put<uint8_t>(static_cast<uint8_t>(step.kind));
  writer.Put<int32_t>(step.kernel);
  writer.PutText(step.extern_name);
  writer.PutList(step.extern_attributes);
  ir::EncodeBuffers(step.extern_inputs, writer);
  ir::EncodeBuffers(step.extern_outputs, writer);
  writer.PutList(step.buffers);
  writer.Put<int32_t>(step.threads);
}

ir::PlanStep DecodeStep(ByteReader& reader) {
  ir::PlanStep step;
  step.kind = DecodeEnum(reader, ir::PlanStepKind::kExtern, "kind of step");
  step.kernel = reader.Get<int32_t>();
  step.extern_name = reader.GetText(kMaxNameBytes);
  step.extern_attributes = reader.GetList<int64_t>();
  step.extern_inputs = ir::DecodeBuffers(reader);
  step.extern_outputs = ir::DecodeBuffers(reader);
  step.buffers = reader.GetList<int32_t>();
  step.threads = reader.Get<int32_t>();
  return step;
}

void EncodeValues(const std::vector<ir::PlanValue>& values, ByteWriter& writer) {
  writer.PutCount(values.size());
  for (const ir::PlanValue& value : values) {
    writer.PutText(value.name);
    ir::EncodeDType(value.dtype, writer);
    writer.PutList(value.shape);
  }
}

std::vector<ir::PlanValue> DecodeValues(ByteReader& reader) {
  std::vector<ir::PlanValue> values(reader.GetCount(4 + 1 + 4));
  for (ir::PlanValue& value : values) {
    if (!reader.ok()) break;
    value.name = reader.GetText(kMaxNameBytes);
    value.dtype = ir::GetDType(reader);
    value.shape = reader.GetList<int64_t>();
  }
  return values;
}

}  // namespace

void EncodePlan(const ir::Plan& plan, ByteWriter& writer) {
  writer.Put<int64_t>(plan.arena_bytes);
  EncodeValues(plan.inputs, writer);
  EncodeValues(plan.outputs, writer);
  writer.PutCount(plan.buffers.size());
  for (const ir::PlanBuffer& buffer : plan.buffers) {
    writer.Put<uint8_t>(static_cast<uint8_t>(buffer.kind));
    writer.Put<int64_t>(buffer.offset);
    writer.Put<int64_t>(buffer.bytes);
  }
  writer.PutCount(plan.kernels.size());
  for (const ir::Artifact& kernel : plan.kernels) ir::EncodeArtifact(kernel, writer);
  writer.PutCount(plan.steps.size());
  for (const ir::PlanStep& step : plan.steps) EncodeStep(step, writer);
  writer.PutCount(plan.names.size());
  for (const ir::PlanName& name : plan.names) {
    writer.Put<int32_t>(name.step);
    writer.Put<int32_t>(name.input);
    writer.PutText(name.node);
    writer.PutText(name.value);
  }
  for (const ir::Artifact& kernel : plan.kernels) {
    for (const ir::ArtifactPhase& phase : kernel.phases) ir::EncodePlane(phase.launch, writer);
  }
  for (const ir::PlanBuffer& buffer : plan.buffers) writer.Put<int64_t>(buffer.advance_bytes);
  writer.PutCount(plan.loops.size());
  for (const ir::PlanLoop& loop : plan.loops) {
    writer.Put<int32_t>(loop.first);
    writer.Put<int32_t>(loop.count);
    writer.Put<int64_t>(loop.repeats);
  }
  writer.PutCount(plan.joins.size());
  for (const ir::PlanJoin& join : plan.joins) {
    writer.Put<int32_t>(join.step);
    writer.Put<int32_t>(join.phase);
  }
  writer.PutCount(plan.forks.size());
  for (const ir::PlanFork& fork : plan.forks) {
    writer.Put<int32_t>(fork.first);
    writer.PutList(fork.counts);
  }
  for (const ir::Artifact& kernel : plan.kernels) {
    for (const ir::ArtifactPhase& phase : kernel.phases) ir::EncodeDepth(phase.launch, writer);
  }
}

ir::Plan DecodePlan(ByteReader& reader, int format) {
  ir::Plan plan;
  plan.arena_bytes = reader.Get<int64_t>();
  plan.inputs = DecodeValues(reader);
  plan.outputs = DecodeValues(reader);
  plan.buffers.resize(reader.GetCount(1 + 8 + 8));
  for (ir::PlanBuffer& buffer : plan.buffers) {
    buffer.kind = DecodeEnum(reader, ir::PlanBufferKind::kOutput, "kind of buffer");
    buffer.offset = reader.Get<int64_t>();
    buffer.bytes = reader.Get<int64_t>();
  }
  // The least a kernel takes: four texts, builder, phases, steps, five buffer lists, one flag.
  for (size_t left = reader.GetCount(4 * 4 + 4 + 2 * 4 + 5 * 4 + 1); left > 0 && reader.ok();
       --left) {
    plan.kernels.push_back(ir::DecodeArtifact(reader));
  }
  for (size_t left = reader.GetCount(1 + 4 + 5 * 4 + 4); left > 0 && reader.ok(); --left) {
    plan.steps.push_back(DecodeStep(reader));
  }
  if (format < 3) return plan;
  for (size_t left = reader.GetCount(4 * 4); left > 0 && reader.ok(); --left) {
    ir::PlanName& name = plan.names.emplace_back();
    name.step = reader.Get<int32_t>();
    name.input = reader.Get<int32_t>();
    name.node = reader.GetText(kMaxNameBytes);
    name.value = reader.GetText(kMaxNameBytes);
  }
  for (ir::Artifact& kernel : plan.kernels) {
    for (ir::ArtifactPhase& phase : kernel.phases) {
      if (!reader.ok()) return plan;
      ir::DecodePlane(reader, &phase.launch);
    }
  }
  if (format < 4) return plan;
  for (ir::PlanBuffer& buffer : plan.buffers) {
    if (!reader.ok()) return plan;
    buffer.advance_bytes = reader.Get<int64_t>();
  }
  plan.loops.resize(reader.GetCount(4 + 4 + 8));
  for (ir::PlanLoop& loop : plan.loops) {
    loop.first = reader.Get<int32_t>();
    loop.count = reader.Get<int32_t>();
    loop.repeats = reader.Get<int64_t>();
  }
  plan.joins.resize(reader.GetCount(2 * 4));
  for (ir::PlanJoin& join : plan.joins) {
    join.step = reader.Get<int32_t>();
    join.phase = reader.Get<int32_t>();
  }
  if (format < 6) return plan;
  plan.forks.resize(reader.GetCount(4 + 4));
  for (ir::PlanFork& fork : plan.forks) {
    if (!reader.ok()) break;
    fork.first = reader.Get<int32_t>();
    fork.counts = reader.GetList<int32_t>();
  }
  if (format < 7) return plan;
  for (ir::Artifact& kernel : plan.kernels) {
    for (ir::ArtifactPhase& phase : kernel.phases) {
      if (!reader.ok()) return plan;
      ir::DecodeDepth(reader, &phase.launch);
    }
  }
  return plan;
}

}  // namespace hone::runtime

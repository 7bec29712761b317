#include "runtime/plan_codec.h"

#include <string>
#include <vector>

namespace hone::runtime {
namespace {

constexpr size_t kMaxNameBytes = 4096;

void EncodeInts(const std::vector<int64_t>& values, ByteWriter& writer) {
  writer.Count(values.size());
  for (const int64_t value : values) writer.I64(value);
}

std::vector<int64_t> DecodeInts(ByteReader& reader) {
  std::vector<int64_t> values(reader.Count(8));
  for (int64_t& value : values) value = reader.I64();
  return values;
}

void EncodeDType(ir::DType dtype, ByteWriter& writer) { writer.U8(static_cast<uint8_t>(dtype)); }

ir::DType DecodeDType(ByteReader& reader) {
  const uint8_t value = reader.U8();
  if (value >= ir::kNumDTypes) {
    reader.Fail("unknown element type " + std::to_string(value));
    return ir::DType::kF32;
  }
  return static_cast<ir::DType>(value);
}

template <typename Enum>
Enum DecodeEnum(ByteReader& reader, Enum last, const char* what) {
  const uint8_t value = reader.U8();
  if (value > static_cast<uint8_t>(last)) {
    reader.Fail(std::string("unknown ") + what + " " + std::to_string(value));
    return last;
  }
  return static_cast<Enum>(value);
}

void EncodeBuffers(const std::vector<ir::ArtifactBuffer>& buffers, ByteWriter& writer) {
  writer.Count(buffers.size());
  for (const ir::ArtifactBuffer& buffer : buffers) {
    EncodeDType(buffer.dtype, writer);
    EncodeInts(buffer.shape, writer);
    writer.I64(buffer.bytes);
  }
}

std::vector<ir::ArtifactBuffer> DecodeBuffers(ByteReader& reader) {
  std::vector<ir::ArtifactBuffer> buffers(reader.Count(1 + 4 + 8));
  for (ir::ArtifactBuffer& buffer : buffers) {
    if (!reader.ok()) break;
    buffer.dtype = DecodeDType(reader);
    buffer.shape = DecodeInts(reader);
    buffer.bytes = reader.I64();
  }
  return buffers;
}

void EncodeKernel(const ir::Artifact& kernel, ByteWriter& writer) {
  writer.Text(kernel.target);
  writer.I32(kernel.builder);
  writer.Text(kernel.workload_hash);
  writer.Text(kernel.trace_hash);
  writer.Text(kernel.binding_hash);
  writer.Count(kernel.phases.size());
  for (const ir::ArtifactPhase& phase : kernel.phases) {
    writer.Text(phase.symbol);
    writer.I64(phase.parallel_extent);
    writer.I64(phase.scratch_bytes);
    writer.I32(phase.threads);
  }
  writer.Count(kernel.steps.size());
  for (const ir::ArtifactStep& step : kernel.steps) {
    writer.I32(step.first);
    writer.I32(step.count);
    writer.I64(step.repeats);
  }
  EncodeBuffers(kernel.inputs, writer);
  EncodeBuffers(kernel.constants, writer);
  EncodeBuffers(kernel.prologue, writer);
  EncodeBuffers(kernel.outputs, writer);
  EncodeBuffers(kernel.workspace, writer);
  writer.U8(kernel.may_alias ? 1 : 0);
}

ir::Artifact DecodeKernel(ByteReader& reader) {
  ir::Artifact kernel;
  kernel.target = reader.Text(kMaxNameBytes);
  kernel.builder = reader.I32();
  kernel.workload_hash = reader.Text(kMaxNameBytes);
  kernel.trace_hash = reader.Text(kMaxNameBytes);
  kernel.binding_hash = reader.Text(kMaxNameBytes);
  kernel.phases.resize(reader.Count(4 + 8 + 8 + 4));
  for (ir::ArtifactPhase& phase : kernel.phases) {
    if (!reader.ok()) break;
    phase.symbol = reader.Text(kMaxNameBytes);
    phase.parallel_extent = reader.I64();
    phase.scratch_bytes = reader.I64();
    phase.threads = reader.I32();
  }
  kernel.steps.resize(reader.Count(4 + 4 + 8));
  for (ir::ArtifactStep& step : kernel.steps) {
    step.first = reader.I32();
    step.count = reader.I32();
    step.repeats = reader.I64();
  }
  kernel.inputs = DecodeBuffers(reader);
  kernel.constants = DecodeBuffers(reader);
  kernel.prologue = DecodeBuffers(reader);
  kernel.outputs = DecodeBuffers(reader);
  kernel.workspace = DecodeBuffers(reader);
  const uint8_t may_alias = reader.U8();
  if (may_alias > 1) reader.Fail("a yes-or-no of value " + std::to_string(may_alias));
  kernel.may_alias = may_alias == 1;
  return kernel;
}

void EncodeStep(const ir::PlanStep& step, ByteWriter& writer) {
  writer.U8(static_cast<uint8_t>(step.kind));
  writer.I32(step.kernel);
  writer.Text(step.extern_name);
  EncodeInts(step.extern_attributes, writer);
  EncodeBuffers(step.extern_inputs, writer);
  EncodeBuffers(step.extern_outputs, writer);
  writer.Count(step.buffers.size());
  for (const int32_t buffer : step.buffers) writer.I32(buffer);
  writer.I32(step.threads);
}

ir::PlanStep DecodeStep(ByteReader& reader) {
  ir::PlanStep step;
  step.kind = DecodeEnum(reader, ir::PlanStepKind::kExtern, "kind of step");
  step.kernel = reader.I32();
  step.extern_name = reader.Text(kMaxNameBytes);
  step.extern_attributes = DecodeInts(reader);
  step.extern_inputs = DecodeBuffers(reader);
  step.extern_outputs = DecodeBuffers(reader);
  step.buffers.resize(reader.Count(4));
  for (int32_t& buffer : step.buffers) buffer = reader.I32();
  step.threads = reader.I32();
  return step;
}

void EncodeValues(const std::vector<ir::PlanValue>& values, ByteWriter& writer) {
  writer.Count(values.size());
  for (const ir::PlanValue& value : values) {
    writer.Text(value.name);
    EncodeDType(value.dtype, writer);
    EncodeInts(value.shape, writer);
  }
}

std::vector<ir::PlanValue> DecodeValues(ByteReader& reader) {
  std::vector<ir::PlanValue> values(reader.Count(4 + 1 + 4));
  for (ir::PlanValue& value : values) {
    if (!reader.ok()) break;
    value.name = reader.Text(kMaxNameBytes);
    value.dtype = DecodeDType(reader);
    value.shape = DecodeInts(reader);
  }
  return values;
}

void EncodeLaunch(const ir::Launch& launch, ByteWriter& writer) {
  writer.I64(launch.grid_x);
  writer.I64(launch.grid_y);
  writer.I64(launch.block_x);
  writer.I64(launch.block_y);
}

ir::Launch DecodeLaunch(ByteReader& reader) {
  ir::Launch launch;
  launch.grid_x = reader.I64();
  launch.grid_y = reader.I64();
  launch.block_x = reader.I64();
  launch.block_y = reader.I64();
  return launch;
}

}  // namespace

void EncodePlan(const ir::Plan& plan, ByteWriter& writer) {
  writer.I64(plan.arena_bytes);
  EncodeValues(plan.inputs, writer);
  EncodeValues(plan.outputs, writer);
  writer.Count(plan.buffers.size());
  for (const ir::PlanBuffer& buffer : plan.buffers) {
    writer.U8(static_cast<uint8_t>(buffer.kind));
    writer.I64(buffer.offset);
    writer.I64(buffer.bytes);
  }
  writer.Count(plan.kernels.size());
  for (const ir::Artifact& kernel : plan.kernels) EncodeKernel(kernel, writer);
  writer.Count(plan.steps.size());
  for (const ir::PlanStep& step : plan.steps) EncodeStep(step, writer);
  writer.Count(plan.names.size());
  for (const ir::PlanName& name : plan.names) {
    writer.I32(name.step);
    writer.I32(name.input);
    writer.Text(name.node);
    writer.Text(name.value);
  }
  for (const ir::Artifact& kernel : plan.kernels) {
    for (const ir::ArtifactPhase& phase : kernel.phases) EncodeLaunch(phase.launch, writer);
  }
  for (const ir::PlanBuffer& buffer : plan.buffers) writer.I64(buffer.advance_bytes);
  writer.Count(plan.loops.size());
  for (const ir::PlanLoop& loop : plan.loops) {
    writer.I32(loop.first);
    writer.I32(loop.count);
    writer.I64(loop.repeats);
  }
  writer.Count(plan.joins.size());
  for (const ir::PlanJoin& join : plan.joins) {
    writer.I32(join.step);
    writer.I32(join.phase);
  }
  writer.Count(plan.forks.size());
  for (const ir::PlanFork& fork : plan.forks) {
    writer.I32(fork.first);
    writer.Count(fork.counts.size());
    for (const int32_t count : fork.counts) writer.I32(count);
  }
}

ir::Plan DecodePlan(ByteReader& reader, int format) {
  ir::Plan plan;
  plan.arena_bytes = reader.I64();
  plan.inputs = DecodeValues(reader);
  plan.outputs = DecodeValues(reader);
  plan.buffers.resize(reader.Count(1 + 8 + 8));
  for (ir::PlanBuffer& buffer : plan.buffers) {
    buffer.kind = DecodeEnum(reader, ir::PlanBufferKind::kOutput, "kind of buffer");
    buffer.offset = reader.I64();
    buffer.bytes = reader.I64();
  }
  // The least a kernel takes: four texts, builder, phases, steps, five buffer lists, one flag.
  for (size_t left = reader.Count(4 * 4 + 4 + 2 * 4 + 5 * 4 + 1); left > 0 && reader.ok(); --left) {
    plan.kernels.push_back(DecodeKernel(reader));
  }
  for (size_t left = reader.Count(1 + 4 + 5 * 4 + 4); left > 0 && reader.ok(); --left) {
    plan.steps.push_back(DecodeStep(reader));
  }
  if (format < 3) return plan;
  for (size_t left = reader.Count(4 * 4); left > 0 && reader.ok(); --left) {
    ir::PlanName& name = plan.names.emplace_back();
    name.step = reader.I32();
    name.input = reader.I32();
    name.node = reader.Text(kMaxNameBytes);
    name.value = reader.Text(kMaxNameBytes);
  }
  for (ir::Artifact& kernel : plan.kernels) {
    for (ir::ArtifactPhase& phase : kernel.phases) {
      if (!reader.ok()) return plan;
      phase.launch = DecodeLaunch(reader);
    }
  }
  if (format < 4) return plan;
  for (ir::PlanBuffer& buffer : plan.buffers) {
    if (!reader.ok()) return plan;
    buffer.advance_bytes = reader.I64();
  }
  plan.loops.resize(reader.Count(4 + 4 + 8));
  for (ir::PlanLoop& loop : plan.loops) {
    loop.first = reader.I32();
    loop.count = reader.I32();
    loop.repeats = reader.I64();
  }
  plan.joins.resize(reader.Count(2 * 4));
  for (ir::PlanJoin& join : plan.joins) {
    join.step = reader.I32();
    join.phase = reader.I32();
  }
  if (format < 6) return plan;
  plan.forks.resize(reader.Count(4 + 4));
  for (ir::PlanFork& fork : plan.forks) {
    if (!reader.ok()) break;
    fork.first = reader.I32();
    fork.counts.resize(reader.Count(4));
    for (int32_t& count : fork.counts) count = reader.I32();
  }
  return plan;
}

}  // namespace hone::runtime

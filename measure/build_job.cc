#include "measure/build_job.h"

#include <utility>

#include "measure/wire.h"

namespace hone::measure {
namespace {

void Put(WireWriter& writer, const std::vector<int64_t>& values) {
  writer.PutCount(values.size());
  for (const int64_t value : values) writer.Put(value);
}

std::vector<int64_t> GetInts(WireReader& reader) {
  std::vector<int64_t> values(reader.GetCount(sizeof(int64_t)));
  for (int64_t& value : values) value = reader.Get<int64_t>();
  return values;
}

void Put(WireWriter& writer, const std::vector<int32_t>& values) {
  writer.PutCount(values.size());
  for (const int32_t value : values) writer.Put(value);
}

// Positions in a list of `size`.
std::vector<int32_t> GetPositions(WireReader& reader, size_t size) {
  std::vector<int32_t> values(reader.GetCount(sizeof(int32_t)));
  for (int32_t& value : values) {
    value = reader.Get<int32_t>();
    if (value < 0 || static_cast<size_t>(value) >= size) reader.Fail("a position out of range");
  }
  return values;
}

void Put(WireWriter& writer, const absl::Status& status) {
  writer.Put(static_cast<int32_t>(status.code()));
  writer.PutString(StatusMessage(status));
}

absl::Status GetStatus(WireReader& reader) {
  const auto code = reader.Get<int32_t>();
  const std::string message(reader.GetString());
  if (code < 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)) {
    reader.Fail("status code " + std::to_string(code));
    return absl::OkStatus();
  }
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

void Put(WireWriter& writer, const std::vector<ir::ArtifactBuffer>& buffers) {
  writer.PutCount(buffers.size());
  for (const ir::ArtifactBuffer& buffer : buffers) {
    writer.Put(static_cast<uint8_t>(buffer.dtype));
    Put(writer, buffer.shape);
    writer.Put(buffer.bytes);
  }
}

std::vector<ir::ArtifactBuffer> GetBuffers(WireReader& reader) {
  std::vector<ir::ArtifactBuffer> buffers(reader.GetCount(13));
  for (ir::ArtifactBuffer& buffer : buffers) {
    const auto dtype = reader.Get<uint8_t>();
    if (dtype >= ir::kNumDTypes) reader.Fail("dtype " + std::to_string(dtype));
    buffer.dtype = reader.failed() ? ir::DType::kF32 : static_cast<ir::DType>(dtype);
    buffer.shape = GetInts(reader);
    buffer.bytes = reader.Get<int64_t>();
  }
  return buffers;
}

void Put(WireWriter& writer, const ir::Artifact& artifact) {
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
  }
  writer.PutCount(artifact.steps.size());
  for (const ir::ArtifactStep& step : artifact.steps) {
    writer.Put(step.first);
    writer.Put(step.count);
    writer.Put(step.repeats);
  }
  for (const auto* buffers : {&artifact.inputs, &artifact.constants, &artifact.prologue,
                              &artifact.outputs, &artifact.workspace}) {
    Put(writer, *buffers);
  }
  writer.PutString(artifact.prologue_workload);
  Put(writer, artifact.prologue_inputs);
  Put(writer, artifact.prologue_outputs);
  writer.Put(static_cast<uint8_t>(artifact.may_alias));
}

ir::Artifact GetArtifact(WireReader& reader) {
  ir::Artifact artifact;
  artifact.target = reader.GetString();
  artifact.builder = reader.Get<int32_t>();
  artifact.workload_hash = reader.GetString();
  artifact.trace_hash = reader.GetString();
  artifact.binding_hash = reader.GetString();
  artifact.phases.resize(reader.GetCount(24));
  for (ir::ArtifactPhase& phase : artifact.phases) {
    phase.symbol = reader.GetString();
    phase.parallel_extent = reader.Get<int64_t>();
    phase.scratch_bytes = reader.Get<int64_t>();
    phase.threads = reader.Get<int32_t>();
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

template <typename T>
absl::StatusOr<T> Finished(const WireReader& reader, std::string_view what, T value) {
  HONE_RETURN_IF_ERROR(ToAbsl(reader.Finish(what)));
  return value;
}

}  // namespace

std::string EncodeBuildJob(const BuildJob& job) {
  WireWriter writer;
  writer.PutString(job.target);
  writer.Put(static_cast<uint8_t>(job.output));
  writer.PutCount(job.kernels.size());
  for (const KernelJob& kernel : job.kernels) {
    writer.PutString(kernel.workload);
    writer.PutString(kernel.trace);
    writer.PutString(kernel.prefix);
    writer.PutCount(kernel.binding.buffers.size());
    for (const schedule::BufferBinding& buffer : kernel.binding.buffers) {
      Put(writer, buffer.strides);
      writer.Put(buffer.offset);
      writer.Put(buffer.alignment);
    }
  }
  return writer.Take();
}

absl::StatusOr<BuildJob> DecodeBuildJob(std::string_view payload) {
  WireReader reader(payload);
  BuildJob job;
  job.target = reader.GetString();
  const auto output = reader.Get<uint8_t>();
  if (output > static_cast<uint8_t>(BuildOutput::kObjects)) reader.Fail("output kind");
  job.output = static_cast<BuildOutput>(output);
  job.kernels.resize(reader.GetCount(16));
  for (KernelJob& kernel : job.kernels) {
    kernel.workload = reader.GetString();
    kernel.trace = reader.GetString();
    kernel.prefix = reader.GetString();
    kernel.binding.buffers.resize(reader.GetCount(20));
    for (schedule::BufferBinding& buffer : kernel.binding.buffers) {
      buffer.strides = GetInts(reader);
      buffer.offset = reader.Get<int64_t>();
      buffer.alignment = reader.Get<int64_t>();
    }
  }
  return Finished(reader, "build job", std::move(job));
}

std::string EncodeBuildReply(const BuildReply& reply) {
  WireWriter writer;
  writer.PutString(reply.shared_object);
  writer.Put(reply.link_ns);
  writer.PutCount(reply.kernels.size());
  for (const BuiltKernel& kernel : reply.kernels) {
    Put(writer, kernel.status);
    Put(writer, kernel.artifact);
    writer.PutString(kernel.trace);
    writer.PutString(kernel.object);
    writer.Put(kernel.lower_ns);
    writer.Put(kernel.codegen_ns);
  }
  return writer.Take();
}

absl::StatusOr<BuildReply> DecodeBuildReply(std::string_view payload) {
  WireReader reader(payload);
  BuildReply reply;
  reply.shared_object = reader.GetString();
  reply.link_ns = reader.Get<int64_t>();
  reply.kernels.resize(reader.GetCount(64));
  for (BuiltKernel& kernel : reply.kernels) {
    kernel.status = GetStatus(reader);
    kernel.artifact = GetArtifact(reader);
    kernel.trace = reader.GetString();
    kernel.object = reader.GetString();
    kernel.lower_ns = reader.Get<int64_t>();
    kernel.codegen_ns = reader.Get<int64_t>();
  }
  return Finished(reader, "build reply", std::move(reply));
}

std::string EncodeLinkJob(const LinkJob& job) {
  WireWriter writer;
  writer.PutCount(job.objects.size());
  for (const std::string& object : job.objects) writer.PutString(object);
  return writer.Take();
}

absl::StatusOr<LinkJob> DecodeLinkJob(std::string_view payload) {
  WireReader reader(payload);
  LinkJob job;
  job.objects.resize(reader.GetCount(4));
  for (std::string& object : job.objects) object = reader.GetString();
  return Finished(reader, "link job", std::move(job));
}

std::string EncodeLinkReply(const LinkReply& reply) {
  WireWriter writer;
  Put(writer, reply.status);
  writer.PutString(reply.shared_object);
  return writer.Take();
}

absl::StatusOr<LinkReply> DecodeLinkReply(std::string_view payload) {
  WireReader reader(payload);
  LinkReply reply;
  reply.status = GetStatus(reader);
  reply.shared_object = reader.GetString();
  return Finished(reader, "link reply", std::move(reply));
}

}  // namespace hone::measure

#include "measure/build_job.h"

#include <utility>

#include "fmt/format.h"

#include "measure/artifact_wire.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

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

template <typename T>
absl::StatusOr<T> Finished(const WireReader& reader, std::string_view what, T value) {
  HONE_RETURN_IF_ERROR(ToAbsl(reader.Finish(what)));
  return value;
}

}  // namespace

std::string BindingText(const schedule::Binding& binding) {
  std::string text;
  bool all_dense = true;
  for (const schedule::BufferBinding& buffer : binding.buffers) {
    all_dense = all_dense && buffer.strides.empty() && buffer.offset == 0 &&
                buffer.alignment == schedule::BufferBinding().alignment;
    text += fmt::format("[{}]+{} align {};", fmt::join(buffer.strides, ","), buffer.offset,
                        buffer.alignment);
  }
  return all_dense ? "" : text;
}

std::string EncodeBuildJob(const BuildJob& job) {
  WireWriter writer;
  writer.PutString(job.target);
  writer.Put(static_cast<uint8_t>(job.output));
  writer.PutString(job.test_hook);
  writer.PutCount(job.kernels.size());
  for (const KernelJob& kernel : job.kernels) {
    writer.PutString(kernel.workload);
    writer.PutString(kernel.trace);
    writer.PutString(kernel.prefix);
    writer.PutCount(kernel.binding.buffers.size());
    for (const schedule::BufferBinding& buffer : kernel.binding.buffers) {
      PutInts(writer, buffer.strides);
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
  job.test_hook = reader.GetString();
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
    PutArtifact(writer, kernel.artifact);
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
  writer.PutString(job.target);
  writer.PutCount(job.objects.size());
  for (const std::string& object : job.objects) writer.PutString(object);
  return writer.Take();
}

absl::StatusOr<LinkJob> DecodeLinkJob(std::string_view payload) {
  WireReader reader(payload);
  LinkJob job;
  job.target = reader.GetString();
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

std::string EncodeLibraryJob(const LibraryJob& job) {
  WireWriter writer;
  for (const auto* list : {&job.objects, &job.archives, &job.exported}) {
    writer.PutCount(list->size());
    for (const std::string& text : *list) writer.PutString(text);
  }
  writer.PutString(job.soname);
  writer.PutString(job.output);
  return writer.Take();
}

absl::StatusOr<LibraryJob> DecodeLibraryJob(std::string_view payload) {
  WireReader reader(payload);
  LibraryJob job;
  for (auto* list : {&job.objects, &job.archives, &job.exported}) {
    list->resize(reader.GetCount(4));
    for (std::string& text : *list) text = reader.GetString();
  }
  job.soname = reader.GetString();
  job.output = reader.GetString();
  return Finished(reader, "library job", std::move(job));
}

std::string EncodeLibraryReply(const absl::Status& status) {
  WireWriter writer;
  Put(writer, status);
  return writer.Take();
}

absl::Status DecodeLibraryReply(std::string_view payload) {
  WireReader reader(payload);
  absl::Status status = GetStatus(reader);
  HONE_RETURN_IF_ERROR(Finished(reader, "library reply", true).status());
  return status;
}

}  // namespace hone::measure

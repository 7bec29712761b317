#include "measure/build_job.h"

#include <utility>

#include "fmt/format.h"

#include "base/core/byte_stream.h"
#include "measure/artifact_wire.h"

namespace hone::measure {
namespace {

void Put(ByteWriter& writer, const absl::Status& status) {
  writer.Put(static_cast<int32_t>(status.code()));
  writer.PutText(StatusMessage(status));
}

absl::Status GetStatus(ByteReader& reader) {
  const auto code = reader.Get<int32_t>();
  const std::string message(reader.GetText());
  if (code < 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)) {
    reader.Fail("status code " + std::to_string(code));
    return absl::OkStatus();
  }
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

template <typename T>
absl::StatusOr<T> Finished(ByteReader& reader, std::string_view what, T value) {
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
  ByteWriter writer;
  writer.PutText(job.target);
  writer.Put(static_cast<uint8_t>(job.output));
  writer.PutText(job.test_hook);
  writer.PutCount(job.kernels.size());
  for (const KernelJob& kernel : job.kernels) {
    writer.PutText(kernel.workload);
    writer.PutText(kernel.trace);
    writer.PutText(kernel.prefix);
    writer.PutCount(kernel.binding.buffers.size());
    for (const schedule::BufferBinding& buffer : kernel.binding.buffers) {
      writer.PutList(buffer.strides);
      writer.Put(buffer.offset);
      writer.Put(buffer.alignment);
    }
  }
  return writer.Take();
}

absl::StatusOr<BuildJob> DecodeBuildJob(std::string_view payload) {
  ByteReader reader(payload);
  BuildJob job;
  job.target = reader.GetText();
  const auto output = reader.Get<uint8_t>();
  if (output > static_cast<uint8_t>(BuildOutput::kAssembly)) reader.Fail("output kind");
  job.output = static_cast<BuildOutput>(output);
  job.test_hook = reader.GetText();
  job.kernels.resize(reader.GetCount(16));
  for (KernelJob& kernel : job.kernels) {
    kernel.workload = reader.GetText();
    kernel.trace = reader.GetText();
    kernel.prefix = reader.GetText();
    kernel.binding.buffers.resize(reader.GetCount(20));
    for (schedule::BufferBinding& buffer : kernel.binding.buffers) {
      buffer.strides = reader.GetList<int64_t>();
      buffer.offset = reader.Get<int64_t>();
      buffer.alignment = reader.Get<int64_t>();
    }
  }
  return Finished(reader, "build job", std::move(job));
}

std::string EncodeBuildReply(const BuildReply& reply) {
  ByteWriter writer;
  writer.PutText(reply.shared_object);
  writer.Put(reply.link_ns);
  writer.PutCount(reply.kernels.size());
  for (const BuiltKernel& kernel : reply.kernels) {
    Put(writer, kernel.status);
    PutArtifact(writer, kernel.artifact);
    writer.PutText(kernel.trace);
    writer.PutText(kernel.object);
    writer.Put(kernel.lower_ns);
    writer.Put(kernel.codegen_ns);
  }
  return writer.Take();
}

absl::StatusOr<BuildReply> DecodeBuildReply(std::string_view payload) {
  ByteReader reader(payload);
  BuildReply reply;
  reply.shared_object = reader.GetText();
  reply.link_ns = reader.Get<int64_t>();
  reply.kernels.resize(reader.GetCount(64));
  for (BuiltKernel& kernel : reply.kernels) {
    kernel.status = GetStatus(reader);
    kernel.artifact = GetArtifact(reader);
    kernel.trace = reader.GetText();
    kernel.object = reader.GetText();
    kernel.lower_ns = reader.Get<int64_t>();
    kernel.codegen_ns = reader.Get<int64_t>();
  }
  return Finished(reader, "build reply", std::move(reply));
}

std::string EncodeLinkJob(const LinkJob& job) {
  ByteWriter writer;
  writer.PutText(job.target);
  writer.PutCount(job.objects.size());
  for (const std::string& object : job.objects) writer.PutText(object);
  return writer.Take();
}

absl::StatusOr<LinkJob> DecodeLinkJob(std::string_view payload) {
  ByteReader reader(payload);
  LinkJob job;
  job.target = reader.GetText();
  job.objects.resize(reader.GetCount(4));
  for (std::string& object : job.objects) object = reader.GetText();
  return Finished(reader, "link job", std::move(job));
}

std::string EncodeLinkReply(const LinkReply& reply) {
  ByteWriter writer;
  Put(writer, reply.status);
  writer.PutText(reply.shared_object);
  return writer.Take();
}

absl::StatusOr<LinkReply> DecodeLinkReply(std::string_view payload) {
  ByteReader reader(payload);
  LinkReply reply;
  reply.status = GetStatus(reader);
  reply.shared_object = reader.GetText();
  return Finished(reader, "link reply", std::move(reply));
}

std::string EncodeLibraryJob(const LibraryJob& job) {
  ByteWriter writer;
  for (const auto* list : {&job.objects, &job.archives, &job.exported}) {
    writer.PutCount(list->size());
    for (const std::string& text : *list) writer.PutText(text);
  }
  writer.PutText(job.soname);
  writer.PutText(job.output);
  return writer.Take();
}

absl::StatusOr<LibraryJob> DecodeLibraryJob(std::string_view payload) {
  ByteReader reader(payload);
  LibraryJob job;
  for (auto* list : {&job.objects, &job.archives, &job.exported}) {
    list->resize(reader.GetCount(4));
    for (std::string& text : *list) text = reader.GetText();
  }
  job.soname = reader.GetText();
  job.output = reader.GetText();
  return Finished(reader, "library job", std::move(job));
}

std::string EncodeLibraryReply(const absl::Status& status) {
  ByteWriter writer;
  Put(writer, status);
  return writer.Take();
}

absl::Status DecodeLibraryReply(std::string_view payload) {
  ByteReader reader(payload);
  absl::Status status = GetStatus(reader);
  HONE_RETURN_IF_ERROR(Finished(reader, "library reply", true).status());
  return status;
}

}  // namespace hone::measure

#include "measure/run_job.h"

#include <algorithm>
#include <utility>

#include "base/core/byte_stream.h"
#include "base/core/status_macros.h"
#include "ir/artifact_codec.h"
#include "measure/artifact_wire.h"

namespace hone::measure {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kAlignBytes = 64;
// Larger than any machine's memory, small enough that sums of a few do not overflow.
constexpr int64_t kMaxBufferBytes = int64_t{1} << 40;

constexpr size_t kMostConditions = 200;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

void PutZeros(ByteWriter& writer, const ir::ZeroPattern& zeros) {
  writer.Put(zeros.columns);
  if (zeros.columns == 0) return;
  for (const int64_t number : {zeros.terms, zeros.column_stride, zeros.term_stride, zeros.width})
    writer.Put(number);
  for (const int32_t groups : zeros.groups) writer.Put(groups);
  writer.Put(zeros.values);
}

ir::ZeroPattern GetZeros(ByteReader& reader, int64_t elements) {
  ir::ZeroPattern zeros;
  zeros.columns = reader.Get<int64_t>();
  if (zeros.columns == 0) return zeros;
  for (int64_t* number : {&zeros.terms, &zeros.column_stride, &zeros.term_stride, &zeros.width})
    *number = reader.Get<int64_t>();
  for (int32_t& groups : zeros.groups) groups = reader.Get<int32_t>();
  zeros.values = reader.Get<int32_t>();
  if (!zeros.Fits(elements)) reader.Fail("where a tensor is zero");
  return zeros;
}

void PutTensors(ByteWriter& writer, const std::vector<RunTensor>& tensors) {
  writer.PutCount(tensors.size());
  for (const RunTensor& tensor : tensors) {
    writer.Put(static_cast<uint8_t>(tensor.dtype));
    writer.Put(tensor.bytes);
    writer.Put(tensor.low);
    writer.Put(tensor.high);
    PutZeros(writer, tensor.zeros);
  }
}

std::vector<RunTensor> GetTensors(ByteReader& reader) {
  std::vector<RunTensor> tensors(reader.GetCount(33));
  for (RunTensor& tensor : tensors) {
    tensor.dtype = ir::GetDType(reader);
    tensor.bytes = reader.Get<int64_t>();
    if (tensor.bytes < 0 || tensor.bytes > kMaxBufferBytes) reader.Fail("a tensor's size");
    tensor.low = reader.Get<double>();
    tensor.high = reader.Get<double>();
    tensor.zeros = GetZeros(reader, tensor.bytes / ir::SizeOf(tensor.dtype));
    if (tensor.zeros.columns > 0 && tensor.dtype != ir::DType::kF32)
      reader.Fail("zeros in a tensor that is no f32");
  }
  return tensors;
}

int32_t GetSlot(ByteReader& reader) {
  const auto slot = reader.Get<int32_t>();
  if (slot < 0 || slot >= kMaxSlots) reader.Fail("slot " + std::to_string(slot));
  return slot;
}

double GetPart(ByteReader& reader) {
  const auto part = reader.Get<double>();
  if (!(part > 0 && part <= 1)) reader.Fail("a part of the work");
  return part;
}

void PutStatus(ByteWriter& writer, const Status& status) {
  writer.Put(static_cast<int32_t>(status.code()));
  writer.PutText(status.message());
}

Status GetStatus(ByteReader& reader) {
  const auto code = reader.Get<int32_t>();
  const std::string message(reader.GetText());
  if (code < 0 || code > static_cast<int32_t>(StatusCode::kUnauthenticated)) {
    reader.Fail("status code " + std::to_string(code));
  }
  if (code == 0 || reader.failed()) return {};
  return Status(static_cast<StatusCode>(code), message);
}

template <typename T>
Result<T> Finished(ByteReader& reader, std::string_view what, T value) {
  HONE_RETURN_IF_ERROR(reader.Finish(what));
  return value;
}

}  // namespace

void PutRunKernel(ByteWriter& writer, const RunKernel& kernel) {
  PutArtifact(writer, kernel.artifact);
  writer.PutText(kernel.shared_object);
}

RunKernel GetRunKernel(ByteReader& reader) {
  RunKernel kernel;
  kernel.artifact = GetArtifact(reader);
  kernel.shared_object = reader.GetText();
  const ir::Artifact& artifact = kernel.artifact;
  for (const auto* buffers : {&artifact.inputs, &artifact.constants, &artifact.prologue,
                              &artifact.outputs, &artifact.workspace}) {
    for (const ir::ArtifactBuffer& buffer : *buffers) {
      if (buffer.bytes < 0 || buffer.bytes > kMaxBufferBytes) reader.Fail("a buffer's size");
    }
  }
  for (const ir::ArtifactStep& step : artifact.steps) {
    const auto phases = static_cast<int64_t>(artifact.phases.size());
    if (step.first < 0 || step.count < 0 || int64_t{step.first} + step.count > phases) {
      reader.Fail("a step over phases that are not there");
    }
  }
  return kernel;
}

std::vector<SharedBuffer> PlaceOutputs(const std::vector<ir::ArtifactBuffer>& outputs) {
  std::vector<SharedBuffer> places;
  int64_t end = 0;
  for (const ir::ArtifactBuffer& output : outputs) {
    SharedBuffer place;
    const int64_t aligned = RoundUp(output.bytes, kAlignBytes);
    place.region_offset = end;
    place.region_bytes = RoundUp(std::max(aligned, int64_t{1}), kPageBytes);
    place.data_bytes = output.bytes;
    place.data_offset = place.region_offset + place.region_bytes - aligned;
    end += place.region_bytes;
    places.push_back(place);
  }
  return places;
}

int64_t SharedBytes(const std::vector<SharedBuffer>& places) {
  return places.empty() ? 0 : places.back().region_offset + places.back().region_bytes;
}

std::string EncodePrepareJob(const PrepareJob& job) {
  ByteWriter writer;
  writer.Put(job.slot);
  writer.PutText(job.data_key);
  writer.Put(job.seed);
  PutTensors(writer, job.inputs);
  PutTensors(writer, job.constants);
  PutRunKernel(writer, job.kernel);
  PutRunKernel(writer, job.prologue);
  writer.PutList(job.prologue_arguments);
  writer.PutText(job.prologue_key);
  writer.Put(job.threads);
  writer.Put(job.part);
  writer.PutText(job.test_hook);
  return writer.Take();
}

Result<PrepareJob> DecodePrepareJob(std::string_view payload) {
  ByteReader reader(payload);
  PrepareJob job;
  job.slot = GetSlot(reader);
  job.data_key = reader.GetText();
  job.seed = reader.Get<uint64_t>();
  job.inputs = GetTensors(reader);
  job.constants = GetTensors(reader);
  job.kernel = GetRunKernel(reader);
  job.prologue = GetRunKernel(reader);
  job.prologue_arguments = GetPositions(reader, job.constants.size());
  job.prologue_key = reader.GetText();
  job.threads = reader.Get<int32_t>();
  job.part = GetPart(reader);
  job.test_hook = reader.GetText();
  return Finished(reader, "job for the runner", std::move(job));
}

std::string EncodePrepareReply(const PrepareReply& reply) {
  ByteWriter writer;
  PutStatus(writer, reply.status);
  writer.Put(reply.run_ns);
  writer.Put(reply.part);
  return writer.Take();
}

Result<PrepareReply> DecodePrepareReply(std::string_view payload) {
  ByteReader reader(payload);
  PrepareReply reply;
  reply.status = GetStatus(reader);
  reply.run_ns = reader.Get<int64_t>();
  reply.part = GetPart(reader);
  return Finished(reader, "answer of the runner", std::move(reply));
}

std::string EncodeTimeJob(const TimeJob& job) {
  ByteWriter writer;
  writer.Put(job.slot);
  writer.Put(job.policy.incumbent_ns);
  writer.Put(job.policy.hopeless_ratio);
  writer.Put(job.policy.warmups);
  writer.Put(job.policy.min_samples);
  writer.Put(job.policy.max_samples);
  writer.Put(job.policy.max_total_ns);
  writer.Put(job.policy.min_sample_ns);
  writer.Put(static_cast<uint8_t>(job.policy.cold_constants));
  return writer.Take();
}

Result<TimeJob> DecodeTimeJob(std::string_view payload) {
  ByteReader reader(payload);
  TimeJob job;
  job.slot = GetSlot(reader);
  job.policy.incumbent_ns = reader.Get<int64_t>();
  job.policy.hopeless_ratio = reader.Get<double>();
  job.policy.warmups = reader.Get<int32_t>();
  job.policy.min_samples = reader.Get<int32_t>();
  job.policy.max_samples = reader.Get<int32_t>();
  job.policy.max_total_ns = reader.Get<int64_t>();
  job.policy.min_sample_ns = reader.Get<int64_t>();
  job.policy.cold_constants = reader.Get<uint8_t>() != 0;
  return Finished(reader, "order to time", job);
}

std::string EncodeTimeReply(const TimeReply& reply) {
  ByteWriter writer;
  PutStatus(writer, reply.status);
  writer.PutList(reply.samples_ns);
  writer.Put(static_cast<uint8_t>(reply.hopeless));
  writer.Put(reply.sentinel_ns);
  writer.Put(reply.runs);
  writer.Put(reply.timed_ns);
  writer.Put(reply.part);
  writer.PutText(reply.conditions);
  return writer.Take();
}

Result<TimeReply> DecodeTimeReply(std::string_view payload) {
  ByteReader reader(payload);
  TimeReply reply;
  reply.status = GetStatus(reader);
  reply.samples_ns = reader.GetList<int64_t>();
  reply.hopeless = reader.Get<uint8_t>() != 0;
  reply.sentinel_ns = reader.Get<int64_t>();
  reply.runs = reader.Get<int64_t>();
  reply.timed_ns = reader.Get<int64_t>();
  reply.part = GetPart(reader);
  reply.conditions = reader.GetText(kMostConditions);
  for (const char c : reply.conditions) {
    if (c < ' ' || c > '~') reader.Fail("what does not print");
  }
  return Finished(reader, "times of the runner", std::move(reply));
}

std::string EncodeModelJob(const ModelJob& job) {
  ByteWriter writer;
  writer.Put(job.seed);
  writer.Put(job.threads);
  writer.Put(job.rounds);
  writer.Put(job.most_ns);
  writer.PutCount(job.packages.size());
  for (const std::string& package : job.packages) writer.PutText(package);
  return writer.Take();
}

Result<ModelJob> DecodeModelJob(std::string_view payload) {
  ByteReader reader(payload);
  ModelJob job;
  job.seed = reader.Get<uint64_t>();
  job.threads = reader.Get<int32_t>();
  job.rounds = reader.Get<int32_t>();
  job.most_ns = reader.Get<int64_t>();
  job.packages.resize(reader.GetCount(4));
  for (std::string& package : job.packages) package = reader.GetText();
  return Finished(reader, "models for the runner", std::move(job));
}

std::string EncodeModelReply(const ModelReply& reply) {
  ByteWriter writer;
  PutStatus(writer, reply.status);
  writer.PutCount(reply.models.size());
  for (const ModelTimes& model : reply.models) {
    writer.PutList(model.samples_ns);
    writer.PutCount(model.kernel_ns.size());
    for (const auto& [hash, ns] : model.kernel_ns) {
      writer.PutText(hash);
      writer.PutList(ns);
    }
  }
  return writer.Take();
}

Result<ModelReply> DecodeModelReply(std::string_view payload) {
  ByteReader reader(payload);
  ModelReply reply;
  reply.status = GetStatus(reader);
  reply.models.resize(reader.GetCount(8));
  for (ModelTimes& model : reply.models) {
    model.samples_ns = reader.GetList<int64_t>();
    for (size_t left = reader.GetCount(8); left > 0; --left) {
      std::string hash(reader.GetText());
      model.kernel_ns[std::move(hash)] = reader.GetList<int64_t>();
    }
  }
  return Finished(reader, "times of models", std::move(reply));
}

}  // namespace hone::measure

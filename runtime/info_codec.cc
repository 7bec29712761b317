#include "runtime/info_codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/core/byte_stream.h"
#include "ir/accuracy_class.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

constexpr int kFirstFormatOfNumbers = 5;
constexpr int64_t kMostFlop = std::numeric_limits<int64_t>::max() / 8;  // of a unit: sums fit

/// What it says of its numbers.
Status CheckPrecision(const PackageInfo& info) {
  if (info.precision != "f32" && info.precision != "bf16" && info.precision != "f16")
    return Invalid("a package of precision '", info.precision, "'; there are f32, bf16 and f16");
  if (!ir::ParseAccuracyClass(info.accuracy))
    return Invalid("a package of accuracy class '", info.accuracy, "'");
  if (!info.error) return {};
  if (info.precision == "f32") return Invalid("a package in f32 with an error against f32");
  if (info.error->noise_ppb < 0 || info.error->worst_ppb < 0)
    return Invalid("a package with an error below zero");
  return {};
}

void DecodeNumbers(ByteReader& reader, PackageInfo& info) {
  for (PackageKernel& kernel : info.kernels) {
    for (size_t unit = 1; unit < kernel.operations.size(); ++unit) {
      kernel.operations[unit] = reader.Get<int64_t>();
      // Unsigned: what is no sum may be any number.
      kernel.operations[0] = static_cast<int64_t>(static_cast<uint64_t>(kernel.operations[0]) -
                                                  static_cast<uint64_t>(kernel.operations[unit]));
    }
  }
  info.precision = reader.GetText(kMaxTextBytes);
  info.accuracy = reader.GetText(kMaxTextBytes);
  const size_t errors = reader.GetCount(2 * 8);
  if (errors > 1) reader.Fail("more than one error");
  if (errors != 1) return;
  info.error.emplace();
  info.error->noise_ppb = reader.Get<int64_t>();
  info.error->worst_ppb = reader.Get<int64_t>();
}

}  // namespace

std::string EncodeInfo(const PackageInfo& info) {
  ByteWriter writer;
  writer.PutText(info.target);
  writer.PutText(info.device_class);
  writer.PutText(info.program);
  writer.PutCount(info.kernels.size());
  for (const PackageKernel& kernel : info.kernels) {
    writer.PutText(kernel.rung);
    writer.PutText(kernel.record_id);
    writer.PutText(kernel.content_hash);
    writer.PutText(kernel.name);
    writer.Put<int64_t>(kernel.flop());
    writer.Put<int64_t>(kernel.bytes);
  }
  for (const PackageKernel& kernel : info.kernels) {
    for (size_t unit = 1; unit < kernel.operations.size(); ++unit)
      writer.Put<int64_t>(kernel.operations[unit]);
  }
  writer.PutText(info.precision);
  writer.PutText(info.accuracy);
  writer.PutCount(info.error ? 1 : 0);
  if (info.error) {
    writer.Put<int64_t>(info.error->noise_ppb);
    writer.Put<int64_t>(info.error->worst_ppb);
  }
  return writer.Take();
}

PackageInfo DecodeInfo(ByteReader& reader, int format) {
  PackageInfo info;
  info.target = reader.GetText(kMaxTextBytes);
  info.device_class = reader.GetText(kMaxTextBytes);
  info.program = reader.GetText(kMaxTextBytes);
  info.kernels.resize(reader.GetCount(4 * 4 + 2 * 8));
  for (PackageKernel& kernel : info.kernels) {
    if (!reader.ok()) break;
    kernel.rung = reader.GetText(kMaxTextBytes);
    kernel.record_id = reader.GetText(kMaxTextBytes);
    kernel.content_hash = reader.GetText(kMaxTextBytes);
    kernel.name = reader.GetText(kMaxTextBytes);
    kernel.operations[0] = reader.Get<int64_t>();
    kernel.bytes = reader.Get<int64_t>();
  }
  if (format >= kFirstFormatOfNumbers) DecodeNumbers(reader, info);
  return info;
}

Status CheckInfo(const PackageInfo& info) {
  for (const PackageKernel& kernel : info.kernels) {
    if (kernel.rung.empty()) return Invalid("a kernel without its look-up rung");
    if (kernel.name.empty() || kernel.name.size() > kMaxTextBytes) {
      return Invalid("a kernel with a name of ", kernel.name.size(), " bytes");
    }
    const auto [least, most] = std::ranges::minmax(kernel.operations);
    if (least < 0 || most > kMostFlop || kernel.bytes < 0) {
      return Invalid("kernel '", kernel.name, "': ", least, " to ", most, " FLOP of a unit, ",
                     kernel.bytes, " bytes");
    }
  }
  return CheckPrecision(info);
}

}  // namespace hone::runtime

#include "ir/cuda/cuda_code.h"

#include <cstdint>

#include "base/core/byte_stream.h"

namespace hone::ir {
namespace {

constexpr std::string_view kMagic = "HONECUDA";

}  // namespace

std::string PackCudaModules(const std::vector<std::string>& modules) {
  ByteWriter writer;
  writer.PutBytes(kMagic);
  writer.Put(uint64_t{modules.size()});
  for (const std::string& module : modules) {
    writer.Put(uint64_t{module.size()});
    writer.PutBytes(module);
  }
  return writer.Take();
}

bool UnpackCudaModules(std::string_view bytes, std::vector<std::string_view>* modules) {
  modules->clear();
  ByteReader reader(bytes);
  if (reader.GetBytes(kMagic.size()) != kMagic) return false;
  for (auto left = reader.Get<uint64_t>(); left > 0 && reader.ok(); --left)
    modules->push_back(reader.GetBytes(reader.Get<uint64_t>()));
  return reader.AtEnd();
}

}  // namespace hone::ir

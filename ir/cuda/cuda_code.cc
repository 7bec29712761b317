#include "ir/cuda/cuda_code.h"

#include <cstdint>
#include <cstring>

namespace hone::ir {
namespace {

constexpr std::string_view kMagic = "HONECUDA";

/// Takes a little-endian number off the front; false: there is none.
bool Take(std::string_view* bytes, uint64_t* number) {
  if (bytes->size() < sizeof(*number)) return false;
  std::memcpy(number, bytes->data(), sizeof(*number));
  bytes->remove_prefix(sizeof(*number));
  return true;
}

void Append(uint64_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

std::string PackCudaModules(const std::vector<std::string>& modules) {
  std::string bytes(kMagic);
  Append(modules.size(), &bytes);
  for (const std::string& module : modules) {
    Append(module.size(), &bytes);
    bytes += module;
  }
  return bytes;
}

bool UnpackCudaModules(std::string_view bytes, std::vector<std::string_view>* modules) {
  modules->clear();
  if (bytes.substr(0, kMagic.size()) != kMagic) return false;
  bytes.remove_prefix(kMagic.size());
  uint64_t count = 0, size = 0;
  if (!Take(&bytes, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!Take(&bytes, &size) || bytes.size() < size) return false;
    modules->push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return bytes.empty();
}

}  // namespace hone::ir

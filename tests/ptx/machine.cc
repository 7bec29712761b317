#include "tests/ptx/machine.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "fmt/core.h"

#include "base/core/random.h"
#include "tests/ptx/block.h"

namespace hone::ptx {
namespace {

constexpr uint64_t kGlobalStart = uint64_t{1} << 36;
constexpr int64_t kMostInstructions = int64_t{1} << 24;

/// The bytes of all parameters, each where it is aligned.
absl::Status LayOut(const Kernel& kernel, const Launch& launch,
                    std::map<std::string, uint64_t>* symbols, std::vector<uint8_t>* bytes) {
  if (kernel.parameters.size() != launch.parameters.size() + launch.wide.size())
    return absl::InvalidArgumentError(fmt::format("{} has other parameters", kernel.name));
  for (size_t k = 0; k < kernel.parameters.size(); ++k) {
    const Variable& parameter = kernel.parameters[k];
    const size_t count = launch.parameters.size();
    std::vector<uint8_t> value;
    if (k < count) {
      for (int b = 0; b < 8; ++b)
        value.push_back(static_cast<uint8_t>(launch.parameters[k] >> (8 * b)));
      value.resize(std::min<size_t>(8, static_cast<size_t>(parameter.bytes)));
    } else {
      value = launch.wide[k - count];
    }
    if (value.size() != static_cast<size_t>(parameter.bytes)) {
      return absl::InvalidArgumentError(
          fmt::format("{} of {} has {} bytes", parameter.name, kernel.name, parameter.bytes));
    }
    bytes->resize(RoundedUp(bytes->size(), std::max<uint64_t>(8, parameter.alignment)));
    (*symbols)[parameter.name] = kFirstOffset + bytes->size();
    bytes->insert(bytes->end(), value.begin(), value.end());
  }
  return absl::OkStatus();
}

}  // namespace

int Device::Load(Program program) {
  Loaded loaded{std::move(program), {}};
  for (const Variable& v : loaded.program.variables) {
    std::vector<uint8_t> bytes = v.initial;
    bytes.resize(static_cast<size_t>(v.bytes));
    loaded.symbols.emplace_back(v.name, Add(bytes, !v.initial.empty()));
  }
  programs_.push_back(std::move(loaded));
  return static_cast<int>(programs_.size()) - 1;
}

const Memory* Device::Find(uint64_t address, size_t bytes) const {
  for (const Memory& memory : global_) {
    if (address >= memory.address && address - memory.address <= memory.bytes.size() &&
        memory.bytes.size() - (address - memory.address) >= bytes) {
      return &memory;
    }
  }
  return nullptr;
}

std::span<const uint8_t> Device::Read(uint64_t address, size_t bytes) const {
  const Memory* const memory = Find(address, bytes);
  if (memory == nullptr) return {};
  return std::span(memory->bytes).subspan(address - memory->address, bytes);
}

bool Device::Write(uint64_t address, std::span<const uint8_t> bytes) {
  auto* const memory = const_cast<Memory*>(Find(address, bytes.size()));
  if (memory == nullptr) return false;
  const size_t offset = address - memory->address;
  for (size_t i = 0; i < bytes.size(); ++i) {
    memory->bytes[offset + i] = bytes[i];
    memory->shadow[offset + i].set = true;
  }
  return true;
}

const Kernel* Device::KernelOf(int program, std::string_view kernel) const {
  const auto& kernels = programs_[static_cast<size_t>(program)].program.kernels;
  const auto found = kernels.find(std::string(kernel));
  return found == kernels.end() ? nullptr : &found->second;
}

uint64_t Device::Add(std::span<const uint8_t> bytes, bool set) {
  const uint64_t end =
      global_.empty() ? kGlobalStart : global_.back().address + global_.back().bytes.size();
  global_.push_back(MakeMemory(RoundedUp(end + 4096, 256), bytes, set));
  return global_.back().address;
}

std::span<const uint8_t> Device::Bytes(uint64_t address) const {
  for (const Memory& memory : global_) {
    if (memory.address == address) return memory.bytes;
  }
  return {};
}

absl::Status Device::Run(int program, std::string_view name, const Launch& launch) {
  const Loaded& loaded = programs_[static_cast<size_t>(program)];
  const auto found = loaded.program.kernels.find(std::string(name));
  if (found == loaded.program.kernels.end())
    return absl::InvalidArgumentError(fmt::format("no kernel {}", name));
  const Kernel& kernel = found->second;
  for (size_t k = 0; k < 3; ++k) {
    if (kernel.threads[k] != 0 && kernel.threads[k] != launch.block[k])
      return absl::InternalError(fmt::format("{} asks for other blocks (.reqntid)", name));
  }
  std::map<std::string, uint64_t> symbols(loaded.symbols.begin(), loaded.symbols.end());
  std::vector<uint8_t> bytes;
  HONE_RETURN_IF_ERROR(LayOut(kernel, launch, &symbols, &bytes));
  const Memory parameters = MakeMemory(kFirstOffset, bytes, true);
  for (Memory& memory : global_) {
    for (Shadow& shadow : memory.shadow) shadow = Shadow{.set = shadow.set};
  }
  Random random(launch.seed);
  std::vector<std::array<int64_t, 3>> blocks;
  for (int64_t z = 0; z < launch.grid[2]; ++z) {
    for (int64_t y = 0; y < launch.grid[1]; ++y) {
      for (int64_t x = 0; x < launch.grid[0]; ++x) blocks.push_back({x, y, z});
    }
  }
  for (size_t k = blocks.size(); k > 1; --k) std::swap(blocks[k - 1], blocks[random.Below(k)]);
  int64_t budget = kMostInstructions;
  for (size_t k = 0; k < blocks.size(); ++k) {
    Block block(kernel, loaded.program.given, launch, symbols, &global_, &parameters, blocks[k],
                static_cast<int64_t>(k), &random, &budget);
    if (const std::string error = block.Run(); !error.empty()) return absl::InternalError(error);
  }
  return absl::OkStatus();
}

}  // namespace hone::ptx

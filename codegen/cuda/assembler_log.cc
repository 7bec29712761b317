#include "codegen/cuda/assembler_log.h"

#include <charconv>
#include <optional>

#include "fmt/core.h"

namespace hone::codegen {
namespace {

/// The number that stands right before `unit`.
std::optional<int64_t> NumberBefore(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + at, value);
  if (error != std::errc() || end != line.data() + at) return std::nullopt;
  return value;
}

/// What stands between `before` and the next quote.
std::string_view Quoted(std::string_view line, std::string_view before) {
  const size_t at = line.find(before);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + before.size());
  return line.substr(0, line.find('\''));
}

void ReadUsage(std::string_view line, KernelUsage* kernel) {
  const auto read = [line](std::string_view unit, auto* field) {
    const std::optional<int64_t> number = NumberBefore(line, unit);
    if (number) *field = static_cast<std::remove_pointer_t<decltype(field)>>(*number);
  };
  read(" registers", &kernel->registers);
  read(" barriers", &kernel->barriers);
  read(" bytes smem", &kernel->shared_bytes);
  read(" bytes stack frame", &kernel->stack_bytes);
  read(" bytes spill stores", &kernel->spill_store_bytes);
  read(" bytes spill loads", &kernel->spill_load_bytes);
}

/// "(C7508) text" anywhere in the line.
std::optional<AssemblerMessage> ReadMessage(std::string_view line) {
  const size_t at = line.find("(C");
  if (at == std::string_view::npos) return std::nullopt;
  const size_t close = line.find(')', at);
  if (close == std::string_view::npos || close == at + 2) return std::nullopt;
  const std::string_view code = line.substr(at + 1, close - at - 1);
  if (code.find_first_not_of("0123456789", 1) != std::string_view::npos) return std::nullopt;
  const size_t text = line.find_first_not_of(' ', close + 1);
  return AssemblerMessage{std::string(code),
                          text == std::string_view::npos ? "" : std::string(line.substr(text))};
}

}  // namespace

const KernelUsage* AssemblerLog::Find(std::string_view kernel) const {
  for (const KernelUsage& usage : kernels) {
    if (usage.kernel == kernel) return &usage;
  }
  return nullptr;
}

AssemblerLog ParseAssemblerLog(std::string_view text) {
  AssemblerLog log;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (std::optional<AssemblerMessage> message = ReadMessage(line)) {
      log.messages.push_back(*std::move(message));
    } else if (const auto name = Quoted(line, "Compiling entry function '"); !name.empty()) {
      log.kernels.push_back({.kernel = std::string(name)});
    } else if (!log.kernels.empty()) {
      ReadUsage(line, &log.kernels.back());
    }
  }
  return log;
}

std::string AssemblerRefusal(const AssemblerLog& log) {
  // So little is set aside around a loop, where that lets an SM hold another block.
  constexpr int64_t kSetAside = 16;
  for (const AssemblerMessage& message : log.messages) {
    const std::string& code = message.code;
    if (code == "C7504" || code == "C7508" || (code >= "C7510" && code <= "C7519"))
      return fmt::format("the assembler says {}: {}", code, message.text);
  }
  for (const KernelUsage& kernel : log.kernels) {
    if (kernel.spill_store_bytes <= kSetAside && kernel.spill_load_bytes <= kSetAside) continue;
    return fmt::format("the assembler spills registers of '{}': {} bytes stored, {} loaded",
                       kernel.kernel, kernel.spill_store_bytes, kernel.spill_load_bytes);
  }
  return {};
}

}  // namespace hone::codegen

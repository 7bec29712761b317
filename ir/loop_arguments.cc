#include "ir/loop_arguments.h"

#include <string>

namespace hone::ir {

absl::Status CheckArguments(const LoopNest& nest, std::span<const std::span<uint8_t>> arguments) {
  for (const Buffer& buffer : nest.buffers) {
    const auto argument = static_cast<size_t>(buffer.argument);
    const auto elements = static_cast<size_t>(buffer.elements);
    const bool is_argument = buffer.scope == Scope::kArgument;
    if (is_argument && (buffer.argument < 0 || argument >= arguments.size())) {
      return absl::InternalError("buffer " + buffer.name + " is argument " +
                                 std::to_string(buffer.argument) + ", but " +
                                 std::to_string(arguments.size()) + " are given");
    }
    if (is_argument &&
        arguments[argument].size() < elements * static_cast<size_t>(SizeOf(buffer.dtype))) {
      return absl::InternalError("the argument given for buffer " + buffer.name + " is too small");
    }
    if (buffer.scope == Scope::kTable && elements != buffer.table.size())
      return absl::InternalError("table " + buffer.name + " has not as many values as elements");
  }
  return absl::OkStatus();
}

}  // namespace hone::ir

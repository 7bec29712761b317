#pragma once

#include <map>
#include <string>
#include <vector>

namespace hone::testing {

/// One innermost loop of a function in assembly text of Intel syntax that multiplies and adds.
struct HotLoop {
  /// By destination register: how often a fused multiply-add is made into it, or (a first step that
  /// starts from nothing) a product. A register that only products go to is no accumulator.
  std::map<std::string, int> steps_of;
  /// Instructions a kernel at full speed does not have here: `INSTRUCTION: why`.
  std::vector<std::string> faults;
};

/// The innermost loops with fused multiply-adds, in the order of the text. A loop reaches from its
/// first label to the last jump back to it; its faults are stores to the stack, calls, gathers and
/// arithmetic on registers that are no `full` ones ("zmm" or "ymm").
std::vector<HotLoop> HotLoops(const std::string& assembly, const std::string& full);

}  // namespace hone::testing

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What NVIDIA's assembler says of the kernels it assembled, whichever way it was called.
namespace hone::codegen {

/// The resources of one kernel, for each thread unless said otherwise.
struct KernelUsage {
  std::string kernel;
  int registers = 0;
  int64_t stack_bytes = 0;  ///< local memory of the function
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
  int64_t shared_bytes = 0;  ///< static, for each block
  int barriers = 0;          ///< named barriers, for each block
};

/// A numbered message ("C7508"), of whatever severity: the assembler tells of serialised
/// instructions as information.
struct AssemblerMessage {
  std::string code;
  std::string text;
};

struct AssemblerLog {
  std::vector<KernelUsage> kernels;  ///< in the order of the log
  std::vector<AssemblerMessage> messages;

  /// What `kernel` uses; null where the log does not name it.
  const KernelUsage* Find(std::string_view kernel) const;
};

/// Reads the log of `ptxas --verbose` or of the library. Lines it does not know are passed over.
AssemblerLog ParseAssemblerLog(std::string_view text);

/// Why code with this log is not worth measuring: setmaxnreg was ignored (C7504, C7508), or wgmma
/// was serialised or waited for (C7510 to C7519), or more than a few registers are spilled to
/// memory (where, the log does not say). Empty: nothing of that.
std::string AssemblerRefusal(const AssemblerLog& log);

}  // namespace hone::codegen

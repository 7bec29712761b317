#pragma once

#include <shared_mutex>
#include <string>

#include "llvm/Support/CodeGen.h"

#include "base/status.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace hone::codegen {

/// What LLVM knows a chip by.
struct MachineName {
  std::string triple;
  std::string cpu;
  std::string features;
  std::string text;     ///< for messages
  unsigned syntax = 0;  ///< of the assembly text
};

/// The code generator of a chip, made on first use and kept by the calling thread (making one costs
/// as much as a small kernel). kInternal if LLVM has none for the triple, kInvalidArgument if it
/// does not know the chip.
absl::StatusOr<llvm::TargetMachine*> TargetMachineFor(const MachineName& name);

/// LLVM's command-line options are global, and LLD puts all of them back to their defaults. Whoever
/// generates code holds this shared; whoever links holds it alone and calls SetLlvmOptions before
/// letting go.
std::shared_mutex& LlvmOptionsMutex();
void SetLlvmOptions();

/// Promotes register buffers to SSA values and generates code; the module is used up.
absl::StatusOr<std::string> GenerateCode(llvm::Module* module, llvm::TargetMachine* machine,
                                         llvm::CodeGenFileType type);

}  // namespace hone::codegen

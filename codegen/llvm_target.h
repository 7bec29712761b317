#pragma once

#include <shared_mutex>
#include <string>

#include "base/status.h"
#include "ir/target.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace hone::codegen {

/// The code generator of a target, made on first use and kept by the calling thread (making one
/// costs as much as a small kernel). kInternal if LLVM does not know the target.
absl::StatusOr<llvm::TargetMachine*> TargetMachineFor(const ir::Target& target);

/// LLVM's command-line options are global, and LLD puts all of them back to their defaults. Whoever
/// generates code holds this shared; whoever links holds it alone and calls SetLlvmOptions before
/// letting go.
std::shared_mutex& LlvmOptionsMutex();
void SetLlvmOptions();

enum class Output { kObject, kAssembly };

/// Promotes register buffers to SSA values and generates code; the module is used up.
absl::StatusOr<std::string> GenerateCode(llvm::Module* module, llvm::TargetMachine* machine,
                                         Output output);

}  // namespace hone::codegen

#include <memory>
#include <set>

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include "codegen/codegen.h"
#include "codegen/cpu/llvm_x86.h"
#include "codegen/cuda/llvm_nvptx.h"
#include "codegen/llvm_emitter.h"
#include "codegen/llvm_phase_function.h"
#include "codegen/llvm_target.h"

namespace hone::codegen {
namespace {

absl::Status EmitPhase(const ir::LoopNest& nest, const ir::Phase& phase, const ir::Target& target,
                       llvm::Module* module) {
  if (phase.symbol.empty()) return absl::InvalidArgumentError("a phase has no symbol");
  if (module->getFunction(phase.symbol) != nullptr) {
    return absl::InvalidArgumentError("phase '" + phase.symbol + "' occurs twice");
  }
  std::set<int> flat;
  while (true) {
    FunctionEmitter emitter(nest, phase, target, module);
    emitter.set_flat(flat);
    HONE_RETURN_IF_ERROR(emitter.Emit());
    if (emitter.conflicts().empty()) return absl::OkStatus();
    flat.insert(emitter.conflicts().begin(), emitter.conflicts().end());
    emitter.Erase();
  }
}

absl::Status EmitModule(const std::vector<const ir::LoopNest*>& nests, const ir::Target& target,
                        llvm::TargetMachine* machine, llvm::Module* module) {
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  for (const ir::LoopNest* nest : nests) {
    for (const ir::Phase& phase : nest->phases) {
      HONE_RETURN_IF_ERROR(EmitPhase(*nest, phase, target, module));
    }
  }
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream)) {
    return absl::InternalError("the emitted LLVM IR is not valid (a fault in Hone): " + problems);
  }
  return absl::OkStatus();
}

enum class Output { kObject, kAssembly, kIr };

absl::StatusOr<std::string> Generate(const std::vector<const ir::LoopNest*>& nests,
                                     const ir::Target& target, Output output) {
  HONE_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                        BackendsOfKinds().Of(target).Machine(target));
  llvm::LLVMContext context;
  llvm::Module module("hone", context);
  HONE_RETURN_IF_ERROR(EmitModule(nests, target, machine, &module));
  if (output == Output::kIr) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
  }
  return GenerateCode(&module, machine,
                      output == Output::kObject ? llvm::CodeGenFileType::ObjectFile
                                                : llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace

ir::PerKind<Backend>& BackendsOfKinds() {
  static ir::PerKind<Backend> kinds = {{"cpu", &X86Backend()}, {"cuda", &NvptxBackend()}};
  return kinds;
}

absl::StatusOr<std::string> CompileToObject(const std::vector<const ir::LoopNest*>& nests,
                                            const ir::Target& target) {
  return Generate(nests, target, Output::kObject);
}

absl::StatusOr<std::string> Assembly(const std::vector<const ir::LoopNest*>& nests,
                                     const ir::Target& target) {
  return Generate(nests, target, Output::kAssembly);
}

absl::StatusOr<std::string> LlvmIr(const std::vector<const ir::LoopNest*>& nests,
                                   const ir::Target& target) {
  return Generate(nests, target, Output::kIr);
}

}  // namespace hone::codegen

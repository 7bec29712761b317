#include "codegen/llvm_target.h"

#include <map>
#include <memory>
#include <mutex>

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar.h"

namespace hone::codegen {
namespace {

void SetUpLlvm() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  const std::unique_lock<std::shared_mutex> alone(LlvmOptionsMutex());
  SetLlvmOptions();
}

}  // namespace

std::shared_mutex& LlvmOptionsMutex() {
  static std::shared_mutex mutex;
  return mutex;
}

// Loop-strength reduction makes more pointers and longer live ranges: near the register limit it
// costs up to half the speed, elsewhere it gives nothing, and it takes a quarter of the compile
// time.
void SetLlvmOptions() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto option = options.find("disable-lsr");
  if (option != options.end()) {
    static_cast<llvm::cl::opt<bool>*>(option->second)->setValue(true);
  }
}

absl::StatusOr<llvm::TargetMachine*> TargetMachineFor(const MachineName& name) {
  static std::once_flag once;
  std::call_once(once, SetUpLlvm);
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  const std::string key = name.triple + " " + name.cpu + " " + name.features;
  const auto known = machines.find(key);
  if (known != machines.end()) return known->second.get();
  const llvm::Triple triple(name.triple);
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (backend == nullptr)
    return absl::InternalError("LLVM has no code generator for " + name.triple + ": " + error);
  llvm::TargetOptions options;
  options.MCOptions.OutputAsmVariant = static_cast<int>(name.syntax);
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(triple, name.cpu, name.features, options, llvm::Reloc::PIC_,
                                   llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) {
    return absl::InternalError("LLVM cannot generate code for '" + name.text + "' (" + key + ")");
  }
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(name.cpu)) {
    return absl::InvalidArgumentError("LLVM knows no chip '" + name.cpu + "' ('" + name.text +
                                      "')");
  }
  return machines.emplace(key, std::move(machine)).first->second.get();
}

absl::StatusOr<std::string> GenerateCode(llvm::Module* module, llvm::TargetMachine* machine,
                                         llvm::CodeGenFileType type) {
  const std::shared_lock<std::shared_mutex> options(LlvmOptionsMutex());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // Before all others: a pass that finds none makes one that knows no target, which then holds for
  // all (masked loads would become branches).
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return absl::InternalError("LLVM's code generator cannot write this kind of file");
  }
  passes.run(*module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace hone::codegen

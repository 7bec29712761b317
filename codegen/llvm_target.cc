#include "codegen/llvm_target.h"

#include <map>
#include <memory>
#include <mutex>

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar.h"

#include "ir/cpu/cpu_target.h"

namespace hone::codegen {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

void SetUpLlvm() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
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

absl::StatusOr<llvm::TargetMachine*> TargetMachineFor(const ir::Target& target) {
  static std::once_flag once;
  std::call_once(once, SetUpLlvm);
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  const std::string key =
      target.As<ir::CpuTarget>().llvm_cpu + " " + target.As<ir::CpuTarget>().llvm_features;
  const auto known = machines.find(key);
  if (known != machines.end()) return known->second.get();
  const llvm::Triple triple(kTriple);
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (backend == nullptr)
    return absl::InternalError("LLVM has no code generator for x86-64: " + error);
  llvm::TargetOptions options;
  options.MCOptions.OutputAsmVariant = 1;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.As<ir::CpuTarget>().llvm_cpu, target.As<ir::CpuTarget>().llvm_features,
      options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) {
    return absl::InternalError("LLVM cannot generate code for '" + target.text + "' (" + key + ")");
  }
  return machines.emplace(key, std::move(machine)).first->second.get();
}

absl::StatusOr<std::string> GenerateCode(llvm::Module* module, llvm::TargetMachine* machine,
                                         Output output) {
  const std::shared_lock<std::shared_mutex> options(LlvmOptionsMutex());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // Before all others: a pass that finds none makes one that knows no target, which then holds for
  // all (masked loads would become branches).
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  const auto type = output == Output::kObject ? llvm::CodeGenFileType::ObjectFile
                                              : llvm::CodeGenFileType::AssemblyFile;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return absl::InternalError("LLVM's x86-64 code generator cannot write this kind of file");
  }
  passes.run(*module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace hone::codegen

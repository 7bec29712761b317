#include "fmt/core.h"

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"

// The function of a phase and the memory of its buffers.
namespace hone::codegen {

using ir::DType;
using ir::Scope;

namespace {

/// The most lanes of a vector loop, whatever the element type.
constexpr int64_t kMostLanes = 64;

}  // namespace

FunctionEmitter::FunctionEmitter(const ir::LoopNest& nest, const ir::Phase& phase,
                                 const ir::Target& target, llvm::Module* module)
    : nest_(nest),
      phase_(phase),
      module_(module),
      builder_(module->getContext()),
      function_(
          BackendsOfKinds().Of(target).NewFunction({&nest, &phase, module, &builder_}, target)),
      arith_(&builder_, function_->instructions()),
      index_(nest.num_vars, this),
      launch_(ir::LaunchOf(nest, phase)),
      used_(ir::BuffersOf(phase.body)),
      states_(nest.buffers.size()) {}

llvm::Value* FunctionEmitter::TableGlobal(int buffer) {
  const ir::Buffer& table = Of(buffer);
  std::vector<llvm::Constant*> elements;
  for (const double value : table.table) {
    elements.push_back(
        llvm::cast<llvm::Constant>(arith_.ToMemory(arith_.Number(table.dtype, value))));
  }
  auto* type = llvm::ArrayType::get(arith_.MemoryType(table.dtype, 1), elements.size());
  auto* global = new llvm::GlobalVariable(
      *module_, type, /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
      llvm::ConstantArray::get(type, elements), phase_.symbol + ".table");
  global->setAlignment(llvm::Align(64));
  return global;
}

void FunctionEmitter::EmitEntry() {
  for (const int id : used_) {
    const ir::Buffer& buffer = Of(id);
    BufferState& state = StateOf(id);
    state.is_flat = buffer.scope == Scope::kRegister && flat_.count(id) > 0;
    if (buffer.scope == Scope::kTable) {
      state.base = TableGlobal(id);
    } else if (state.is_flat) {
      // A masked vector is read and written whole, so its last lanes may stick out.
      const int64_t elements = buffer.elements + kMostLanes - 1;
      llvm::AllocaInst* memory = builder_.CreateAlloca(
          llvm::ArrayType::get(FlatType(buffer.dtype, 1), static_cast<uint64_t>(elements)));
      memory->setAlignment(llvm::Align(64));
      state.base = memory;
    } else if (buffer.scope != Scope::kRegister) {
      state.base = function_->Base(id);
      if (state.base == nullptr)
        Fail("buffer '" + buffer.name + "' is GPU shared memory, which a CPU does not have");
    }
  }
  if (const int64_t most = function_->most_shared_bytes(); launch_.shared_bytes > most)
    Fail(fmt::format("its blocks want {} bytes of shared memory, {} can be had",
                     launch_.shared_bytes, most));
  frames_.emplace_back();
  frames_.back().marker = Marker();
  function_->BeginBody();
}

absl::Status FunctionEmitter::Emit() {
  inner_ = function_->Declare(used_);
  EmitEntry();
  EmitStmt(phase_.body);
  ConfigureTiles();
  function_->Finish();
  for (llvm::Instruction* marker : markers_) marker->eraseFromParent();
  return status_;
}

}  // namespace hone::codegen

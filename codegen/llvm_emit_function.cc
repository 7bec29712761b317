#include <array>
#include <utility>

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"
#include "ir/cpu/cpu_target.h"

// The two functions of a phase, their parameters and the memory of buffers.
namespace hone::codegen {

using ir::DType;
using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

/// The most lanes of a vector loop, whatever the element type.
constexpr int64_t kMostLanes = 64;

void CollectLoads(const Expr& expr, std::set<int>* used) {
  if (expr->kind == ir::ExprKind::kLoad) used->insert(expr->id);
  for (const Expr& arg : expr->args) CollectLoads(arg, used);
}

void CollectStmt(const Stmt& stmt, std::set<int>* used) {
  used->insert(stmt->buffers.begin(), stmt->buffers.end());
  if (stmt->condition != nullptr) CollectLoads(stmt->condition, used);
  if (stmt->index != nullptr) CollectLoads(stmt->index, used);
  for (const Expr& value : stmt->values) CollectLoads(value, used);
  for (const Stmt& inner : stmt->body) CollectStmt(inner, used);
}

// Offsets of the fields of ir::HoneCall, an ABI.
constexpr uint64_t kBuffersAt = 0, kScratchAt = 8, kBeginAt = 16, kEndAt = 24, kStepAt = 32;

}  // namespace

FunctionEmitter::FunctionEmitter(const ir::LoopNest& nest, const ir::Phase& phase,
                                 const ir::Target& target, llvm::Module* module)
    : nest_(nest),
      phase_(phase),
      target_(target),
      module_(module),
      builder_(module->getContext()),
      arith_(&builder_, target.As<ir::CpuTarget>().isa),
      index_(nest.num_vars, this),
      states_(nest.buffers.size()) {
  CollectStmt(phase.body, &used_);
}

void FunctionEmitter::DeclareFunctions() {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* i64 = builder_.getInt64Ty();
  std::vector<llvm::Type*> types;
  for (const int id : used_) {
    if (Of(id).scope == Scope::kArgument) types.push_back(pointer);
  }
  types.insert(types.end(), {pointer, i64, i64, i64});
  inner_ =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), types, false),
                             llvm::Function::InternalLinkage, phase_.symbol + ".body", module_);
  outer_ = llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), {pointer}, false),
                                  llvm::Function::ExternalLinkage, phase_.symbol, module_);
  for (llvm::Function* function : {inner_, outer_}) {
    function->setDoesNotThrow();
    function->addFnAttr("target-cpu", target_.As<ir::CpuTarget>().llvm_cpu);
    function->addFnAttr("target-features", target_.As<ir::CpuTarget>().llvm_features);
    function->addFnAttr("prefer-vector-width",
                        std::to_string(32 * target_.As<ir::CpuTarget>().lanes));
  }
  unsigned k = 0;
  for (const int id : used_) {
    const ir::Buffer& buffer = Of(id);
    if (buffer.scope != Scope::kArgument) continue;
    inner_->addParamAttr(k, llvm::Attribute::NoAlias);
    if (buffer.read_only) inner_->addParamAttr(k, llvm::Attribute::ReadOnly);
    StateOf(id).base = inner_->getArg(k);
    StateOf(id).base->setName(buffer.name);
    ++k;
  }
  inner_->addParamAttr(k, llvm::Attribute::NoAlias);
  scratch_ = inner_->getArg(k);
  begin_ = inner_->getArg(k + 1);
  end_ = inner_->getArg(k + 2);
  step_ = inner_->getArg(k + 3);
}

void FunctionEmitter::EmitOuter() {
  builder_.SetInsertPoint(llvm::BasicBlock::Create(builder_.getContext(), "entry", outer_));
  llvm::Value* call = outer_->getArg(0);
  const auto field = [&](llvm::Type* type, llvm::Value* base, uint64_t bytes) {
    llvm::Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), base, bytes);
    return builder_.CreateLoad(type, at);
  };
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Value* buffers = field(pointer, call, kBuffersAt);
  std::vector<llvm::Value*> arguments;
  for (const int id : used_) {
    if (Of(id).scope != Scope::kArgument) continue;
    arguments.push_back(field(pointer, buffers, 8 * static_cast<uint64_t>(Of(id).argument)));
  }
  arguments.push_back(field(pointer, call, kScratchAt));
  for (const uint64_t at : {kBeginAt, kEndAt, kStepAt}) {
    arguments.push_back(field(builder_.getInt64Ty(), call, at));
  }
  llvm::CallInst* result = builder_.CreateCall(inner_, arguments);
  builder_.CreateRet(result);
}

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
  llvm::LLVMContext& context = builder_.getContext();
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", inner_));
  for (const int id : used_) {
    const ir::Buffer& buffer = Of(id);
    BufferState& state = StateOf(id);
    state.is_flat = buffer.scope == Scope::kRegister && flat_.count(id) > 0;
    if (buffer.scope == Scope::kScratch) {
      state.base = Displaced(scratch_, buffer.scratch_offset);
    } else if (buffer.scope == Scope::kTable) {
      state.base = TableGlobal(id);
    } else if (state.is_flat) {
      // A masked vector is read and written whole, so its last lanes may stick out.
      const int64_t elements = buffer.elements + kMostLanes - 1;
      llvm::AllocaInst* memory = builder_.CreateAlloca(
          llvm::ArrayType::get(FlatType(buffer.dtype, 1), static_cast<uint64_t>(elements)));
      memory->setAlignment(llvm::Align(64));
      state.base = memory;
    } else if (buffer.scope == Scope::kShared) {
      Fail("buffer '" + buffer.name + "' is GPU shared memory, which a CPU does not have");
    }
  }
  frames_.emplace_back();
  frames_.back().marker = Marker();
  auto* body = llvm::BasicBlock::Create(context, "body", inner_);
  return_block_ = llvm::BasicBlock::Create(context, "return", inner_);
  builder_.CreateCondBr(builder_.CreateICmpSLT(begin_, end_), body, return_block_);
  builder_.SetInsertPoint(return_block_);
  result_ = builder_.CreatePHI(builder_.getInt32Ty(), 2);
  result_->addIncoming(builder_.getInt32(0), &inner_->getEntryBlock());
  builder_.CreateRet(result_);
  builder_.SetInsertPoint(body);
}

absl::Status FunctionEmitter::Emit() {
  DeclareFunctions();
  EmitOuter();
  EmitEntry();
  EmitStmt(phase_.body);
  result_->addIncoming(builder_.getInt32(0), builder_.GetInsertBlock());
  builder_.CreateBr(return_block_);
  for (llvm::Instruction* marker : markers_) marker->eraseFromParent();
  return status_;
}

void FunctionEmitter::Erase() {
  outer_->eraseFromParent();
  inner_->eraseFromParent();
}

}  // namespace hone::codegen

#include <algorithm>
#include <bit>
#include <utility>

#include "fmt/core.h"

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"
#include "ir/async_copy.h"
#include "ir/bit_rank.h"
#include "ir/lanes.h"

// Statements: loops, conditions, stores.
namespace hone::codegen {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::ExprKind;
using ir::LoopKind;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

namespace {

/// Elements of a value in a register, bytes.
int64_t RegisterBytes(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? 4 : ir::SizeOf(dtype);
}

int64_t WidestValueBytes(const Expr& expr) {
  if (expr->kind == ExprKind::kLoad) return RegisterBytes(expr->dtype);
  if (expr->kind == ExprKind::kVar || expr->kind == ExprKind::kConst) return 1;
  // Its word is no vector.
  if (ir::AsExpandedLoad(expr)) return RegisterBytes(expr->dtype);
  // 64-bit integers without a load are index arithmetic.
  int64_t widest = expr->dtype == DType::kI64 ? 1 : RegisterBytes(expr->dtype);
  for (const Expr& arg : expr->args) widest = std::max(widest, WidestValueBytes(arg));
  return widest;
}

/// Whether what is stored stands in memory as it is, or is zero: it need not become an f32.
bool IsPlainCopy(const StmtNode& stmt) {
  if (stmt.kind != StmtKind::kStore || stmt.combiner != Combiner::kNone) return false;
  const ir::ExprNode* value = stmt.values[0].get();
  while (value->kind == ExprKind::kSelect && value->args[2]->kind == ExprKind::kConst)
    value = value->args[1].get();
  return value->kind == ExprKind::kLoad;
}

bool HasLoop(const Stmt& stmt) {
  if (stmt->kind == StmtKind::kFor && stmt->loop == LoopKind::kSerial && stmt->extent > 1)
    return true;
  return std::any_of(stmt->body.begin(), stmt->body.end(), HasLoop);
}

}  // namespace

void FunctionEmitter::Fail(std::string message) {
  if (status_.ok())
    status_ = absl::InvalidArgumentError("phase '" + phase_.symbol + "': " + message);
}

// A place to insert before; removed at the end.
llvm::Instruction* FunctionEmitter::Marker() {
  markers_.push_back(builder_.Insert(new llvm::FreezeInst(builder_.getFalse())));
  return markers_.back();
}

void FunctionEmitter::EmitBody(const StmtNode& node) {
  for (size_t k = 0; k < node.body.size();) {
    const size_t emitted = EmitTilesFromZero(node.body, k);
    if (emitted == 0) EmitStmt(node.body[k]);
    k += std::max<size_t>(emitted, 1);
  }
}

void FunctionEmitter::EmitStmt(const Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case StmtKind::kBlock: EmitBody(*stmt); return;
    case StmtKind::kFor: EmitFor(*stmt); return;
    case StmtKind::kIf: EmitIf(*stmt); return;
    case StmtKind::kStore: EmitStore(*stmt); return;
    case StmtKind::kFill: EmitFill(*stmt); return;
    case StmtKind::kSync: ir::LanesOf(*stmt) > 0 ? EmitLanes(*stmt) : EmitSync(*stmt); return;
    case StmtKind::kFail: EmitFail(*stmt); return;
    case StmtKind::kPrefetch: EmitPrefetch(*stmt); return;
  }
}

// Nothing loaded before holds afterwards, unless one thread runs the whole nest.
void FunctionEmitter::EmitSync(const StmtNode& node) {
  if (EmitBoxSync(node)) return;
  if (ir::IsCommit(node)) {
    function_->CommitCopies();
    return;
  }
  if (const int64_t groups = ir::AwaitedGroups(node); groups >= 0) {
    function_->AwaitCopies(groups);
    Boundary();
    return;
  }
  if (ir::IsShowToProducts(node)) {
    function_->ShowToProducts();
    return;
  }
  if (ir::AwaitedProducts(node) >= 0) {
    AwaitProducts(node);
    return;
  }
  if (mask_ != nullptr || vector_.lanes > 1) {
    Fail("a barrier inside a vector loop");
  } else if (function_->Barrier()) {
    Boundary();
  }
}

void FunctionEmitter::EmitFail(const StmtNode& node) {
  const auto leave = [&] {
    function_->Leave(static_cast<int32_t>(node.extent));
    // What follows is never reached, but needs a place.
    builder_.SetInsertPoint(llvm::BasicBlock::Create(builder_.getContext(), "unreachable", inner_));
    Boundary();
  };
  if (mask_ == nullptr) {
    leave();
  } else {
    Branch(arith_.AnyLane(ActiveMask()), leave);
  }
}

// A prefetch never faults, so neither mask nor bounds matter; in a vector the first lane's line is
// meant.
void FunctionEmitter::EmitPrefetch(const StmtNode& node) {
  const int buffer = node.buffers[0];
  if (Of(buffer).scope == Scope::kRegister || Of(buffer).scope == Scope::kTable) {
    Fail("a prefetch of buffer '" + Of(buffer).name + "', which is not in memory");
    return;
  }
  statement_values_.clear();
  Affine index = index_.Decompose(node.index);
  if (index_.DependsOnLane(index)) {
    const std::optional<Affine> first = index_.AtLane(index, 0);
    if (!first) return;
    index = *first;
  }
  function_->Prefetch(Pointer(buffer, index));
}

void FunctionEmitter::EmitFor(const StmtNode& node) {
  if (node.extent == 0 || EmitTileRegion(node, /*from_zero=*/false)) return;
  const auto emit_body = [&] { EmitBody(node); };
  switch (node.loop) {
    case LoopKind::kVector:
      if (vector_.lanes == 1) {
        EmitVector(node);
        return;
      }
      [[fallthrough]];  // a vector loop inside another runs lane by lane
    case LoopKind::kUnrolled: EmitUnrolled(node); return;
    case LoopKind::kDot:
      if (!EmitDot(node)) EmitUnrolled(node);
      return;
    case LoopKind::kMma: EmitMma(node); return;
    case LoopKind::kWgmma: EmitWgmma(node); return;
    case LoopKind::kBox: EmitBox(node); return;
    case LoopKind::kTile:
      if (region_) {
        EmitTile(node);
        return;
      }
      [[fallthrough]];  // a machine without tiles runs the loops
    case LoopKind::kSerial:
      if (node.extent == 1) {
        index_.Bind(node.var, Affine(0));
        emit_body();
        return;
      }
      EmitLoop(builder_.getInt64(0), builder_.getInt64(static_cast<uint64_t>(node.extent)), node);
      return;
    case LoopKind::kStep: {
      const Affine step = index_.NewVariable(0, {0, node.extent - 1});
      SetAtomValue(step, function_->Step());
      index_.Bind(node.var, step);
      emit_body();
      return;
    }
    default: break;
  }
  if (const PhaseFunction::Part part = function_->ParallelPart();
      node.loop == LoopKind::kParallel && part.begin != nullptr) {
    EmitPart(part.begin, part.end, node);
  } else if (!EmitLaunched(node)) {
    Fail(fmt::format("a {} loop is for GPUs and cannot be compiled for a CPU",
                     std::string(ToString(node.loop))));
  }
}

void FunctionEmitter::EmitUnrolled(const StmtNode& node) {
  // A loop inside is none of its straight code: what is loaded there is not loaded again.
  const bool straight = std::none_of(node.body.begin(), node.body.end(), HasLoop);
  if (straight) unrolled_.push_back({node.var, node.extent, 0, branches_});
  for (int64_t k = 0; k < node.extent && status_.ok(); ++k) {
    if (straight) unrolled_.back().now = k;
    index_.Bind(node.var, Affine(k));
    EmitBody(node);
  }
  if (straight) unrolled_.pop_back();
  if (unrolled_.empty()) strips_.clear();
}

// Runs at least once: extents are static and empty parts of a parallel loop return at the entry.
void FunctionEmitter::EmitLoop(llvm::Value* begin, llvm::Value* end, const StmtNode& node) {
  llvm::LLVMContext& context = builder_.getContext();
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  const size_t tile_sites = tile_sites_.size();
  auto* header = llvm::BasicBlock::Create(context, fmt::format("loop.v{}", node.var), inner_);
  llvm::Instruction* entry = builder_.CreateBr(header);
  builder_.SetInsertPoint(header);
  Boundary();
  llvm::PHINode* counter =
      builder_.CreatePHI(builder_.getInt64Ty(), 2, fmt::format("v{}", node.var));
  counter->addIncoming(begin, before);
  frames_.emplace_back();
  frames_.back().marker = Marker();
  frames_.back().entry = entry;
  frames_.back().written = &WrittenIn(node);
  frames_.back().branches = branches_;
  const Affine var = index_.NewVariable(static_cast<int>(frames_.size()) - 1, {0, node.extent - 1});
  SetAtomValue(var, counter);
  index_.Bind(node.var, var);
  EmitBody(node);
  llvm::Value* next =
      builder_.CreateAdd(counter, builder_.getInt64(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
  llvm::BasicBlock* latch = builder_.GetInsertBlock();
  auto* exit = llvm::BasicBlock::Create(context, "exit", inner_);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), header, exit);
  counter->addIncoming(next, latch);
  builder_.SetInsertPoint(exit);
  frames_.pop_back();
  HoistTileSites(tile_sites, entry);
  Boundary();
  // Addresses of what follows are made here, not before the loop, where each would take a register
  // of all threads as long as it runs.
  if (function_->has_threads() && frames_.size() == 1 && branches_ == 0) {
    frames_[0].marker = Marker();
    frames_[0].pointers.clear();
  }
}

int FunctionEmitter::WidestBytes(const Stmt& stmt) {
  const auto known = widest_.find(stmt.get());
  if (known != widest_.end()) return known->second;
  int64_t widest = 1;
  for (const Stmt& inner : stmt->body) widest = std::max<int64_t>(widest, WidestBytes(inner));
  if (function_->has_threads() && IsPlainCopy(*stmt)) {
    widest_.emplace(stmt.get(), static_cast<int>(ir::SizeOf(stmt->values[0]->dtype)));
    return widest_.at(stmt.get());
  }
  for (const int buffer : stmt->buffers) widest = std::max(widest, RegisterBytes(Of(buffer).dtype));
  for (const Expr& value : stmt->values) widest = std::max(widest, WidestValueBytes(value));
  widest_.emplace(stmt.get(), static_cast<int>(widest));
  return static_cast<int>(widest);
}

// Cut into pieces of one machine register of the widest type inside.
void FunctionEmitter::EmitVector(const StmtNode& node) {
  int widest = 1;
  for (const Stmt& inner : node.body) widest = std::max(widest, WidestBytes(inner));
  const int64_t lanes = std::max<int64_t>(1, function_->lanes() * 4 / widest);
  std::vector<int> own;
  if (!SetPrivate(node, &own)) {
    for (int64_t k = 0; k < node.extent && status_.ok(); ++k) {
      index_.Bind(node.var, Affine(k));
      EmitBody(node);
    }
    return;
  }
  for (int64_t done = 0; done < node.extent; done += lanes) {
    const int64_t active = std::min(lanes, node.extent - done);
    if (active == 1) {
      index_.Bind(node.var, Affine(done));
    } else {
      for (const int buffer : own) {
        StateOf(buffer).is_private = true;
        StateOf(buffer).private_slots.clear();
        StateOf(buffer).fills.clear();
      }
      vector_.active = static_cast<int>(active);
      vector_.lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(active)));
      index_.Bind(node.var, index_.Lane(active) + Affine(done));
    }
    EmitBody(node);
    vector_ = {};
    for (const int buffer : own) {
      StateOf(buffer).is_private = false;
      StateOf(buffer).fills.clear();
    }
  }
}

void FunctionEmitter::Branch(llvm::Value* condition, const std::function<void()>& body) {
  llvm::LLVMContext& context = builder_.getContext();
  auto* then = llvm::BasicBlock::Create(context, "then", inner_);
  auto* merge = llvm::BasicBlock::Create(context, "endif", inner_);
  builder_.CreateCondBr(condition, then, merge);
  builder_.SetInsertPoint(then);
  statement_values_.clear();
  ++branches_;
  body();
  --branches_;
  builder_.CreateBr(merge);
  builder_.SetInsertPoint(merge);
  Boundary();
}

void FunctionEmitter::EmitIf(const StmtNode& node) {
  statement_values_.clear();
  const Affine condition = index_.Decompose(node.condition);
  const auto emit_body = [&] {
    const size_t facts = index_.num_facts();
    index_.PushFacts(condition, true);
    EmitBody(node);
    index_.PopFacts(facts);
  };
  if (condition.IsConst()) {
    if (condition.constant != 0) emit_body();
    return;
  }
  llvm::Value* value = MaterialiseBool(condition);
  if (!index_.DependsOnLane(condition)) {
    Branch(value, emit_body);
    return;
  }
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(value)) {
    if (constant->isNullValue()) return;
    if (constant->isAllOnesValue()) {
      emit_body();
      return;
    }
  }
  llvm::Value* const outer = mask_;
  mask_ = outer == nullptr ? value : builder_.CreateAnd(outer, value);
  emit_body();
  mask_ = outer;
}

void FunctionEmitter::EmitFill(const StmtNode& node) {
  statement_values_.clear();
  const int buffer = node.buffers[0];
  const Value value = node.combiner == Combiner::kNone
                          ? arith_.Cast(Eval(node.values[0]), Of(buffer).dtype)
                          : arith_.Identity(node.combiner, Of(buffer).dtype, 0);
  if (value.lanes != 1) {
    Fail("a fill of buffer '" + Of(buffer).name + "' depends on a vector lane");
    return;
  }
  if (IsRegister(buffer)) {
    FillRegister(buffer, node.extent, value);
    return;
  }
  ++StateOf(buffer).writes;
  EmitFillLoop(buffer, node.extent, value);
}

void FunctionEmitter::EmitFillLoop(int buffer, int64_t elements, const Value& value) {
  constexpr int64_t kMostStraightStores = 16;
  const int64_t size = ir::SizeOf(Of(buffer).dtype);
  const int64_t lanes = function_->lanes() * 4 / size;
  llvm::Value* raw = arith_.ToMemory(value);
  llvm::Value* vector = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), raw);
  const llvm::Align align(static_cast<uint64_t>(size));
  const int64_t whole = elements / lanes;
  llvm::Value* base = StateOf(buffer).base;
  if (whole > kMostStraightStores) {
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(builder_.getContext(), "fill", inner_);
    auto* exit = llvm::BasicBlock::Create(builder_.getContext(), "exit", inner_);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* at = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    at->addIncoming(builder_.getInt64(0), before);
    builder_.CreateAlignedStore(vector, builder_.CreateGEP(builder_.getInt8Ty(), base, at), align);
    llvm::Value* next =
        builder_.CreateAdd(at, builder_.getInt64(static_cast<uint64_t>(lanes * size)));
    at->addIncoming(next, loop);
    llvm::Value* end = builder_.getInt64(static_cast<uint64_t>(whole * lanes * size));
    builder_.CreateCondBr(builder_.CreateICmpULT(next, end), loop, exit);
    builder_.SetInsertPoint(exit);
    Boundary();
  } else {
    for (int64_t k = 0; k < whole; ++k) {
      builder_.CreateAlignedStore(vector, Displaced(base, k * lanes * size), align);
    }
  }
  for (int64_t k = whole * lanes; k < elements; ++k) {
    builder_.CreateAlignedStore(raw, Displaced(base, k * size), align);
  }
}

std::vector<Value> FunctionEmitter::EvalValues(const StmtNode& node) {
  std::vector<Value> values;
  for (size_t k = 0; k < node.values.size(); ++k) {
    values.push_back(arith_.Cast(Eval(node.values[k]), Of(node.buffers[k]).dtype));
  }
  return values;
}

void FunctionEmitter::EmitStore(const StmtNode& node) {
  // LLVM needs milliseconds for a hundred of them: what is far beyond any good kernel is refused.
  constexpr int64_t kMostStores = 40000;
  if (++stores_ > kMostStores) {
    status_ = absl::ResourceExhaustedError(
        fmt::format("phase '{}': more than {} stores after unrolling; unroll less", phase_.symbol,
                    kMostStores));
    return;
  }
  statement_values_.clear();
  for (const int buffer : node.buffers) {
    if (Of(buffer).read_only) {
      Fail("buffer '" + Of(buffer).name + "' is read-only but stored to");
      return;
    }
  }
  const Affine index = index_.Decompose(node.index);
  if (ir::IsAsyncStore(node) && EmitCopy(node, index)) return;
  if (node.combiner == Combiner::kNone) {
    const std::vector<Value> values = EvalValues(node);
    for (size_t k = 0; k < values.size(); ++k) Store(node.buffers[k], index, values[k]);
  } else if (vector_.lanes > 1 && !index_.DependsOnLane(index) &&
             !StateOf(node.buffers[0]).is_private) {
    CombineLanes(node, index);
  } else if (vector_.lanes > 1 && !StateOf(node.buffers[0]).is_private && !IsInjective(index)) {
    CombineLaneByLane(node, index);
  } else {
    EmitReduceStore(node, index);
  }
}

void FunctionEmitter::EmitReduceStore(const StmtNode& node, const Affine& index) {
  const bool sums = node.combiner == Combiner::kSum || node.combiner == Combiner::kSumSumSq;
  std::vector<Value> old;
  std::vector<Value> result;
  if (sums) {
    // Values first: a product goes into the sum unrounded.
    for (size_t k = 0; k < node.values.size(); ++k) {
      const Expr& value = node.values[k];
      const DType dtype = Of(node.buffers[k]).dtype;
      if (ir::IsFloat(dtype) && value->dtype == dtype && value->kind == ExprKind::kBinary &&
          value->binary() == BinaryOp::kMul) {
        const Value a = Eval(value->args[0]);
        const Value b = Eval(value->args[1]);
        result.push_back(arith_.Fma(a, b, Load(node.buffers[k], index)));
      } else {
        const Value term = arith_.Cast(Eval(value), dtype);
        result.push_back(arith_.Binary(BinaryOp::kAdd, Load(node.buffers[k], index), term));
      }
    }
  } else {
    const std::vector<Value> values = EvalValues(node);
    for (const int buffer : node.buffers) old.push_back(Load(buffer, index));
    result = arith_.Combine(node.combiner, old, values);
  }
  for (size_t k = 0; k < result.size(); ++k) Store(node.buffers[k], index, result[k]);
}

}  // namespace hone::codegen

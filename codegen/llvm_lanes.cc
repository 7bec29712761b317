#include <algorithm>
#include <utility>

#include "codegen/llvm_dot.h"
#include "codegen/llvm_emitter.h"

// What vector loops do beside element by element: folding lanes into one element, buffers of which
// every lane needs its own, the machine's dot products.
namespace hone::codegen {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

namespace {

bool Mentions(const Expr& expr, int var) {
  if (expr->kind == ir::ExprKind::kVar) return expr->id == var;
  return std::any_of(expr->args.begin(), expr->args.end(),
                     [var](const Expr& arg) { return Mentions(arg, var); });
}

/// What is written and read inside a vector loop, told apart by whether the index mentions its
/// variable.
struct LaneUse {
  std::set<int>
      overwritten;       // filled or stored to, without combiner, at an index without the variable
  std::set<int> spread;  // some index mentions the variable
};

void CollectLoads(const Expr& expr, int var, LaneUse* use) {
  if (expr->kind == ir::ExprKind::kLoad && Mentions(expr->args[0], var))
    use->spread.insert(expr->id);
  for (const Expr& arg : expr->args) CollectLoads(arg, var, use);
}

void CollectUse(const Stmt& stmt, int var, LaneUse* use) {
  if (stmt->kind == StmtKind::kPrefetch) return;
  if (stmt->condition != nullptr) CollectLoads(stmt->condition, var, use);
  for (const Expr& value : stmt->values) CollectLoads(value, var, use);
  const bool mentions = stmt->index != nullptr && Mentions(stmt->index, var);
  for (const int buffer : stmt->buffers) {
    if (mentions) use->spread.insert(buffer);
    const bool plain = stmt->kind == StmtKind::kFill || stmt->combiner == Combiner::kNone;
    if (!mentions && plain) use->overwritten.insert(buffer);
  }
  for (const Stmt& inner : stmt->body) CollectUse(inner, var, use);
}

}  // namespace

// A register buffer that is filled or overwritten inside a vector loop holds one value a lane
// there. False: the loop cannot be vectors (scratch used that way, or some of its indices differ
// between lanes) and runs lane by lane.
bool FunctionEmitter::SetPrivate(const StmtNode& vector_loop, std::vector<int>* buffers) {
  LaneUse use;
  for (const Stmt& inner : vector_loop.body) CollectUse(inner, vector_loop.var, &use);
  for (const int buffer : use.overwritten) {
    if (Of(buffer).scope == Scope::kArgument) continue;
    if (Of(buffer).scope != Scope::kRegister || use.spread.count(buffer) > 0) return false;
    buffers->push_back(buffer);
  }
  return true;
}

bool FunctionEmitter::IsInjective(const Affine& index) {
  LanePattern pattern = PatternOf(index);
  if (pattern.contiguous) return true;
  std::sort(pattern.offsets.begin(), pattern.offsets.end());
  return !pattern.offsets.empty() &&
         std::adjacent_find(pattern.offsets.begin(), pattern.offsets.end()) ==
             pattern.offsets.end();
}

// All lanes go into one element: they are folded first.
void FunctionEmitter::CombineLanes(const StmtNode& node, const Affine& index) {
  std::vector<Value> values = EvalValues(node);
  llvm::Value* mask = ActiveMask();
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = arith_.Broadcast(values[k], vector_.lanes);
    if (mask == nullptr) continue;
    const Value identity = arith_.Identity(node.combiner, values[k].dtype, static_cast<int>(k));
    values[k] = arith_.Select({mask, DType::kBool, vector_.lanes}, values[k], identity);
  }
  values = arith_.ReduceLanes(node.combiner, std::move(values));
  const auto store = [&] {
    llvm::Value* const outer = std::exchange(mask_, nullptr);
    const VectorLoop vector = std::exchange(vector_, VectorLoop{});
    std::vector<Value> old;
    for (const int buffer : node.buffers) old.push_back(Load(buffer, index));
    const std::vector<Value> result = arith_.Combine(node.combiner, old, values);
    for (size_t k = 0; k < result.size(); ++k) Store(node.buffers[k], index, result[k]);
    vector_ = vector;
    mask_ = outer;
  };
  const bool anywhere = std::all_of(node.buffers.begin(), node.buffers.end(), [&](int buffer) {
    return IsRegister(buffer) || InBounds(buffer, index_.Bounds(index), 1);
  });
  if (mask_ == nullptr || anywhere) {
    store();
  } else {
    Branch(arith_.AnyLane(mask_), store);
  }
}

// Several lanes may meet in one element, which differs: one lane after the other.
void FunctionEmitter::CombineLaneByLane(const StmtNode& node, const Affine& index) {
  const std::vector<Value> values = EvalValues(node);
  llvm::Value* const mask = std::exchange(mask_, nullptr);
  const VectorLoop vector = vector_;
  llvm::Value* indices = PatternOf(index).offsets.empty() ? MaterialiseVector(index, 64) : nullptr;
  for (int lane = 0; lane < vector.active; ++lane) {
    const auto element = [&](llvm::Value* v) {
      return builder_.CreateExtractElement(v, static_cast<uint64_t>(lane));
    };
    const auto combine = [&] {
      Affine at;
      if (indices == nullptr) {
        at = *index_.AtLane(index, lane);
      } else {
        at = index_.NewOpaque(/*lane=*/false, index_.Bounds(index));
        SetAtomValue(at, element(indices));
      }
      std::vector<Value> mine;
      mine.reserve(values.size());
      for (const Value& value : values) {
        mine.push_back(value.lanes == 1 ? value : Value{element(value.llvm), value.dtype, 1});
      }
      vector_ = {};
      std::vector<Value> old;
      for (const int buffer : node.buffers) old.push_back(Load(buffer, at));
      const std::vector<Value> result = arith_.Combine(node.combiner, old, mine);
      for (size_t k = 0; k < result.size(); ++k) Store(node.buffers[k], at, result[k]);
      vector_ = vector;
    };
    if (mask == nullptr) {
      combine();
    } else {
      Branch(element(mask), combine);
    }
  }
  mask_ = mask;
}

// The numbers that are loaded in all iterations, side by side: a word of them for every lane, or
// one for all lanes. Null: they do not lie so.
llvm::Value* FunctionEmitter::DotWord(const Expr& load, const StmtNode& node) {
  if (load->kind != ir::ExprKind::kLoad || IsRegister(load->id) || mask_ != nullptr) return nullptr;
  index_.Bind(node.var, Affine(0));
  const Affine first = index_.Decompose(load->args[0]);
  for (int64_t k = 1; k < node.extent; ++k) {
    index_.Bind(node.var, Affine(k));
    if (index_.Decompose(load->args[0]) != first + Affine(k)) return nullptr;
  }
  const int64_t bits = 8 * ir::SizeOf(load->dtype) * node.extent;
  llvm::Type* type = builder_.getIntNTy(static_cast<unsigned>(bits));
  if (!index_.DependsOnLane(first))
    return builder_.CreateAlignedLoad(type, Pointer(load->id, first), llvm::Align(1));
  const LanePattern pattern = PatternOf(first);
  if (pattern.offsets.empty()) return nullptr;
  for (size_t lane = 0; lane < pattern.offsets.size(); ++lane) {
    if (pattern.offsets[lane] != static_cast<int64_t>(lane) * node.extent) return nullptr;
  }
  type = llvm::FixedVectorType::get(type, static_cast<unsigned>(vector_.lanes));
  llvm::Value* pointer = Pointer(load->id, pattern.base);
  llvm::Value* mask = ActiveMask();
  if (mask == nullptr) return builder_.CreateAlignedLoad(type, pointer, llvm::Align(1));
  return builder_.CreateMaskedLoad(type, pointer, llvm::Align(1), mask,
                                   llvm::Constant::getNullValue(type));
}

// False: nothing was emitted.
bool FunctionEmitter::EmitDot(const StmtNode& node) {
  const int lanes = vector_.lanes;
  if (lanes != 4 && lanes != 8 && lanes != 16) return false;
  const std::optional<DotProduct> dot = FindDotProduct(node, *function_);
  if (!dot) return false;
  const StmtNode* store = dot->store;
  statement_values_.clear();
  index_.Bind(node.var, Affine(0));
  const Affine index = index_.Decompose(store->index);
  index_.Bind(node.var, Affine(1));
  if (!index_.DependsOnLane(index) || index_.Decompose(store->index) != index) return false;
  llvm::Value* words[] = {DotWord(dot->left, node), nullptr};
  if (words[0] != nullptr) words[1] = DotWord(dot->right, node);
  if (words[1] == nullptr) return false;
  const auto operand = [&](llvm::Value* word, const Expr& load) {
    return DotOperand(builder_, word, static_cast<unsigned>(lanes), load->dtype, node.extent);
  };
  words[0] = operand(words[0], dot->left);
  words[1] = operand(words[1], dot->right);
  const int buffer = store->buffers[0];
  llvm::Value* sum = arith_.Broadcast(Load(buffer, index), lanes).llvm;
  sum = function_->AddProducts(sum, words[0], words[1]);
  Store(buffer, index, {sum, Of(buffer).dtype, lanes});
  return true;
}

}  // namespace hone::codegen

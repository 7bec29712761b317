#include <bit>

#include "codegen/llvm_emitter.h"
#include "ir/index/simplify.h"

// Asynchronous copies from memory to shared memory. What a padding has in their place is written at
// once: zeros by the copy itself, anything else by a store.
namespace hone::codegen {

using ir::DType;
using ir::Expr;
using ir::ExprKind;

namespace {

/// The value with its innermost choice made for what stands in the place of what is copied.
Expr Filled(const Expr& value) {
  if (value->args[1]->kind != ExprKind::kSelect) return value->args[2];
  return ir::Select(value->args[0], Filled(value->args[1]), value->args[2]);
}

}  // namespace

// False: the store is done at once, as any other.
bool FunctionEmitter::EmitCopy(const ir::StmtNode& node, const Affine& index) {
  constexpr int kNarrowest = 4, kWidest = 16;
  const int buffer = node.buffers[0];
  Expr load = node.values[0], condition;
  bool zeros = true;
  while (load->kind == ExprKind::kSelect) {
    const Expr& other = load->args[2];
    if (ir::HasLoad(load->args[0])) return false;
    zeros =
        zeros && other->kind == ExprKind::kConst && ir::Equal(other, ir::Const(other->dtype, 0));
    condition = condition == nullptr ? load->args[0] : ir::And(condition, load->args[0]);
    load = load->args[1];
  }
  const DType dtype = load->dtype;
  const bool known = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
                     dtype == DType::kI8 || dtype == DType::kU8;
  if (load->kind != ExprKind::kLoad || !known || mask_ != nullptr || guard_ != nullptr ||
      Of(buffer).dtype != dtype || Of(buffer).scope != ir::Scope::kShared ||
      Of(load->id).scope != ir::Scope::kArgument || Of(load->id).dtype != dtype)
    return false;
  const Affine source = index_.Decompose(load->args[0]);
  const auto bytes = static_cast<int>(ir::SizeOf(dtype)) * vector_.active;
  if (bytes < kNarrowest) return false;
  Affine to = index, from = source;
  if (vector_.lanes > 1) {
    if (!std::has_single_bit(static_cast<unsigned>(bytes)) || bytes > kWidest ||
        vector_.lanes != vector_.active || !index_.DependsOnLane(index) ||
        !index_.DependsOnLane(source))
      return false;
    const LanePattern written = PatternOf(index), read = PatternOf(source);
    if (!written.contiguous || !read.contiguous) return false;
    to = written.base;
    from = read.base;
    const llvm::Align whole(static_cast<uint64_t>(bytes));
    if (AlignOf(buffer, to) < whole || AlignOf(load->id, from) < whole) return false;
  }
  llvm::Value* wanted = nullptr;
  if (condition != nullptr) {
    const Value value = Eval(condition);
    if (value.lanes > 1) return false;
    wanted = value.llvm;
  }
  if (zeros)
    return function_->CopyAsync(Pointer(buffer, to), Pointer(load->id, from), bytes, wanted);
  if (!function_->has_copies()) return false;
  Branch(wanted, [&] {
    function_->CopyAsync(Pointer(buffer, to), Pointer(load->id, from), bytes, nullptr);
  });
  Branch(builder_.CreateNot(wanted), [&] {
    ir::StmtNode fill = node;
    fill.extent = 0;
    fill.values[0] = Filled(node.values[0]);
    EmitStore(fill);
  });
  return true;
}

}  // namespace hone::codegen

#pragma once

#include "llvm/IR/IRBuilder.h"

#include "codegen/llvm_instructions.h"
#include "ir/expr.h"
#include "ir/workload.h"

// Scalar and vector arithmetic with the semantics of ir/expr.h.
namespace hone::codegen {

/// An LLVM value and what it means. In registers bool is i1, f16 and bf16 are float (rounded when
/// stored or cast), everything else its own type. lanes is 1 for a scalar.
struct Value {
  llvm::Value* llvm = nullptr;
  ir::DType dtype = ir::DType::kF32;
  int lanes = 1;
  /// f16 and bf16, where known: the elements as in memory, so that what is only moved is not
  /// converted twice.
  llvm::Value* memory = nullptr;
};

/// Emits at the builder's insertion point, by instructions of the machine where it has them.
/// Operands of different lanes are splatted as needed.
class Arith {
 public:
  /// Both must outlive it.
  Arith(llvm::IRBuilder<>* builder, const Instructions& instructions)
      : b_(*builder), instructions_(instructions) {}

  /// The type of values in registers, and of elements in memory (bool i8, bf16 i16, f16 half).
  llvm::Type* TypeOf(ir::DType dtype, int lanes);
  llvm::Type* MemoryType(ir::DType dtype, int lanes);
  Value FromMemory(llvm::Value* value, ir::DType dtype, int lanes);
  llvm::Value* ToMemory(const Value& value);

  Value Int(ir::DType dtype, int64_t value);
  Value Float(ir::DType dtype, double value);
  Value Constant(const ir::ExprNode& node);
  /// One constant of any dtype; integers are truncated from value.
  Value Number(ir::DType dtype, double value);

  Value Broadcast(const Value& value, int lanes);
  Value Unary(ir::UnaryOp op, const Value& a);
  Value Binary(ir::BinaryOp op, const Value& a, const Value& b);
  Value Cast(const Value& value, ir::DType dtype);
  Value Select(const Value& condition, const Value& a, const Value& b);
  /// a * b + c rounded once; folds when a factor is 0, 1 or -1, or c is 0.
  Value Fma(const Value& a, const Value& b, const Value& c);
  Value Not(const Value& a);

  /// The identity of a combiner; `result` 1 is the index of an arg combiner.
  Value Identity(ir::Combiner combiner, ir::DType dtype, int result);
  /// old and values have one entry, or two for tuple combiners; so has the result.
  std::vector<Value> Combine(ir::Combiner combiner, const std::vector<Value>& old,
                             const std::vector<Value>& values);
  /// Folds the lanes of each value into a scalar.
  std::vector<Value> ReduceLanes(ir::Combiner combiner, std::vector<Value> values);
  /// Any lane of a bool vector.
  llvm::Value* AnyLane(llvm::Value* mask);

 private:
  Value ArgWins(ir::Combiner combiner, const std::vector<Value>& a, const std::vector<Value>& b);
  Value FloatBinary(ir::BinaryOp op, const Value& a, const Value& b);
  Value IntBinary(ir::BinaryOp op, const Value& a, const Value& b);
  Value FloatUnary(ir::UnaryOp op, const Value& a);
  Value IntUnary(ir::UnaryOp op, const Value& a);
  Value Compare(ir::BinaryOp op, const Value& a, const Value& b);
  Value IntDivide(ir::BinaryOp op, const Value& a, const Value& b);
  Value IntPower(const Value& a, const Value& b);
  Value FloatRemainder(ir::BinaryOp op, const Value& a, const Value& b);
  Value FloatMinMax(ir::BinaryOp op, const Value& a, const Value& b);
  Value Shift(ir::BinaryOp op, const Value& a, const Value& b);
  Value CastFromFloat(const Value& value, ir::DType dtype);
  Value CastFromInt(const Value& value, ir::DType dtype);
  llvm::Value* SaturateLanes(llvm::Value* x, ir::DType dtype, int lanes);
  llvm::Value* RoundToOddF32(llvm::Value* value, int lanes);
  llvm::Value* ToBF16(llvm::Value* value, int lanes);
  llvm::Value* Splat(llvm::Type* type, double value);
  llvm::Value* SplatInt(llvm::Type* type, int64_t value);

  llvm::IRBuilder<>& b_;
  const Instructions& instructions_;
};

}  // namespace hone::codegen

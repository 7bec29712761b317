#include "codegen/vector_math.h"
namespace hone::codegen {
llvm::Value* VectorMath::Unary(ir::UnaryOp, llvm::Value* x) { return x; }
llvm::Value* VectorMath::Pow(llvm::Value* x, llvm::Value*) { return x; }
llvm::Value* VectorMath::Fmod(llvm::Value* x, llvm::Value*) { return x; }
}

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include "base/status.h"
#include "codegen/llvm_instructions.h"
#include "codegen/llvm_tile_unit.h"
#include "ir/per_kind.h"
#include "ir/stmt.h"
#include "ir/target.h"
#include "ir/wgmma.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

// What depends on the kind of device while a loop nest becomes LLVM IR: the function around the
// code of a phase. Statements, addresses and arithmetic are the FunctionEmitter's, for all kinds.
namespace hone::codegen {

/// Where a phase function is made. The builder is the emitter's: what stands around a phase goes
/// where it points.
struct PhaseContext {
  const ir::LoopNest* nest = nullptr;
  const ir::Phase* phase = nullptr;
  llvm::Module* module = nullptr;
  llvm::IRBuilder<>* builder = nullptr;

  const ir::Buffer& Of(int buffer) const { return nest->buffers[static_cast<size_t>(buffer)]; }
};

/// The function of one phase, used once, in the order of its methods.
class PhaseFunction {
 public:
  explicit PhaseFunction(const PhaseContext& context) : context_(context) {}
  virtual ~PhaseFunction() = default;

  /// f32 lanes of a vector: a machine register, or the widest access to memory.
  virtual int lanes() const = 0;
  /// What may stand for arithmetic; by default nothing. It lives as long as the program.
  virtual const Instructions& instructions() const {
    static const Instructions none;
    return none;
  }
  /// What x86 has for sums of products of bytes: nothing that may be used, products of pairs
  /// (vpmaddwd), or VNNI's too.
  enum class ByteProducts : uint8_t { kNone, kPairs, kVnni };
  virtual ByteProducts byte_products() const { return ByteProducts::kNone; }
  /// f32 sums of products of pairs of bf16. The instruction takes denormals for zeros, makes none
  /// and rounds to nearest, so a sum is as far from the exact one as a serial sum in f32 may be,
  /// except by what denormals amount to (2^-126 for each product or factor).
  virtual bool has_bf16_products() const { return false; }
  /// Sums [lanes] plus, for each lane, the products of its neighbours. i32: of two numbers of 16
  /// bits or, where byte_products() is kVnni, of four bytes (the left ones unsigned, the right ones
  /// signed), only where byte_products() is not kNone; f32: of two bf16 where has_bf16_products().
  /// 4, 8 or 16 lanes.
  virtual llvm::Value* AddProducts(llvm::Value* /*sums*/, llvm::Value* /*left*/,
                                   llvm::Value* /*right*/) {
    return nullptr;
  }
  /// Several threads run this code at once and share buffers: nothing is read that is not wanted.
  virtual bool has_threads() const { return false; }
  /// Accesses to memory say how far they are known to be aligned: the machine needs to know.
  virtual bool wants_alignment() const { return false; }

  /// Bytes of shared memory that a block may have; 0: the machine has none.
  virtual int64_t most_shared_bytes() const { return 0; }

  /// Declares the function, for a phase that uses these buffers, and moves the builder to its
  /// entry.
  virtual llvm::Function* Declare(const std::set<int>& used) = 0;
  /// In the entry: where an argument, scratch or shared buffer lies. Null: the machine has no such
  /// memory.
  virtual llvm::Value* Base(int buffer) = 0;
  /// Ends the entry and moves the builder to where the body begins.
  virtual void BeginBody() = 0;

  /// A loop whose iterations this call runs a part of, [begin, end), both i64.
  struct Part {
    llvm::Value* begin = nullptr;
    llvm::Value* end = nullptr;
  };
  virtual Part ParallelPart() { return {}; }
  /// The i64 index of this kind of loop, for loops that are not run but launched; null: it is none.
  virtual llvm::Value* LaunchedIndex(ir::LoopKind kind) = 0;
  /// The i64 iteration of the step loop.
  virtual llvm::Value* Step() = 0;
  /// All threads of a block wait for each other. False: on this machine one thread runs the whole
  /// nest.
  virtual bool Barrier() { return false; }
  /// The value that the lane `apart` (a power of two) numbers away has, in groups of so many lanes
  /// that all come here; f32, f64, i32 and i64. Null: the machine has no lanes.
  virtual llvm::Value* OtherLane(llvm::Value* /*value*/, int64_t /*apart*/, int64_t /*lanes*/) {
    return nullptr;
  }
  /// Whether it has what CopyAsync begins.
  virtual bool has_copies() const { return false; }
  /// Begins to copy 4, 8 or 16 bytes, aligned so, from an argument to shared memory. `wanted` (i1):
  /// false: zeros are written and nothing is read; null: true. False: the machine has no such
  /// copies.
  virtual bool CopyAsync(llvm::Value* /*to*/, llvm::Value* /*from*/, int /*bytes*/,
                         llvm::Value* /*wanted*/) {
    return false;
  }
  /// Ends a group of copies; waits until so many groups are left. Without copies there is nothing
  /// to do.
  virtual void CommitCopies() {}
  virtual void AwaitCopies(int64_t /*groups*/) {}
  /// Whether warps of 32 threads multiply matrices of f16, of bf16 and of bytes, which they fetch
  /// from shared memory together.
  virtual bool has_mma() const { return false; }
  /// `count` (2 or 4) matrices of 8 by 8 numbers of 16 bits, an i32 of two numbers of each for
  /// every lane; lane l gives the address of row l mod 8 of matrix l div 8, 16 bytes. Lane l has
  /// the numbers 2·(l mod 4) and the next one of row l div 4, where `turned` of that column.
  virtual std::vector<llvm::Value*> FetchMatrices(llvm::Value* /*row*/, int /*count*/,
                                                  bool /*turned*/) {
    return {};
  }
  /// The four sums of each lane plus the product of 16 by 16 and 16 by 8 numbers, or of 16 by 32
  /// and 32 by 8 bytes, of which the lane has four and two words (ir/mma.h).
  virtual std::vector<llvm::Value*> MultiplyMatrices(ir::DType /*first_dtype*/,
                                                     ir::DType /*second_dtype*/,
                                                     const std::vector<llvm::Value*>& /*first*/,
                                                     const std::vector<llvm::Value*>& /*second*/,
                                                     const std::vector<llvm::Value*>& /*sums*/) {
    return {};
  }
  /// Whether four warps begin to multiply matrices in shared memory together (ir/wgmma.h).
  virtual bool has_wgmma() const { return false; }
  /// The same value, which all lanes of a warp have, known to be so.
  virtual llvm::Value* Uniform(llvm::Value* value) { return value; }
  /// A factor of wgmma: where its element (0, 0) stands, `further` (an i64, in 16 bytes; null:
  /// none) behind a place that no loop moves; that of each 16 terms in bytes from there, and its
  /// layout.
  struct GroupFactor {
    llvm::Value* begin = nullptr;
    llvm::Value* further = nullptr;
    std::vector<int64_t> terms;
    ir::FactorLayout layout;
  };
  /// Begins to add the product of 64 rows and so many columns to the lane's sums: two neighbours of
  /// its first row and two of its second for each eight columns. What it gives is not to be touched
  /// before AwaitProducts.
  virtual std::vector<llvm::Value*> BeginProducts(ir::DType /*dtype*/, int64_t /*columns*/,
                                                  const GroupFactor& /*first*/,
                                                  const GroupFactor& /*second*/,
                                                  const std::vector<llvm::Value*>& /*sums*/) {
    return {};
  }
  /// Waits until so many of the latest BeginProducts are on their way; `sums`: of all of them.
  virtual std::vector<llvm::Value*> AwaitProducts(int64_t /*loops*/,
                                                  const std::vector<llvm::Value*>& sums) {
    return sums;
  }
  /// What this thread wrote to shared memory is there for BeginProducts.
  virtual void ShowToProducts() {}
  /// Begins barriers in shared memory, for others after the next Barrier().
  virtual void BeginBarriers(llvm::Value* /*first*/, int64_t /*count*/) {}
  /// So many bytes will arrive at the barrier, and all that it waits for is known.
  virtual void ExpectBytes(llvm::Value* /*barrier*/, int64_t /*bytes*/) {}
  /// Waits until the barrier's phase of this parity, an i64, has ended.
  virtual void AwaitPhase(llvm::Value* /*barrier*/, llvm::Value* /*parity*/) {}
  /// Begins to copy a box of the tensor of this map, from row and column (i64) on.
  virtual void CopyBox(int /*map*/, llvm::Value* /*to*/, llvm::Value* /*row*/,
                       llvm::Value* /*column*/, llvm::Value* /*barrier*/) {}
  /// What multiplies tiles in registers; null: the machine has none. It lives as long as this.
  virtual TileUnit* tiles() { return nullptr; }
  /// A hint that this address will be read.
  virtual void Prefetch(llvm::Value* pointer) = 0;
  /// Ends the phase with a result other than 0; the builder's block is closed.
  virtual void Leave(int32_t result) = 0;
  /// Ends the body.
  virtual void Finish() = 0;
  virtual void Erase() = 0;

 protected:
  const PhaseContext context_;
};

/// A kind of device, as far as making code for it goes.
class Backend {
 public:
  virtual ~Backend() = default;
  /// LLVM's code generator for the target's chip. Errors: TargetMachineFor.
  virtual absl::StatusOr<llvm::TargetMachine*> Machine(const ir::Target& target) const = 0;
  virtual std::unique_ptr<PhaseFunction> NewFunction(const PhaseContext& context,
                                                     const ir::Target& target) const = 0;
};

ir::PerKind<Backend>& BackendsOfKinds();

}  // namespace hone::codegen
